/** Conditions that many statements share, each stated once. What a test case's record says is in health.ts. */

import type { Given } from "../database/compose.ts";
import type { Fragment, Sql } from "../database/connect.ts";

/** There is a project with this id, an expression: it is not deleted. */
export const isProject = (sql: Sql, id: Fragment): Fragment =>
  sql`exists (select from project there where there.id = ${id})`;

/** The row `r`, an alias, belongs to a team that is there, and to a project that is there unless it belongs to none. */
export const hasOwner = (sql: Sql, r: Fragment): Fragment => sql`(
  exists (select from team there where there.id = ${r}.team_id)
  and (${r}.project_id is null or ${isProject(sql, sql`${r}.project_id`)}))`;

/** The bug report `b`, an alias, is open or in progress, and not part of another one. */
export const isLiveBug = (sql: Sql, b: Fragment): Fragment =>
  sql`(${b}.status in ('open', 'in_progress') and ${b}.merged_into is null)`;

/** The quarantine `q`, an alias, has no end, or ends later. */
export const isActiveQuarantine = (sql: Sql, q: Fragment): Fragment => sql`(${q}.until is null or ${q}.until > now())`;

/** The execution `e`, an alias, agrees with a branch and a commit wherever both sides know them. */
export const agreesWithBuild = (
  sql: Sql,
  e: Fragment,
  { branch, commit }: { branch: Given; commit: Given },
): Fragment => sql`(
  (${e}.branch is null or ${branch}::text is null or ${e}.branch = ${branch})
  and (${e}.commit is null or ${commit}::text is null or is_same_commit(${e}.commit, ${commit})))`;

/**
 * Execution `e`, an alias, is on the branch `name`, the default one, or names none. A pull request from a fork is not, though
 * its branch may have the same name.
 */
export const isOnDefault = (sql: Sql, e: Fragment, name: Fragment): Fragment =>
  sql`((${e}.branch is null or ${e}.branch = ${name}) and ${e}.pull_request is null)`;
