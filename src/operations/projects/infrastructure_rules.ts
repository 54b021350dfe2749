/** The infrastructure rules of a team: created, changed, deleted, and tried on the failures of the last days. */

import { createRuleSearch } from "../../rules/infrastructure.ts";
import {
  type InfrastructureRule,
  type InfrastructureRulePatch,
  MAX_INFRASTRUCTURE_RULES,
  type NewInfrastructureRule,
  type RuleTrial,
  type RuleTrialResult,
  TRIAL,
} from "../../schema/infrastructure_rules.ts";
import { refuse, refuseAbsent } from "../../schema/refusal.ts";
import { selectTeamProjects } from "../../store/automations.ts";
import type { Sql, Tx } from "../../database/connect.ts";
import {
  countInfrastructureRules,
  deleteInfrastructureRule,
  insertInfrastructureRule,
  lockInfrastructureRule,
  selectInfrastructureRule,
  selectRecentFailures,
  updateInfrastructureRule,
} from "../../store/infrastructure_rules.ts";
import { firstPlainLine } from "../../wording/first_line.ts";

const DAY_MS = 86_400_000;

/** Which rule, of which team. */
type InfrastructureRuleKey = { teamId: string; infrastructureRuleId: string };

export const findInfrastructureRule = async (sql: Sql, key: InfrastructureRuleKey): Promise<InfrastructureRule> =>
  (await selectInfrastructureRule(sql, key.teamId, key.infrastructureRuleId)) ?? refuseAbsent();

export async function createInfrastructureRule(
  sql: Tx,
  teamId: string,
  rule: NewInfrastructureRule,
): Promise<InfrastructureRule> {
  if ((await countInfrastructureRules(sql, teamId)) >= MAX_INFRASTRUCTURE_RULES)
    refuse(`A team has at most ${MAX_INFRASTRUCTURE_RULES} infrastructure rules`);
  const infrastructureRuleId = Bun.randomUUIDv7();
  await insertInfrastructureRule(sql, teamId, infrastructureRuleId, rule);
  return await findInfrastructureRule(sql, { teamId, infrastructureRuleId });
}

/** Changes a rule. Failures that were judged before stay as they are. */
export async function changeInfrastructureRule(
  sql: Tx,
  key: InfrastructureRuleKey,
  patch: InfrastructureRulePatch,
): Promise<InfrastructureRule> {
  if (!(await lockInfrastructureRule(sql, key.teamId, key.infrastructureRuleId))) refuseAbsent();
  const before = await findInfrastructureRule(sql, key);
  const { name = before.name, pattern = before.pattern, url = before.url } = patch;
  await updateInfrastructureRule(sql, key.teamId, { id: before.id, name, pattern, url });
  return await findInfrastructureRule(sql, key);
}

/** Removes a rule and returns its name. */
export const removeInfrastructureRule = async (sql: Tx, key: InfrastructureRuleKey): Promise<string> =>
  (await deleteInfrastructureRule(sql, key.teamId, key.infrastructureRuleId)) ?? refuseAbsent();

/** Searches the newest failures of each project; changes nothing. */
export async function tryInfrastructureRule(
  sql: Sql,
  teamId: string,
  { pattern, days }: RuleTrial,
  now: Date,
): Promise<RuleTrialResult> {
  const find = createRuleSearch([{ pattern }]);
  const projects: RuleTrialResult["projects"] = [];
  const since = new Date(now.getTime() - days * DAY_MS);
  for (const { id, name } of (await selectTeamProjects(sql, teamId, undefined)).slice(0, TRIAL.projects)) {
    const failures = await selectRecentFailures(sql, id, { since, limit: TRIAL.failures });
    const matches = failures.filter((failure) => find(failure) !== undefined);
    const examples = matches.slice(0, TRIAL.examples).map(({ stack, output: _, ...failure }) => {
      return { ...failure, message: firstPlainLine(failure.message) || firstPlainLine(stack) || null };
    });
    projects.push({ projectId: id, name, failures: failures.length, matched: matches.length, examples });
  }
  return { projects };
}
