/** Judges failures again when later reports give more evidence about them. */

import { explainFailures, judgeFailures, type RunToJudge } from "./judge.ts";
import { type TrackedRun, trackBugs } from "../bugs/bug_reports.ts";
import { announceChange } from "../executions/end_events.ts";
import { isOnDefaultBranch } from "../executions/origin.ts";
import { countChanges } from "../health/case_records.ts";
import { INCIDENT } from "../../rules/health.ts";
import type { Tx } from "../../database/connect.ts";
import { lockBugs } from "../../store/bug_reports.ts";
import { withdrawOccurrences } from "../../store/bug_occurrences.ts";
import { lockExecutionIfFree, type LockedExecution } from "../../store/executions.ts";
import { selectIncidentCases } from "../../store/failures.ts";
import { type EarlierRun, selectEarlierRuns } from "../../store/judged_again.ts";
import { type RunRow, updateOutage } from "../../store/test_runs.ts";

/** Judges runs again whose `outage` has changed, in the transaction of the upload that has changed it. */
export async function judgeAgain(
  sql: Tx,
  projectId: string,
  runs: readonly RunRow[],
  toTracked: (run: RunRow) => TrackedRun,
): Promise<void> {
  if (runs.length === 0) return;
  await lockBugs(sql, projectId);
  for (const run of runs) {
    await updateOutage(sql, projectId, run);
    await replaceJudgement(sql, projectId, { ...run, isJudged: true }, toTracked(run));
  }
}

/** Replaces the judgement of a run. Its failures are withdrawn from their bugs; a bug that the run had opened is deleted. */
async function replaceJudgement(sql: Tx, projectId: string, run: RunToJudge, tracked: TrackedRun): Promise<void> {
  await judgeFailures(sql, projectId, [run]);
  await withdrawOccurrences(sql, projectId, tracked);
  await trackBugs(sql, projectId, [tracked]);
}

/**
 * Judges earlier runs again, in a transaction that holds `lockHealth`, after the runs in `runIds` were counted. An earlier run with many
 * failures may have been blamed on its change, because no other build had those failures yet. If one of these runs now has the same
 * failures with a cause outside of the code, the earlier run was disturbed as well.
 */
export async function judgeEarlierRuns(sql: Tx, projectId: string, runIds: readonly string[]): Promise<void> {
  for (const run of await selectEarlierRuns(sql, projectId, runIds)) {
    // Waiting could deadlock: an upload that holds this lock may wait for `lockHealth`. The next run with these failures tries again.
    const execution = await lockExecutionIfFree(sql, projectId, run.executionId);
    if (!execution) continue;
    const again: RunToJudge = { ...run, isJudged: true, isCounted: true, isSeenLater: true };
    const before = await selectIncidentCases(sql, projectId, run.id);
    const { failures } = await explainFailures(sql, projectId, [again]);
    const changes = failures.flatMap(({ blame, testCase }) =>
      blame !== "incident" || before.has(testCase) ? [] : { testCase, before: "f", letter: INCIDENT, durationMs: null },
    );
    // A run whose judgement does not change keeps its bugs.
    if (changes.length === 0) continue;
    const tracked = toTracked(run, execution);
    await lockBugs(sql, projectId);
    await replaceJudgement(sql, projectId, again, tracked);
    await countChanges(sql, projectId, { ...run, onDefaultBranch: tracked.onDefaultBranch }, changes);
    await announceChange(sql, projectId, execution);
  }
}

function toTracked(run: EarlierRun, execution: LockedExecution): TrackedRun {
  const { branch, commit, depth, createdAt } = execution;
  return {
    ...run,
    ...{ branch, commit, depth, resolving: undefined, isMuted: false, seenAt: run.completedAt },
    onDefaultBranch: isOnDefaultBranch(execution, execution),
    startedAt: run.completedAt < createdAt ? run.completedAt : createdAt,
  };
}
