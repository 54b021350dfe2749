/** Applies the infrastructure rules of the team to the failures of a run. */

import { letOthersRun } from "../../turns.ts";
import { createRuleSearch } from "../../rules/infrastructure.ts";
import type { Tx } from "../../database/connect.ts";
import {
  type RuleMatch,
  selectFailureTexts,
  selectRetriedTexts,
  selectRulesOfProject,
  updateExcusedRetries,
  updateInfrastructureCount,
  updateMatchedFailures,
} from "../../store/infrastructure_rules.ts";

/** Number of failures that one query reads. */
const PORTION = 200;
/** Maximum number of failures of a run that the rules are applied to. A run with more is usually an outage. */
const MAX_MATCHED_FAILURES = 5_000;

/** Maximum number of passes on retry that the rules are applied to. Further ones count as flaky without a check. */
const MAX_MATCHED_RETRIES = 1_000;

type Rules = Awaited<ReturnType<typeof selectRulesOfProject>>;

/**
 * Applies the rules in the transaction that judges these runs. The rules are read in the same transaction, so that all servers apply the
 * same ones. Returns the ids of the runs with failures that match a rule.
 */
export async function applyInfrastructureRules(
  sql: Tx,
  projectId: string,
  runs: readonly { id: string; failed: number; flaky: number }[],
): Promise<string[]> {
  const rules = await selectRulesOfProject(sql, projectId);
  const matched: string[] = [];
  if (rules.length === 0) return matched;
  for (const { id, failed, flaky } of runs) {
    if (flaky > 0) await matchRetries(sql, projectId, id, rules);
    const count = failed === 0 ? 0 : await matchRun(sql, projectId, id, rules);
    if (count === 0) continue;
    matched.push(id);
    await updateInfrastructureCount(sql, projectId, id, count);
  }
  return matched;
}

/** Marks passes on retry whose earlier failures match a rule: they do not count as flaky. */
async function matchRetries(sql: Tx, projectId: string, runId: string, rules: Rules): Promise<void> {
  const find = createRuleSearch(rules);
  const retried = await selectRetriedTexts(sql, projectId, runId, MAX_MATCHED_RETRIES);
  const matched = retried.filter((result) => find(result) !== undefined).map(({ testCase }) => testCase);
  if (matched.length > 0) await updateExcusedRetries(sql, projectId, runId, matched);
}

async function matchRun(sql: Tx, projectId: string, runId: string, rules: Rules): Promise<number> {
  const find = createRuleSearch(rules);
  let count = 0;
  for (let after = -1, read = 0; read < MAX_MATCHED_FAILURES; read += PORTION) {
    const failures = await selectFailureTexts(sql, projectId, runId, after, PORTION);
    const matches = failures.flatMap((failure): RuleMatch[] => {
      const rule = find(failure);
      return rule ? [{ testCase: failure.testCase, rule }] : [];
    });
    if (matches.length > 0) await updateMatchedFailures(sql, projectId, runId, matches);
    count += matches.length;
    if (failures.length < PORTION) break;
    after = failures.at(-1)!.testCase;
    await letOthersRun();
  }
  return count;
}
