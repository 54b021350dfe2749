/** What executions and their runs are compared with. */

import { isCommit } from "./commits.ts";
import type { Given } from "../database/compose.ts";
import type { Fragment, Sql } from "../database/connect.ts";
import { hasResult } from "./outcome.ts";
import { isTrustedBuild } from "./predicates.ts";

/** How many executions of the default branch are looked through for a run of a task. */
const LOOKED_THROUGH = 200;

type Limited = { condition: Fragment; limit: number };

/**
 * Executions of the default branch, and those that name none and count as being on it: an index serves each, not both. A
 * rerun has results of what was repeated only: nothing is measured by it.
 */
const lastOf = (sql: Sql, projectId: Given, { condition, limit }: Limited): [named: Fragment, nameless: Fragment] => {
  // As the index of branches has it, so that no other one is in order: by id alone all executions are, and none may fit.
  const of = (branch: Fragment) => sql`(
    select id from execution
    where project_id = ${projectId} and branch ${branch} and not sample and ${isTrustedBuild(sql, sql`execution`)} and build_id is null
      and pull_request is null and ${condition}
    order by branch, id desc limit ${limit})`;
  return [of(sql`= (select default_branch from project where id = ${projectId})`), of(sql`is null`)];
};

/** Executions of the default branch, newest first. */
export const onDefaultBranch = (sql: Sql, projectId: Given, condition: Fragment, limit: number): Fragment => {
  const [named, nameless] = lastOf(sql, projectId, { condition, limit });
  return sql`select id from (${named} union all ${nameless}) either order by id desc limit ${limit}`;
};

/**
 * Selects the baseline of an execution: the last one of the default branch that is over when it begins and has results,
 * or of the commit that it names. A branch that lives long is compared with itself, once it has such a one, and a build of a
 * merge queue with the branch that is merged into. `id` is its own.
 */
export const baselineOf = (
  sql: Sql,
  projectId: Given,
  {
    id,
    branch,
    baseBranch,
    baseCommit,
  }: { id: Given; branch: Given | null; baseBranch: Given | null; baseCommit: string | undefined },
): Fragment => {
  const isOver = sql`
    id < ${id} and status in ('passed', 'failed', 'timed_out') and exists (
      select from test_run r
      where r.project_id = ${projectId} and r.execution_id = execution.id and ${isMeasure(sql, projectId)})`;
  const [named, nameless] = lastOf(sql, projectId, { condition: isOver, limit: 1 });
  // A branch that a queue merges into is the one to compare with, whether it lives long or not.
  const ofItself = sql`
    case when ${baseBranch}::text is not null
      or is_long_lived(${branch}::text, (select long_lived_branches from project where id = ${projectId})) then (
      select id from execution
      where project_id = ${projectId} and branch = coalesce(${baseBranch}::text, ${branch}::text) and not sample
        and ${isTrustedBuild(sql, sql`execution`)} and build_id is null and pull_request is null and ${isOver}
      order by branch, id desc limit 1) end`;
  const last = sql`coalesce(${ofItself}, greatest(${named}, ${nameless}))`;
  if (!baseCommit) return last;
  return sql`coalesce((
    select id from execution
    where project_id = ${projectId} and not sample and ${isTrustedBuild(sql, sql`execution`)} and build_id is null and ${isOver}
      and ${isCommit(sql, baseCommit)}
    order by branch is distinct from (select default_branch from project where id = ${projectId}), id desc limit 1
  ), ${last})`;
};

/** A run that says something of its cases. */
export const isUsable = (sql: Sql) => sql`r.completed_at is not null and not r.outage`;

/**
 * One that others are measured by: it has results of tests, and its last report did not break off. What is missing in it would
 * be new in the next one.
 */
const isMeasure = (sql: Sql, projectId: Given) => sql`
  ${isUsable(sql)} and (r.passed + r.skipped > 0 or r.failed > 0) and (r.verdict = 'passed' or not exists (
    select from (
      select distinct on (a.shard) a.partial, a.exit_case from attempt a
      where a.project_id = ${projectId} and a.run_id = r.id order by a.shard, a.number desc) last
    having bool_or(last.partial) or r.passed + r.skipped = 0 and r.failed <= count(last.exit_case)))`;

/**
 * The runs that an execution's runs are measured by, at most one a task: that of the baseline, or, where the task did not
 * run there, the last one before on the default branch. Of the tasks of the baseline and of the execution, or of one.
 */
export const baselineRuns = (
  sql: Sql,
  projectId: Given,
  { executionId, taskSlug }: { executionId: Given; taskSlug?: Given },
): Fragment => {
  const baseline = sql`(select baseline_id from execution where project_id = ${projectId} and id = ${executionId})`;
  const tasksOf = (id: Fragment, isMine: boolean) => sql`
    select task_slug, ${isMine ? sql`true` : sql`false`} as mine from test_run where project_id = ${projectId} and execution_id = ${id}`;
  const tasks =
    taskSlug === undefined
      ? sql`
          select task_slug, bool_or(mine) as mine
          from (${tasksOf(baseline, false)} union all ${tasksOf(sql`${executionId}`, true)}) t group by task_slug`
      : sql`select ${taskSlug}::text as task_slug, true as mine`;
  const runOf = (id: Fragment) => sql`
    select id from test_run r
    where project_id = ${projectId} and execution_id = ${id} and task_slug = task.task_slug and ${isMeasure(sql, projectId)}`;
  // Of each task by itself, and what came before the baseline only where that has none: it nearly always has.
  return sql`
    with earlier as materialized (${onDefaultBranch(sql, projectId, sql`id < ${baseline}`, LOOKED_THROUGH)})
    select id from (
      select coalesce((${runOf(baseline)}), case when task.mine then (
        select r.id from earlier e cross join lateral (${runOf(sql`e.id`)} offset 0) r order by e.id desc limit 1) end) as id
      from (${tasks}) task offset 0) base
    where id is not null`;
};

/**
 * The runs of `runs`, a statement that selects ids of runs of builds as `id`, together with the runs of their reruns: `base`, the run of
 * the build, and `id` and `execution_id` of each. The latest result of a test case that is not skipped counts.
 */
export const withReruns = (sql: Sql, projectId: Given, runs: Fragment): Fragment => sql`
  select b.id as base, r.id, r.execution_id from (${runs}) given cross join lateral (
    select * from test_run where project_id = ${projectId} and id = given.id offset 0) b
  cross join lateral (
    select b.id, b.execution_id
    union all
    select r.id, r.execution_id from (
      select id from execution where project_id = ${projectId} and build_id = b.execution_id offset 0) e
    cross join lateral (
      select * from test_run r
      where r.project_id = ${projectId} and r.execution_id = e.id and r.task_slug = b.task_slug and ${hasResult(sql, sql`r`)} offset 0) r
  ) r`;

/** The number of results in the last run of a task on the default branch; null: there is none among its last builds. */
export const selectDefaultTotal = async (sql: Sql, projectId: string, taskSlug: string): Promise<number | null> => {
  const [row] = await sql<{ total: number }[]>`
    select r.total from (${onDefaultBranch(sql, projectId, sql`true`, LOOKED_THROUGH)}) e cross join lateral (
      select passed + failed + skipped as total from test_run r
      where project_id = ${projectId} and execution_id = e.id and task_slug = ${taskSlug} and ${isUsable(sql)} offset 0) r
    order by e.id desc limit 1`;
  return row?.total ?? null;
};
