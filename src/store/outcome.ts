/** Conditions: runs that have ended with a result. */

import type { Fragment, Sql } from "../database/connect.ts";

/** A condition: the run has an outcome. Cancelled and waiting ones have none. */
export const hasResult = (sql: Sql, run: Fragment): Fragment =>
  sql`${run}.status in ('passed', 'failed', 'incomplete', 'timed_out')`;
