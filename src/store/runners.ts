/** Runners: those that request work, paused ones, and the queue. */

import type { Runner } from "../schema/runners.ts";
import { type Sql, toJsonTime, toTextArray, type Tx } from "../database/connect.ts";
import type { Asker } from "./lease_offers.ts";
import { isBlocked, isHeld, isPaused, isPresent, isSeenWithinHour, isSeen, pauseOf } from "./runner_presence.ts";

/** Whether each task of an execution has a runner that takes it and was seen within the last hour. */
export const selectHasRunners = async (sql: Sql, projectId: string, executionId: string): Promise<boolean> => {
  const [row] = await sql<{ isSo: boolean }[]>`
    select count(*) > 0 and bool_and(exists (
      select from runner r
      where r.project_id = ${projectId} and ${isSeenWithinHour(sql, sql`r`)} and l.labels <@ r.labels
        and (r.task_slugs is null or l.task_slug = any(r.task_slugs) or ${isBlocked(sql, sql`r`)}))) as "isSo"
    from (
      select distinct on (task_slug) task_slug, labels from lease
      where project_id = ${projectId} and execution_id = ${executionId} order by task_slug, id desc) l`;
  return row!.isSo;
};

/** Counts runners of the project that have sent a request lately. */
export const countRunners = async (sql: Sql, projectId: string): Promise<number> => {
  const [row] = await sql<{ seen: number }[]>`
    select count(*)::int as seen from runner
    where project_id = ${projectId} and ${isSeen(sql, sql`runner`)}`;
  return row!.seen;
};

/** Records a request of the runner; returns how many runners of the project have sent one lately. */
export const upsertRunner = async (
  sql: Tx,
  projectId: string,
  { runner, labels, taskSlugs, probeSlugs }: Asker,
  { free, held, stopping }: { free: number; held: number; stopping: boolean },
): Promise<number> => {
  const [row] = await sql<{ seen: number }[]>`
    with asked as (
      insert into runner (project_id, name, labels, task_slugs, probe_slugs, free, held, stopped, seen_at)
      values (${projectId}, ${runner}, ${toTextArray(labels)}::text[],
        ${taskSlugs === undefined ? null : toTextArray(taskSlugs)}::text[], ${toTextArray(probeSlugs)}::text[], ${free}, ${held}, ${stopping}, now())
      on conflict (project_id, name) do update set labels = excluded.labels, task_slugs = excluded.task_slugs,
        probe_slugs = excluded.probe_slugs,
        free = excluded.free, held = excluded.held, stopped = excluded.stopped, seen_at = excluded.seen_at)
    select count(*)::int as seen from runner
    where project_id = ${projectId} and ${isSeen(sql, sql`runner`)}`;
  return row!.seen;
};

/** Number of consecutive tasks that a runner could not run after which it is paused. */
const MAX_FAILURES = 3;

const PAUSE_MINUTES = 10;

/**
 * Counts a task that the runner of this lease could not run. It does not count if another runner could not run the task either. After
 * several in a row the runner is paused for a while, unless there is no other runner.
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

/** Returns the name, or NAME (2), NAME (3) … if other runners with the name are there. */
export const selectFreeRunnerName = async (sql: Tx, projectId: string, name: string): Promise<string> => {
  // Two that start at the same moment get different names.
  await sql`select pg_advisory_xact_lock(hashtextextended(${`runner names of ${projectId}`}, 0))`;
  const rows = await sql<{ name: string }[]>`
    select name from runner r where project_id = ${projectId} and starts_with(name, ${name})
      and (${isSeen(sql, sql`r`)} or not r.stopped and r.registered_at > now() - interval '1 minute')`;
  const taken = new Set(rows.map((row) => row.name));
  for (let number = 1; ; number++) {
    const free = number === 1 ? name : `${name} (${number})`;
    if (!taken.has(free)) return free;
  }
};

/**
 * Registers the start of a runner. It may have been repaired, so an automatic pause ends; a pause by a person does not. A new runner is not
 * listed before it asks for tasks.
 */
export const registerRunnerStart = (sql: Tx, projectId: string, name: string, version: string | null) => sql`
  insert into runner as r (project_id, name, labels, free, held, seen_at, registered_at, version)
  values (${projectId}, ${name}, '{}', 0, 0, now() - interval '1 hour', now(), ${version})
  on conflict (project_id, name) do update set failures = 0, version = excluded.version, registered_at = now(), stopped = false,
    paused_at = case when r.paused_until is null then r.paused_at end, paused_until = null,
    pause_reason = case when r.paused_until is null then r.pause_reason end`;

export const deleteOldRunners = (sql: Sql, days: number) =>
  sql`delete from runner where seen_at < now() - ${days}::int * interval '1 day'`;

export type TeamRunner = Omit<Runner, "leases"> & {
  projectId: string;
  projectName: string;
  /** The leases that the runner holds; the first ones if there are many. */
  leases: (Runner["leases"][number] & { execution: { key: string | null; number: number; branch: string | null } })[];
  held: number;
};

const MAX_SHOWN_LEASES = 8;

/** Returns the runners of the team's projects, by project and name; one row more than `limit`. */
export const selectTeamRunners = (
  sql: Sql,
  teamId: string,
  limit: number,
  after?: { projectId: string; name: string },
) => sql<TeamRunner[]>`
  select p.id as "projectId", p.name as "projectName", r.name, to_json(r.labels) as labels,
    to_json(r.task_slugs) as "taskSlugs", r.free, r.seen_at as "seenAt", r.version, ${pauseOf(sql, sql`r`)} as paused,
    ${isSeen(sql, sql`r`)} as online, (
      select coalesce(json_agg(json_build_object(
        'id', l.id, 'executionId', l.execution_id, 'taskSlug', l.task_slug,
        'shard', case when l.shard > 0 then json_build_object('index', l.shard, 'total', l.shards) end,
        'startedAt', ${toJsonTime(sql, sql`l.started_at`)},
        'execution', json_build_object('key', e.key, 'number', e.number, 'branch', e.branch)) order by l.id), '[]')
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
  /** The first names, in alphabetical order, if there are many. */
  taskSlugs: string[];
  tasks: number;
  /** Number of waiting tasks for which no present runner has the labels and accepts the task. */
  unserved: number;
};

/** Returns the queue of the team's projects by required labels, longest waiting first, at most `limit`. */
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

/** Returns runners by name; one row more than `limit`. */
export const selectRunners = (sql: Sql, projectId: string, limit: number, after: string | undefined) => sql<Runner[]>`
  select r.name, to_json(r.labels) as labels, to_json(r.task_slugs) as "taskSlugs", r.free, r.seen_at as "seenAt",
    ${isSeen(sql, sql`r`)} as online, r.version, ${pauseOf(sql, sql`r`)} as paused, (
    select coalesce(json_agg(json_build_object(
      'id', l.id, 'executionId', l.execution_id, 'taskSlug', l.task_slug,
      'shard', case when l.shard > 0 then json_build_object('index', l.shard, 'total', l.shards) end,
      'startedAt', ${toJsonTime(sql, sql`l.started_at`)}) order by l.id), '[]')
    from lease l where l.project_id = r.project_id and l.runner = r.name and ${isHeld(sql, sql`l`)}) as leases
  from runner r
  where r.project_id = ${projectId} ${after === undefined ? sql`` : sql`and r.name > ${after}`}
  order by r.name limit ${limit + 1}`;
