/** Finds what explains the failures of runs. */

import { findIncidents } from "./incidents.ts";
import { applyInfrastructureRules } from "./infrastructure.ts";
import { assignBlame, type BlamedFailure } from "../../rules/assign_blame.ts";
import { toCounts } from "../../rules/blame.ts";
import { findCrossBranchFlakes } from "../../rules/cross_branch_flakes.ts";
import type { Blame, BlameCounts } from "../../schema/failures.ts";
import { setKeepsPlans, type Tx } from "../../database/connect.ts";
import { clearInfrastructure } from "../../store/infrastructure_rules.ts";
import { selectFailureFacts } from "../../store/failure_facts.ts";
import {
  deleteFailures,
  insertFailures,
  type JudgedFailures,
  type JudgedRun,
  selectJudged,
} from "../../store/failures.ts";
import { selectCrossBranchFailures, updateCrossBranchFlakes } from "../../store/cross_branch_failures.ts";

/** More new failures in one run come from the change, not from flaky test cases: their records need not be looked up. */
const MAX_STRAYS = 20;

export type RunToJudge = JudgedRun & {
  passed: number;
  failed: number;
  flaky: number;
  outage: boolean;
  untrusted: boolean;
  /** It was judged before, after an earlier attempt. */
  isJudged: boolean;
  onDefaultBranch: boolean;
};

/** In the transaction of their uploads: stores what explains each failure of these runs; the counts are by run id. */
export async function judgeFailures(
  sql: Tx,
  projectId: string,
  runs: readonly RunToJudge[],
): Promise<Map<string, BlameCounts>> {
  for (const { id } of runs.filter(({ isJudged }) => isJudged)) {
    await deleteFailures(sql, projectId, id);
    await clearInfrastructure(sql, projectId, id);
  }
  const counts = new Map(runs.map(({ id }) => [id, toCounts({})]));
  // An outage blames nobody.
  const concerned = runs.filter(({ failed, flaky, outage }) => (failed > 0 || flaky > 0) && !outage);
  const failed = concerned.filter((run) => run.failed > 0);
  if (failed.length === 0) {
    if (concerned.length > 0) await applyInfrastructureRules(sql, projectId, concerned);
    return counts;
  }
  const blamed = (await selectFailureFacts(sql, projectId, failed)).map(assignBlame);
  await insertFailures(sql, projectId, blamed);
  const byRun = Map.groupBy(blamed, ({ runId }) => runId);
  const matched = await applyInfrastructureRules(sql, projectId, concerned);
  for (const run of failed) {
    const judged = matched.has(run.id)
      ? await selectJudged(sql, projectId, run.id)
      : groupByBlame(byRun.get(run.id) ?? []);
    counts.set(run.id, await excuseFailures(sql, projectId, run, judged));
  }
  return counts;
}

const groupByBlame = (failures: readonly BlamedFailure[]): JudgedFailures[] =>
  [...Map.groupBy(failures, ({ blame }) => blame)].map(([blame, of]) => {
    return { blame, number: of.length, testCases: of.map(({ testCase }) => testCase) };
  });

/** New failures that an incident or other branches explain are no longer new. Counts the failures of the run. */
async function excuseFailures(
  sql: Tx,
  projectId: string,
  run: RunToJudge,
  blamed: readonly JudgedFailures[],
): Promise<BlameCounts> {
  // An untrusted run is compared, but it is no evidence: it does not show an incident, or that a machine is unhealthy.
  if (countNew(blamed) === 0 || run.untrusted) return toCounts(countByBlame(blamed));
  // What follows wants a plan for what it is given.
  await setKeepsPlans(sql, false);
  const isIncident = await findIncidents(sql, projectId, run, countNew(blamed));
  const judged = isIncident ? await selectJudged(sql, projectId, run.id) : blamed;
  const counts = countByBlame(judged);
  const fresh = judged.find(({ blame }) => blame === "new");
  // What a branch has brought to the default branch fails there in the same words, and is new there.
  if (fresh && fresh.number <= MAX_STRAYS && !run.onDefaultBranch) {
    const record = await selectCrossBranchFailures(sql, projectId, run, fresh.testCases);
    const strays = findCrossBranchFlakes(
      record,
      record.some(({ isMine, isLongLived }) => isMine && isLongLived),
    );
    if (strays.length > 0) await updateCrossBranchFlakes(sql, projectId, run.id, strays);
    counts.new = fresh.number - strays.length;
    for (const { blame } of strays) counts[blame] = (counts[blame] ?? 0) + 1;
  }
  return toCounts(counts);
}

const countByBlame = (judged: readonly JudgedFailures[]): Partial<Record<Blame, number>> =>
  Object.fromEntries(judged.map(({ blame, number }) => [blame, number]));

const countNew = (judged: readonly JudgedFailures[]) => judged.find(({ blame }) => blame === "new")?.number ?? 0;
