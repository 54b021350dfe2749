/** Figures of completed runs by day. */

import type { Trends } from "../schema/trends.ts";
import type { Sql } from "../database/connect.ts";
import { hasResult } from "./outcome.ts";
import { firstIdAt } from "../database/time_bounds.ts";
import { indexedTask } from "./task_runs.ts";
import { isTrustedBuild } from "./predicates.ts";

type Figures = Omit<Trends["days"][number], "passRate">;

export type TrendRow = Figures & {
  /** null: all tasks together. */
  taskSlug: string | null;
  sample: boolean;
  /** Total over all days, of the task or of all tasks. */
  total: number;
};

const MAX_TASKS = 50;

type TrendQuery = {
  /** Days in UTC such as 2026-01-31; the first, and the one after the last. */
  from: string;
  to: string;
  branch?: string | undefined;
  task_slug?: string | undefined;
};

/**
 * Returns a row for each day with runs, for all tasks together and for the 50 with the most runs; by task, most runs first, and day. Sample
 * data is never combined with other data. A rerun is no run of its own: it decides how the repeated one ended.
 */
export const selectTrends = (sql: Sql, projectId: string, { from, to, branch, task_slug }: TrendQuery) => sql<
  TrendRow[]
>`
  with sample as materialized (
    select id from execution where project_id = ${projectId} and sample
  ), rerun as materialized (
    -- What repeats a run that was completed from that day on has begun since.
    select id, build_id from execution
    where project_id = ${projectId} and build_id is not null and id >= ${firstIdAt(Date.parse(from))}
  ), repeated as materialized (
    select distinct on (e.build_id, r.task_slug) e.build_id, r.task_slug, r.verdict
    from rerun e cross join lateral (
      select task_slug, coalesce(verdict, 'failed') as verdict from test_run r
      where r.project_id = ${projectId} and r.execution_id = e.id and ${hasResult(sql, sql`r`)} offset 0) r
    order by e.build_id, r.task_slug, e.id desc
  ), run as (
    select r.*, coalesce((
      select p.verdict from repeated p where p.build_id = r.execution_id and p.task_slug = r.task_slug), r.verdict) as outcome
    from test_run r
    where r.project_id = ${projectId} and ${isTrustedBuild(sql, sql`r`)} and not exists (select from rerun where rerun.id = r.execution_id)
  ), figures as (
    select (r.completed_at at time zone 'UTC')::date as day, r.execution_id in (select id from sample) as sample, r.task_slug,
      count(distinct r.execution_id)::int as executions, count(*)::int as runs,
      (count(*) filter (where r.outcome = 'passed'))::int as passed,
      (count(*) filter (where r.outcome = 'failed'))::int as failed,
      percentile_disc(0.5) within group (order by r.duration_ms) as p50,
      percentile_disc(0.95) within group (order by r.duration_ms) as p95,
      sum(r.flaky)::int as flaky, sum(r.forgiven)::int as forgiven, (coalesce(sum(r.failed) filter (where not r.outage), 0))::int as "testFailures",
      sum(r.infrastructure)::int as "infrastructureFailures"
    from run r
      ${branch === undefined ? sql`` : sql`join execution e on e.project_id = r.project_id and e.id = r.execution_id`}
    where r.completed_at >= ${from}::text::timestamptz and r.completed_at < ${to}::text::timestamptz
      ${branch === undefined ? sql`` : sql`and e.project_id = ${projectId} and e.branch = ${branch}`}
      ${task_slug === undefined ? sql`` : sql`and ${indexedTask(sql)} = ${task_slug}`}
    group by grouping sets ((1, 2), (1, 2, 3))
  ), ranked as (
    select *, sum(runs) over (partition by task_slug, sample) as total from figures
  ), placed as (
    select *, dense_rank() over (partition by task_slug is null order by total desc, task_slug, sample) as place
    from ranked
  )
  select to_char(day, 'YYYY-MM-DD') as day, sample, task_slug as "taskSlug", executions, runs, passed, failed,
    p50 as "p50Ms", p95 as "p95Ms", flaky, forgiven, "testFailures", "infrastructureFailures", total::int
  from placed where case when task_slug is null then not sample else place <= ${MAX_TASKS}::int end
  order by total desc, task_slug, sample, day`;
