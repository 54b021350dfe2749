/** Reads the data of live streams, once for all subscribers of a project, together with the keys that may see it. */

import { atEvent, atLog, before, compare } from "../rules/stream_position.ts";
import type { EventData, EventType } from "../schema/events.ts";
import type { LiveExecution, LiveTask, LiveItem, LivePage, Position } from "../schema/live.ts";
import type { Verdict } from "../schema/fields.ts";
import { type Fragment, type Sql, toJsonTime, toTextArray, type Tx } from "../database/connect.ts";
import { isLiveKey } from "./keys.ts";
import { lastRunner } from "./leases.ts";
import { isTrustedBuild } from "./predicates.ts";

/** Maximum number of events, and of parts of logs, read at once; PAGE_BYTES bounds their size approximately. */
const PAGE_ROWS = 500;
const PAGE_BYTES = 524_288;
/** Maximum number of executions in progress per project in live streams, the newest. */
const MAX_OPEN_EXECUTIONS = 20;

/** The live keys, read in the same statement as the events, so that no event after a revocation is sent without it being seen. */
const liveKeys = (sql: Sql, projectId: string): Fragment => sql`
  (select coalesce(json_agg(k.id), '[]') from api_key k where k.project_id = ${projectId} and ${isLiveKey(sql)})`;

/** No transaction below it is still running. */
const horizon = (sql: Sql): Fragment => sql`pg_snapshot_xmin(pg_current_snapshot())`;
/** No visible row has this transaction id or a larger one, unless it comes from another database. */
const ceiling = (sql: Sql): Fragment => sql`pg_snapshot_xmax(pg_current_snapshot())`;
const now = (sql: Sql): Fragment => sql`extract(epoch from now())::int8`;

/** The execution of an event, as in `event.execution_id`. */
export const executionOf = ({ execution, bugReport }: EventData): string | null | undefined =>
  execution?.id ?? bugReport?.lastExecutionId;

const number = (sql: Sql, xact: number): Fragment => sql`${String(xact)}::text::xid8`;

type LivePageOptions = {
  after: Position;
  /** The executions whose logs are read. */
  executionIds: readonly string[];
  /** Events of this one only. */
  executionId?: string | undefined;
};

type LiveItemRow = { xmin: string; now: number; keys: string[]; total: number | null } & (
  | { kind: null }
  | { kind: "event"; xact: string; id: string; type: EventType; data: EventData; at: string }
  | {
      kind: "log";
      xact: string;
      id: string;
      start: number;
      executionId: string;
      taskSlug: string;
      shard: number;
      bytes: Uint8Array;
    }
);

