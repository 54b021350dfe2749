/** The overview of a project: the state of the default branch, recent failures, and open work. */

import { type Fragment, type Sql, toTextArray } from "../database/connect.ts";
import { type ExecutionSummary, summariesOf } from "./execution_list.ts";
import { isBroken, isFlaky } from "./health.ts";
import { blockOfCase, resultsOf } from "./packing.ts";
import { isNoPullRequest } from "./default_branch.ts";
import type { Branch } from "./state.ts";
import { isActiveQuarantine, isLiveBug, isTrustedBuild } from "./predicates.ts";

const hasOutcome = (sql: Sql) => sql`e.status in ('passed', 'failed', 'timed_out')`;

/**
 * A statement: the newest builds of a branch that meet a condition. Builds with and without the name of the branch are selected separately,
 * because an index has each in order; together all would be sorted.
 */
function newestOn(
  sql: Sql,
  projectId: string,
  { branch, isDefault, sample }: Branch,
  { condition, limit }: { condition: Fragment; limit: number },
): Fragment {
  // As the index has it, so that no other one is in order: by id alone all executions are, and none may fit.
  const of = (name: Fragment) => sql`(
    select * from execution e
    where e.project_id = ${projectId} and e.branch ${name} and e.sample = ${sample} and e.build_id is null
      and ${isTrustedBuild(sql, sql`e`)} ${isNoPullRequest(sql, isDefault)} and ${condition}
    order by e.branch, e.id desc limit ${limit})`;
  return sql`
    select * from (${of(sql`= ${branch}`)} ${isDefault ? sql`union all ${of(sql`is null`)}` : sql``}) e
    order by id desc limit ${limit}`;
}

/** Maximum number of the newest builds that are searched for their branches. */
const MAX_BUILDS_OF_BRANCHES = 200;

type OverviewLimits = { newest: number; ofBranch: number; heads: number };

/**
 * Returns the newest executions of the project, the newest builds of the branch, and the newest build of each other branch among the newest
 * 200 executions; each list newest first. Together, because most are in several of them.
 */
export async function selectOverviewBuilds(sql: Sql, projectId: string, branch: Branch, limits: OverviewLimits) {
  const all = sql`from execution e where project_id = ${projectId} and not probe`;
  const [ids] = await sql<[Record<keyof OverviewLimits, string[]>]>`
    select to_json(array(select id ${all} order by id desc limit ${limits.newest}::int)) as newest,
      to_json(array(select id from (${newestOn(sql, projectId, branch, { condition: sql`true`, limit: limits.ofBranch })}) e)) as "ofBranch",
      to_json(array(
        select id from (
          select distinct on (branch) id from (
            select id, branch, build_id ${all} and sample = ${branch.sample} and ${isTrustedBuild(sql, sql`e`)}
            order by id desc limit ${MAX_BUILDS_OF_BRANCHES}::int) newest
          where build_id is null and branch <> ${branch.branch} order by branch, id desc) head
        order by id desc limit ${limits.heads}::int)) as heads`;
  const distinct = [...new Set([...ids.newest, ...ids.ofBranch, ...ids.heads])];
  const rows = await summariesOf(
    sql,
    projectId,
    sql`select id from unnest(${toTextArray(distinct)}::uuid[]) as e (id)`,
  );
  const byId = new Map(rows.map((row) => [row.id, row]));
  const listOf = (name: keyof OverviewLimits) => ids[name].flatMap((id) => byId.get(id) ?? []);
  return { newest: listOf("newest"), ofBranch: listOf("ofBranch"), heads: listOf("heads") };
}

/** The oldest that a report has come to; sample data does not count. */
export const selectFirstBuild = async (sql: Sql, projectId: string): Promise<ExecutionSummary | undefined> => {
  const [build] = await summariesOf(
    sql,
    projectId,
    sql`
      select id from execution e where project_id = ${projectId} and not sample and ${isTrustedBuild(sql, sql`e`)} and exists (
        select from test_run r where r.project_id = e.project_id and r.execution_id = e.id and r.completed_at is not null)
      order by id limit 1`,
  );
  return build;
};

export const selectBuild = async (sql: Sql, projectId: string, id: string): Promise<ExecutionSummary | undefined> => {
  const [build] = await summariesOf(
    sql,
    projectId,
    sql`select id from execution where project_id = ${projectId} and id = ${id}`,
  );
  return build;
};

