/** Items that a loop could not do: when each comes again, on every server. */

import type { Fragment, Sql } from "./connect.ts";

/** The loop that an item belongs to. */
export type LoopName =
  | "event"
  | "schedule"
  | "integration"
  | "delivery"
  | "expiry"
  | "counting"
  | "sealing"
  | "lease"
  | "deletion"
  | "verification"
  | "new_tests"
  | "culprit";

/**
 * A condition: the item is due. `item` is an expression of type text. It is looked up for each row in the order of an index; an anti join
 * would be computed for all due items to take one.
 */
export const isDue = (sql: Sql, loop: LoopName, item: Fragment): Fragment => sql`
  coalesce(
    (select retry_backoff.due_at from retry_backoff where retry_backoff.loop = ${loop} and retry_backoff.item = ${item}) <= now(), true)`;

/** `tries` counts internal errors, `stalls` counts times that the database was unavailable or too slow, each in a row. */
export type RetryBackoff = { tries: number; stalls: number };

/** The delay in seconds: 10, 20, 40, … after internal errors, 1, 2, 4, … after stalls, up to an hour. */
const pause = (sql: Sql, tries: Fragment, stalls: Fragment) => sql`
  interval '1 second' * least(3600, greatest(
    case when ${tries} > 0 then 10 * power(2, least(${tries} - 1, 20)) else 0 end,
    case when ${stalls} > 0 then power(2, least(${stalls} - 1, 20)) else 0 end))`;

/**
 * Postpones an item, for longer each time. Returns undefined if another server has postponed it already. The count restarts for an item
 * that was last due ten minutes ago or more.
 */
export async function postponeRetry(
  sql: Sql,
  loop: LoopName,
  item: string,
  isStall: boolean,
): Promise<RetryBackoff | undefined> {
  const [tries, stalls] = isStall ? [0, 1] : [1, 0];
  const before = sql`case when retry_backoff.due_at < now() - interval '10 minutes' then 0 else 1 end`;
  const sum = {
    tries: sql`least(retry_backoff.tries * ${before} + ${tries}::int, 30000)`,
    stalls: sql`least(retry_backoff.stalls * ${before} + ${stalls}::int, 30000)`,
  };
  const [row] = await sql<RetryBackoff[]>`
    insert into retry_backoff (loop, item, tries, stalls, due_at)
    values (${loop}, ${item}, ${tries}, ${stalls}, now() + ${pause(sql, sql`${tries}::int`, sql`${stalls}::int`)})
    on conflict (loop, item) do update set
      tries = ${sum.tries}, stalls = ${sum.stalls}, due_at = now() + ${pause(sql, sum.tries, sum.stalls)}
    where retry_backoff.due_at <= now()
    returning tries, stalls`;
  return row;
}

/** Clears the backoff of an item that succeeded. */
export const deleteRetryBackoff = (sql: Sql, loop: LoopName, item: string) =>
  sql`delete from retry_backoff where loop = ${loop} and item = ${item}`;

/** Items that are done or gone. */
export const deleteOldRetryBackoffs = (sql: Sql, days: number) =>
  sql`delete from retry_backoff where due_at < now() - interval '1 day' * ${days}::int`;
