/** Infrastructure rules of a team, and the failures that match them. */

import { firstIdAt } from "../database/time_bounds.ts";
import { type Fragment, type Sql, type Tx, toNumberArray, toTextArray } from "../database/connect.ts";
import { MATCHED, type RuleText } from "../rules/infrastructure.ts";
import type { CaseRef } from "../schema/case_ref.ts";
import type { InfrastructureRule, NewInfrastructureRule } from "../schema/infrastructure_rules.ts";
import { isTrustedBuild } from "./predicates.ts";

const columns = (sql: Sql) => sql`id, name, pattern, url, created_at as "createdAt", updated_at as "updatedAt"`;

/** Returns rules in the order of creation, in which they are tried; one row more than `limit`. */
export const selectInfrastructureRules = (sql: Sql, teamId: string, limit: number, after: string | undefined) => sql<
  InfrastructureRule[]
>`
  select ${columns(sql)} from infrastructure_rule
  where team_id = ${teamId} ${after === undefined ? sql`` : sql`and id > ${after}`}
  order by id limit ${limit + 1}`;

export const selectInfrastructureRule = async (
  sql: Sql,
  teamId: string,
  id: string,
): Promise<InfrastructureRule | undefined> => {
  const [row] = await sql<InfrastructureRule[]>`
    select ${columns(sql)} from infrastructure_rule where team_id = ${teamId} and id = ${id}`;
  return row;
};

/** All rules of the team of a project, in the order in which they are tried. */
export const selectRulesOfProject = (sql: Sql, projectId: string) => sql<
  Pick<InfrastructureRule, "id" | "name" | "pattern" | "url">[]
>`
  select r.id, r.name, r.pattern, r.url from project p
  join infrastructure_rule r on r.team_id = p.team_id
  where p.id = ${projectId} order by r.id`;

/** Counts the rules of a team and locks it, so that others who add a rule wait. */
export const countInfrastructureRules = async (sql: Tx, teamId: string): Promise<number> => {
  await sql`select from stored_team where id = ${teamId} for no key update`;
  const [row] = await sql<{ count: number }[]>`
    select count(*)::int as count from infrastructure_rule where team_id = ${teamId}`;
  return row!.count;
};

export const insertInfrastructureRule = (
  sql: Tx,
  teamId: string,
  id: string,
  { name, pattern, url }: NewInfrastructureRule,
) => sql`
  insert into infrastructure_rule (team_id, id, name, pattern, url)
  values (${teamId}, ${id}, ${name}, ${pattern}, ${url ?? null})`;

/** Returns whether the rule exists, and locks it until the commit. */
export const lockInfrastructureRule = async (sql: Tx, teamId: string, id: string): Promise<boolean> =>
  (await sql`select from infrastructure_rule where team_id = ${teamId} and id = ${id} for no key update`).length === 1;

export const updateInfrastructureRule = (
  sql: Tx,
  teamId: string,
  { id, name, pattern, url }: Pick<InfrastructureRule, "id" | "name" | "pattern" | "url">,
) => sql`
  update infrastructure_rule set name = ${name}, pattern = ${pattern}, url = ${url}, updated_at = now()
  where team_id = ${teamId} and id = ${id}`;

/** Returns the name of the rule; undefined if there was none. */
export const deleteInfrastructureRule = async (sql: Tx, teamId: string, id: string): Promise<string | undefined> => {
  const [row] = await sql<{ name: string }[]>`
    delete from infrastructure_rule where team_id = ${teamId} and id = ${id} returning name`;
  return row?.name;
};

/** A statement: the text of the failure `f` in its last attempt that meets the condition, as far as rules read it. */
const textOf = (sql: Sql, projectId: string, condition: Fragment = sql``) => sql`
  select left(message, ${MATCHED.message}::int) as message, left(stack, ${MATCHED.stack}::int) as stack,
    right(output, ${MATCHED.output}::int) as output
  from case_detail
  where project_id = ${projectId} and run_id = f.run_id and test_case = f.test_case ${condition}
  order by attempt desc limit 1`;

/** Returns the next failures of a run after a test case, in their order, with their texts. */
export const selectFailureTexts = (sql: Tx, projectId: string, runId: string, after: number, limit: number) => sql<
  (RuleText & { testCase: number })[]
>`
  select f.test_case as "testCase", d.* from (
    select run_id, test_case from failure
    where project_id = ${projectId} and run_id = ${runId} and test_case > ${after} order by test_case limit ${limit}
  ) f left join lateral (${textOf(sql, projectId)}) d on true
  order by f.test_case`;

export type RuleMatch = { testCase: number; rule: { id: string; name: string; url: string | null } };

