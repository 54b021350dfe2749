/** The evidence that an automatic quarantine states as its reason. */

import { counted } from "./numbers.ts";

/** What each letter of `case_health.flaky_signs` says. */
const SIGNS: Record<string, string> = {
  r: "passed on retry",
  c: "passed and failed on the same commit",
  e: "failed in short episodes on the default branch",
};

/** Returns "Flaky: failed 4 of the last 50 results, passed on retry at 1a2b3c4"; `commit` is that of the event. */
export function quarantineReason(
  { recent, flakySigns }: { recent: string; flakySigns: string },
  commit: string | null,
): string {
  // A capital P is a sign as well: the test passed after a failure of the same run, or passed where another run failed.
  const failed = flakySigns.includes("r") ? "fFP" : "fF";
  const failures = Array.from(recent).filter((letter) => failed.includes(letter)).length;
  const last = `the last ${counted(recent.length, "result")}`;
  // The event was caused by the first sign.
  const sign = SIGNS[flakySigns.at(0) ?? ""];
  const at = commit === null ? "" : ` at ${commit.slice(0, 7)}`;
  return `Flaky: failed ${failures} of ${last}${sign === undefined ? "" : `, ${sign}${at}`}`;
}
