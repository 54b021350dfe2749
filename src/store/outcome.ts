/** Conditions: runs that have ended with a result. */

import type { Fragment, Sql } from "../database/connect.ts";

/** A condition: the run has an outcome. One that was cancelled has none, nor has one that still waits. */
export const hasResult = (sql: Sql, run: Fragment): Fragment =>
  sql`${run}.status in ('passed', 'failed', 'incomplete', 'timed_out')`;