/** Returns the options of the filters: branches and environments of the newest executions. */
export const selectBuildOrigins = async (
  sql: Sql,
  projectId: string,
): Promise<{ branches: string[]; environments: string[] }> => {
  const [row] = await sql<{ branches: string[] | null; environments: string[] | null }[]>`
    select (json_agg(distinct branch) filter (where branch is not null)) as branches,
      (json_agg(distinct environment) filter (where environment is not null)) as environments
    from (select branch, environment from execution
      where project_id = ${projectId} and ${isTrustedBuild(sql, sql`execution`)} order by id desc limit 200) newest`;
  return { branches: row!.branches ?? [], environments: row!.environments ?? [] };
};

/** The newest build of a branch that has ended; undefined: none has. */
export const selectLastBuild = async (
  sql: Sql,
  projectId: string,
  branch: Branch,
): Promise<ExecutionSummary | undefined> => {
  const [build] = await summariesOf(
    sql,
    projectId,
    sql`select id from (${newestOn(sql, projectId, branch, { condition: hasOutcome(sql), limit: 1 })}) last`,
  );
  return build;
};

export type ProjectCounts = {
  flaky: number;
  broken: number;
  quarantined: number;
  openBugs: number;
  regressedBugs: number;
  running: number;
};

export const selectTally = async (sql: Sql, projectId: string): Promise<ProjectCounts> => {
  const [row] = await sql<ProjectCounts[]>`
    select
      (select count(*)::int from case_health h where h.project_id = ${projectId} and ${isFlaky(sql)}) as flaky,
      (select count(*)::int from case_health h where h.project_id = ${projectId} and ${isBroken(sql)}) as broken,
      (select count(*)::int from quarantine q where project_id = ${projectId} and ${isActiveQuarantine(sql, sql`q`)}) as quarantined,
      b.open as "openBugs", b.regressed as "regressedBugs",
      (select count(*)::int from execution
        where project_id = ${projectId} and status in ('queued', 'running') and ${isTrustedBuild(sql, sql`execution`)}) as running
    from (
      select count(*)::int as open, (count(*) filter (where regressed))::int as regressed from bug_report bug
      where project_id = ${projectId} and ${isLiveBug(sql, sql`bug`)}) b`;
  return row!;
};

export type GridRow = {
  testCaseId: string;
  taskSlug: string;
  suite: string;
  name: string;
  /** Packed letter and milliseconds by execution. */
  cells: { executionId: string; letter: string; durationMs: number | null }[];
};

/** Tests that failed, also before they passed, in one of these executions, the most failures first; with all their results there. */
export const selectGrid = async (
  sql: Sql,
  projectId: string,
  executionIds: readonly string[],
  tests: number,
): Promise<GridRow[]> => {
  if (executionIds.length === 0) return [];
  const runs = sql`
    select id, execution_id from test_run
    where project_id = ${projectId} and execution_id = any(${toTextArray(executionIds)}::uuid[])`;
  return await sql<GridRow[]>`
    with runs as materialized (${runs}), worst as materialized (
      select x.number, count(*) filter (where x.letter in ('f', 'F')) * 2 + count(*) filter (where x.letter = 'P') as weight
      from ${resultsOf(sql, projectId, sql`select id from runs`)} b,
        lateral unnest(b.test_cases, string_to_array(b.statuses, null)) as x (number, letter)
      where b.statuses ~ '[fFP]' and x.letter in ('f', 'F', 'P')
      group by x.number order by weight desc, x.number limit ${tests}
    )
    select c.id as "testCaseId", c.task_slug as "taskSlug", c.suite, c.name,
      json_agg(json_build_object('executionId', r.execution_id, 'letter', x.letter, 'durationMs', x.ms)) as cells
    from worst w cross join runs r cross join lateral (
      select substr(b.statuses, i, 1) as letter, b.durations[i] as ms
      from (
        select test_cases, statuses, durations from case_result
        where project_id = ${projectId} and run_id = r.id and block = ${blockOfCase(sql, sql`w.number`)} offset 0
      ) b, lateral (select array_position(b.test_cases, w.number) as i) place
      where i is not null
    ) x
    join test_case c on c.project_id = ${projectId} and c.number = w.number
    group by c.id, c.task_slug, c.suite, c.name, w.weight, w.number order by w.weight desc, w.number`;
};

export type LiveItemRow = {
  executionId: string;
  key: string | null;
  number: number;
  branch: string | null;
  /** The branch that the pull request or the merge queue merges into. */
  baseBranch: string | null;
  pullRequest: string | null;
  createdAt: string;
  /** Unexplained failures that no later result of the branch refutes. */
  failures: number;
  /** The message of one of them. */
  message: string | null;
  test: string | null;
};

