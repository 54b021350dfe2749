/** Leases: what is to be run, waiting, handed out to runners, and over; the queue is those that wait. */

import type { QueuedTask } from "../schema/executions.ts";
import type { LeaseState, LeaseStatus, RunLease, Runner } from "../schema/leases.ts";
import { type Fragment, type Sql, toJsonTime, toNumberArray, toTextArray, type Tx } from "./connect.ts";
import { hasServedFor } from "./instance.ts";
import { failedResultsOf } from "./packing.ts";
import { isTakeable } from "./put_offs.ts";

/** Who was handed a lease says so within this time, or never got it. */
const OFFER_SECONDS = 15;
/** How long a lease lasts without its runner being heard of: longer than a full window of the rate limit. */
export const LEASE_SECONDS = 90;
/** What a runner may take beyond the time of a task until it says that it has ended it. */
const GRACE_SECONDS = 60;
/** A runner that has not asked for so long is not there. */
const SEEN_SECONDS = 120;
/** Of a log. */
const KEEP_LOG_BYTES = 1_048_576;

const isOpen = (sql: Sql, lease: Fragment) => sql`${lease}.status in ('queued', 'offered', 'running')`;
const isHeld = (sql: Sql, lease: Fragment) => sql`${lease}.status in ('offered', 'running')`;
const inSeconds = (sql: Sql, seconds: number) => sql`now() + ${seconds}::int * interval '1 second'`;

/** An expression: who was handed a run last; null: nobody. `run` is a test_run. */
export const lastRunner = (sql: Sql, run: Fragment): Fragment => sql`(
  select l.runner from lease l
  where l.project_id = ${run}.project_id and l.run_id = ${run}.id and l.runner is not null order by l.id desc limit 1)`;

/** An expression: a task waits for a runner that there is not. `run` is a test_run that is queued. */
export const waitsInVain = (sql: Sql, run: Fragment): Fragment => sql`(
  select 'No runner that takes it has asked in the last 2 minutes'
    || case when l.labels = '{}' then '' else ', with the labels ' || array_to_string(l.labels, ', ') end
  from lease l where l.project_id = ${run}.project_id and l.run_id = ${run}.id and l.status = 'queued' and not exists (
    select from runner r
    where r.project_id = l.project_id and (${canRun(sql, sql`r`, sql`l`)} or ${isBlocked(sql, sql`r`)}
      and l.labels <@ r.labels))
  limit 1)`;

/** A condition: the runner holds a lease that has not expired. */
const isBusy = (sql: Sql, runner: Fragment): Fragment => sql`exists (
  select from lease mine where mine.project_id = ${runner}.project_id and mine.runner = ${runner}.name
    and ${isHeld(sql, sql`mine`)} and mine.expires_at > now())`;

/**
 * A condition: the runner is busy and still asks for work. It then leaves out the tasks that would overwrite the report
 * of a task that it runs, so its task_slugs do not say what it takes once it is idle.
 */
const isBlocked = (sql: Sql, runner: Fragment): Fragment => sql`(${runner}.free > 0 and ${isBusy(sql, runner)})`;

/** A condition: the runner gets no new tasks, because somebody has paused it, or because it could not run several in a row. */
const isPaused = (sql: Sql, runner: Fragment): Fragment => sql`
  (${runner}.paused_at is not null and (${runner}.paused_until is null or ${runner}.paused_until > now()))`;

const pauseOf = (sql: Sql, runner: Fragment): Fragment => sql`
  case when ${isPaused(sql, runner)} then json_build_object(
    'reason', ${runner}.pause_reason, 'until', ${toJsonTime(sql, sql`${runner}.paused_until`)}) end`;

/** A condition: the runner has asked lately, or holds a lease; and it is not paused. */
const isPresent = (sql: Sql, runner: Fragment): Fragment => sql`
  not ${isPaused(sql, runner)} and (${runner}.seen_at > now() - ${SEEN_SECONDS}::int * interval '1 second' or ${isBusy(sql, runner)})`;

/** Whether a runner has asked lately, and has what a lease wants. */
const canRun = (sql: Sql, runner: Fragment, lease: Fragment): Fragment => sql`
  ${isPresent(sql, runner)} and ${lease}.labels <@ ${runner}.labels
  and (${runner}.task_slugs is null or ${lease}.task_slug = any(${runner}.task_slugs) or exists (
    -- It does not ask for a task while it has one that would write the same report.
    select from lease other where other.project_id = ${lease}.project_id and other.runner = ${runner}.name
      and other.task_slug = ${lease}.task_slug and ${isHeld(sql, sql`other`)}))`;

