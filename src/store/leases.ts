/** Leases of tasks: queued, offered to runners, running and ended. */

import type { QueuedTask } from "../schema/planned_tasks.ts";
import type { Shard } from "../schema/fields.ts";
import type { LeaseState } from "../schema/leases.ts";
import type { LeaseStatus } from "../schema/run_leases.ts";
import { type Fragment, type Sql, toNumberArray, toTextArray, type Tx } from "../database/connect.ts";
import { hasServedFor } from "./instance.ts";
import { failedResultsOf } from "./packing.ts";
import { isDue } from "../database/retry_backoff.ts";
import { inSeconds } from "../database/time_bounds.ts";
import { isProject } from "./predicates.ts";
import { canRun, isBlocked, isHeld, isOpen, isPresent, isSeen, offersTask } from "./runner_presence.ts";

/** How long a lease lasts without contact with its runner: longer than a full window of the rate limit. */
export const LEASE_SECONDS = 90;

/** Time that a runner may need beyond the timeout of a task to report its end. */
const GRACE_SECONDS = 60;

/** An expression: the runner that a run was last handed to, or null. `run` is a test_run. */
export const lastRunner = (sql: Sql, run: Fragment): Fragment => sql`(
  select l.runner from lease l
  where l.project_id = ${run}.project_id and l.run_id = ${run}.id and l.runner is not null order by l.id desc limit 1)`;

/** An expression: why no runner will take a task, as `MissingRunner`, or null if one will. `run` is a queued test_run. */
export const missingRunner = (sql: Sql, run: Fragment): Fragment => {
  const runner = (condition: Fragment) => sql`exists (
    select from runner r where r.project_id = l.project_id and ${condition})`;
  const mayTake = sql`(${offersTask(sql, sql`r`, sql`l`)} or ${isBlocked(sql, sql`r`)})`;
  return sql`(
    select json_build_object('taskSlug', l.task_slug, 'labels', to_json(l.labels), 'cause', case
        when not ${runner(isPresent(sql, sql`r`))} then
          case when ${runner(isSeen(sql, sql`r`))} then 'all_paused' else 'none_online' end
        when not ${runner(sql`${isPresent(sql, sql`r`)} and ${mayTake}`)} then 'no_task'
        when not ${runner(sql`${isPresent(sql, sql`r`)} and ${mayTake} and l.labels <@ r.labels`)} then 'no_labels'
        else 'no_probes' end)
    from lease l where l.project_id = ${run}.project_id and l.run_id = ${run}.id and l.status = 'queued'
      and not ${runner(sql`(${canRun(sql, sql`r`, sql`l`)} or ${isBlocked(sql, sql`r`)} and l.labels <@ r.labels)`)}
    limit 1)`;
};

/** Inserts a lease for each task, or for each of its shards, in the order of the tasks. */
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
      priority, concurrency_group, probe)
    select r.project_id, l.id, r.execution_id, r.id, r.task_slug, l.shard, l.shards,
      array(select json_array_elements_text(l.labels::json)), 'queued', coalesce(l.seconds, e.timeout_minutes * 60),
      ${now.toISOString()}, l.priority, l.concurrency_group, e.probe
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

/** Returns the tasks for a rerun, as they were planned before. */
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

/**
 * Returns executions of mode run that have not ended, of this branch and pull request, except the given one, in the order in which they are
 * locked.
 */
export const selectSupersededIds = async (
  sql: Tx,
  projectId: string,
  { id, branch, pullRequest }: { id: string; branch: string | null; pullRequest: string | null },
): Promise<string[]> =>
  (
    await sql<{ id: string }[]>`
      select id from execution
      where project_id = ${projectId} and mode = 'run' and status in ('queued', 'running') and id < ${id} and not probe
        and branch is not distinct from ${branch} and pull_request is not distinct from ${pullRequest}
      order by id`
  ).map(({ id }) => id);

/** Returns the distinct labels of queued tasks. */
export const selectWaitingLabels = async (sql: Sql, projectId: string, executionId: string): Promise<string[]> => {
  const rows = await sql<{ label: string }[]>`
    select distinct unnest(labels) as label from lease
    where project_id = ${projectId} and execution_id = ${executionId} and status = 'queued' order by 1`;
  return rows.map(({ label }) => label);
};

/**
 * Returns the executions that a call of a runner concerns beyond its leases: those of leases that it confirms or returns, in the order in
 * which they are locked.
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

type RenewedLease = Omit<LeaseState, "cancelled" | "reason"> & {
  stopReason: string | null;
  /** Whether its runner was already told to stop it. */
  wasTold: boolean;
  isWatched: boolean;
};

/**
 * Renews leases from the end of the call on, which may wait for some seconds. A lease that was just offered is confirmed. Leases that the
 * runner has lost are omitted.
 */