/** Returns events and logs after a position, in their order, from transactions that can no longer be preceded by others. */
export async function selectLiveEvents(
  sql: Sql,
  projectId: string,
  { after, executionIds, executionId }: LivePageOptions,
): Promise<LivePage> {
  const { xact, event, lease, start } = after;
  const events = sql`
    select e.xact, 0 as rank, e.id, 0::int8 as start, pg_column_size(e.data) as size, e.type, e.data, e.occurred_at,
      null::uuid as execution_id, null::text as task_slug, null::smallint as shard, null::bytea as bytes
    from event e
    where e.project_id = ${projectId} and (e.xact, e.id) > (${number(sql, xact)}, ${event}::uuid)
      and e.xact < ${horizon(sql)}
      ${executionId === undefined ? sql`` : sql`and e.execution_id = ${executionId}`}
    order by e.xact, e.id limit ${PAGE_ROWS}`;
  const logs = sql`
    select l.xact, 1, l.lease_id, l.start, octet_length(l.bytes), null, null, null, s.execution_id, s.task_slug, s.shard,
      l.bytes
    from test_run r join lease s on s.project_id = r.project_id and s.run_id = r.id,
      lateral (
        select * from lease_log l
        where l.project_id = ${projectId} and l.lease_id = s.id and l.xact >= ${number(sql, xact)}
          and (l.xact, l.lease_id, l.start) > (${number(sql, xact)}, ${lease}::uuid, ${start}::int8)
          and l.xact < ${horizon(sql)}
        order by l.xact, l.start limit ${PAGE_ROWS}) l
    where r.project_id = ${projectId} and r.execution_id = any(${toTextArray(executionIds)}::uuid[])`;
  const rows = await sql<LiveItemRow[]>`
    select ${horizon(sql)}::text as xmin, ${now(sql)} as now, ${liveKeys(sql, projectId)} as keys, n.total,
      case n.rank when 0 then 'event' when 1 then 'log' end as kind, n.xact::text as xact, n.id, n.start, n.type, n.data,
      n.occurred_at as at, n.execution_id as "executionId", n.task_slug as "taskSlug", n.shard, n.bytes
    from (values (true)) as always left join (
      select * from (
        select *, count(*) over ()::int as total,
          sum(size) over (order by xact, rank, id, start rows unbounded preceding) - size as bytes_before
        from (${executionIds.length === 0 ? sql`(${events})` : sql`(${events}) union all (${logs})`}) as found
      ) as measured
      where bytes_before < ${PAGE_BYTES}
      order by xact, rank, id, start limit ${PAGE_ROWS}
    ) n on true
    order by n.xact, n.rank, n.id, n.start`;
  const [first] = rows;
  const news = rows.flatMap((row): LiveItem[] => (row.kind === null ? [] : [toNews(row, after.at)]));
  const isWhole = (first!.total ?? 0) < PAGE_ROWS && (first!.total ?? 0) === news.length;
  const here = before(Number(first!.xmin), first!.now);
  const to = isWhole ? (compare(here, after) > 0 ? here : after) : news.at(-1)!.position;
  return { news, to, isWhole, keys: first!.keys };
}

function toNews(row: Exclude<LiveItemRow, { kind: null }>, at: number): LiveItem {
  const { kind, id } = row;
  const xact = Number(row.xact);
  if (kind === "event") {
    const position = atEvent(xact, id, Math.floor(Date.parse(row.at) / 1000));
    return { kind, position, id, type: row.type, data: row.data, occurredAt: row.at };
  }
  const { executionId, taskSlug, shard, bytes, start } = row;
  return {
    kind,
    position: atLog(xact, id, start, at),
    leaseId: id,
    executionId,
    taskSlug,
    shard,
    offset: start,
    bytes,
  };
}

/** Returns the current position of the stream, without events. */
export async function selectHere(sql: Sql): Promise<Position> {
  const [row] = await sql<{ xmin: string; now: number }[]>`select ${horizon(sql)}::text as xmin, ${now(sql)} as now`;
  return before(Number(row!.xmin), row!.now);
}

/**
 * Transactions are numbered anew in a database that was restored from a dump: rows with larger numbers count as old. Returns the current
 * position of the stream, and the next transaction number.
 */
export async function settleForeign(
  sql: Sql,
  projectId: string,
  executionId: string | undefined,
): Promise<{ here: Position; xmax: number }> {
  const [row] = await sql<{ xmin: string; xmax: string; now: number }[]>`
    with events as (
      update event set xact = '0' where project_id = ${projectId} and xact >= ${ceiling(sql)}),
    logs as (
      update lease_log l set xact = '0'
      from test_run r join lease s on s.project_id = r.project_id and s.run_id = r.id
      where r.project_id = ${projectId} and r.execution_id = ${executionId ?? null}::uuid
        and l.project_id = ${projectId} and l.lease_id = s.id and l.xact >= ${ceiling(sql)})
    select ${horizon(sql)}::text as xmin, ${ceiling(sql)}::text as xmax, ${now(sql)} as now`;
  return { here: before(Number(row!.xmin), row!.now), xmax: Number(row!.xmax) };
}

/** An execution as it is now; times are ISO 8601. */
export type LiveRow = Omit<LiveExecution, "passed" | "failed" | "skipped" | "total" | "flaky" | "verdict"> & {
  /** Runners that are at it. */
  running: number;
  tasks: (Omit<LiveTask, "total"> & { flaky: number; verdict: Verdict | null; declared: boolean })[];
};

export type LiveRows = { xmax: number; keys: string[]; executions: LiveRow[] };

