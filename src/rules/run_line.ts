/** One line for people about a test run, as the answer to an upload tells it. */

import { toBlameWords } from "./blame.ts";
import { toShardList } from "./shards.ts";
import type { UploadedRun } from "../schema/test_runs.ts";

type Told =
  | "taskSlug"
  | "passed"
  | "failed"
  | "skipped"
  | "flaky"
  | "warnings"
  | "status"
  | "verdict"
  | "outage"
  | "attempt"
  | "url"
  | "arrivedShards"
  | "missingShards"
  | "counts"
  | "reason";
export type ToldRun = Pick<UploadedRun, Told>;

/** " (1 new, 2 known flaky)" */
function blamesOf({ outage, counts }: ToldRun): string {
  if (outage) return " (an outage)";
  const words = toBlameWords(counts);
  return words === "" ? "" : ` (${words})`;
}

/** "FAILED", "PASSED", "INCOMPLETE" or "WAITING" for shards; what is not all in has not passed, only not failed yet. */
export function toState({ status, verdict }: Pick<ToldRun, "status" | "verdict">): string {
  if (status === "running" && verdict === "passed") return "WAITING";
  return (status === "incomplete" ? status : verdict).toUpperCase();
}

/** What is missing, or what makes it red beside its failing tests. */
function toShards({ reason, arrivedShards, missingShards }: ToldRun): string {
  if (reason) return `${reason}; `;
  if (missingShards.length === 0) return "";
  const all = arrivedShards.length + missingShards.length;
  return `${arrivedShards.length} of ${all} shards, missing ${toShardList(missingShards)}; `;
}

/** "3 passed, 1 failed (1 new), 0 skipped, attempt 1" */
export function toCountWords(run: ToldRun): string {
  const counts = [`${run.passed} passed`, `${run.failed} failed${blamesOf(run)}`, `${run.skipped} skipped`];
  if (run.flaky > 0) counts.push(`${run.flaky} flaky`);
  if (run.warnings.length > 0) counts.push(run.warnings.length === 1 ? "1 warning" : `${run.warnings.length} warnings`);
  return `${toShards(run)}${counts.join(", ")}, attempt ${run.attempt}`;
}

/** Without a line break at its end. */
export function toRunLine(run: ToldRun): string {
  // A slug is free text: it must not break the line.
  const slug = run.taskSlug.replace(/\p{C}+/gu, " ");
  return `${toState(run)} ${slug}: ${toCountWords(run)} ${run.url}`;
}
