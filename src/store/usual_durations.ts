/** How long tasks and tests usually take. */

import { type Sql, toTextArray } from "../database/connect.ts";
import type { CaseRef } from "../schema/case_ref.ts";
import { resultsOf } from "./packing.ts";
import { indexedTask } from "./task_runs.ts";
import { isTrustedBuild } from "./predicates.ts";

/** The number of completed runs of a task of which the median is taken. */
const RUNS = 20;

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
        order by completed_at desc, id desc limit ${RUNS * 2}) r
      where status = 'passed' and duration_ms > 0 and execution_id < ${executionId}) u
    where u.ms is not null`;
  return new Map(rows.map(({ slug, ms }) => [slug, ms]));
}

/** Slower tests are looked for among so many that took longest. */
const LONGEST = 200;
/** A test is slower from this multiple of its usual duration on, and by at least `LEAST_MS`. */
const FACTOR = 2;
const LEAST_MS = 500;

export type SlowerTest = Pick<CaseRef, "suite" | "name"> & {
  testCaseId: string;
  taskSlug: string;
  durationMs: number;
  /** The median of its last results. */
  usualMs: number;
};

/** The tests of an execution that passed and took at least twice as long as usual, those that lost most time first. */
export const selectSlowerTests = (sql: Sql, projectId: string, executionId: string, limit: number) => sql<SlowerTest[]>`
  select c.id as "testCaseId", c.task_slug as "taskSlug", c.suite, c.name, x.ms as "durationMs", u.ms as "usualMs"
  from (
    select t.number, t.ms from ${resultsOf(
      sql,
      projectId,
      sql`select id from test_run where project_id = ${projectId} and execution_id = ${executionId}`,
    )} b, lateral unnest(b.test_cases, string_to_array(b.statuses, null), b.durations) as t (number, letter, ms)
    where t.letter in ('p', 'P') and t.ms >= ${LEAST_MS} order by t.ms desc limit ${LONGEST}
  ) x cross join lateral (
    select (percentile_disc(0.5) within group (order by ms))::int as ms
    from case_health h, unnest(h.recent_ms) as ms
    where h.project_id = ${projectId} and h.test_case = x.number and cardinality(h.recent_ms) >= 5
  ) u cross join lateral (
    select id, task_slug, suite, name from test_case where project_id = ${projectId} and number = x.number offset 0) c
  where x.ms >= ${FACTOR} * u.ms and x.ms - u.ms >= ${LEAST_MS}
  order by x.ms - u.ms desc, x.number limit ${limit}`;