/** For each task a lease, or one for each of its shards; in the order of the tasks. */
export const insertLeases = (
  sql: Tx,
  projectId: string,
  executionId: string,
  tasks: readonly QueuedTask[],
  now: Date,
) => {
  const leases = tasks.flatMap((task) =>
    Array.from({ length: task.shards }, (_, index) => ({ ...task, shard: task.shards === 1 ? 0 : index + 1 })),
  );
  return sql`
    insert into lease (project_id, id, execution_id, run_id, task_slug, shard, shards, labels, status, timeout_seconds, queued_at,
      priority, concurrency_group)
    select r.project_id, l.id, r.execution_id, r.id, r.task_slug, l.shard, l.shards,
      array(select json_array_elements_text(l.labels::json)), 'queued', coalesce(l.seconds, e.timeout_minutes * 60),
      ${now.toISOString()}, l.priority, l.concurrency_group
    from unnest(
      ${toTextArray(leases.map(() => Bun.randomUUIDv7("hex", now.getTime())))}::uuid[],
      ${toTextArray(leases.map(({ slug }) => slug))}::text[], ${toNumberArray(leases.map(({ shard }) => shard))}::smallint[],
      ${toNumberArray(leases.map(({ shards }) => shards))}::smallint[],
      ${toTextArray(leases.map(({ labels }) => JSON.stringify(labels)))}::text[],
      ${toNumberArray(leases.map((task) => task.timeoutSeconds ?? null))}::int[],
      ${toNumberArray(leases.map((task) => task.priority ?? 0))}::smallint[],
      ${toTextArray(leases.map((task) => task.concurrencyGroup ?? null))}::text[]
    ) as l (id, slug, shard, shards, labels, seconds, priority, concurrency_group)
    join test_run r on r.project_id = ${projectId} and r.execution_id = ${executionId} and r.task_slug = l.slug
    join execution e on e.project_id = r.project_id and e.id = r.execution_id`;
};

/** What a rerun of these tasks asks for: as they were planned before. */
export const selectPlannedTasks = async (
  sql: Sql,
  projectId: string,
  executionId: string,
  slugs: readonly string[],
): Promise<QueuedTask[]> => {
  type Row = Omit<QueuedTask, "timeoutSeconds" | "concurrencyGroup"> & { timeoutSeconds: number; group: string | null };
  const rows = await sql<Row[]>`
    select distinct on (task_slug) task_slug as slug, shards, to_json(labels) as labels, timeout_seconds as "timeoutSeconds", priority,
      concurrency_group as "group"
    from lease where project_id = ${projectId} and execution_id = ${executionId}
      and task_slug = any(${toTextArray(slugs)}::text[])
    order by task_slug, id desc`;
  return slugs.map((slug) => {
    const { group, ...planned } = rows.find((row) => row.slug === slug) ?? { slug, shards: 1, labels: [], group: null };
    return { ...planned, ...(group === null ? {} : { concurrencyGroup: group }) };
  });
};

/** Executions of mode run that are not over, of this branch and pull request, without the one that is given; in the order in which they are locked. */
export const selectSupersededIds = async (
  sql: Tx,
  projectId: string,
  { id, branch, pullRequest }: { id: string; branch: string; pullRequest: string | null },
): Promise<string[]> =>
  (
    await sql<{ id: string }[]>`
      select id from execution
      where project_id = ${projectId} and mode = 'run' and status in ('queued', 'running') and id < ${id}
        and branch = ${branch} and pull_request is not distinct from ${pullRequest}
      order by id`
  ).map(({ id }) => id);

/** The labels that what waits for a runner wants, each once. */
export const selectWaitingLabels = async (sql: Sql, projectId: string, executionId: string): Promise<string[]> => {
  const rows = await sql<{ label: string }[]>`
    select distinct unnest(labels) as label from lease
    where project_id = ${projectId} and execution_id = ${executionId} and status = 'queued' order by 1`;
  return rows.map(({ label }) => label);
};

/** Whether each task of an execution has a runner that takes it and was seen within the last hour. */
export const selectHasRunners = async (sql: Sql, projectId: string, executionId: string): Promise<boolean> => {
  const [row] = await sql<{ isSo: boolean }[]>`
    select count(*) > 0 and bool_and(exists (
      select from runner r
      where r.project_id = ${projectId} and r.seen_at > now() - interval '1 hour' and l.labels <@ r.labels
        and (r.task_slugs is null or l.task_slug = any(r.task_slugs) or ${isBlocked(sql, sql`r`)}))) as "isSo"
    from (
      select distinct on (task_slug) task_slug, labels from lease
      where project_id = ${projectId} and execution_id = ${executionId} order by task_slug, id desc) l`;
  return row!.isSo;
};

export type Asker = {
  runner: string;
  labels: readonly string[];
  /** Undefined: all. */
  taskSlugs: readonly string[] | undefined;
};

/** A condition: what a runner could not run goes to another one, as long as there is one that can run it. */
const fits = (sql: Sql, projectId: string, { runner, labels, taskSlugs }: Asker, lease: Fragment) => sql`
  not exists (select from runner me where me.project_id = ${projectId} and me.name = ${runner} and ${isPaused(sql, sql`me`)})
  and ${lease}.labels <@ ${toTextArray(labels)}::text[]
  and (${lease}.concurrency_group is null or not exists (
    select from lease held where held.project_id = ${lease}.project_id
      and held.concurrency_group = ${lease}.concurrency_group and ${isHeld(sql, sql`held`)}))
  and (${runner} <> all(${lease}.avoid) or not exists (
    select from runner r where r.project_id = ${lease}.project_id and r.name <> all(${lease}.avoid)
      and ${canRun(sql, sql`r`, lease)}))
  ${taskSlugs === undefined ? sql`` : sql`and ${lease}.task_slug = any(${toTextArray(taskSlugs)}::text[])`}`;

