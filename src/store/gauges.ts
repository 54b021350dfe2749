/** Figures about pending work in the database, for all servers together. */

import { type Database, isSession, type Sql } from "../database/connect.ts";
import { selectClockSkewMs } from "../database/diagnosis.ts";
import { hasOwner, isProject } from "./predicates.ts";
import { isQuiet } from "./restored.ts";
import { isSeen } from "./runner_presence.ts";

/** Seconds; null: there is none. */
type Age = number | null;

type Gauges = {
  /** By status; those that have ended in the last 5 minutes only. */
  leases: Record<string, number>;
  queueAge: Age;
  /** Tasks that wait for a runner, by the labels they require. If there are too many sets of labels, those with most tasks. */
  queue: { labels: string; waiting: number; age: number }[];
  /** Seen within 2 minutes. */
  runners: number;
  /** Free slots of these runners, as of their last heartbeat. */
  free: number;
  held: number;
  uncounted: number;
  uncountedAge: Age;
  events: number;
  eventAge: Age;
  deliveries: number;
  deliveriesDue: number;
  deliveryAge: Age;
  /** The server was restored from a backup and is quiet. */
  quiet: boolean;
  /** Connections to the database by state. */
  sessions: Record<string, number>;
  databaseBytes: number;
  /** Age of the last `assay backup`. */
  backupAge: Age;
  /** Runs with results, attachments and executions that retention deletes within a day unless an administrator stops it. */
  plannedDeletions: number;
};

/** `clockSkew`: how many seconds the clock of the database is ahead of this machine. */
export type GaugesHere = Gauges & { clockSkew: number };

/** Reads figures, each from a partial index that contains little more than what it counts. */
export async function selectGauges(sql: Sql): Promise<Gauges> {
  const age = (moment: ReturnType<typeof sql>) => sql`greatest(extract(epoch from now() - ${moment}), 0)::float`;
  const uncounted = sql`(
    select project_id, id from test_run where not health_applied and ${isProject(sql, sql`test_run.project_id`)}) uncounted`;
  const [row] = await sql<Gauges[]>`
    select
      (select coalesce(json_object_agg(status, n), '{}') from (
        select status, count(*) as n from lease
        where status in ('queued', 'offered', 'running') and ${isProject(sql, sql`lease.project_id`)} group by status
        union all
        select status, count(*) from lease
        where ended_at > now() - interval '5 minutes' and status not in ('queued', 'offered', 'running') group by status
      ) l) as leases,
      (select ${age(sql`min(queued_at)`)} from lease
        where status = 'queued' and ${isProject(sql, sql`lease.project_id`)}) as "queueAge",
      (select coalesce(json_agg(q), '[]') from (
        select array_to_string(labels, ',') as labels, count(*)::int as waiting, ${age(sql`min(queued_at)`)} as age
        from lease where status = 'queued' and ${isProject(sql, sql`lease.project_id`)}
        group by labels order by 2 desc limit 50) q) as queue,
      ${isQuiet(sql)} as quiet,
      pg_database_size(current_database())::float as "databaseBytes",
      (select ${age(sql`backed_up_at`)} from instance where backed_up_at is not null) as "backupAge",
      (select coalesce(sum(objects), 0)::float from planned_deletion where begins_at is not null) as "plannedDeletions",
      r.*, u.*, e.*, d.*,
      (select coalesce(json_object_agg(state, n), '{}') from (
        select coalesce(state, 'unknown') as state, count(*) as n from pg_stat_activity
        where ${isSession(sql)} group by 1) s) as sessions
    from
      (select count(*)::int as runners, coalesce(sum(free), 0)::int as free, coalesce(sum(held), 0)::int as held
        from runner where ${isSeen(sql, sql`runner`)} and ${isProject(sql, sql`runner.project_id`)}) r,
      -- When a run was completed is the client's word. Where very many wait, the age is that of some of them.
      (select (select count(*)::int from ${uncounted}) as uncounted, ${age(sql`min(a.received_at)`)} as "uncountedAge"
        from (select project_id, id from ${uncounted} limit 1000) t
        cross join lateral (
          select max(received_at) as received_at from attempt where project_id = t.project_id and run_id = t.id) a) u,
      (select count(*)::int as events, ${age(sql`min(occurred_at)`)} as "eventAge" from event
        where due_at is not null and ${hasOwner(sql, sql`event`)}) e,
      (select count(*)::int as deliveries, (count(*) filter (where due_at <= now()))::int as "deliveriesDue",
          ${age(sql`min(due_at) filter (where due_at <= now())`)} as "deliveryAge"
        from delivery where status = 'pending' and ${hasOwner(sql, sql`delivery`)}) d`;
  return row!;
}

const READ_TIMEOUT_MS = 2_000;

/** Concurrent readers share one query; undefined if the database does not answer in time. */
export function createGauges({ pool }: Pick<Database, "pool">) {
  let looking: Promise<GaugesHere | undefined> | undefined;

  async function look(): Promise<GaugesHere | undefined> {
    const read = async () => ({ ...(await selectGauges(pool)), clockSkew: (await selectClockSkewMs(pool)) / 1_000 });
    const gauges = await read().catch(() => undefined);
    looking = undefined;
    return gauges;
  }

  return async (): Promise<GaugesHere | undefined> => {
    looking ??= look();
    return await Promise.race([looking, Bun.sleep(READ_TIMEOUT_MS).then(() => undefined)]);
  };
}
