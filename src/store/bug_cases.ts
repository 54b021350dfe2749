/** The test cases of bug reports, and their passes that count towards the end of a bug. */

import { numberOfTestCase } from "../rules/test_case_id.ts";
import type { BugStatus, Severity } from "../schema/bug_reports.ts";
import { compose } from "../database/compose.ts";
import { type Sql, type Tx, toNumberArray, toTextArray } from "../database/connect.ts";
import { healthOf, isFlaky } from "./health.ts";
import { lockOf } from "../database/locks.ts";
import { blockOfCase } from "./packing.ts";
import { isLiveBug } from "./predicates.ts";

export type BugCaseRow = {
  number: number;
  id: string;
  taskSlug: string;
  suite: string;
  name: string;
  file: string | null;
  health: string;
  lastStatus: string | null;
  /** Passed so often in a row on the default branch since the bug was seen last. */
  clean: number;
};

/** The test cases of a bug, in the order in which they were first seen; one row more than `limit`. */
export const selectBugCases = (sql: Sql, projectId: string, bugId: string, limit: number, after = 0) => sql<
  BugCaseRow[]
>`
  select c.number, c.id, c.task_slug as "taskSlug", c.suite, c.name, c.file, ${healthOf(sql)} as health,
    h.last_status as "lastStatus", k.clean
  from (
    select test_case, clean from bug_case
    where project_id = ${projectId} and bug_report_id = ${bugId} and test_case > ${after}
    order by test_case limit ${limit + 1}
  ) k
  join test_case c on c.project_id = ${projectId} and c.number = k.test_case
  left join case_health h on h.project_id = ${projectId} and h.test_case = k.test_case
  order by c.number`;

export type BugOfCase = {
  id: string;
  number: number;
  title: string;
  status: BugStatus;
  severity: Severity;
  regressed: boolean;
};

/** The open bugs that a test case belongs to, newest first. */
export const selectOpenBugsOfCase = (sql: Sql, projectId: string, testCaseId: string, limit: number) => sql<
  BugOfCase[]
>`
  select b.id, b.number, b.title, b.status, b.severity, b.regressed
  from bug_case k join bug_report b on b.project_id = k.project_id and b.id = k.bug_report_id
  where k.project_id = ${projectId} and k.test_case = ${numberOfTestCase(testCaseId)}
    and ${isLiveBug(sql, sql`b`)}
  order by b.number desc limit ${limit}`;

/** Returns the test cases that are known to be flaky. */
export const selectFlakyCases = async (
  sql: Sql,
  projectId: string,
  testCases: readonly number[],
): Promise<Set<number>> => {
  const rows = await sql<{ testCase: number }[]>`
    select h.test_case as "testCase" from case_health h
    where h.project_id = ${projectId} and h.test_case = any(${toNumberArray(testCases)}::int[])
      and ${isFlaky(sql)}`;
  return new Set(rows.map(({ testCase }) => testCase));
};

/** A case that fails again begins to count anew, unless its bug has been seen after `seenAt`. */
export const insertBugCases = (
  sql: Tx,
  projectId: string,
  cases: readonly { bugId: string; testCase: number }[],
  seenAt: string | null = null,
) => sql`
  insert into bug_case (project_id, bug_report_id, test_case)
  select distinct ${projectId}::uuid, bug, test_case
  from unnest(${toTextArray(cases.map(({ bugId }) => bugId))}::uuid[],
    ${toNumberArray(cases.map(({ testCase }) => testCase))}::int[]) as o (bug, test_case)
  on conflict (project_id, bug_report_id, test_case) do update set clean = case
    when exists (select from bug_report b where b.project_id = ${projectId} and b.id = bug_case.bug_report_id
      and b.last_seen_at > ${seenAt}::timestamptz)
    then bug_case.clean else 0 end`;

const RUNS_TO_RESOLVE = 3;
/**
 * Maximum number of rows of results for which a run looks up the bugs of its cases; a larger run looks up its results of the cases of bugs.
 */
const FEW_BLOCKS = 16;

/**
 * Counts the passes of a run of the default branch, completed at `at`, for bugs that have not occurred since. Returns the bugs whose cases
 * have all passed often enough in a row.
 */