/** These executions and, with `openToo`, the newest of the project that have not ended. */
export async function selectLiveExecutions(
  sql: Sql,
  projectId: string,
  ids: readonly string[],
  openToo: boolean,
): Promise<LiveRows> {
  const open = sql`
    union (select id from execution where project_id = ${projectId} and status in ('queued', 'running')
        and ${isTrustedBuild(sql, sql`execution`)}
      order by id desc limit ${MAX_OPEN_EXECUTIONS})`;
  const [row] = await sql<(Omit<LiveRows, "xmax"> & { xmax: string })[]>`
    select ${ceiling(sql)}::text as xmax, ${liveKeys(sql, projectId)} as keys, (
      select coalesce(json_agg(json_build_object(
        'id', e.id, 'key', e.key, 'status', e.status, 'mode', e.mode, 'trigger', e.trigger, 'branch', e.branch,
        'commit', e.commit, 'pullRequest', e.pull_request, 'baseBranch', e.base_branch,
        'queueRef', e.queue_ref, 'buildUrl', e.build_url, 'environment', e.environment,
        'rerunOf', e.rerun_of, 'baselineId', e.baseline_id, 'createdAt', ${toJsonTime(sql, sql`e.created_at`)},
        'startedAt', ${toJsonTime(sql, sql`e.started_at`)}, 'completedAt', ${toJsonTime(sql, sql`e.completed_at`)},
        'running', (
          select count(*) from lease l
          where l.project_id = e.project_id and l.execution_id = e.id and l.status in ('offered', 'running')),
        'tasks', (
          select coalesce(json_agg(json_build_object(
            'slug', r.task_slug, 'status', r.status, 'attempt', r.attempt, 'passed', r.passed, 'failed', r.failed,
            'skipped', r.skipped, 'flaky', r.flaky, 'verdict', r.verdict, 'declared', r.declared,
            'runner', case when e.mode = 'run' then ${lastRunner(sql, sql`r`)} end,
            'reason', r.reason, 'startedAt', ${toJsonTime(sql, sql`r.started_at`)},
            'completedAt', ${toJsonTime(sql, sql`r.completed_at`)}) order by r.id), '[]')
          from test_run r where r.project_id = e.project_id and r.execution_id = e.id)) order by e.id), '[]')
      from execution e
      where e.project_id = ${projectId} and e.id in (
        select unnest(${toTextArray(ids)}::uuid[]) ${openToo ? open : sql``})) as executions`;
  return { ...row!, xmax: Number(row!.xmax) };
}

/** Whether there is an execution to watch. */
export const selectExecutionExists = async (sql: Sql, projectId: string, id: string): Promise<boolean> =>
  (await sql`select from execution where project_id = ${projectId} and id = ${id}`).length === 1;

/** Whether runners have the execution and it is watched for less than so many seconds. */
export const selectIsUnwatched = async (sql: Sql, projectId: string, id: string, seconds: number): Promise<boolean> =>
  (
    await sql`
      select from execution where project_id = ${projectId} and id = ${id} and mode = 'run' and status in ('queued', 'running')
        and coalesce(watched_until < now() + ${seconds} * interval '1 second', true)`
  ).length === 1;

/**
 * Marks executions with running leases as watched for some seconds, in a transaction, and returns whether one was not watched before.
 * Locked rows are skipped until the next time.
 */
export const updateWatched = async (
  sql: Tx,
  projectId: string,
  ids: readonly string[],
  seconds: number,
): Promise<boolean> => {
  const rows = await sql<{ isNew: boolean }[]>`
    with seen as (
      select id, watched_until from execution
      where project_id = ${projectId} and id = any(${toTextArray(ids)}::uuid[]) and mode = 'run'
        and status in ('queued', 'running')
      order by id for no key update skip locked)
    update execution e set watched_until = now() + ${seconds} * interval '1 second'
    from seen where e.project_id = ${projectId} and e.id = seen.id
    returning coalesce(seen.watched_until < now(), true) as "isNew"`;
  return rows.some(({ isNew }) => isNew);
};
