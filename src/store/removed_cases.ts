/** Test cases that their tasks do not report any more. */

import type { BugStatus } from "../schema/bug_reports.ts";
import { type Sql, toNumberArray, toTextArray, type Tx } from "./connect.ts";
import { isOnDefault } from "./default_branch.ts";
import { isBroken, isFlaky, isRemoved } from "./health.ts";
import { indexedTask } from "./task_runs.ts";

/** A test is removed that so many runs of its task on the default branch, one after the other, did not have, ... */
const MISSED_RUNS = 20;
/** ... or those of so many days, where they are at least as many as this. */
const MISSED_DAYS = 14;
const MISSED_RUNS_AT_LEAST = 5;
/** The number of runs of a task that are looked through for those of the default branch. */
const LOOKED_THROUGH = 300;

/**
 * Of the flaky and broken test cases of these tasks those that are removed, marked; by their numbers. `runIds`: runs that have
 * just been counted, whose cases are there.
 */
export async function markRemoved(
  sql: Tx,
  projectId: string,
  taskSlugs: readonly string[],
  runIds: readonly string[],
): Promise<number[]> {
  const absent = sql`
    select h.test_case, h.last_run_id, h.last_run_at from case_health h
    where h.project_id = ${projectId} and h.last_run_id <> all(${toTextArray(runIds)}::uuid[])`;
  const rows = await sql<{ test_case: number }[]>`
    with candidate as materialized (
      select h.*, c.task_slug
      from (${absent} and ${isBroken(sql)} union ${absent} and ${isFlaky(sql)}) h
      cross join lateral (
        select task_slug from test_case where project_id = ${projectId} and number = h.test_case offset 0) c
      where c.task_slug = any(${toTextArray(taskSlugs)}::text[])
    ), task as materialized (
      select t.slug, (array_agg(r.id order by r.id desc)) as runs, max(r.completed_at) as newest
      from (select distinct task_slug as slug from candidate) t
      cross join lateral (
        select r.id, r.completed_at from (
          select id, execution_id, completed_at from test_run
          where project_id = ${projectId} and ${indexedTask(sql)} = t.slug and completed_at is not null and not outage
          order by completed_at desc, id desc limit ${LOOKED_THROUGH}) r
        where exists (
          select from execution e join project p on p.id = ${projectId}
          where e.project_id = ${projectId} and e.id = r.execution_id and e.build_id is null
            and ${isOnDefault(sql, sql`e`, sql`p.default_branch`)})
        order by r.id desc limit ${MISSED_RUNS}) r
      group by t.slug
    )
    update case_health h set removed_run_id = h.last_run_id
    from candidate c join task t on t.slug = c.task_slug
    where h.project_id = ${projectId} and h.test_case = c.test_case
      and (c.last_run_id < t.runs[${MISSED_RUNS}::int] or c.last_run_id < t.runs[${MISSED_RUNS_AT_LEAST}::int]
        and c.last_run_at < t.newest - ${MISSED_DAYS}::int * interval '1 day')
    returning h.test_case`;
  return rows.map((row) => row.test_case);
}

/** Live bugs that Assay has opened for some of these test cases, all of whose cases are removed. */
export const selectBugsOfRemoved = (sql: Sql, projectId: string, numbers: readonly number[]) => sql<
  { id: string; status: BugStatus }[]
>`
  select b.id, b.status from bug_report b
  where b.project_id = ${projectId} and b.status in ('open', 'in_progress') and b.merged_into is null
    and b.source = 'automatic'
    and b.id in (
      select bug_report_id from bug_case
      where project_id = ${projectId} and test_case = any(${toNumberArray(numbers)}::int[]))
    and not exists (
      select from bug_case k left join case_health h on h.project_id = k.project_id and h.test_case = k.test_case
      where k.project_id = b.project_id and k.bug_report_id = b.id and not ${isRemoved(sql)})
  order by b.id`;
