/** Reads the facts about failed test cases that rules/odds.ts judges by. Each statement reads for all runs that are judged together. */

import type { Failure } from "../rules/fingerprint.ts";
import { type Fragment, type Sql, toNumberArray, toTextArray, type Tx } from "../database/connect.ts";
import { type FailedRunKey, originColumns, type OtherOrigin, untilOf } from "./judged_runs.ts";
import { blockOfCase, failedResultsOf } from "./packing.ts";
import { isActiveQuarantine, isTrustedBuild } from "./predicates.ts";
import type { ExplanationKind } from "../rules/odds_facts.ts";

/** Maximum number of failures of a run whose history is read; further ones are judged without a history. */
export const MAX_WITH_HISTORY = 300;
/** Maximum number of past failures that are read per test case, the newest first. */
export const PAST_FAILURES = 60;

/**
 * A failed result of a run. `cause` is the fingerprint in hexadecimal; null if the report has no details of the failure. Only the first
 * failure of each cause has `kind`, `message` and `stack`.
 */
export type FailedRow = Omit<Failure, "name"> & {
  runId: string;
  testCase: number;
  cause: string | null;
  isQuarantined: boolean;
};

export const selectFailed = (sql: Tx, projectId: string, runIds: readonly string[]) => sql<FailedRow[]>`
  select f.run_id as "runId", f.number as "testCase", replace(d.cause::text, '-', '') as cause, c.file, c.suite, q.is_active as "isQuarantined",
    case when f.place = 1 then d.kind end as kind, case when f.place = 1 then left(d.message, 2000) end as message,
    case when f.place = 1 then left(d.stack, 8000) end as stack
  from (
    select f.*, d.cause, row_number() over (partition by f.run_id, d.cause order by f.number) as place
    from ${failedResultsOf(sql, projectId, sql`select unnest(${toTextArray(runIds)}::uuid[]) as id`)} f
    left join lateral (${detailOf(sql, projectId, sql`cause`)}) d on true
  ) f
  cross join lateral (
    select file, suite from test_case where project_id = ${projectId} and number = f.number offset 0) c
  left join lateral (${detailOf(sql, projectId, sql`kind, message, stack, cause`)}) d on true
  cross join lateral (select exists (
    select from quarantine q
    where q.project_id = ${projectId} and q.test_case = f.number and ${isActiveQuarantine(sql, sql`q`)}) as is_active) q
  order by f.run_id, f.number`;

/** A subquery: these columns of the details of the failed result `f`. */
const detailOf = (sql: Sql, projectId: string, columns: Fragment) => sql`
  select ${columns} from case_detail
  where project_id = ${projectId} and run_id = f.run_id and test_case = f.number and attempt = f.attempt offset 0`;

/** An earlier failure of a test case, or an earlier pass on retry (`isRetried`). */
export type PastFailure = {
  testCase: number;
  runId: string;
  cause: string | null;
  isRetried: boolean;
  explained: ExplanationKind;
  /** Whether it was one of many failures at once that were blamed on a change; see `Judgement`. */
  isOfMany: boolean;
  /** Number of consecutive builds of its branch in which the test case failed, up to and including this one. */
  inARow: number;
};

/**
 * Returns the last failures of the test cases before each of these runs, newest first. `until` is the upper bound of the ids that a run
 * takes into account.
 */
export const selectPast = (sql: Tx, projectId: string, runs: readonly FailedRunKey[]) => {
  const asked = Map.groupBy(runs, untilOf)
    .entries()
    .flatMap(([until, same]) =>
      [...new Set(same.flatMap(({ testCases }) => testCases))].map((number) => ({ until, number })),
    )
    .toArray();
  // The redundant range and the order make the planner use the index of test cases.
  const last = (columns: Fragment, table: Fragment) => sql`(
    select f.run_id, ${columns}, f.cause from ${table} f
    where f.project_id = ${projectId} and f.test_case >= n.number and f.test_case <= n.number and f.run_id < n.until
    order by f.test_case, f.run_id desc limit ${PAST_FAILURES})`;
  return sql<(PastFailure & { until: string })[]>`
    select n.until, n.number as "testCase", f.run_id as "runId", replace(f.cause::text, '-', '') as cause,
      f.retried as "isRetried", f.explained, f.of_many as "isOfMany", f.in_a_row as "inARow"
    from unnest(
      ${toNumberArray(asked.map(({ number }) => number))}::int[], ${toTextArray(asked.map(({ until }) => until))}::uuid[]
    ) as n (number, until) cross join lateral (
      select * from (
        ${last(sql`f.explained, f.of_many, f.passed_again as retried, coalesce((f.evidence->>'inARow')::int, 1) as in_a_row`, sql`failure`)}
        union all
        ${last(sql`'flaky', false, true, 1`, sql`flake`)}
      ) f order by f.run_id desc limit ${PAST_FAILURES}
    ) f
    order by f.run_id desc`;
};

