/** What executions and their runs are compared with. */

import { isCommit } from "./commits.ts";
import type { Fragment, Sql } from "./connect.ts";

/** How many executions of the default branch are looked through for a run of a task. */
const LOOKED_THROUGH = 200;

type Limited = { condition: Fragment; limit: number };

/** Executions of the default branch, and those that name none and count as being on it: an index serves each, not both. */
const lastOf = (sql: Sql, projectId: string, { condition, limit }: Limited): [named: Fragment, nameless: Fragment] => {
  const of = (branch: Fragment) => sql`(
    select id from execution where project_id = ${projectId} and branch ${branch} and not sample and ${condition}
    order by id desc limit ${limit})`;
  return [of(sql`= (select default_branch from project where id = ${projectId})`), of(sql`is null`)];
};

/** Executions of the default branch, newest first. */
export const onDefaultBranch = (sql: Sql, projectId: string, condition: Fragment, limit: number): Fragment => {
  const [named, nameless] = lastOf(sql, projectId, { condition, limit });
  return sql`select id from (${named} union all ${nameless}) either order by id desc limit ${limit}`;
};

/**
 * What an execution is compared with: the last one of the default branch before it that is over when it begins, or of the
 * commit that it names. `id` is its own.
 */
export const baselineOf = (
  sql: Sql,
  projectId: string,
  { id, baseCommit }: { id: string; baseCommit: string | undefined },
): Fragment => {
  const isOver = sql`id < ${id} and status in ('passed', 'failed')`;
  const [named, nameless] = lastOf(sql, projectId, { condition: isOver, limit: 1 });
  const last = sql`greatest(${named}, ${nameless})`;
  if (!baseCommit) return last;
  return sql`coalesce((
    select id from execution b
    where project_id = ${projectId} and not sample and ${isOver} and ${isCommit(sql, baseCommit)}
    order by branch is distinct from (select default_branch from project where id = ${projectId}), id desc limit 1
  ), ${last})`;
};

/** A run that says something of its cases. */
export const isUsable = (sql: Sql) => sql`r.completed_at is not null and not r.outage`;

/**
 * The runs that an execution's runs are measured by, at most one a task: that of the baseline, or, where the task did not
 * run there, the last one before on the default branch. Of the tasks of the baseline and of the execution, or of one.
 */
export const baselineRuns = (
  sql: Sql,
  projectId: string,
  { executionId, taskSlug }: { executionId: string; taskSlug?: string },
): Fragment => {
  const baseline = sql`(select baseline_id from execution where project_id = ${projectId} and id = ${executionId})`;
  return sql`
    select distinct on (r.task_slug) r.id
    from (
      select ${baseline} as id
      union all
      select id from (${onDefaultBranch(sql, projectId, sql`id < ${baseline}`, LOOKED_THROUGH)}) earlier
    ) e
    join test_run r on r.project_id = ${projectId} and r.execution_id = e.id
    where ${isUsable(sql)} and ${
      taskSlug === undefined
        ? sql`(r.execution_id = ${baseline} or r.task_slug in (
            select task_slug from test_run where project_id = ${projectId} and execution_id = ${executionId}))`
        : sql`r.task_slug = ${taskSlug}`
    }
    order by r.task_slug, e.id desc`;
};
