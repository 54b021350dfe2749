/** Summarizes a test run in one line, as the reply to an upload and the command line print it. */

import { toShardList } from "../rules/shards.ts";
import type { UploadedRun } from "../schema/test_runs.ts";
import { blameCountWords } from "./blame.ts";
import { singleLine } from "./single_line.ts";

type ReportedField =
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
export type ReportedRun = Pick<UploadedRun, ReportedField>;

/** Returns " (1 new, 2 known flaky)". */
function blamesOf({ outage, counts }: ReportedRun): string {
  if (outage) return " (an outage)";
  const words = blameCountWords(counts);
  return words === "" ? "" : ` (${words})`;
}

/** Returns "FAILED", "PASSED", "INCOMPLETE" or "WAITING" for shards. An incomplete run has not passed, even if nothing failed yet. */
export function runState({ status, verdict }: Pick<ReportedRun, "status" | "verdict">): string {
  if (status === "running" && verdict === "passed") return "WAITING";
  return (status === "incomplete" ? status : verdict).toUpperCase();
}

/** Returns what is missing, or what makes the run red besides its failing tests. */
function toShards({ reason, arrivedShards, missingShards }: ReportedRun): string {
  if (reason) return `${reason}; `;
  if (missingShards.length === 0) return "";
  const all = arrivedShards.length + missingShards.length;
  return `${arrivedShards.length} of ${all} shards, missing ${toShardList(missingShards)}; `;
}

/** Returns "3 passed, 1 failed (1 new), 0 skipped, attempt 1". */
export function runCounts(run: ReportedRun): string {
  const counts = [`${run.passed} passed`, `${run.failed} failed${blamesOf(run)}`, `${run.skipped} skipped`];
  if (run.flaky > 0) counts.push(`${run.flaky} flaky`);
  if (run.warnings.length > 0) counts.push(run.warnings.length === 1 ? "1 warning" : `${run.warnings.length} warnings`);
  return `${toShards(run)}${counts.join(", ")}, attempt ${run.attempt}`;
}

/** Returns the line without a line break at its end. */
export function toRunLine(run: ReportedRun): string {
  return `${runState(run)} ${singleLine(run.taskSlug)}: ${runCounts(run)} ${run.url}`;
}
