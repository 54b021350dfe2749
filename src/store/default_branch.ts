/** Which executions are on the default branch of their project. */

import type { Fragment, Sql } from "./connect.ts";

/**
 * A condition: execution `e` is on the branch `name`, the default one, or names none. A pull request from a fork is not, though
 * its branch may have the same name.
 */
export const isOnDefault = (sql: Sql, e: Fragment, name: Fragment): Fragment =>
  sql`((${e}.branch is null or ${e}.branch = ${name}) and ${e}.pull_request is null)`;

/** The name, by a look-up. */
export const defaultBranchOf = (sql: Sql, projectId: string): Fragment =>
  sql`(select default_branch from project where id = ${projectId})`;

/** Beside a condition on the name, as the index of branches has it. */
export const isNoPullRequest = (sql: Sql, isDefault: boolean): Fragment =>
  isDefault ? sql`and pull_request is null` : sql``;
