/** Usual durations of tasks. */

import { type Sql, toTextArray } from "../database/connect.ts";
import { indexedTask } from "./task_runs.ts";
import { isTrustedBuild } from "./predicates.ts";

/** The number of completed runs of a task of which the median is taken. */
const MAX_RUNS = 20;

/** The median wall time of the last passed runs of each task before the execution, in milliseconds; tasks without any are left out. */
export async function selectUsualDurations(
  sql: Sql,
  projectId: string,
  executionId: string,
  taskSlugs: readonly string[],
): Promise<Map<string, number>> {
  if (taskSlugs.length === 0) return new Map();
  const rows = await sql<{ slug: string; ms: number }[]>`
    select t.slug, u.ms from unnest(${toTextArray(taskSlugs)}::text[]) as t (slug), lateral (
      select (percentile_disc(0.5) within group (order by duration_ms))::int as ms from (
        select duration_ms, status, execution_id from test_run
        where project_id = ${projectId} and ${indexedTask(sql)} = t.slug and completed_at is not null
          and ${isTrustedBuild(sql, sql`test_run`)}
        order by completed_at desc, id desc limit ${MAX_RUNS * 2}) r
      where status = 'passed' and duration_ms > 0 and execution_id < ${executionId}) u
    where u.ms is not null`;
  return new Map(rows.map(({ slug, ms }) => [slug, ms]));
}