/** The failures match a rule, whatever else explains them. A quarantined one stays in its list. */
export const updateMatchedFailures = (sql: Tx, projectId: string, runId: string, matches: readonly RuleMatch[]) => sql`
  update failure f set
    rule_id = m.id, rule_name = m.name, rule_url = m.url,
    blame = case when f.blame = 'quarantined' then f.blame else 'incident' end,
    explained = 'outside', change = 0, flaky = 0, inherited = 0, outside = 1, flake_rate = null, flaky_at = null
  from unnest(
    ${toNumberArray(matches.map(({ testCase }) => testCase))}::int[],
    ${toTextArray(matches.map(({ rule }) => rule.id))}::uuid[],
    ${toTextArray(matches.map(({ rule }) => rule.name))}::text[],
    ${toTextArray(matches.map(({ rule }) => rule.url))}::text[]) as m (test_case, id, name, url)
  where f.project_id = ${projectId} and f.run_id = ${runId} and f.test_case = m.test_case`;

export const updateInfrastructureCount = (sql: Tx, projectId: string, runId: string, count: number) => sql`
  update test_run set infrastructure = ${count} where project_id = ${projectId} and id = ${runId}`;

/** The runs are judged anew. */
export const clearInfrastructure = (sql: Tx, projectId: string, runIds: readonly string[]) => sql`
  update test_run set infrastructure = 0
  where project_id = ${projectId} and id = any(${toTextArray(runIds)}::uuid[]) and infrastructure > 0`;

/** Returns results that passed after a failure of the same run, with the text of that failure, in the order of the test cases. */
export const selectRetriedTexts = (sql: Tx, projectId: string, runId: string, limit: number) => sql<
  (RuleText & { testCase: number })[]
>`
  select f.test_case as "testCase", d.* from (
    select b.run_id, r.test_case from case_result b,
      lateral unnest(b.test_cases, string_to_array(b.statuses, null)) as r (test_case, letter)
    where b.project_id = ${projectId} and b.run_id = ${runId} and b.statuses ~ 'P' and r.letter = 'P'
    order by r.test_case limit ${limit}
  ) f cross join lateral (${textOf(sql, projectId, sql`and (message is not null or stack is not null)`)}) d
  order by f.test_case`;

/** Results of these test cases that passed on a retry are plain passes. */
export async function updateExcusedRetries(
  sql: Tx,
  projectId: string,
  runId: string,
  testCases: readonly number[],
): Promise<void> {
  const excused = sql`${toNumberArray(testCases)}::int[]`;
  await sql`
    update case_result b set statuses = (
      select string_agg(case when r.letter = 'P' and r.test_case = any(${excused}) then 'p' else r.letter end, '' order by r.place)
      from unnest(b.test_cases, string_to_array(b.statuses, null)) with ordinality as r (test_case, letter, place))
    where b.project_id = ${projectId} and b.run_id = ${runId} and b.test_cases && ${excused}`;
  await sql`
    update test_run set flaky = flaky - ${testCases.length}::int where project_id = ${projectId} and id = ${runId}`;
}

type SearchedFailure = CaseRef & RuleText & { executionId: string };

/** The newest failures of a project since a time, without those of forks. */
export const selectRecentFailures = (sql: Sql, projectId: string, { since, limit }: { since: Date; limit: number }) =>
  sql<SearchedFailure[]>`
  select r.execution_id as "executionId", c.id as "testCaseId", c.task_slug as "taskSlug", c.suite, c.name, c.file, d.*
  from (
    select f.run_id, f.test_case from failure f
    where f.project_id = ${projectId} and f.run_id >= ${firstIdAt(since.getTime())}
    order by f.run_id desc, f.test_case desc limit ${limit}
  ) f cross join lateral (
    select execution_id from test_run
    where project_id = ${projectId} and id = f.run_id and ${isTrustedBuild(sql, sql`test_run`)} offset 0
  ) r cross join lateral (
    select * from test_case where project_id = ${projectId} and number = f.test_case offset 0
  ) c left join lateral (${textOf(sql, projectId)}) d on true
  order by f.run_id desc, f.test_case desc`;

export type InfrastructureShare = {
  projectId: string;
  name: string;
  /** Failures of complete runs, without those of outages. */
  failures: number;
  /** The number of failures that matched a rule. */
  matched: number;
  /** The number of failures that matched a rule, by day such as 2026-01-31. */
  days: Record<string, number>;
};

/** The projects of a team, at most `limit`, in which failures have matched a rule since a day in UTC; most matches first. */
export const selectInfrastructureShares = (
  sql: Sql,
  teamId: string,
  { from, limit }: { from: string; limit: number },
) =>
  sql<InfrastructureShare[]>`
  select p.id as "projectId", p.name, f.failures, f.matched, f.days
  from (select id, name from project where team_id = ${teamId} order by id limit ${limit}) p cross join lateral (
    select sum(d.failures)::int as failures, sum(d.matched)::int as matched,
      json_object_agg(to_char(d.day, 'YYYY-MM-DD'), d.matched) as days
    from (
      select (completed_at at time zone 'UTC')::date as day, sum(failed) as failures, sum(infrastructure) as matched
      from test_run
      where project_id = p.id and completed_at >= ${from}::text::timestamptz and ${isTrustedBuild(sql, sql`test_run`)}
        and not outage
      group by 1) d) f
  where f.matched > 0
  order by f.matched desc, p.id`;
