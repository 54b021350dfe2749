/** Judges failures once more, when later reports tell more of them. */

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

/** In the transaction of the upload that shows it: these runs are part of an outage, or no longer are. */
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

/** Judges the run anew. The bugs that its failures had joined are left, or deleted if it had opened them. */
async function replaceJudgement(sql: Tx, projectId: string, run: RunToJudge, tracked: TrackedRun): Promise<void> {
  await judgeFailures(sql, projectId, [run]);
  await withdrawOccurrences(sql, projectId, tracked);
  await trackBugs(sql, projectId, [tracked]);
}

/**
 * In a transaction that holds `lockHealth`, after these runs were counted. Many failures at once were put down to a change, as no other
 * build had them: where these runs have them too, for a cause outside of the code, the earlier runs are judged once more.
 */
export async function judgeEarlierRuns(sql: Tx, projectId: string, runIds: readonly string[]): Promise<void> {
  for (const run of await selectEarlierRuns(sql, projectId, runIds)) {
    // An upload holds it and may wait for what this transaction holds. The next run that has these failures finds it again.
    const execution = await lockExecutionIfFree(sql, projectId, run.executionId);
    if (!execution) continue;
    const again: RunToJudge = { ...run, isJudged: true, isCounted: true, isSeenLater: true };
    const before = await selectIncidentCases(sql, projectId, run.id);
    const { failures } = await explainFailures(sql, projectId, [again]);
    const changes = failures.flatMap(({ blame, testCase }) =>
      blame !== "incident" || before.has(testCase) ? [] : { testCase, before: "f", letter: INCIDENT, durationMs: null },
    );
    // A run that would be judged as before keeps its bugs.
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