export async function countCleanCases(
  sql: Tx,
  projectId: string,
  runId: string,
  at: string,
): Promise<{ id: string; status: BugStatus }[]> {
  const hasFew = sql`(
    select count(*) from case_result where project_id = ${projectId} and run_id = ${runId}) <= ${FEW_BLOCKS}::int`;
  const isCounted = sql`
    ${isLiveBug(sql, sql`b`)} and (b.last_seen_at is null or b.last_seen_at <= ${at}::timestamptz)`;
  return await sql<{ id: string; status: BugStatus }[]>`
    with counted as (
      update bug_case k set clean = case when n.letter = 'p' then k.clean + 1 else 0 end
      from (
        select k.bug_report_id, k.test_case, n.letter
        from case_result r
        cross join lateral unnest(r.test_cases, string_to_array(r.statuses, null)) as n (test_case, letter)
        cross join lateral (
          select * from bug_case where project_id = ${projectId} and test_case = n.test_case offset 0) k
        cross join lateral (
          select from bug_report b where project_id = ${projectId} and id = k.bug_report_id and ${isCounted} offset 0) b
        where ${hasFew} and r.project_id = ${projectId} and r.run_id = ${runId}
        union all
        select k.bug_report_id, k.test_case, substr(r.statuses, array_position(r.test_cases, k.test_case), 1)
        from bug_report b
        join bug_case k on k.project_id = b.project_id and k.bug_report_id = b.id
        join case_result r on r.project_id = k.project_id and r.run_id = ${runId}
          and r.block = ${blockOfCase(sql, sql`k.test_case`)}
        where not ${hasFew} and b.project_id = ${projectId} and ${isCounted}
      ) n
      where k.project_id = ${projectId} and k.bug_report_id = n.bug_report_id and k.test_case = n.test_case
        and lower(n.letter) in ('p', 'f')
      returning k.bug_report_id, k.test_case, k.clean
    )
    select b.id, b.status from bug_report b
    where b.project_id = ${projectId} and ${isLiveBug(sql, sql`b`)}
      and b.id in (select bug_report_id from counted where clean >= ${RUNS_TO_RESOLVE})
      and not exists (
        select from bug_case k left join counted c using (bug_report_id, test_case)
        where k.project_id = ${projectId} and k.bug_report_id = b.id and coalesce(c.clean, k.clean) < ${RUNS_TO_RESOLVE})
      -- Three passes say nothing of flaky cases: a bug of theirs alone waits until one of them has recovered.
      and exists (
        select from bug_case k
        left join case_health h on h.project_id = k.project_id and h.test_case = k.test_case
        where k.project_id = ${projectId} and k.bug_report_id = b.id and not coalesce(${isFlaky(sql)}, false))`;
}

export type BugsOfCases = {
  /** Numbers of the test cases whose passes may resolve a bug. */
  testCases: ReadonlySet<number>;
  /** Whether the transaction has the turn of `lockBugs`, if there are any. */
  areHeld: boolean;
};

const BUGS_OF_CASES = compose<"project" | "testCases" | "isNeeded", { testCases: number[] | null; areHeld: boolean }>(
  (sql, given) => sql`
    with watched as materialized (
      select number from unnest(${given("testCases")}::int[]) as asked (number)
      where exists (
        select from (
          select bug_report_id from bug_case where project_id = ${given("project")} and test_case = asked.number offset 0) k
        cross join lateral (
          select from bug_report b
          where project_id = ${given("project")} and id = k.bug_report_id and ${isLiveBug(sql, sql`b`)} offset 0) b))
    select (select json_agg(number) from watched) as "testCases",
      case when ${given("isNeeded")}::boolean or exists (select from watched) then pg_try_advisory_xact_lock(${lockOf(sql, "bugs", given("project"))})
        else true end as "areHeld"`,
);

/**
 * Returns those of the test cases (by number) that live bugs have, and takes the lock of `lockBugs` if there are any or if `isNeeded`.
 * `areHeld` is false if another transaction has the lock.
 */
export const tryBugsOfCases = async (
  sql: Tx,
  projectId: string,
  testCases: readonly number[],
  isNeeded: boolean,
): Promise<BugsOfCases> => {
  const [row] = await BUGS_OF_CASES(sql, {
    project: projectId,
    testCases: toNumberArray(testCases),
    isNeeded: String(isNeeded),
  });
  return { testCases: new Set(row!.testCases), areHeld: row!.areHeld };
};

/** Clean runs count from now on. */
export const resetCleanCases = (sql: Tx, projectId: string, id: string) =>
  sql`update bug_case set clean = 0 where project_id = ${projectId} and bug_report_id = ${id}`;

/** The numbers of those of the ids that are test cases of the project. */
export const selectTestCasesById = async (sql: Sql, projectId: string, ids: readonly string[]): Promise<number[]> => {
  const rows = await sql<{ number: number }[]>`
    select number from test_case
    where project_id = ${projectId} and number = any(${toNumberArray(ids.map(numberOfTestCase))}::int[])
      and id = any(${toTextArray(ids)}::uuid[])`;
  return rows.map(({ number }) => number);
};
