/** What tells that a test case is still known by the number that it had. */

import type { Given } from "./compose.ts";
import type { Fragment, Sql } from "./connect.ts";

/**
 * As long as it is the same, a test case of the project that was known is known by the same number: it changes where a case
 * goes or a former place becomes another one's (the project's row is written anew then), and with a database that was
 * restored or has taken the place of another one.
 */
export const namesVersionOf = (sql: Sql, projectId: Given): Fragment => sql`
  (select concat(xmin, ' ', extract(epoch from pg_postmaster_start_time())) from project where id = ${projectId})`;
