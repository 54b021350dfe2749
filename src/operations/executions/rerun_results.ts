/** Keeps what reruns make of the results of their builds. */

import { outcomeOf } from "../../rules/run_outcome.ts";
import { toBuildResults } from "../../rules/rerun_results.ts";
import type { Tx } from "../../database/connect.ts";
import { selectQuarantined } from "../../store/case_results.ts";
import { selectResultsBefore, selectLastReruns, updateRerun } from "../../store/absent_tests.ts";
import { selectRuns } from "../../store/test_runs.ts";

/** After a run of a build or of one of its reruns has changed or is gone: the last rerun of each task is what the build comes to. */
export async function refreshReruns(sql: Tx, projectId: string, buildId: string): Promise<void> {
  for (const { id, executionId, taskSlug, quarantined } of await selectLastReruns(sql, projectId, buildId)) {
    const runs = await selectRuns(sql, projectId, [{ executionId, taskSlug }], { isLocked: true });
    const run = runs.find((one) => one.id === id)!;
    const task = { buildId, executionId, taskSlug };
    const earlier = await selectResultsBefore(sql, projectId, task, { runId: id, fresh: [] });
    const ignored = await selectQuarantined(sql, projectId, earlier.notRerun);
    const { passed, failed, skipped, shards } = run;
    const counts = { passed, failed, skipped, quarantined, notRerun: earlier.notRerun.length - ignored.size };
    const { verdict } = outcomeOf(run, run.attempts!, shards, counts);
    await updateRerun(sql, projectId, id, { ...toBuildResults(run, earlier), verdict });
  }
}