/** A lease that is handed out, with what its runner must know. */
export type OfferedLease = {
  id: string;
  expiresAt: string;
  timeoutSeconds: number;
  taskSlug: string;
  attempt: number;
  shard: number;
  shards: number;
  executionId: string;
  key: string | null;
  branch: string | null;
  commit: string | null;
  pullRequest: string | null;
  environment: string | null;
  baseUrl: string | null;
  teamId: string;
  environmentId: string | null;
  /** Sealed, of the execution. */
  ownVariables: Buffer | null;
  /** Of a rerun of what failed, which is one lease a task: the execution that it repeats. */
  repeats: string | null;
};

/**
 * In a transaction that has updated the runner, so that no other call of it does this meanwhile: hands out up to `free`
 * of those that wait. The highest priority goes first, then the execution that has the fewest at work, then the oldest. What
 * another server hands out at this moment is left to it.
 */
export const takeLeases = (sql: Tx, projectId: string, asker: Asker, free: number) => sql<OfferedLease[]>`
  with active as materialized (
    select execution_id, count(*) as leases from lease l
    where project_id = ${projectId} and ${isHeld(sql, sql`l`)} group by execution_id
  ), waiting as materialized (
    select l.id, l.queued_at, l.priority, row_number() over (
        partition by coalesce(l.concurrency_group, l.id::text) order by l.priority desc, l.queued_at, l.id) as place_in_group,
      coalesce(a.leases, 0) + row_number() over (partition by l.execution_id order by l.queued_at, l.id) as turn
    from lease l left join active a on a.execution_id = l.execution_id
    where l.project_id = ${projectId} and l.status = 'queued' and ${fits(sql, projectId, asker, sql`l`)}
  ), taken as (
    select l.id, w.turn from waiting w join lease l on l.project_id = ${projectId} and l.id = w.id
    where l.status = 'queued' and w.place_in_group = 1 order by w.priority desc, w.turn, w.queued_at, w.id
    limit greatest(0, ${free}::int - (
      -- What another call has just brought, and its runner has not named yet, takes a place as well.
      select count(*) from lease l where l.project_id = ${projectId} and l.runner = ${asker.runner} and l.status = 'offered'))
    for update of l skip locked
  ), offered as (
    update lease l set status = 'offered', runner = ${asker.runner}, offered_at = now(),
      expires_at = ${inSeconds(sql, OFFER_SECONDS)}
    from taken where l.project_id = ${projectId} and l.id = taken.id
    returning l.*, taken.turn
  )
  select o.id, o.expires_at as "expiresAt", o.timeout_seconds as "timeoutSeconds", o.task_slug as "taskSlug", o.attempt, o.shard,
    o.shards, e.id as "executionId", e.key, e.branch, e.commit, e.pull_request as "pullRequest", e.environment,
    v.base_url as "baseUrl", p.team_id as "teamId", v.id as "environmentId", e.variables as "ownVariables",
    case when e.failed_only and o.shards = 1 then e.rerun_of end as repeats
  from offered o
  join execution e on e.project_id = o.project_id and e.id = o.execution_id
  join project p on p.id = o.project_id
  left join environment v on v.team_id = p.team_id and v.slug = e.environment
  order by o.priority desc, o.turn, o.queued_at, o.id`;

/**
 * Before leases are taken: where tasks of a concurrency group wait, one call at a time takes leases of the project, because two would not see
 * what the other has taken of a group.
 */
export const lockConcurrencyGroups = (sql: Tx, projectId: string) => sql`
  select pg_advisory_xact_lock(hashtextextended(${`concurrency groups of ${projectId}`}, 0))
  where exists (
    select from lease where project_id = ${projectId} and concurrency_group is not null and status = 'queued')`;

/** Returns leases to the queue, in the transaction that has taken them. */
export const leaveLeases = (sql: Tx, projectId: string, ids: readonly string[]) => sql`
  update lease set status = 'queued', runner = null, offered_at = null, expires_at = null
  where project_id = ${projectId} and id = any(${toTextArray(ids)}::uuid[])`;

/**
 * Which executions a call of a runner is about beyond its leases: those of leases that it now says to have, and of leases
 * that it gives back. In the order in which they are locked.
 */
export const selectExecutionsOf = (
  sql: Sql,
  projectId: string,
  runner: string,
  { offered, returned }: { offered: readonly string[]; returned: readonly string[] },
) => sql<{ id: string; executionId: string; isReturned: boolean }[]>`
  select id, execution_id as "executionId", id = any(${toTextArray(returned)}::uuid[]) as "isReturned" from lease l
  where project_id = ${projectId} and runner = ${runner} and (
    id = any(${toTextArray(offered)}::uuid[]) and status = 'offered'
    or id = any(${toTextArray(returned)}::uuid[]) and ${isHeld(sql, sql`l`)})
  order by execution_id, id`;

