/** Outages of a whole execution: what a task shows of it may be seen only when others have reported. */

import { trackBugs } from "../bugs/bug_reports.ts";
import { judgeFailures } from "./judge.ts";
import { isOutageTogether, mayBeOutage } from "../../rules/run_outcome.ts";
import type { Tx } from "../../database/connect.ts";
import { lockBugs } from "../../store/bug_reports.ts";
import { withdrawOccurrences } from "../../store/bug_occurrences.ts";
import { type RunRow, updateOutage } from "../../store/test_runs.ts";
import type { TrackedRun } from "../bugs/bug_reports.ts";

/** Picks the complete runs that are judged otherwise now that all of these are known. A run that is counted stays as it is. */
export const changedByOthers = (runs: readonly RunRow[]): RunRow[] => {
  const complete = runs.filter(({ completedAt }) => completedAt !== null);
  const outage = isOutageTogether(complete);
  return (
    complete
      .filter((run) => mayBeOutage(run) && run.healthApplied !== true && run.outage !== outage)
      // Tasks that pass show that it never was one.
      .map((run) => ({ ...run, outage, wasOutage: outage }))
  );
};

/**
 * In the transaction of the upload that has shown it: these runs are judged anew, and what they had made of their failures is
 * taken back.
 */
export async function judgeAgain(
  sql: Tx,
  projectId: string,
  runs: readonly RunRow[],
  toTracked: (run: RunRow) => TrackedRun,
): Promise<void> {
  if (runs.length === 0) return;
  await lockBugs(sql, projectId);
  for (const run of runs) {
    const tracked = toTracked(run);
    await updateOutage(sql, projectId, run);
    await judgeFailures(sql, projectId, [{ ...run, isJudged: true }]);
    await withdrawOccurrences(sql, projectId, tracked);
    await trackBugs(sql, projectId, [tracked]);
  }
}
