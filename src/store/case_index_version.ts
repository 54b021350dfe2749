/** The version that cached numbers of test cases are valid for. */

import type { Given } from "../database/compose.ts";
import type { Fragment, Sql, Tx } from "../database/connect.ts";

/**
 * As long as the version is the same, a known test case of the project has the same number. It changes if a case is removed or a former
 * identity becomes another case (`renewCaseIndex`), and if the database was restored, copied or replaced: rows that were written again,
 * another server or another database.
 */
export const caseIndexVersionOf = (sql: Sql, projectId: Given): Fragment => sql`
  (select concat_ws(' ', p.xmin, (select v.xmin from case_index_version v where v.project_id = p.id),
      extract(epoch from pg_postmaster_start_time()),
      (select oid from pg_database where datname = current_database()))
    from project p where p.id = ${projectId})`;

/** Renews the version, in the transaction that deletes test cases or changes the target of a former identity. */
export const renewCaseIndexIf = (sql: Sql, projectId: string, isNeeded: Fragment): Fragment => sql`
  insert into case_index_version (project_id) select id from project where id = ${projectId} and ${isNeeded}
  on conflict (project_id) do update set version = case_index_version.version + 1`;

export const renewCaseIndex = (sql: Tx, projectId: string) => sql`${renewCaseIndexIf(sql, projectId, sql`true`)}`;