export const renewLeases = (
  sql: Tx,
  projectId: string,
  runner: string,
  { ids, waitSeconds }: { ids: readonly string[]; waitSeconds: number },
) => sql<RenewedLease[]>`
  with mine as materialized (
    select id, stop_sent from lease l where project_id = ${projectId} and id = any(${toTextArray(ids)}::uuid[])
      and runner = ${runner} and ${isHeld(sql, sql`l`)}
    order by id for update)
  update lease l set status = 'running', started_at = coalesce(l.started_at, now()),
    expires_at = ${inSeconds(sql, LEASE_SECONDS + waitSeconds)}, stop_sent = l.stop_reason is not null
  from mine, execution e
  where l.project_id = ${projectId} and l.id = mine.id and e.project_id = l.project_id and e.id = l.execution_id
  returning l.id, l.expires_at as "expiresAt", l.stop_reason as "stopReason", l.log_bytes as "logOffset",
    mine.stop_sent as "wasTold", coalesce(e.watched_until > now(), false) as "isWatched"`;

/** Marks the execution (locked) and the tasks that runners have as running. */
export const startTasks = async (sql: Tx, projectId: string, executionId: string): Promise<void> => {
  await sql`
    update test_run r set status = 'running', started_at = coalesce(r.started_at, now())
    where r.project_id = ${projectId} and r.execution_id = ${executionId} and r.status = 'queued' and exists (
      select from lease l where l.project_id = r.project_id and l.run_id = r.id and l.status = 'running')`;
  await sql`
    update execution set status = 'running', started_at = coalesce(started_at, now())
    where project_id = ${projectId} and id = ${executionId} and status = 'queued'`;
};

/** Whether a task is a runner's, or waits for one. */
export const selectHasOpenLease = async (sql: Sql, projectId: string, runId: string): Promise<boolean> =>
  (
    await sql`
      select from lease l where project_id = ${projectId} and run_id = ${runId} and ${isOpen(sql, sql`l`)} limit 1`
  ).length === 1;

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
  /** Whether it must end because it ran too long. */
  overtime: boolean;
  /** Whether its runner has confirmed it. */
  hasStarted: boolean;
  /** The execution that is repeated, for a rerun of failures. */
  repeats: string | null;
  /** The runners that could not run this work, one entry for each time. */
  avoid: string[];
  /** Whether it belongs to a probe. */
  probe: boolean;
};

const columns = (sql: Sql) => sql`
  id, execution_id as "executionId", run_id as "runId", task_slug as "taskSlug", shard, shards, status, attempt, runner,
  stop_reason as "stopReason", overtime, probe, started_at is not null as "hasStarted", to_json(avoid) as avoid, (
    select rerun_of from execution e
    where e.project_id = lease.project_id and e.id = lease.execution_id and e.failed_only and lease.shards = 1) as repeats`;

export const selectLease = async (sql: Sql, projectId: string, id: string): Promise<HeldLease | undefined> => {
  const [row] = await sql<HeldLease[]>`
    select ${columns(sql)} from lease where project_id = ${projectId} and id = ${id}`;
  return row;
};

/** The status of a lease changes only while its execution is locked. */
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

