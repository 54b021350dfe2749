/** The test cases of bug reports, and their passes that count towards the end of a bug. */

import { numberOfTestCase } from "../rules/test_case_id.ts";
import type { BugStatus, Severity } from "../schema/bug_reports.ts";
import { compose } from "../database/compose.ts";
import { type Sql, type Tx, toNumberArray, toTextArray } from "../database/connect.ts";
import { healthOf, isFlaky } from "./health.ts";
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

/** A case that fails again, at `seenAt`, begins to count anew, unless its bug has been seen later. */
export const insertBugCases = (
  sql: Tx,
  projectId: string,
  cases: readonly { bugId: string; testCase: number; seenAt?: string }[],
) => sql`
  insert into bug_case (project_id, bug_report_id, test_case)
  select distinct ${projectId}::uuid, bug, test_case
  from unnest(${toTextArray(cases.map(({ bugId }) => bugId))}::uuid[],
    ${toNumberArray(cases.map(({ testCase }) => testCase))}::int[]) as o (bug, test_case)
  on conflict (project_id, bug_report_id, test_case) do update set clean = 0
  where bug_case.clean <> 0 and exists (
    select from unnest(${toTextArray(cases.map(({ bugId }) => bugId))}::uuid[],
      ${toNumberArray(cases.map(({ testCase }) => testCase))}::int[],
      ${toTextArray(cases.map(({ seenAt = null }) => seenAt))}::timestamptz[]) as o (bug, test_case, seen_at)
    join bug_report b on b.project_id = ${projectId} and b.id = o.bug
    where o.bug = bug_case.bug_report_id and o.test_case = bug_case.test_case
      and coalesce(b.last_seen_at <= o.seen_at, true))`;

const RUNS_TO_RESOLVE = 3;

/** A run of the default branch. */
export type CleanRun = { id: string; seenAt: string };

/** The test cases of live bugs that these runs have results of. */
export const selectCasesOfBugsIn = async (sql: Tx, projectId: string, runIds: readonly string[]): Promise<number[]> => {
  const rows = await sql<{ number: number }[]>`
    select distinct k.test_case as number
    from bug_report b
    join bug_case k on k.project_id = b.project_id and k.bug_report_id = b.id
    where b.project_id = ${projectId} and ${isLiveBug(sql, sql`b`)} and exists (
      select from unnest(${toTextArray(runIds)}::uuid[]) as run (id) cross join lateral (
        select test_cases from case_result
        where project_id = ${projectId} and run_id = run.id and block = ${blockOfCase(sql, sql`k.test_case`)} offset 0) r
      where k.test_case = any(r.test_cases))`;
  return rows.map(({ number }) => number);
};

type CleanCase = { bugId: string; testCase: number; clean: number };

/** What these runs say of test cases of live bugs that have not been seen since, in the order of the runs. */
const selectCleanResults = (sql: Tx, projectId: string, runs: readonly CleanRun[], testCases: readonly number[]) => sql<
  (CleanCase & { letter: string })[]
>`
  select k.bug_report_id as "bugId", k.test_case as "testCase", k.clean, r.letter
  from unnest(${toNumberArray(testCases)}::int[]) as n (number)
  cross join lateral (
    select * from bug_case where project_id = ${projectId} and test_case = n.number offset 0) k
  cross join lateral (
    select last_seen_at from bug_report b where project_id = ${projectId} and id = k.bug_report_id and ${isLiveBug(sql, sql`b`)} offset 0) b
  cross join unnest(
    ${toTextArray(runs.map(({ id }) => id))}::uuid[], ${toTextArray(runs.map(({ seenAt }) => seenAt))}::timestamptz[]
  ) with ordinality as run (id, seen_at, place)
  cross join lateral (
    select substr(statuses, array_position(test_cases, n.number), 1) as letter from case_result
    where project_id = ${projectId} and run_id = run.id and block = ${blockOfCase(sql, sql`n.number`)} offset 0) r
  where (b.last_seen_at is null or b.last_seen_at <= run.seen_at) and lower(r.letter) in ('p', 'f')
  order by run.place`;

/**
 * In a transaction that holds the lock of the bugs: the passed ones of these cases count, run after run, towards the end of
 * the bugs that have not been seen since. Answers the bugs whose cases have all passed often enough in a row.
 */
export async function countCleanCases(
  sql: Tx,
  projectId: string,
  runs: readonly CleanRun[],
  testCases: readonly number[],
): Promise<{ id: string; status: BugStatus }[]> {
  const counted = new Map<string, CleanCase & { before: number }>();
  for (const { letter, ...one } of await selectCleanResults(sql, projectId, runs, testCases)) {
    const key = `${one.bugId} ${one.testCase}`;
    const known = counted.get(key) ?? { ...one, before: one.clean };
    counted.set(key, { ...known, clean: letter === "p" ? known.clean + 1 : 0 });
  }
  const changed = [...counted.values()].filter(({ clean, before }) => clean !== before);
  if (changed.length === 0) return [];
  await sql`
    update bug_case k set clean = n.clean
    from unnest(${toTextArray(changed.map(({ bugId }) => bugId))}::uuid[],
      ${toNumberArray(changed.map(({ testCase }) => testCase))}::int[],
      ${toNumberArray(changed.map(({ clean }) => clean))}::int[]) as n (bug, test_case, clean)
    where k.project_id = ${projectId} and k.bug_report_id = n.bug and k.test_case = n.test_case`;
  const clean = changed.filter(({ clean }) => clean >= RUNS_TO_RESOLVE).map(({ bugId }) => bugId);
  if (clean.length === 0) return [];
  return await sql<{ id: string; status: BugStatus }[]>`
    select b.id, b.status from bug_report b
    where b.project_id = ${projectId} and ${isLiveBug(sql, sql`b`)} and b.id = any(${toTextArray(clean)}::uuid[])
      and not exists (
        select from bug_case k
        where k.project_id = ${projectId} and k.bug_report_id = b.id and k.clean < ${RUNS_TO_RESOLVE})
      -- Three passes say nothing of flaky cases: a bug of theirs alone waits until one of them has recovered.
      and exists (
        select from bug_case k
        left join case_health h on h.project_id = k.project_id and h.test_case = k.test_case
        where k.project_id = ${projectId} and k.bug_report_id = b.id and not coalesce(${isFlaky(sql)}, false))`;
}

const CASES_OF_BUGS = compose<"project" | "testCases", { number: number }>(
  (sql, given) => sql`
    select number from unnest(${given("testCases")}::int[]) as asked (number)
    where exists (
      select from (
        select bug_report_id from bug_case where project_id = ${given("project")} and test_case = asked.number offset 0) k
      cross join lateral (
        select from bug_report b
        where project_id = ${given("project")} and id = k.bug_report_id and ${isLiveBug(sql, sql`b`)} offset 0) b)`,
);

/** Those of these test cases, by their numbers, that live bugs have. */
export const selectCasesOfBugs = async (
  sql: Sql,
  projectId: string,
  testCases: readonly number[],
): Promise<Set<number>> => {
  const rows = await CASES_OF_BUGS(sql, { project: projectId, testCases: toNumberArray(testCases) });
  return new Set(rows.map(({ number }) => number));
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
