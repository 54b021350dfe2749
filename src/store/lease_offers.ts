/** The queue: waiting leases, and the leases that a runner gets. */

import { type Fragment, type Sql, toTextArray, type Tx } from "../database/connect.ts";
import { inSeconds } from "../database/time_bounds.ts";
import { isQuiet } from "./restored.ts";
import { canRun, isHeld, isPaused } from "./runner_presence.ts";

/** A runner confirms an offered lease within this time; otherwise the offer counts as lost. */
const OFFER_SECONDS = 15;

export type Asker = {
  runner: string;
  labels: readonly string[];
  /** Undefined: all. */
  taskSlugs: readonly string[] | undefined;
  /** The tasks of which it takes probes. */
  probeSlugs: readonly string[];
};

/**
 * A condition: the lease fits a runner. A task that a runner could not run goes to another one, as long as there is one that can run it.
 */
const fits = (sql: Sql, projectId: string, { runner, labels, taskSlugs, probeSlugs }: Asker, lease: Fragment) => sql`
  not ${isQuiet(sql)}
  and not exists (select from runner me where me.project_id = ${projectId} and me.name = ${runner} and ${isPaused(sql, sql`me`)})
  and ${lease}.labels <@ ${toTextArray(labels)}::text[]
  and (not ${lease}.probe or ${lease}.task_slug = any(${toTextArray(probeSlugs)}::text[]))
  and (${lease}.concurrency_group is null or not exists (
    select from lease held where held.project_id = ${lease}.project_id
      and held.concurrency_group = ${lease}.concurrency_group and ${isHeld(sql, sql`held`)}))
  and (${runner} <> all(${lease}.avoid) or not exists (
    select from runner r where r.project_id = ${lease}.project_id and r.name <> all(${lease}.avoid)
      and ${canRun(sql, sql`r`, lease)}))
  ${taskSlugs === undefined ? sql`` : sql`and ${lease}.task_slug = any(${toTextArray(taskSlugs)}::text[])`}`;

/** An offered lease, with the data that its runner needs. */
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
  /** The execution that is repeated, for a rerun of failures, which has one lease per task. */
  repeats: string | null;
  probe: boolean;
};

/**
 * Offers up to `free` waiting leases, in a transaction that has updated the runner, so that no other call of it does so meanwhile. The
 * highest priority goes first, then the execution with the fewest running leases, then the oldest. Leases that another server is offering
 * are skipped.
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
    o.shards, e.id as "executionId", e.key, coalesce(e.queue_ref, e.branch) as branch, e.commit, e.pull_request as "pullRequest", e.environment,
    v.base_url as "baseUrl", p.team_id as "teamId", v.id as "environmentId", e.variables as "ownVariables",
    case when e.failed_only and o.shards = 1 then e.rerun_of end as repeats, o.probe
  from offered o
  join execution e on e.project_id = o.project_id and e.id = o.execution_id
  join project p on p.id = o.project_id
  left join environment v on v.team_id = p.team_id and v.slug = e.environment
  order by o.priority desc, o.turn, o.queued_at, o.id`;

/**
 * Allows one call at a time to take leases of the project if tasks of a concurrency group wait, because two calls would not see what the
 * other has taken of a group.
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
 * Whether there is something for a waiting runner: work, if it wants some, or changes of its leases. Nothing is for a runner that has ended
 * meanwhile: this request is older than the one that said so.
 */
export const selectHasNews = async (
  sql: Sql,
  projectId: string,
  asker: Asker,
  { wantsWork, held, knownAsWatched }: { wantsWork: boolean; held: readonly string[]; knownAsWatched: boolean },
): Promise<boolean> => {
  const [row] = await sql<{ hasNews: boolean }[]>`
    select not exists (
      select from runner where project_id = ${projectId} and name = ${asker.runner} and stopped
    ) and (${
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
        not ${isHeld(sql, sql`l`)} or l.runner <> ${asker.runner} or l.stop_reason is not null and not l.stop_sent
        ${knownAsWatched ? sql`` : sql`or e.watched_until > now()`})
    )) as "hasNews"`;
  return row!.hasNews;
};
