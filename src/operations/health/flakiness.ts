/** Decides anew which test cases are flaky, after their runs have been counted. */

import { isLongLived } from "../../rules/branch.ts";
import { DISTURBED, isDisturbed } from "../../rules/health.ts";
import { judgeFlakiness, type OwnFailure, type OwnSign } from "../../rules/flakiness.ts";
import { readRates } from "../../rules/flaky_rates.ts";
import type { Tx } from "../../database/connect.ts";
import { insertFlakinessEvents } from "../../store/events.ts";
import {
  deleteFlakes,
  selectConcerned,
  selectFlakinessFacts,
  selectRetriedBuilds,
  selectContradicted,
  updateFlakiness,
  markContradicted,
} from "../../store/flakiness.ts";
import { selectFlakyRates } from "../../store/flaky_rates.ts";

/** Number of test cases that are decided in one statement. */
const BATCH_SIZE = 500;

const LETTERS: Record<OwnSign, string> = { retry: "r", same_commit: "c", unexplained: "u" };

type RetriedRun = { id: string; flaky: number };

/** Ignores passes on retry in a build in which so many test cases passed on retry for the first time that its machine is the cause. */
export async function discardDisturbedFlakes(sql: Tx, projectId: string, runs: readonly RetriedRun[]): Promise<void> {
  const retried = runs.flatMap(({ id, flaky }) => (flaky > 0 ? id : []));
  if (retried.length === 0) return;
  const builds = await selectRetriedBuilds(sql, projectId, retried, DISTURBED.cases);
  const disturbed = builds.filter((build) => isDisturbed(build.fresh, build));
  if (disturbed.length > 0)
    await deleteFlakes(
      sql,
      projectId,
      disturbed.map(({ executionId }) => executionId),
    );
}

/** Decides flakiness again, in a transaction that holds `lockHealth`. `announced` are the runs whose changes cause events. */
export async function refreshFlakiness(
  sql: Tx,
  projectId: string,
  runIds: readonly string[],
  announced: ReadonlySet<string>,
): Promise<void> {
  const concerned = new Set(await selectConcerned(sql, projectId, runIds));
  for (const again of await selectContradicted(sql, projectId, runIds)) {
    if (isDisturbed(again.testCases.length - again.flaky, again)) continue;
    await markContradicted(sql, projectId, again);
    for (const testCase of again.testCases) concerned.add(testCase);
  }
  if (concerned.size === 0) return;
  const rates = readRates(await selectFlakyRates(sql, projectId));
  const numbers = [...concerned];
  for (let start = 0; start < numbers.length; start += BATCH_SIZE) {
    const facts = await selectFlakinessFacts(sql, projectId, numbers.slice(start, start + BATCH_SIZE));
    const decided = facts.map((test) => {
      const isOfLine = ({ branch, pullRequest, isOnDefault }: (typeof test.failures)[number]) =>
        isOnDefault || (pullRequest === null && branch !== null && isLongLived(branch, test.longLivedBranches));
      const failures = test.failures.map((one): OwnFailure => {
        return { ...one, place: isOfLine(one) ? one.runId : (one.pullRequest ?? one.branch ?? "") };
      });
      const flakiness = judgeFlakiness(rates, failures, test);
      const signs = [...new Set(flakiness.own.map(({ sign }) => LETTERS[sign]))].join("");
      return { ...test, ...flakiness, signs, isChanged: test.flaky !== flakiness.flaky };
    });
    if (decided.length > 0) await updateFlakiness(sql, projectId, decided);
    const changed = decided.filter(({ isChanged }) => isChanged);
    // A test that was decided by an older run turns with the last one.
    const runOf = ({ lastRunId }: (typeof changed)[number]) =>
      lastRunId !== null && runIds.includes(lastRunId) ? lastRunId : runIds.at(-1)!;
    for (const [runId, tests] of Map.groupBy(changed, runOf))
      if (announced.has(runId)) await insertFlakinessEvents(sql, projectId, runId, tests);
  }
}
