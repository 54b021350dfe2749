/** What tells that a test case is still known by the number that it had. */

import type { Given } from "../database/compose.ts";
import type { Fragment, Sql } from "../database/connect.ts";

/**
 * As long as it is the same, a test case of the project that was known is known by the same number. It changes where a case
 * goes or a former place becomes another one's (triggers write `names_version` anew), and with a database that was restored,
 * copied, or put in the place of another one: rows that were written again, another server or another database.
 */
export const caseIndexVersionOf = (sql: Sql, projectId: Given): Fragment => sql`
  (select concat_ws(' ', p.xmin, (select v.xmin from names_version v where v.project_id = p.id),
      extract(epoch from pg_postmaster_start_time()),
      (select oid from pg_database where datname = current_database()))
    from project p where p.id = ${projectId})`;
