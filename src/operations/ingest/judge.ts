/** Finds what explains the failures of runs. */

import { applyInfrastructureRules } from "./infrastructure.ts";
import { loadOddsFacts, type OddsFacts } from "./odds.ts";
import { explainedBlame, onlyInChanges, toCounts } from "../../rules/blame.ts";
import { disturbedShare, weigh } from "../../rules/odds.ts";
import type { Judgement } from "../../rules/odds_facts.ts";
import type { BlameCounts, OddsEvidence } from "../../schema/failures.ts";
import { setKeepsPlans, type Tx } from "../../database/connect.ts";
import { clearInfrastructure } from "../../store/infrastructure_rules.ts";
import {
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
  /** It was judged before, after an earlier attempt. */
  isJudged: boolean;
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
  // What follows wants a plan for what it is given.
  if (failed.length > 0) await setKeepsPlans(sql, false);
  for (const run of failed) {
    const facts = await loadOddsFacts(sql, projectId, run);
    const judgements = weigh(facts);
    await insertFailures(sql, projectId, run.id, toFailures(judgements, facts, run));
    const disturbed = disturbedShare(judgements);
    if (disturbed > 0.01) await updateDisturbed(sql, projectId, run.id, disturbed);
  }
  if (concerned.length > 0) await applyInfrastructureRules(sql, projectId, concerned);
  for (const { id } of concerned.filter(({ flaky, untrusted }) => flaky > 0 && !untrusted))
    await insertFlakes(sql, projectId, id);
  for (const { id } of failed) counts.set(id, toCounts(await countRunFailures(sql, projectId, id)));
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
    const { results, failures, episodes, pullRequests, inARow, passedAtCommit, inheritance, cause } = facts;
    const seen = run.sightings.get(cause);
    const failed = failures + episodes.reduce((sum, one) => sum + one, 0) + pullRequests.same + pullRequests.other;
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
      blame: rowOf.get(test)!.isQuarantined ? "quarantined" : explainedBlame(kind, evidence),
      explained: kind,
      isOfMany,
      shares,
      evidence,
      flakeRate: results === 0 ? null : Math.min(1, failed / results),
      flakyAt: kind === "flaky" ? (flakyAt.get(test) ?? null) : null,
    };
  });
}
