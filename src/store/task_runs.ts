/** Finds the runs of one task. */

import type { Fragment, Sql } from "../database/connect.ts";

/**
 * The expression that the index of a task's runs, newest first, is built on. It is not plain `task_slug`, so that a query for the run of a
 * task in one execution, which uses `task_slug`, never scans all runs of the task, whatever PostgreSQL estimates.
 */
export const INDEXED_TASK = "(task_slug || '')";
export const indexedTask = (sql: Sql): Fragment => sql`${sql.unsafe(INDEXED_TASK)}`;
