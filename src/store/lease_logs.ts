/** The output of tasks, and the leases of the runners that ran them. */

import type { RunLease } from "../schema/run_leases.ts";
import { type Sql, type Tx } from "../database/connect.ts";
import { isOpen } from "./runner_presence.ts";

/** The end of a log that is kept. */
const KEEP_LOG_BYTES = 1_048_576;

/**
 * Appends to each log what its part has beyond the end of the log. A gap before a part is skipped permanently. `bytes` must be whole UTF-8
 * characters: so is the stored log, and therefore the rest of a part that begins before the log's end. The caller has locked the leases.
 * Transactions may write to one log in an order other than that of their numbers, so the number of a part is at least that of the previous
 * one, unless that is from a database that this one was restored from.
 */
export async function appendLogs(
  sql: Tx,
  projectId: string,
  parts: readonly { id: string; offset: number; bytes: Uint8Array }[],
): Promise<void> {
  for (const { id, offset, bytes } of parts) {
    const end = offset + bytes.length;
    await sql`
      with log as (
        select id, greatest(log_bytes, ${offset}::bigint) as start from lease
        where project_id = ${projectId} and id = ${id} and log_bytes < ${end}
      ), grown as (
        update lease l set log_bytes = ${end} from log where l.project_id = ${projectId} and l.id = log.id
      ), trimmed as (
        delete from lease_log g using log
        where g.project_id = ${projectId} and g.lease_id = log.id
          and g.start + length(g.bytes) <= ${end - KEEP_LOG_BYTES}::bigint
      )
      insert into lease_log (project_id, lease_id, start, bytes, xact)
      select ${projectId}, id, start, substring(${bytes as never}::bytea from (start - ${offset}::bigint + 1)::int),
        greatest(pg_current_xact_id(), (
          select max(l.xact) from lease_log l
          where l.project_id = ${projectId} and l.lease_id = log.id and l.xact < pg_snapshot_xmax(pg_current_snapshot())))
      from log
      where start < ${end}`;
  }
}

/** Appends a line of the server to a log. The caller has locked the lease. */
export async function appendLogNote(sql: Tx, projectId: string, id: string, text: string): Promise<void> {
  const [row] = await sql<{ bytes: number }[]>`
    select log_bytes as bytes from lease where project_id = ${projectId} and id = ${id}`;
  if (!row) return;
  const line = `${row.bytes === 0 ? "" : "\n"}[assay] ${text}\n`;
  await appendLogs(sql, projectId, [{ id, offset: row.bytes, bytes: new TextEncoder().encode(line) }]);
}

/** Returns the leases of a run that runners had, oldest first: one row more than `limit`, which shows that there are more. */
export const selectLeasesOfRun = (
  sql: Sql,
  projectId: string,
  runId: string,
  { limit, after }: { limit: number; after?: string | undefined },
) => sql<RunLease[]>`
  select id, case when shard > 0 then json_build_object('index', shard, 'total', shards) end as shard, attempt, runner, status,
    coalesce(message, stop_reason) as reason, exit_code as "exitCode", started_at as "startedAt", ended_at as "endedAt"
  from lease where project_id = ${projectId} and run_id = ${runId} and runner is not null
    ${after === undefined ? sql`` : sql`and id > ${after}`}
  order by id limit ${limit + 1}`;

/** A lease with a log. `shard` is 0 for a task without shards. `isOver`: no runner has the lease or will get another of its shard. */
export type LogLease = { id: string; shard: number; logBytes: number; isOver: boolean };

/** Returns the newest lease of a run that a runner had: of a shard, by default the first, or the lease that is named. */
export const selectLogLease = async (
  sql: Sql,
  projectId: string,
  runId: string,
  { shard, leaseId }: { shard?: number | undefined; leaseId?: string | undefined },
): Promise<LogLease | undefined> => {
  const [row] = await sql<LogLease[]>`
    select id, shard, log_bytes as "logBytes", not exists (
      select from lease o
      where o.project_id = ${projectId} and o.run_id = ${runId} and o.shard = l.shard
        ${leaseId === undefined ? sql`` : sql`and o.id = l.id`} and ${isOpen(sql, sql`o`)}) as "isOver"
    from lease l
    where project_id = ${projectId} and run_id = ${runId} and runner is not null
      ${leaseId === undefined ? sql`` : sql`and id = ${leaseId}`}
      ${shard === undefined ? sql`` : sql`and (shard = ${shard} or shard = 0 and ${shard} = 1)`}
    order by ${shard === undefined ? sql`shard = 0 desc, shard,` : sql``} id desc limit 1`;
  return row;
};

/** Returns whether a run has a shard of this number; a run without shards has only number 1. */
export const selectHasShard = async (sql: Sql, projectId: string, runId: string, shard: number): Promise<boolean> =>
  (await sql`select from test_run where project_id = ${projectId} and id = ${runId} and shards >= ${shard}`).length ===
  1;

/** Returns the stored parts of a log in order, from the one that contains the byte `offset`. */
export const selectLogParts = (sql: Sql, projectId: string, leaseId: string, offset: number, limit = 32) => sql<
  { start: number; bytes: Uint8Array }[]
>`
  select start, bytes from lease_log
  where project_id = ${projectId} and lease_id = ${leaseId} and start + length(bytes) > ${offset}
  order by start limit ${limit}`;

/** Returns the parts that contain the last `bytes` bytes of a log, in order; the first may begin before them. */
export const selectLogTail = (sql: Sql, projectId: string, lease: { id: string; logBytes: number }, bytes: number) =>
  selectLogParts(sql, projectId, lease.id, Math.max(0, lease.logBytes - bytes), 100_000);

/** Returns how many lines of a log end before a byte of it; undefined where the beginning of the log is not stored any more. */
export const countLogLines = async (
  sql: Sql,
  projectId: string,
  leaseId: string,
  before: number,
): Promise<number | undefined> => {
  const [row] = await sql<{ lines: number; start: number | null }[]>`
    select min(start) as start, coalesce(sum(length(text) - length(replace(text, chr(10), ''))), 0)::int as lines
    from (
      select start, encode(substring(bytes for least(length(bytes), ${before}::bigint - start)::int), 'escape') as text
      from lease_log where project_id = ${projectId} and lease_id = ${leaseId} and start < ${before}
    ) part`;
  return row?.start === 0 ? row.lines : undefined;
};
