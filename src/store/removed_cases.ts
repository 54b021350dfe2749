/** Test cases that their tasks do not report any more. */

import type { PlacedCase } from "../rules/identity.ts";
import type { BugStatus } from "../schema/bug_reports.ts";
import { type Fragment, type Sql, toNumberArray, toTextArray, type Tx } from "../database/connect.ts";
import { isBroken, isFlaky, isRemoved } from "./health.ts";
import { blockOfCase } from "./packing.ts";
import { indexedTask } from "./task_runs.ts";
import { isLiveBug, isOnDefault, isTrustedBuild, skippedCases } from "./predicates.ts";

/** A test is removed if this number of consecutive runs of its task on the default branch did not have it, ... */
const MISSED_RUNS = 20;
/** ... or if none of the runs of this number of days had it, and there were at least MISSED_RUNS_AT_LEAST. */
const MISSED_DAYS = 14;
const MISSED_RUNS_AT_LEAST = 5;
/** Maximum number of runs of a task that are searched for those of the default branch. */
const MAX_RUNS_SEARCHED = 300;

/** A statement: the newest runs of a task on the default branch, newest first, among the last `searched` runs of the task. */
const mainRuns = (
  sql: Sql,
  projectId: string,
  taskSlug: Fragment,
  { searched, limit }: { searched: number; limit: number },
) => sql`
  select r.id, r.completed_at from (
    select id, execution_id, completed_at from test_run
    where project_id = ${projectId} and ${indexedTask(sql)} = ${taskSlug} and completed_at is not null and not outage
      and ${isTrustedBuild(sql, sql`test_run`)}
    order by completed_at desc, id desc limit ${searched}::int) r
  cross join lateral (
    select from execution e
    where e.project_id = ${projectId} and e.id = r.execution_id and e.build_id is null
      and ${isOnDefault(sql, sql`e`, sql`(select default_branch from project where id = ${projectId})`)} offset 0) e
  order by r.id desc limit ${limit}::int`;

/**
 * Marks the flaky and broken test cases of these tasks that are removed, and returns their numbers. A case that only other branches had is
 * removed when they have not run it for as long. `runIds`: runs that have just been counted, whose cases exist.
 */
export async function markRemoved(
  sql: Tx,
  projectId: string,
  taskSlugs: readonly string[],
  runIds: readonly string[],
): Promise<number[]> {
  const absent = sql`
    select h.test_case, h.last_run_id, h.main_runs from case_health h
    where h.project_id = ${projectId} and h.last_run_id <> all(${toTextArray(runIds)}::uuid[])
      and h.test_case not in (${skippedCases(sql, projectId)})`;
  const rows = await sql<{ test_case: number }[]>`
    with candidate as materialized (
      select h.*, c.task_slug
      from (${absent} and ${isBroken(sql)} union ${absent} and ${isFlaky(sql)}) h
      cross join lateral (
        select task_slug from test_case where project_id = ${projectId} and number = h.test_case offset 0) c
      where c.task_slug = any(${toTextArray(taskSlugs)}::text[])
    ), task as materialized (
      select t.slug, array_agg(r.id) as runs, min(r.id::text)::uuid as oldest
      from (select distinct task_slug as slug from candidate) t
      cross join lateral (
        select r.id, r.completed_at, row_number() over (order by r.id desc) as place, max(r.completed_at) over () as newest
        from (${mainRuns(sql, projectId, sql`t.slug`, { searched: MAX_RUNS_SEARCHED, limit: MISSED_RUNS })}) r) r
      where r.place <= ${MISSED_RUNS_AT_LEAST} or r.completed_at >= r.newest - ${MISSED_DAYS}::int * interval '1 day'
      group by t.slug having count(*) >= ${MISSED_RUNS_AT_LEAST}
    )
    update case_health h set removed_run_id = h.last_run_id, removed_main_runs = h.main_runs
    from candidate c join task t on t.slug = c.task_slug
    where h.project_id = ${projectId} and h.test_case = c.test_case and (c.main_runs > 0 or c.last_run_id < t.oldest)
      and not exists (
        select from unnest(t.runs) as run (id) cross join lateral (
          select test_cases from case_result
          where project_id = ${projectId} and run_id = run.id and block = ${blockOfCase(sql, sql`c.test_case`)} offset 0) b
        where c.test_case = any(b.test_cases))
    returning h.test_case`;
  return rows.map((row) => row.test_case);
}

/** A failure that is no test has ended when this number of runs of its task on the default branch did not have it. */
const ENDED_RUNS = 3;
/** Maximum number of runs of a task that are searched for these. */
const ENDED_SEARCHED = 40;

/**
 * Returns the test cases of live bugs that have never passed, and failed in the last runs of these tasks on the default branch but for the
 * newest ones. `counted`: the number of runs that have just been counted.
 */
export const selectVanished = (sql: Sql, projectId: string, taskSlugs: readonly string[], counted: number) => sql<
  (PlacedCase & { number: number })[]
>`
  with run as materialized (
    select t.slug, r.id, row_number() over (partition by t.slug order by r.id desc) as place
    from unnest(${toTextArray(taskSlugs)}::text[]) as t (slug) cross join lateral (
      ${mainRuns(sql, projectId, sql`t.slug`, { searched: ENDED_SEARCHED, limit: ENDED_RUNS + counted })}) r
    where exists (select from bug_report b where b.project_id = ${projectId} and ${isLiveBug(sql, sql`b`)})
  )
  select distinct c.number, c.suite, c.name, c.file
  from run r cross join lateral (
    select test_case from failure where project_id = ${projectId} and run_id = r.id offset 0) f
  cross join lateral (
    select from case_health where project_id = ${projectId} and test_case = f.test_case and last_passed_at is null offset 0) h
  cross join lateral (
    select number, suite, name, file from test_case where project_id = ${projectId} and number = f.test_case offset 0) c
  where r.place > ${ENDED_RUNS}::int
    and not exists (
      select from run later cross join lateral (
        select from failure where project_id = ${projectId} and run_id = later.id and test_case = f.test_case offset 0) again
      where later.slug = r.slug and later.place <= ${ENDED_RUNS}::int)
    and exists (
      select from (select bug_report_id from bug_case where project_id = ${projectId} and test_case = f.test_case offset 0) k
      cross join lateral (
        select from bug_report b where project_id = ${projectId} and id = k.bug_report_id and ${isLiveBug(sql, sql`b`)} offset 0) b)`;

/** Live bugs that Assay has opened for some of these test cases, all of whose cases are removed. */
export const selectBugsOfRemoved = (sql: Sql, projectId: string, numbers: readonly number[]) => sql<
  { id: string; status: BugStatus }[]
>`
  select b.id, b.status from bug_report b
  where b.project_id = ${projectId} and ${isLiveBug(sql, sql`b`)}
    and b.source = 'automatic'
    and b.id in (
      select bug_report_id from bug_case
      where project_id = ${projectId} and test_case = any(${toNumberArray(numbers)}::int[]))
    and not exists (
      select from bug_case k left join case_health h on h.project_id = k.project_id and h.test_case = k.test_case
      where k.project_id = b.project_id and k.bug_report_id = b.id and not ${isRemoved(sql)})
  order by b.id`;