/** The origin of an earlier run whose failures are evidence. */
export type PastOrigin = OtherOrigin & {
  id: string;
  /** When the run was completed; ISO 8601. */
  at: string;
};

/** Returns the origins of those runs that are evidence: complete and trusted ones that are no outage. */
export const selectOrigins = (sql: Tx, projectId: string, runIds: readonly string[]) => sql<PastOrigin[]>`
  select r.id, e.id as "executionId", ${originColumns(sql, projectId)}, r.completed_at as at
  from unnest(${toTextArray(runIds)}::uuid[]) as past (id) cross join lateral (
    select id, execution_id, completed_at from test_run
    where project_id = ${projectId} and id = past.id and not outage and completed_at is not null offset 0) r
  cross join lateral (
    select * from execution e
    where e.project_id = ${projectId} and e.id = r.execution_id and ${isTrustedBuild(sql, sql`e`)} offset 0) e`;

/** Returns the number of results of each test case, without those of runs that are not counted yet. */
export const selectResultCounts = (sql: Tx, projectId: string, numbers: readonly number[]) => sql<
  { testCase: number; runs: number }[]
>`
  select test_case as "testCase", runs from case_health
  where project_id = ${projectId} and test_case = any(${toNumberArray(numbers)}::int[])`;

/** The failure of a test case in a run. A test case that passed has no row. */
export type CaseState = {
  runId: string;
  testCase: number;
  cause: string | null;
  explained: ExplanationKind | null;
  /** The probability that the failure was flaky. */
  flaky: number;
};

export const selectStates = (sql: Tx, projectId: string, runIds: readonly string[], numbers: readonly number[]) => sql<
  CaseState[]
>`
  select f.run_id as "runId", f.test_case as "testCase", replace(f.cause::text, '-', '') as cause, f.explained, f.flaky::float8 as flaky
  from unnest(${toTextArray(runIds)}::uuid[]) as run (id) cross join lateral (
    select run_id, test_case, cause, explained, flaky from failure
    where project_id = ${projectId} and run_id = run.id and test_case = any(${toNumberArray(numbers)}::int[]) offset 0) f`;

/** Returns the test cases that failed in these runs and passed in a rerun of the same build, by run. */
export const selectPassedAgain = (
  sql: Tx,
  projectId: string,
  runIds: readonly string[],
  numbers: readonly number[],
) => sql<{ runId: string; testCase: number }[]>`
  select distinct b.id as "runId", n.number as "testCase"
  from unnest(${toTextArray(runIds)}::uuid[]) as run (id) cross join lateral (
    select id, execution_id, task_slug from test_run where project_id = ${projectId} and id = run.id offset 0) b
  cross join lateral (
    select id from execution where project_id = ${projectId} and build_id = b.execution_id offset 0) e
  cross join lateral (
    select id from test_run where project_id = ${projectId} and execution_id = e.id and task_slug = b.task_slug offset 0) r
  cross join unnest(${toNumberArray(numbers)}::int[]) as n (number)
  cross join lateral (
    select substr(statuses, array_position(test_cases, n.number), 1) as letter from case_result
    where project_id = ${projectId} and run_id = r.id and block = ${blockOfCase(sql, sql`n.number`)} offset 0) c
  where c.letter in ('p', 'P')`;

/** Returns the test cases that neither passed nor failed in these runs, by run. */
export const selectAbsent = (sql: Tx, projectId: string, runIds: readonly string[], numbers: readonly number[]) => sql<
  { runId: string; testCases: number[] }[]
>`
  select run.id as "runId", json_agg(n.number) as "testCases"
  from (
    select ${blockOfCase(sql, sql`number`)} as block, array_agg(number) as numbers
    from unnest(${toNumberArray(numbers)}::int[]) as n (number) group by 1
  ) k cross join unnest(${toTextArray(runIds)}::uuid[]) as run (id)
  left join lateral (
    select statuses, test_cases from case_result
    where project_id = ${projectId} and run_id = run.id and block = k.block offset 0) b on true
  cross join unnest(k.numbers) as n (number)
  where coalesce(substr(b.statuses, array_position(b.test_cases, n.number), 1) not in ('p', 'P', 'f', 'F'), true)
  group by run.id`;