export type RenewedLease = Omit<LeaseState, "cancelled" | "reason"> & {
  stopReason: string | null;
  /** Its runner has been told before to end it. */
  wasTold: boolean;
  isWatched: boolean;
};

/** They last from the end of the call on, which may wait for so many seconds; who had just been handed out one has it. Those that are not the runner's any more are left out. */
export const renewLeases = (
  sql: Tx,
  projectId: string,
  runner: string,
  { ids, waitSeconds }: { ids: readonly string[]; waitSeconds: number },
) => sql<RenewedLease[]>`
  with mine as materialized (
    select id, stop_told from lease l where project_id = ${projectId} and id = any(${toTextArray(ids)}::uuid[])
      and runner = ${runner} and ${isHeld(sql, sql`l`)}
    order by id for update)
  update lease l set status = 'running', started_at = coalesce(l.started_at, now()),
    expires_at = ${inSeconds(sql, LEASE_SECONDS + waitSeconds)}, stop_told = l.stop_reason is not null
  from mine, execution e
  where l.project_id = ${projectId} and l.id = mine.id and e.project_id = l.project_id and e.id = l.execution_id
  returning l.id, l.expires_at as "expiresAt", l.stop_reason as "stopReason", l.log_bytes as "logOffset",
    mine.stop_told as "wasTold", coalesce(e.watched_until > now(), false) as "isWatched"`;

/** Of a locked execution: those of its tasks that a runner has are at work, and so is it. */
export const startTasks = async (sql: Tx, projectId: string, executionId: string): Promise<void> => {
  await sql`
    update test_run r set status = 'running', started_at = coalesce(r.started_at, now())
    where r.project_id = ${projectId} and r.execution_id = ${executionId} and r.status = 'queued' and exists (
      select from lease l where l.project_id = r.project_id and l.run_id = r.id and l.status = 'running')`;
  await sql`
    update execution set status = 'running', started_at = coalesce(started_at, now())
    where project_id = ${projectId} and id = ${executionId} and status = 'queued'`;
};

/** Whether there is something for a runner that waits: work, if it asks for some, or news of what it holds. */
export const selectHasNews = async (
  sql: Sql,
  projectId: string,
  asker: Asker,
  { wantsWork, held, knownAsWatched }: { wantsWork: boolean; held: readonly string[]; knownAsWatched: boolean },
): Promise<boolean> => {
  const [row] = await sql<{ hasNews: boolean }[]>`
    select ${
      wantsWork
        ? sql`exists (
            select from lease l
            where l.project_id = ${projectId} and l.status = 'queued' and ${fits(sql, projectId, asker, sql`l`)})`
        : sql`false`
    } or exists (
      select from unnest(${toTextArray(held)}::uuid[]) as named (id)
      left join lease l on l.project_id = ${projectId} and l.id = named.id
      left join execution e on e.project_id = l.project_id and e.id = l.execution_id
      where l.id is null or (
        not ${isHeld(sql, sql`l`)} or l.runner <> ${asker.runner} or l.stop_reason is not null and not l.stop_told
        ${knownAsWatched ? sql`` : sql`or e.watched_until > now()`})
    ) as "hasNews"`;
  return row!.hasNews;
};

/** How many runners of the project have asked lately. */
export const countRunners = async (sql: Sql, projectId: string): Promise<number> => {
  const [row] = await sql<{ seen: number }[]>`
    select count(*)::int as seen from runner
    where project_id = ${projectId} and seen_at > now() - ${SEEN_SECONDS}::int * interval '1 second'`;
  return row!.seen;
};

/** Notes that the runner has asked; answers how many of the project have lately. */
export const upsertRunner = async (
  sql: Tx,
  projectId: string,
  { runner, labels, taskSlugs }: Asker,
  { free, held }: { free: number; held: number },
): Promise<number> => {
  const [row] = await sql<{ seen: number }[]>`
    with asked as (
      insert into runner (project_id, name, labels, task_slugs, free, held, seen_at)
      values (${projectId}, ${runner}, ${toTextArray(labels)}::text[],
        ${taskSlugs === undefined ? null : toTextArray(taskSlugs)}::text[], ${free}, ${held}, now())
      on conflict (project_id, name) do update set labels = excluded.labels, task_slugs = excluded.task_slugs,
        free = excluded.free, held = excluded.held, seen_at = excluded.seen_at)
    select count(*)::int as seen from runner
    where project_id = ${projectId} and seen_at > now() - ${SEEN_SECONDS}::int * interval '1 second'`;
  return row!.seen;
};

/** So many tasks in a row that it could not run pause a runner. */
const MAX_FAILURES = 3;
const PAUSE_MINUTES = 10;

/**
 * Of a lease that still has its runner: one more task that the runner could not run. A task that another runner could not run either says
 * nothing about a runner. Several in a row pause the runner for a while, unless no other one is there.
 */
