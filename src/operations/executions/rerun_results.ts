/** Keeps what reruns make of the results of their builds. */

import { isOutsideOfTests, isRepeated, type ReplacedFailure } from "../../rules/outside_of_tests.ts";
import { type Result, toStatus } from "../../rules/merge.ts";
import { latestAttempts, outcomeOf } from "../../rules/run_outcome.ts";
import { toBuildResults } from "../../rules/rerun_results.ts";
import type { Tx } from "../../database/connect.ts";
import { selectQuarantined } from "../../store/case_results.ts";
import {
  type EarlierResults,
  type RerunTask,
  selectLastReruns,
  selectResultsBefore,
  updateRerun,
} from "../../store/absent_tests.ts";
import { selectCasesThatRan, selectNamedCases } from "../../store/outside_failures.ts";
import { selectRuns } from "../../store/test_runs.ts";

/**
 * The results of the build that a rerun does not repeat. A failure outside of tests is over where the rerun, `runId` with `fresh` results, has
 * run tests of the same place.
 */
export async function findNotRerun(
  sql: Tx,
  projectId: string,
  task: RerunTask,
  { runId, fresh, isComplete }: { runId: string | undefined; fresh: readonly Result[]; isComplete: boolean },
): Promise<{ earlier: EarlierResults; replaced: ReplacedFailure[] }> {
  const earlier = await selectResultsBefore(sql, projectId, task, { runId, fresh });
  const named = earlier.notRerun.length === 0 ? [] : await selectNamedCases(sql, projectId, earlier.notRerun);
  const outside = named.filter(isOutsideOfTests);
  if (outside.length === 0) return { earlier, replaced: [] };
  const ran = fresh.flatMap(({ testCase, letter }) => (toStatus(letter) === "skipped" ? [] : testCase));
  const places = (await selectCasesThatRan(sql, projectId, runId, ran)).filter((one) => !isOutsideOfTests(one));
  const replaced = outside
    .filter((one) => isRepeated(one, places, { isComplete }))
    .map((one) => ({ ...one, attempt: null }));
  const over = new Set(replaced.map(({ testCase }) => testCase));
  return { earlier: { ...earlier, notRerun: earlier.notRerun.filter((one) => !over.has(one)) }, replaced };
}

/** After a run of a build or of one of its reruns has changed or is gone: the last rerun of each task is what the build comes to. */
export async function refreshReruns(sql: Tx, projectId: string, buildId: string): Promise<void> {
  for (const { id, executionId, taskSlug, quarantined, shadowed } of await selectLastReruns(sql, projectId, buildId)) {
    const runs = await selectRuns(sql, projectId, [{ executionId, taskSlug }]);
    const run = runs.find((one) => one.id === id)!;
    const attempts = run.attempts!;
    const isComplete = !latestAttempts(attempts).some(({ partial }) => partial);
    const task = { buildId, executionId, taskSlug };
    const { earlier } = await findNotRerun(sql, projectId, task, { runId: id, fresh: [], isComplete });
    const ignored = await selectQuarantined(sql, projectId, earlier.notRerun);
    const { passed, failed, skipped, shards } = run;
    const counts = { passed, failed, skipped, quarantined, shadowed, notRerun: earlier.notRerun.length - ignored.size };
    const { verdict } = outcomeOf(run, attempts, shards, counts);
    await updateRerun(sql, projectId, id, { ...toBuildResults(run, earlier), verdict });
  }
}
