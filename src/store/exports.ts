/** Statements of exports: the number of running ones, and data that no list of the API has. */

import type { Sql, Tx } from "../database/connect.ts";
import { lockOf } from "../database/locks.ts";

/** Maximum number of concurrent exports on all servers of a database, and per project. */
export const MAX_EXPORTS = 4;
export const MAX_PROJECT_EXPORTS = 2;

/** Takes a free lock of `owner` until the end of the transaction. */
async function takeSlot(sql: Tx, owner: string, slots: number): Promise<boolean> {
  // The first lock that is taken ends the statement.
  const taken = await sql`
    select from generate_series(1, ${slots}::int) slot
    where pg_try_advisory_xact_lock(${lockOf(sql, "export", sql`(${owner} || ' ' || slot)`)}) limit 1`;
  return taken.length === 1;
}

/** Counts an export until the end of the transaction. Returns what has too many exports; undefined: none has. */
export async function takeExportSlot(sql: Tx, projectId: string): Promise<"project" | "server" | undefined> {
  if (!(await takeSlot(sql, projectId, MAX_PROJECT_EXPORTS))) return "project";
  return (await takeSlot(sql, "", MAX_EXPORTS)) ? undefined : "server";
}

/** The moment that a snapshot shows. */
export async function selectSnapshotTime(sql: Tx): Promise<string> {
  const [row] = await sql<{ takenAt: string }[]>`select now()::timestamptz(3) as "takenAt"`;
  return row!.takenAt;
}

/** Ids of bug reports, merged ones included, oldest first. */
export const selectBugReportIds = async (
  sql: Sql,
  projectId: string,
  { after, limit }: { after: string; limit: number },
) =>
  (
    await sql<{ id: string }[]>`
      select id from bug_report where project_id = ${projectId} and id > ${after} order by id limit ${limit}`
  ).map(({ id }) => id);
