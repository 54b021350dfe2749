/** The evidence of a bug: its newest failure as reported, the days on which it occurred, and its impact. */

import type { Failure } from "../rules/fingerprint.ts";
import { type Sql, toTextArray } from "../database/connect.ts";
import { firstIdAt } from "../database/time_bounds.ts";

const DAY_MS = 86_400_000;
/** Characters of the stack and of the end of the output. */
const MAX_STACK_LENGTH = 20_000;
const MAX_OUTPUT_LENGTH = 3_000;

export type NewestFailure = Omit<Failure, "kind"> & {
  runId: string;
  /** test_case.number */
  number: number;
  executionId: string;
  taskSlug: string;
  testCaseId: string;
  /** The end of what it printed. */
  output: string | null;
  seenAt: string;
};

/** Undefined for a bug that has not occurred, or whose results have been deleted. */
export const selectNewestFailure = async (
  sql: Sql,
  projectId: string,
  bugId: string,
): Promise<NewestFailure | undefined> => {
  const [row] = await sql<NewestFailure[]>`
    select o.run_id as "runId", o.test_case as number, r.execution_id as "executionId", r.task_slug as "taskSlug", c.id as "testCaseId", c.suite, c.name, c.file,
      coalesce(d.message, o.message) as message, d.stack, d.output, o.seen_at as "seenAt"
    from (
      select * from bug_occurrence where project_id = ${projectId} and bug_report_id = ${bugId}
      order by run_id desc, test_case desc limit 1
    ) o
    join test_run r on r.project_id = ${projectId} and r.id = o.run_id
    join test_case c on c.project_id = ${projectId} and c.number = o.test_case
    left join lateral (
      select message, left(stack, ${MAX_STACK_LENGTH}) as stack, right(output, ${MAX_OUTPUT_LENGTH}) as output from case_detail
      where project_id = ${projectId} and run_id = o.run_id and test_case = o.test_case
        and (message is not null or stack is not null)
      order by attempt desc limit 1) d on true`;
  return row;
};

/** The newest occurrences of a bug that are counted. */
const MAX_COUNTED_OCCURRENCES = 5_000;

export type OccurrenceDay = {
  bugId: string;
  /** The day in UTC, such as 2026-01-31. */
  day: string;
  failures: number;
  executions: number;
};

/** Returns the days of the last `days` on which the bugs occurred. Only the newest 5,000 occurrences of a bug are counted. */
export const selectOccurrenceDays = (
  sql: Sql,
  projectId: string,
  bugIds: readonly string[],
  { now, days }: { now: Date; days: number },
) => sql<OccurrenceDay[]>`
  select b.id as "bugId", to_char(o.seen_at at time zone 'UTC', 'YYYY-MM-DD') as day, count(*)::int as failures,
    count(distinct r.execution_id)::int as executions
  from unnest(${toTextArray(bugIds)}::uuid[]) as b (id), lateral (
    select run_id, seen_at from bug_occurrence
    where project_id = ${projectId} and bug_report_id = b.id and run_id >= ${firstIdAt(now.getTime() - days * DAY_MS)}
    order by run_id desc limit ${MAX_COUNTED_OCCURRENCES}) o, lateral (
    select execution_id from test_run where project_id = ${projectId} and id = o.run_id offset 0) r
  group by b.id, day order by b.id, day`;

/** The days that count for the impact of a bug. */
const IMPACT_DAYS = 14;
/** Bugs per statement. */
const IMPACT_BATCH_SIZE = 50;

/**
 * Counts the impact of bugs that are due, at most `IMPACT_BATCH_SIZE`, and returns how many they were. A bug with an impact is counted
 * again after an hour, because its occurrences grow old. Rows that another server counts at the same time are skipped.
 */
export async function countDueImpacts(sql: Sql, now: Date): Promise<number> {
  const since = firstIdAt(now.getTime() - IMPACT_DAYS * DAY_MS);
  const result = await sql`
    with due as materialized (
      select project_id, id from bug_report where impact_due_at <= ${now.toISOString()}
      order by impact_due_at limit ${IMPACT_BATCH_SIZE} for update skip locked),
    counted as materialized (
      select due.project_id, due.id, c.impact from due, lateral (
        select count(distinct r.execution_id)::int as impact
        from (
          select run_id from bug_occurrence
          where project_id = due.project_id and bug_report_id = due.id and run_id >= ${since}
          order by run_id desc limit ${MAX_COUNTED_OCCURRENCES}) o,
        lateral (select execution_id from test_run where project_id = due.project_id and id = o.run_id offset 0) r) c)
    update bug_report b set impact = c.impact,
      impact_due_at = case when c.impact > 0 and b.status in ('open', 'in_progress')
        then ${now.toISOString()}::timestamptz + interval '1 hour' end
    from counted c where b.project_id = c.project_id and b.id = c.id`;
  return result.count;
}
