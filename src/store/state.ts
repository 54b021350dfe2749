/** Reads the facts that the state of a branch is derived from: results of its tasks in its newest builds. */

import { type BranchState, LOOKED_THROUGH, type TaskResult, toBranchState } from "../rules/branch_state.ts";
import type { Fragment, Sql } from "../database/connect.ts";
import { isNoPullRequest } from "./default_branch.ts";
import { hasResult } from "./outcome.ts";
import { isTrustedBuild } from "./predicates.ts";

/** A branch of a project; the default one has the executions that name none as well. */
export type Branch = {
  branch: string;
  isDefault: boolean;
  /** Whether this is sample data and not the project's own. */
  sample: boolean;
};

/** Sample data counts only as long as the project has no other data. */
export const selectBranch = async (
  sql: Sql,
  projectId: string,
  branch: string,
  defaultBranch: string,
): Promise<Branch> => {
  const own =
    await sql`select from execution where project_id = ${projectId} and not sample and ${isTrustedBuild(sql, sql`execution`)} limit 1`;
  return { branch, isDefault: branch === defaultBranch, sample: own.length === 0 };
};

/** The rule is in `rules/branch_state.ts`. Reads the runs of at most 200 executions. */
export async function selectBranchState(
  sql: Sql,
  projectId: string,
  { branch, isDefault, sample }: Branch,
): Promise<BranchState> {
  // As the index of branches has it, so that no other one is in order.
  const newest = (name: Fragment) => sql`(
    select id, build_id, created_at, completed_at, lower(commit) as commit from execution
    where project_id = ${projectId} and branch ${name} and sample = ${sample} and ${isTrustedBuild(sql, sql`execution`)} ${isNoPullRequest(sql, isDefault)}
    order by branch, id desc limit ${LOOKED_THROUGH})`;
  const rows = await sql<(TaskResult & { isAll: boolean })[]>`
    with newest as materialized (
      select * from (${newest(sql`= ${branch}`)} ${isDefault ? sql`union all ${newest(sql`is null`)}` : sql``}) e
      order by id desc limit ${LOOKED_THROUGH}
    ), build as materialized (
      -- In the order in which the branch first saw their commits: what is built again of an old one is no news.
      select id, created_at, completed_at,
        case when commit is null then id else min(id::text) over (partition by commit)::uuid end as place
      from newest where build_id is null
    ), mine as materialized (
      select id, id as build_id, created_at as began_at, completed_at as ended_at, place from build
      union all
      -- A rerun of a build that was deleted belongs to none.
      select n.id, n.build_id, b.created_at, n.completed_at,
        coalesce((select place from build where id = n.build_id), n.build_id)
      from newest n cross join lateral (
        select created_at from execution where project_id = ${projectId} and id = n.build_id offset 0) b
    ), result as materialized (
      select distinct on (m.build_id, r.task_slug) m.*, r.task_slug, r.status,
        coalesce(r.build_passed, r.passed) as passed, coalesce(r.build_failed, r.failed) as failed, r.completed_at
      from mine m cross join lateral (
        select * from test_run r where r.project_id = ${projectId} and r.execution_id = m.id and ${hasResult(sql, sql`r`)}
        offset 0) r
      order by m.build_id, r.task_slug, m.id desc
    ), marked as (
      select *, dense_rank() over (order by place desc, build_id desc)::int as builds_ago,
        lag(status = 'passed') over task as was_green, lead(build_id) over task is null as is_last
      from result window task as (partition by task_slug order by place, build_id)
    )
    select task_slug as slug, status, passed, failed, build_id as "buildId", id as "executionId",
      began_at as "createdAt", coalesce(completed_at, ended_at, began_at) as "endedAt", builds_ago as "buildsAgo",
      (select count(*) from newest) < ${LOOKED_THROUGH}::int as "isAll"
    from marked where is_last or was_green is distinct from (status = 'passed')
    order by task_slug, place, build_id`;
  return toBranchState(rows, rows[0]?.isAll ?? true);
}

/** Whether a newer execution of the branch has begun, or an older one was of the same commit: then the state of the branch is another. */
export async function selectIsLeftBehind(
  sql: Sql,
  projectId: string,
  { id, branch, isDefault, commit }: { id: string; commit: string | null } & Omit<Branch, "sample">,
): Promise<boolean> {
  const isBuild = sql`
    build_id is null and not sample and ${isTrustedBuild(sql, sql`e`)} ${isNoPullRequest(sql, isDefault)}`;
  const newer = (name: Fragment) => sql`exists (
    select from execution e where project_id = ${projectId} and branch ${name} and id > ${id} and ${isBuild})`;
  // The builds of the commit are looked up first: they are few, and those of the branch are many.
  const [row] = await sql<{ isLeftBehind: boolean }[]>`
    select ${newer(sql`= ${branch}`)} ${isDefault ? sql`or ${newer(sql`is null`)}` : sql``} or exists (
      select from (
        select * from execution where project_id = ${projectId} and lower(commit) = lower(${commit}) offset 0) e
      where id < ${id} and (branch = ${branch} ${isDefault ? sql`or branch is null` : sql``}) and ${isBuild})
      as "isLeftBehind"`;
  return row!.isLeftBehind;
}
