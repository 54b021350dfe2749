/** How the runs of one task are found among those of all. */

import type { Fragment, Sql } from "../database/connect.ts";

/**
 * What the index of a task's runs, newest first, is made of. That index does not know `task_slug` itself: who looks for the
 * run of a task in one execution names that, and cannot be given all runs of the task to go through, whatever PostgreSQL
 * believes of how many there are.
 */
export const INDEXED_TASK = "(task_slug || '')";
export const indexedTask = (sql: Sql): Fragment => sql`${sql.unsafe(INDEXED_TASK)}`;
