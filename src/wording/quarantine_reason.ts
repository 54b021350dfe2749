/** The evidence that an automatic quarantine states as its reason. */

import { type FlakeCounts, flakeWords } from "./flake_rate.ts";

/** The meanings of the letters of `case_health.flaky_signs`. */
const SIGNS: Record<string, string> = {
  r: "passed on retry",
  c: "passed again on the same commit",
};

/** Returns "Flaky: failed 4 of the last 50 results (8 %), passed on retry at 1a2b3c4"; `commit` is that of the event. */
export function quarantineReason(
  { flakySigns, ...counts }: FlakeCounts & { flakySigns: string },
  commit: string | null,
): string {
  const sign = SIGNS[flakySigns.at(0) ?? ""];
  const at = commit === null ? "" : ` at ${commit.slice(0, 7)}`;
  return `Flaky: ${flakeWords(counts)}${sign === undefined ? "" : `, ${sign}${at}`}`;
}