export const noteInfrastructureFailure = (sql: Tx, projectId: string, leaseId: string, message: string) => sql`
  with failed as (
    select runner, avoid, message from lease where project_id = ${projectId} and id = ${leaseId}
  ), others as (
    update runner r set failures = greatest(r.failures - 1, 0) from failed f
    where r.project_id = ${projectId} and r.name = any(f.avoid) and r.name <> f.runner)
  update runner r set failures = least(r.failures + 1, 1000),
    (paused_at, paused_until, pause_reason) = (
      select case when stops then now() else r.paused_at end,
        case when stops then now() + ${PAUSE_MINUTES}::int * interval '1 minute' else r.paused_until end,
        case when stops then ${`It could not run ${MAX_FAILURES} tasks in a row; the last time: ${message}`} else r.pause_reason end
      from (select r.failures + 1 >= ${MAX_FAILURES} and not ${isPaused(sql, sql`r`)} and exists (
        select from runner other where other.project_id = r.project_id and other.name <> r.name and ${isPresent(sql, sql`other`)}) as stops) as decided)
  from failed f where r.project_id = ${projectId} and r.name = f.runner and cardinality(f.avoid) = 0`;

/** Gives a runner no new tasks, or some again; false: there is no such runner. What it has at work goes on. */
export const updateRunnerPause = async (
  sql: Tx,
  projectId: string,
  name: string,
  reason: string | null,
): Promise<boolean> =>
  (
    await sql`
      update runner set paused_at = case when ${reason}::text is null then null else now() end, paused_until = null,
        pause_reason = ${reason}, failures = 0
      where project_id = ${projectId} and name = ${name}`
  ).count === 1;

/** A runner that has been started again may have been repaired. What somebody has paused stays paused. */
export const forgiveRunner = (sql: Tx, projectId: string, name: string) => sql`
  update runner set failures = 0, paused_at = case when paused_until is null then paused_at end, paused_until = null,
    pause_reason = case when paused_until is null then pause_reason end
  where project_id = ${projectId} and name = ${name} and (failures > 0 or paused_until is not null)`;

/**
 * Appends to logs what is new of each part; a gap is left out, also where nothing has come behind it yet. `bytes` are whole characters, and so is what there is
 * already: where a part begins before the end of it, the rest of the part is whole characters as well.
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
      insert into lease_log (project_id, lease_id, start, bytes)
      select ${projectId}, id, start, substring(${bytes as never}::bytea from (start - ${offset}::bigint + 1)::int) from log
      where start < ${end}`;
  }
}

/** Leases of one run that runners have had, oldest first; one row more than `limit`. */
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

