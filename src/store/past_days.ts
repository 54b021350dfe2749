/** Discards the stored figures of days on which executions have ended that a transaction changes or deletes. */

import { type Sql, toTextArray, type Tx } from "../database/connect.ts";
import { lockOf } from "../database/locks.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const toDay = (ms: number): number => Math.floor(ms / DAY_MS);

/** Whether the day of this time, in UTC, may be over by the clock of the database, which may be an hour ahead. */
export const mayBePastDay = (time: string | Date): boolean =>
  toDay(new Date(time).getTime()) < toDay(Date.now() + HOUR_MS);

/**
 * Discards figures of past days before executions are deleted, or after they were changed. The lock is taken first, in a separate
 * statement: a transaction that stores figures holds it exclusively, so the figures are either deleted here, or computed with the change.
 */
export async function discardDays(sql: Tx, projectId: string, executionIds: readonly string[]): Promise<void> {
  if (executionIds.length === 0) return;
  const past = (columns: ReturnType<Sql>) => sql`
    select ${columns} from execution
    where project_id = ${projectId} and id = any(${toTextArray(executionIds)}::uuid[]) and not untrusted
      and completed_at < date_trunc('day', now(), 'UTC')`;
  await Promise.all([
    sql`select pg_advisory_xact_lock_shared(${lockOf(sql, "days", projectId)}) from (${past(sql``)} limit 1) one`,
    sql`
      delete from branch_day
      where project_id = ${projectId} and day in (${past(sql`(completed_at at time zone 'UTC')::date`)})`,
  ]);
}
