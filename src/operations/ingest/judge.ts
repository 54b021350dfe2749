/** Finds and stores the most likely explanation of each failure of a run. */

import { applyInfrastructureRules } from "./infrastructure.ts";
import { loadOdds, type OddsFacts } from "./odds.ts";
import { explainedBlame, onlyInChanges, toCounts } from "../../rules/blame.ts";
import { disturbedShare, weigh } from "../../rules/odds.ts";
import type { Judgement } from "../../rules/odds_facts.ts";
import type { BlameCounts, OddsEvidence } from "../../schema/failures.ts";
import type { Tx } from "../../database/connect.ts";
import { clearInfrastructure } from "../../store/infrastructure_rules.ts";
import {
  type BlameCount,
  countRunFailures,
  deleteFailures,
  insertFailures,
  insertFlakes,
  type JudgedFailure,
  type JudgedRun,
  updateDisturbed,
} from "../../store/failures.ts";

export type RunToJudge = JudgedRun & {
  passed: number;
  failed: number;
  flaky: number;
  outage: boolean;
  untrusted: boolean;
  /** Whether the run was judged before, after an earlier attempt. */
  isJudged: boolean;
};

/** Stores an explanation for each failure of these runs, in the transaction of their uploads. Returns the blame counts by run id. */
export async function judgeFailures(
  sql: Tx,
  projectId: string,
  runs: readonly RunToJudge[],
): Promise<Map<string, BlameCounts>> {
  const again = runs.flatMap(({ id, isJudged }) => (isJudged ? id : []));
  if (again.length > 0)
    await Promise.all([deleteFailures(sql, projectId, again), clearInfrastructure(sql, projectId, again)]);
  const counts = new Map(runs.map(({ id }) => [id, toCounts({})]));
  // An outage blames nobody.
  const concerned = runs.filter(({ failed, flaky, outage }) => (failed > 0 || flaky > 0) && !outage);
  const failed = concerned.filter((run) => run.failed > 0);
  const stored =
    failed.length === 0 ? [] : await storeExplained(sql, projectId, await explainFailures(sql, projectId, failed));
  const matched = concerned.length === 0 ? [] : await applyInfrastructureRules(sql, projectId, concerned);
  const retried = concerned.flatMap(({ id, flaky, untrusted }) => (flaky > 0 && !untrusted ? id : []));
  if (retried.length > 0) await insertFlakes(sql, projectId, retried);
  // A matching rule changes the blame of failures.
  const recounted = matched.length === 0 ? [] : await countRunFailures(sql, projectId, matched);
  for (const rows of [stored, recounted])
    for (const [id, own] of Map.groupBy(rows, ({ runId }) => runId)) counts.set(id, toBlameCounts(own));
  return counts;
}

export const toBlameCounts = (rows: readonly BlameCount[]): BlameCounts =>
  toCounts(Object.fromEntries(rows.map(({ blame, number }) => [blame, number])));

type Explained = {
  failures: (JudgedFailure & { runId: string })[];
  /** Runs that their environment has probably disturbed, and how likely that is. */
  disturbed: { id: string; disturbed: number }[];
};

/** Explains the failures of the runs one after the other, as if each had arrived alone. Stores nothing. */
export async function explainFailures(sql: Tx, projectId: string, runs: readonly RunToJudge[]): Promise<Explained> {
  const history = await loadOdds(sql, projectId, runs);
  const explained: Explained = { failures: [], disturbed: [] };
  for (const run of runs) {
    const facts = history.factsOf(run);
    const judgements = weigh(facts);
    const failures = toFailures(judgements, facts, run);
    history.add(run, failures);
    explained.failures.push(...failures.map((failure) => ({ ...failure, runId: run.id })));
    const share = disturbedShare(judgements);
    if (share > 0.01) explained.disturbed.push({ id: run.id, disturbed: share });
  }
  return explained;
}

async function storeExplained(sql: Tx, projectId: string, { failures, disturbed }: Explained) {
  const [counts] = await Promise.all([
    insertFailures(sql, projectId, failures),
    disturbed.length > 0 && updateDisturbed(sql, projectId, disturbed),
  ]);
  return counts;
}

function toFailures(
  judgements: readonly Judgement[],
  { run, rows, flakyAt }: OddsFacts,
  { isSeenLater = false }: RunToJudge,
): JudgedFailure[] {
  const factsOf = new Map(run.failures.map((failure) => [failure.test, failure]));
  const rowOf = new Map(rows.map((row) => [row.testCase, row]));
  return judgements.map(({ test, shares, kind, isOfMany }): JudgedFailure => {
    const facts = factsOf.get(test)!;
    const { results, failed, inARow, passedAtCommit, inheritance, cause } = facts;
    const seen = run.sightings.get(cause);
    const evidence: OddsEvidence = {
      ...{ failed, results, inARow, passedAtCommit },
      isNewMessage: facts.hasFailed && !facts.hasFailedForThis,
      base: inheritance.last,
      siblings: inheritance.siblings.failed,
      elsewhere: seen?.hits ?? 0,
      onlyIn: onlyInChanges(facts),
      isSeenLater,
    };
    return {
      testCase: test,
      cause: rowOf.get(test)!.cause,
      blame: rowOf.get(test)!.isQuarantined ? "quarantined" : explainedBlame(kind, evidence, shares.change),
      explained: kind,
      isOfMany,
      shares,
      evidence,
      flakeRate: results === 0 ? null : Math.min(1, failed / results),
      flakyAt: kind === "flaky" ? (flakyAt.get(test) ?? null) : null,
    };
  });
}