/** Returns and locks the latest lease that repeats the work of this one; undefined if there is none. */
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
  insert into lease (project_id, id, execution_id, run_id, task_slug, shard, shards, labels, attempt, status, timeout_seconds, queued_at, priority, concurrency_group, probe, avoid)
  select project_id, ${Bun.randomUUIDv7()}, execution_id, run_id, task_slug, shard, shards, labels, attempt + ${costs}::int,
    'queued', timeout_seconds, queued_at, priority, concurrency_group, probe, case when status = 'infrastructure' then avoid || runner else avoid end
  from lease where project_id = ${projectId} and id = ${id}`;

/**
 * Cancels the queued leases of a locked execution and marks the others to be stopped. Returns whether there were any. Leases are locked in
 * ascending order of ids, like the renewals of runners, which prevents deadlocks.
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

/** Locks the open leases of a locked execution that is to be deleted, in the order in which the renewals of runners lock them. */
export const lockOpenLeases = (sql: Tx, projectId: string, executionId: string) => sql`
  select from lease l where project_id = ${projectId} and execution_id = ${executionId} and ${isOpen(sql, sql`l`)}
  order by id for update`;

/** Returns the open tasks of a locked execution of mode run without an open lease, each with its last lease that has no report. */
export const selectTasksWithoutLease = (sql: Tx, projectId: string, executionId: string) => sql<TaskWithoutLease[]>`
  select r.task_slug as slug, r.attempt, r.verdict, last.status as "leaseStatus",
    coalesce(last.stop_reason, last.message) as reason
  from test_run r cross join lateral (
    select l.status, l.stop_reason, l.message from lease l
    where l.project_id = r.project_id and l.run_id = r.id and l.status <> 'reported' order by l.id desc limit 1) last
  where r.project_id = ${projectId} and r.execution_id = ${executionId} and r.status in ('queued', 'running')
    and not exists (
      select from lease l where l.project_id = r.project_id and l.run_id = r.id and ${isOpen(sql, sql`l`)})`;

type TaskWithoutLease = {
  slug: string;
  attempt: number;
  verdict: "passed" | "failed" | null;
  leaseStatus: string;
  reason: string | null;
};

/** Returns the next lease whose time is over, regardless of what its runner reports. */
export const selectOverdueLease = async (
  sql: Sql,
): Promise<{ projectId: string; id: string; executionId: string } | undefined> => {
  const [row] = await sql<{ projectId: string; id: string; executionId: string }[]>`
    select project_id as "projectId", id, execution_id as "executionId" from lease l
    where ${isHeld(sql, sql`l`)} and ${isOverdue(sql, sql`l`)} and ${isProject(sql, sql`l.project_id`)}
      and ${isDue(sql, "lease", sql`l.id::text`)}
    order by expires_at limit 1`;
  return row;
};

/** A runner could not report the end of its task during an outage. */
const isOverdue = (sql: Sql, lease: Fragment) => sql`(
  ${lease}.expires_at < now()
  or ${lease}.stop_reason is null and ${hasRunFor(sql, lease, GRACE_SECONDS)}
  or ${hasRunFor(sql, lease, 4 * GRACE_SECONDS)})`;

/** A condition: the time limit of the task was over so many seconds ago. */
const hasRunFor = (sql: Sql, lease: Fragment, seconds: number) => sql`(
  ${lease}.started_at < now() - (${lease}.timeout_seconds + ${seconds}::int) * interval '1 second'
  and ${hasServedFor(sql, LEASE_SECONDS)})`;

type OverdueLease = HeldLease & { isExpired: boolean; isTooLong: boolean; timeoutSeconds: number };

/** The lease, locked, if it is still overdue. `isExpired`: its runner was not heard of; `isTooLong`: it goes on all the same. */
export const lockOverdueLease = async (sql: Tx, projectId: string, id: string): Promise<OverdueLease | undefined> => {
  const [row] = await sql<OverdueLease[]>`
    select ${columns(sql)}, expires_at < now() as "isExpired", timeout_seconds as "timeoutSeconds",
      coalesce(${hasRunFor(sql, sql`lease`, 4 * GRACE_SECONDS)}, false) as "isTooLong"
    from lease where project_id = ${projectId} and id = ${id} and ${isHeld(sql, sql`lease`)}
      and ${isOverdue(sql, sql`lease`)}
    for update`;
  return row;
};

/** Tells the runner to end a lease that runs too long. */
export const stopOvertime = (sql: Tx, projectId: string, id: string, reason: string) => sql`
  update lease set stop_reason = ${reason}, overtime = true
  where project_id = ${projectId} and id = ${id} and stop_reason is null`;

/** A condition: an execution whose time is over is running, or has work that a runner will take. */
export const isAtWork = (sql: Sql): Fragment => sql`
  execution.mode = 'run' and exists (
    select from lease l where l.project_id = execution.project_id and l.execution_id = execution.id and (
      ${isHeld(sql, sql`l`)} or l.status = 'queued' and exists (
        select from runner r
        where r.project_id = l.project_id and ${canRun(sql, sql`r`, sql`l`)})))`;

/** Maximum number of failures that are named one by one; a rerun of more runs all tests. */
const MAX_ONLY = 5_000;

/**
 * Returns the test cases of a task that failed in an execution; undefined: all must run, because those are too many or none, or the task
 * was not complete: shards or the end of a report are missing, or a runner failed while its tests passed.
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
    from (
      select run_id, number from ${failedResultsOf(sql, projectId, run)} own
      union all
      select r.id, unnest(r.not_rerun) from (${run}) found join test_run r on r.project_id = ${projectId} and r.id = found.id) f
    join test_case c on c.project_id = ${projectId} and c.number = f.number
    order by c.number limit ${MAX_ONLY + 1}`;
  const isAll = rows.length === 0 || rows.length > MAX_ONLY || rows.some(({ isRunner }) => isRunner);
  return isAll ? undefined : rows.map(({ suite, name, file }) => ({ suite, name, file }));
};

/** Whether the runner has, or has had, a lease of the run. */
export const selectHadLease = async (sql: Sql, projectId: string, runId: string, runner: string): Promise<boolean> => {
  const rows = await sql`
    select from lease where project_id = ${projectId} and run_id = ${runId} and runner = ${runner} limit 1`;
  return rows.length > 0;
};

/** Whether the runner holds a lease of this shard of the task. */
export const selectHoldsShard = async (
  sql: Sql,
  { projectId, executionId, taskSlug }: { projectId: string; executionId: string; taskSlug: string },
  { shard, runner }: { shard: Shard; runner: string },
): Promise<boolean> => {
  const rows = await sql`
    select from lease l
    where project_id = ${projectId} and execution_id = ${executionId} and task_slug = ${taskSlug}
      and greatest(shard, 1) = ${shard.index} and shards = ${shard.of} and runner = ${runner} and ${isHeld(sql, sql`l`)}
    limit 1`;
  return rows.length > 0;
};