/** The newest lease that a runner had of a run, or of a shard of it, or the one named; `isOver`: nobody has it, and nobody will. */
export const selectLogLease = async (
  sql: Sql,
  projectId: string,
  runId: string,
  { shard, leaseId }: { shard?: number | undefined; leaseId?: string | undefined },
): Promise<{ id: string; logBytes: number; isOver: boolean } | undefined> => {
  const [row] = await sql<{ id: string; logBytes: number; isOver: boolean }[]>`
    select id, log_bytes as "logBytes", not exists (
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

/** Whether a run was planned with so many shards; one that was not is its own first. */
export const selectHasShard = async (sql: Sql, projectId: string, runId: string, shard: number): Promise<boolean> =>
  (await sql`select from test_run where project_id = ${projectId} and id = ${runId} and shards >= ${shard}`).length ===
  1;

/** Whether a task is a runner's, or waits for one. */
export const selectHasOpenLease = async (sql: Sql, projectId: string, runId: string): Promise<boolean> =>
  (
    await sql`
      select from lease l where project_id = ${projectId} and run_id = ${runId} and ${isOpen(sql, sql`l`)} limit 1`
  ).length === 1;

/** In order, from the part that holds `offset` on; at most 32 of them. */
export const selectLogParts = (sql: Sql, projectId: string, leaseId: string, offset: number, limit = 32) => sql<
  { start: number; bytes: Uint8Array }[]
>`
  select start, bytes from lease_log
  where project_id = ${projectId} and lease_id = ${leaseId} and start + length(bytes) > ${offset}
  order by start limit ${limit}`;

/** In order, the last parts of a log, of at most so many bytes, and the one before them where that reaches into them. */
export const selectLogTail = (sql: Sql, projectId: string, lease: { id: string; logBytes: number }, bytes: number) =>
  selectLogParts(sql, projectId, lease.id, Math.max(0, lease.logBytes - bytes), 100_000);

export type HeldLease = {
  id: string;
  executionId: string;
  runId: string;
  taskSlug: string;
  shard: number;
  shards: number;
  status: LeaseStatus;
  attempt: number;
  runner: string | null;
  stopReason: string | null;
  /** It is to be ended because it ran too long. */
  overtime: boolean;
  /** Its runner has said that it has it. */
  hasStarted: boolean;
  /** Of a rerun of what failed: the execution that it repeats. */
  repeats: string | null;
  /** The runners that could not run this work, one entry for each time. */
  avoid: string[];
};

const columns = (sql: Sql) => sql`
  id, execution_id as "executionId", run_id as "runId", task_slug as "taskSlug", shard, shards, status, attempt, runner,
  stop_reason as "stopReason", overtime, started_at is not null as "hasStarted", to_json(avoid) as avoid, (
    select rerun_of from execution e
    where e.project_id = lease.project_id and e.id = lease.execution_id and e.failed_only and lease.shards = 1) as repeats`;

export const selectLease = async (sql: Sql, projectId: string, id: string): Promise<HeldLease | undefined> => {
  const [row] = await sql<HeldLease[]>`
    select ${columns(sql)} from lease where project_id = ${projectId} and id = ${id}`;
  return row;
};

/** Whoever changes the status of a lease has locked its execution before. */
export const lockLease = async (sql: Tx, projectId: string, id: string): Promise<HeldLease | undefined> => {
  const [row] = await sql<HeldLease[]>`
    select ${columns(sql)} from lease where project_id = ${projectId} and id = ${id} for update`;
  return row;
};

export const updateEndedLease = (
  sql: Tx,
  projectId: string,
  id: string,
  end: { status: LeaseStatus; message?: string | undefined; exitCode?: number | undefined },
) => sql<{ hasGroup: boolean }[]>`
  with works as (
    -- A runner that has run a task is none that cannot run any.
    update runner r set failures = 0 from lease l
    where l.project_id = ${projectId} and l.id = ${id} and ${end.status}::text in ('reported', 'failed')
      and r.project_id = l.project_id and r.name = l.runner and r.failures > 0)
  update lease set status = ${end.status}, ended_at = now(), expires_at = null,
    started_at = case when ${end.status}::text in ('reported', 'failed') then coalesce(started_at, now()) else started_at end,
    message = ${end.message ?? null}, exit_code = ${end.exitCode ?? null}
  where project_id = ${projectId} and id = ${id}
  returning concurrency_group is not null as "hasGroup"`;

/** What the work of a lease was handed out as afterwards, of the latest lease; undefined: it was not. */
export const selectSuccessor = async (
  sql: Tx,
  projectId: string,
  id: string,
): Promise<{ id: string; status: LeaseStatus } | undefined> => {
  const [row] = await sql<{ id: string; status: LeaseStatus }[]>`
    select next.id, next.status from lease l
    join lease next on next.project_id = l.project_id and next.run_id = l.run_id and next.shard = l.shard and next.id > l.id
    where l.project_id = ${projectId} and l.id = ${id} order by next.id desc limit 1 for update of next`;
  return row;
};

/** The same work once more, in its old place in the queue. */
export const requeueLease = (sql: Tx, projectId: string, id: string, { costs }: { costs: 0 | 1 }) => sql`
  insert into lease (project_id, id, execution_id, run_id, task_slug, shard, shards, labels, attempt, status, timeout_seconds, queued_at, priority, concurrency_group, avoid)
  select project_id, ${Bun.randomUUIDv7()}, execution_id, run_id, task_slug, shard, shards, labels, attempt + ${costs}::int,
    'queued', timeout_seconds, queued_at, priority, concurrency_group, case when status = 'infrastructure' then avoid || runner else avoid end
  from lease where project_id = ${projectId} and id = ${id}`;

/**
 * Of a locked execution: what waits is cancelled, and runners are to end what they have; whether there was anything. Ids in
 * one order, as the renewals of runners lock them.
 */
export const stopLeases = async (sql: Tx, projectId: string, executionId: string, reason: string): Promise<boolean> => {
  const stopped = await sql`
    with open as materialized (
      select id from lease l where project_id = ${projectId} and execution_id = ${executionId} and ${isOpen(sql, sql`l`)}
        and stop_reason is null
      order by id for update)
    update lease l set stop_reason = ${reason},
      status = case l.status when 'queued' then 'cancelled' else l.status end,
      ended_at = case l.status when 'queued' then now() end
    from open where l.project_id = ${projectId} and l.id = open.id`;
  return stopped.count > 0;
};

/** Of a locked execution that is to be deleted: what is open, in the order in which the renewals of runners lock it. */
export const lockOpenLeases = (sql: Tx, projectId: string, executionId: string) => sql`
  select from lease l where project_id = ${projectId} and execution_id = ${executionId} and ${isOpen(sql, sql`l`)}
  order by id for update`;

/** Of a locked execution of mode run: tasks that nobody runs or waits for any more, and that are not in. */
export const endTasksWithoutLease = (sql: Tx, projectId: string, executionId: string) => sql`
  update test_run r set
    status = case when r.attempt > 0 or last.status = 'infrastructure' then 'incomplete'
      when last.status in ('lost', 'timed_out') then 'timed_out' else 'cancelled' end,
    verdict = case when r.attempt > 0 or last.status = 'infrastructure' then 'failed' else r.verdict end,
    reason = coalesce(last.stop_reason, last.message)
  from test_run t cross join lateral (
    select l.status, l.stop_reason, l.message from lease l
    where l.project_id = t.project_id and l.run_id = t.id and l.status <> 'reported' order by l.id desc limit 1) last
  where r.project_id = ${projectId} and r.execution_id = ${executionId} and r.status in ('queued', 'running')
    and t.project_id = r.project_id and t.id = r.id
    and not exists (
      select from lease l where l.project_id = r.project_id and l.run_id = r.id and ${isOpen(sql, sql`l`)})`;

/** Who is to be looked at next: its time is over, whatever the runner says of it. */
export const selectOverdueLease = async (
  sql: Sql,
): Promise<{ projectId: string; id: string; executionId: string } | undefined> => {
  const [row] = await sql<{ projectId: string; id: string; executionId: string }[]>`
    select project_id as "projectId", id, execution_id as "executionId" from lease l
    where ${isHeld(sql, sql`l`)} and ${isOverdue(sql, sql`l`)} and ${isTakeable(sql, "lease", sql`l.id::text`)}
      and ${hasServedFor(sql, LEASE_SECONDS)}
    order by expires_at limit 1`;
  return row;
};

const isOverdue = (sql: Sql, lease: Fragment) => sql`(
  ${lease}.expires_at < now()
  or ${lease}.stop_reason is null and ${lease}.started_at < now() - (${lease}.timeout_seconds + ${GRACE_SECONDS}::int) * interval '1 second'
  or ${lease}.started_at < now() - (${lease}.timeout_seconds + ${4 * GRACE_SECONDS}::int) * interval '1 second')`;

export type OverdueLease = HeldLease & { isExpired: boolean; isTooLong: boolean; timeoutSeconds: number };

/** The lease, locked, if it is still overdue. `isExpired`: its runner was not heard of; `isTooLong`: it goes on all the same. */
export const lockOverdueLease = async (sql: Tx, projectId: string, id: string): Promise<OverdueLease | undefined> => {
  const [row] = await sql<OverdueLease[]>`
    select ${columns(sql)}, expires_at < now() as "isExpired", timeout_seconds as "timeoutSeconds",
      coalesce(started_at < now() - (timeout_seconds + ${4 * GRACE_SECONDS}::int) * interval '1 second', false) as "isTooLong"
    from lease where project_id = ${projectId} and id = ${id} and ${isHeld(sql, sql`lease`)}
      and ${isOverdue(sql, sql`lease`)}
    for update`;
  return row;
};

/** It runs too long: its runner is to end it. */
export const stopOvertime = (sql: Tx, projectId: string, id: string, reason: string) => sql`
  update lease set stop_reason = ${reason}, overtime = true
  where project_id = ${projectId} and id = ${id} and stop_reason is null`;

/** A condition: an execution, whose time without news is over, is at work, or has work that a runner will come to. */
export const isAtWork = (sql: Sql): Fragment => sql`
  execution.mode = 'run' and exists (
    select from lease l where l.project_id = execution.project_id and l.execution_id = execution.id and (
      ${isHeld(sql, sql`l`)} or l.status = 'queued' and exists (
        select from runner r
        where r.project_id = l.project_id and ${canRun(sql, sql`r`, sql`l`)})))`;

/** More are not named one by one: who has so many failures runs all. */
const MAX_ONLY = 5_000;

/**
 * The test cases of a task that failed in an execution; undefined: all are to run, because those are too many or none, or
 * not all of the task was seen: shards or the end of a report are missing, or a runner failed while its tests passed.
 */
export const selectCasesToRepeat = async (
  sql: Sql,
  projectId: string,
  executionId: string,
  taskSlug: string,
): Promise<{ suite: string; name: string; file: string | null }[] | undefined> => {
  const run = sql`
    select id from test_run r
    where project_id = ${projectId} and execution_id = ${executionId} and task_slug = ${taskSlug} and completed_at is not null
      and not exists (
        select from attempt a where a.project_id = r.project_id and a.run_id = r.id and a.partial and not exists (
          select from attempt later
          where later.project_id = a.project_id and later.run_id = a.run_id and later.shard = a.shard and later.number > a.number))`;
  const rows = await sql<{ suite: string; name: string; file: string | null; isRunner: boolean }[]>`
    select c.suite, c.name, c.file, exists (
      select from attempt a where a.project_id = ${projectId} and a.run_id = f.run_id and a.exit_case = f.number) as "isRunner"
    from ${failedResultsOf(sql, projectId, run)} f
    join test_case c on c.project_id = ${projectId} and c.number = f.number
    order by c.number limit ${MAX_ONLY + 1}`;
  const isAll = rows.length === 0 || rows.length > MAX_ONLY || rows.some(({ isRunner }) => isRunner);
  return isAll ? undefined : rows.map(({ suite, name, file }) => ({ suite, name, file }));
};

/** How many of what is too old to be asked for: `floor` is the smallest id that is kept. */
export const deleteOldLeases = async (sql: Sql, projectId: string, floor: string): Promise<number> =>
  (
    await sql`
      delete from lease where project_id = ${projectId} and id in (
        select id from lease l where project_id = ${projectId} and id < ${floor} and not ${isOpen(sql, sql`l`)}
        limit 1000)`
  ).count;

export const deleteOldRunners = (sql: Sql, days: number) =>
  sql`delete from runner where seen_at < now() - ${days}::int * interval '1 day'`;

export type TeamRunner = Omit<Runner, "leases"> & {
  projectId: string;
  projectName: string;
  /** It has asked for work lately. */
  isThere: boolean;
  /** What it has been handed and has not ended; of many the first ones. */
  leases: (Runner["leases"][number] & { execution: { key: string | null; createdAt: string } })[];
  held: number;
};

const MAX_SHOWN_LEASES = 8;

/** Of the team's projects, by project and name; one row more than `limit`. */
export const selectTeamRunners = (
  sql: Sql,
  teamId: string,
  limit: number,
  after?: { projectId: string; name: string },
) => sql<TeamRunner[]>`
  select p.id as "projectId", p.name as "projectName", r.name, to_json(r.labels) as labels,
    to_json(r.task_slugs) as "taskSlugs", r.free, r.seen_at as "seenAt", ${pauseOf(sql, sql`r`)} as paused,
    r.seen_at > now() - ${SEEN_SECONDS}::int * interval '1 second' as "isThere", (
      select coalesce(json_agg(json_build_object(
        'id', l.id, 'executionId', l.execution_id, 'taskSlug', l.task_slug,
        'shard', case when l.shard > 0 then json_build_object('index', l.shard, 'total', l.shards) end,
        'startedAt', ${toJsonTime(sql, sql`l.started_at`)},
        'execution', json_build_object('key', e.key, 'createdAt', ${toJsonTime(sql, sql`e.created_at`)})) order by l.id), '[]')
      from (
        select * from lease l where l.project_id = r.project_id and l.runner = r.name and ${isHeld(sql, sql`l`)}
        order by l.id limit ${MAX_SHOWN_LEASES}) l
      join execution e on e.project_id = l.project_id and e.id = l.execution_id) as leases, (
      select count(*)::int from lease l
      where l.project_id = r.project_id and l.runner = r.name and ${isHeld(sql, sql`l`)}) as held
  from project p join runner r on r.project_id = p.id
  where p.team_id = ${teamId}
    ${after === undefined ? sql`` : sql`and (p.id, r.name) > (${after.projectId}::uuid, ${after.name})`}
  order by p.id, r.name limit ${limit + 1}`;

export type Waiting = {
  projectId: string;
  projectName: string;
  labels: string[];
  waiting: number;
  since: string;
  /** Of many the first ones, by name. */
  taskSlugs: string[];
  tasks: number;
  /** Of those that wait: no runner that is there has the labels and takes the task. */
  unserved: number;
};

/** What waits in the team's projects, by the labels that it asks of a runner, what waits longest first; at most `limit`. */
export const selectTeamQueue = (sql: Sql, teamId: string, limit: number) => sql<Waiting[]>`
  with waiting as materialized (
    select l.project_id, p.name as project, l.labels, l.task_slug, count(*)::int as waiting, min(l.queued_at) as since
    from project p join lease l on l.project_id = p.id and l.status = 'queued'
    where p.team_id = ${teamId} group by l.project_id, p.name, l.labels, l.task_slug),
  -- Many runners are alike.
  there as materialized (
    select distinct r.project_id, r.labels, case when r.task_slugs is not null and not ${isBlocked(sql, sql`r`)}
      then r.task_slugs || array(
        select l.task_slug from lease l where l.project_id = r.project_id and l.runner = r.name and ${isHeld(sql, sql`l`)})
      end as task_slugs
    from project p join runner r on r.project_id = p.id
    where p.team_id = ${teamId} and ${isPresent(sql, sql`r`)}),
  served as materialized (
    select distinct w.project_id, w.labels, w.task_slug from waiting w join there r on r.project_id = w.project_id
      and w.labels <@ r.labels and (r.task_slugs is null or w.task_slug = any(r.task_slugs)))
  select w.project_id as "projectId", w.project as "projectName", to_json(w.labels) as labels,
    sum(w.waiting)::int as waiting, min(w.since) as since,
    to_json((array_agg(w.task_slug order by w.task_slug))[1:8]) as "taskSlugs", count(*)::int as tasks,
    coalesce(sum(w.waiting) filter (where s.project_id is null), 0)::int as unserved
  from waiting w left join served s
    on s.project_id = w.project_id and s.labels = w.labels and s.task_slug = w.task_slug
  group by w.project_id, w.project, w.labels
  order by min(w.since), w.project_id, w.labels limit ${limit}`;

/** By name; one row more than `limit`. */
export const selectRunners = (sql: Sql, projectId: string, limit: number, after: string | undefined) => sql<Runner[]>`
  select r.name, to_json(r.labels) as labels, to_json(r.task_slugs) as "taskSlugs", r.free, r.seen_at as "seenAt", ${pauseOf(sql, sql`r`)} as paused, (
    select coalesce(json_agg(json_build_object(
      'id', l.id, 'executionId', l.execution_id, 'taskSlug', l.task_slug,
      'shard', case when l.shard > 0 then json_build_object('index', l.shard, 'total', l.shards) end,
      'startedAt', ${toJsonTime(sql, sql`l.started_at`)}) order by l.id), '[]')
    from lease l where l.project_id = r.project_id and l.runner = r.name and ${isHeld(sql, sql`l`)}) as leases
  from runner r
  where r.project_id = ${projectId} ${after === undefined ? sql`` : sql`and r.name > ${after}`}
  order by r.name limit ${limit + 1}`;
