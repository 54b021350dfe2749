/** Finds and reseals the sealed variables of executions after a change of the key. */

import type { Sql, Tx } from "../database/connect.ts";
import { isDue } from "../database/retry_backoff.ts";

/** Returns the names of the keys with which variables of executions are sealed, hexadecimal, with the number of executions. */
export const selectExecutionSealKeys = (sql: Sql) => sql<{ name: string; count: number }[]>`
  select encode(substring(variables from 2 for 4), 'hex') as name, count(*)::int as count from execution
  where variables is not null group by 1 order by 1`;

type SealedExecution = { projectId: string; id: string; sealed: Buffer };

/** Returns and locks some executions whose variables were sealed with another key. */
export const lockExecutionsSealedOtherwise = (sql: Tx, keyName: string, limit: number) => sql<SealedExecution[]>`
  select project_id as "projectId", id, variables as sealed from execution
  where variables is not null and substring(variables from 2 for 4) <> decode(${keyName}, 'hex')
    and ${isDue(sql, "sealing", sql`concat_ws(' ', project_id, id)`)}
  limit ${limit} for update skip locked`;

export const updateExecutionSealed = (sql: Tx, { projectId, id, sealed }: SealedExecution) => sql`
  update execution set variables = ${sealed} where project_id = ${projectId} and id = ${id}`;
