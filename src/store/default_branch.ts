/** Conditions: executions on the default branch of their project, and runs of a commit that the branch has left behind. */

import type { Given } from "../database/compose.ts";
import type { Fragment, Sql } from "../database/connect.ts";
import { isTrustedBuild } from "./predicates.ts";

/** The name, by a look-up. */
export const defaultBranchOf = (sql: Sql, projectId: string): Fragment =>
  sql`(select default_branch from project where id = ${projectId})`;

/** Beside a condition on the name, as the index of branches has it. */
export const isNoPullRequest = (sql: Sql, isDefault: boolean): Fragment =>
  isDefault ? sql`and pull_request is null` : sql``;

/**
 * A condition: execution `e` is of a commit that its branch has left behind. The branch had seen it before, and another run, of the task of
 * run `r` if given, is of a commit that the branch saw later. Such an execution says nothing new about the branch.
 */
export const isOvertaken = (sql: Sql, projectId: Given, { r, e }: { r?: Fragment; e: Fragment }): Fragment => {
  const isOn = (one: Fragment) => sql`
    ${one}.project_id = ${projectId} and ${isTrustedBuild(sql, one)} and ${one}.build_id is null and ${one}.branch is not distinct from ${e}.branch
    and ${one}.pull_request is not distinct from ${e}.pull_request`;
  return sql`(${e}.commit is not null and exists (
    select from (
      select f.id from execution f
      where ${isOn(sql`f`)} and f.commit is not null and lower(f.commit) = lower(${e}.commit) and f.id < ${e}.id
      order by f.id limit 1) first,
    lateral (
      select from execution o
      where ${isOn(sql`o`)} and o.id > first.id and o.id < ${e}.id and lower(o.commit) <> lower(${e}.commit)
        and exists (
          select from test_run t
          where t.project_id = ${projectId} and t.execution_id = o.id and t.completed_at is not null
            ${r === undefined ? sql`` : sql`and t.task_slug = ${r}.task_slug`})
        and not exists (
          select from execution g
          where ${isOn(sql`g`)} and g.commit is not null and lower(g.commit) = lower(o.commit) and g.id < first.id)
      limit 1) later))`;
};
