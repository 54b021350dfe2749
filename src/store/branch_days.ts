/** Daily figures of how executions of the default branch ended. Figures of past days are stored until something of the day changes. */

import { type Fragment, type Sql, toTextArray, type Tx } from "../database/connect.ts";
import { wallTimeOfRuns } from "./durations.ts";
import { lockOf } from "../database/locks.ts";
import type { Branch } from "./state.ts";
import { isTrustedBuild } from "./predicates.ts";

/** Figures of the builds that ended on a day, in UTC, such as 2026-01-31; each counts with its reruns. */
export type DayFigures = {
  day: string;
  executions: number;
  passed: number;
  /** Executions in which a test failed that is flaky, or before it passed. */
  flaky: number;
  firstEndedAt: string;
  lastEndedAt: string;
  lastPassed: boolean;
  /** Milliseconds from each execution that did not pass to the next one of the day. */
  redMs: number;
  /** Wall time of the executions; null: none has a run. */
  p50Ms: number | null;
  p95Ms: number | null;
};

const textOf = (sql: Sql, day: Fragment) => sql`to_char(${day}, 'YYYY-MM-DD')`;
const array = (sql: Sql, days: readonly string[]) => sql`${toTextArray(days)}::date[]`;

const columns = (sql: Sql) => sql`
  ${textOf(sql, sql`f.day`)} as day, f.executions, f.passed, f.flaky, f.first_ended_at as "firstEndedAt", f.last_ended_at as "lastEndedAt",
  f.last_passed as "lastPassed", f.red_ms as "redMs", f.p50_ms as "p50Ms", f.p95_ms as "p95Ms"`;

/** Returns the stored figures of these days, in the order of the days. */
export const selectKeptDays = (sql: Sql, projectId: string, { branch, sample }: Branch, days: readonly string[]) =>
  sql<DayFigures[]>`
    select ${columns(sql)} from branch_day f
    where project_id = ${projectId} and branch = ${branch} and sample = ${sample} and day = any(${array(sql, days)})
    order by f.day`;

/** A row for each of these days, also where nothing ended on it. */
function figuresOf(sql: Sql, projectId: string, { branch, sample }: Branch, days: readonly string[]): Fragment {
  const endedOn = (isBranch: Fragment) => sql`
    select id, coalesce(repeated_status, status) = 'passed' as is_passed, completed_at as at from execution
    where project_id = ${projectId} and branch ${isBranch} and sample = ${sample} and build_id is null
      and pull_request is null and ${isTrustedBuild(sql, sql`execution`)}
      and status in ('passed', 'failed', 'timed_out')
      and completed_at >= d.day::timestamp at time zone 'UTC'
      and completed_at < (d.day + 1)::timestamp at time zone 'UTC'`;
  // The runs are read in one index scan, and grouped with their executions instead of joined: PostgreSQL expects one execution, and
  // would compare each of thousands with all runs in a nested loop.
  return sql`
    with ended as materialized (
      select d.day, e.id, e.is_passed, e.at, lead(e.at) over (partition by d.day order by e.at, e.id) - e.at as until_next
      from unnest(${array(sql, days)}) as d (day),
        lateral (${endedOn(sql`= ${branch}`)} union all ${endedOn(sql`is null`)} offset 0) e),
    timed as (
      select id, max(day) as day, bool_or(is_passed) as is_passed, max(at) as at, max(until_next) as until_next, max(ms) as ms,
        bool_or(is_flaky) as is_flaky
      from (
        select id, day, is_passed, at, until_next, null::bigint as ms, null::boolean as is_flaky from ended
        union all
        select r.execution_id, null, null, null, null, ${wallTimeOfRuns(sql)}, bool_or(r.flaky > 0 or r.failed > 0 and exists (
          select from failure f where f.project_id = ${projectId} and f.run_id = r.id and f.blame = 'flaky' offset 0))
        from test_run r
        where r.project_id = ${projectId} and r.execution_id = any(array(select id from ended))
        group by r.execution_id) e
      group by id)
    select d.day, count(t.day)::int as executions, (count(*) filter (where t.is_passed))::int as passed,
      (count(*) filter (where t.is_flaky))::int as flaky, min(t.at) as first_ended_at, max(t.at) as last_ended_at,
      (array_agg(t.is_passed order by t.at desc, t.id desc))[1] as last_passed,
      coalesce(sum(extract(epoch from t.until_next) * 1000) filter (where not t.is_passed), 0)::bigint as red_ms,
      (percentile_disc(0.5) within group (order by t.ms))::bigint as p50_ms,
      (percentile_disc(0.95) within group (order by t.ms))::bigint as p95_ms
    from unnest(${array(sql, days)}) as d (day) left join timed t on t.day = d.day
    group by d.day`;
}

/** Counted now. */
export const selectDays = (sql: Sql, projectId: string, branch: Branch, days: readonly string[]) =>
  sql<DayFigures[]>`select ${columns(sql)} from (${figuresOf(sql, projectId, branch, days)}) f order by f.day`;

/**
 * Whether only this transaction may store days of the project: false if another one does, or has changed a day and is still running, which
 * holds the same lock in shared mode (store/past_days.ts).
 */
export const lockDays = async (sql: Tx, projectId: string): Promise<boolean> => {
  // The project is locked first, in the order in which a deletion takes the locks.
  const [row] = await sql<{ isMine: boolean }[]>`
    select pg_try_advisory_xact_lock(${lockOf(sql, "days", projectId)}) as "isMine"
    from (select from project where id = ${projectId} for key share) p`;
  return row?.isMine ?? false;
};

/** A change that began on the day itself may be on its way for so long. */
export const SETTLED_MS = 3_600_000;

/** Counts days now, in a transaction that has locked them, and stores past ones. */
export const keepDays = (sql: Tx, projectId: string, branch: Branch, days: readonly string[]) => sql<DayFigures[]>`
  with figures as materialized (${figuresOf(sql, projectId, branch, days)}), kept as (
    insert into branch_day (project_id, day, branch, sample, executions, passed, flaky, first_ended_at, last_ended_at, last_passed, red_ms,
      p50_ms, p95_ms)
    select ${projectId}, day, ${branch.branch}, ${branch.sample}, executions, passed, flaky, first_ended_at, last_ended_at, last_passed, red_ms,
      p50_ms, p95_ms from figures
    where day < ((now() - ${SETTLED_MS}::int * interval '1 millisecond') at time zone 'UTC')::date
    on conflict do nothing)
  select ${columns(sql)} from figures f order by f.day`;