/** Maximum number of later executions of a branch that are searched for a run of a task. */
const MAX_LATER_EXECUTIONS = 20;
/** Maximum number of the newest red executions that are searched. */
const MAX_RED_EXECUTIONS = 100;

/**
 * Returns the newest executions since `from` (an id) with unexplained failures, in tasks that their branch has not run since. Failures that
 * keep the default branch red are part of its state, and not listed.
 */
export const selectNewFailures = (sql: Sql, projectId: string, { branch }: Branch, from: string, limit: number) => {
  // Written out: PostgreSQL keeps no plan of this for a limit that it does not know, and making one takes most of the time.
  const enough = sql.unsafe(String(limit));
  // Looked up for each execution: joined they would all be read.
  const failed = sql`(
    select id, task_slug from test_run
    where project_id = ${projectId} and execution_id = e.id and failed > 0 offset 0) r`;
  const fresh = sql`select * from failure where project_id = ${projectId} and run_id = r.id and blame = 'new'`;
  // In the order of the builds, of which reruns are a part. Shards that are missing, or a task that did not report, mend nothing.
  const later = (isOfLine: Fragment, order: Fragment) => sql`
    select id, coalesce(build_id, id) as build from execution later
    where later.project_id = ${projectId} and ${isOfLine} and later.id > coalesce(e.build_id, e.id)
      and ${isTrustedBuild(sql, sql`later`)} and ${isOfBuild(sql, projectId, sql`later`)}
    order by ${order} limit ${MAX_LATER_EXECUTIONS}`;
  const isLatest = sql`not exists (
    select from (
      (${later(sql`later.branch = e.branch`, sql`later.branch, later.id`)})
      union all
      -- A build of a merge queue has no branch: its pull request is its line.
      (${later(sql`e.branch is null and later.branch is null and later.pull_request = e.pull_request`, sql`later.id`)})
    ) l,
    lateral (
      select from test_run t
      where t.project_id = ${projectId} and t.execution_id = l.id and t.task_slug = r.task_slug
        and t.status in ('passed', 'failed')
      offset 0) t
    where (l.build, l.id) > (coalesce(e.build_id, e.id), e.id))`;
  const of = (status: string) => sql`(
    select * from execution e
    where e.project_id = ${projectId} and e.id >= ${from} and e.status = ${status}
      and (e.branch <> ${branch} or e.pull_request is not null) and ${isTrustedBuild(sql, sql`e`)}
    order by e.id desc limit ${MAX_RED_EXECUTIONS})`;
  return sql<LiveItemRow[]>`
    select e.id as "executionId", e.key, e.number, e.branch, e.base_branch as "baseBranch",
      e.pull_request as "pullRequest", e.created_at as "createdAt", n.failures, d.message, d.name as test
    from (
      select * from (
        select * from (${of("failed")} union all ${of("timed_out")} union all ${of("running")}) e
        order by id desc limit ${MAX_RED_EXECUTIONS}) e
      where ${isOfBuild(sql, projectId, sql`e`)}
        and exists (select from ${failed} where exists (${fresh} offset 0) and ${isLatest})
      order by id desc limit ${enough}
    ) e cross join lateral (
      select count(*)::int as failures, min(f.run_id::text)::uuid as run_id
      from ${failed} cross join lateral (${fresh} offset 0) f where ${isLatest}
    ) n left join lateral (${firstOf(sql, projectId, sql`n.run_id`)}) d on true
    order by e.id desc`;
};

/** A condition: the execution is a build, or repeats an existing one. */
const isOfBuild = (sql: Sql, projectId: string, execution: Fragment) => sql`(
  ${execution}.build_id is null
  or exists (select from execution b where b.project_id = ${projectId} and b.id = ${execution}.build_id))`;

/** A statement: the first failure of a run, an unexplained one first. */
const firstOf = (sql: Sql, projectId: string, run: Fragment) => sql`
  select c.name, (
    select left(message, 300) from case_detail
    where project_id = ${projectId} and run_id = ${run} and test_case = f.test_case order by attempt desc limit 1) as message
  from (
    select test_case from failure where project_id = ${projectId} and run_id = ${run}
    order by blame <> 'new', test_case limit 1) f
  cross join lateral (
    select name from test_case where project_id = ${projectId} and number = f.test_case offset 0) c`;
