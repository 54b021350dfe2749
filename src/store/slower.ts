/** How long test cases and tasks took on the default branch, and the results that took longer than usual. */

import { type Slower, untrackedHistory } from "../rules/slower.ts";
import type { CaseRef } from "../schema/case_ref.ts";
import type { Given } from "../database/compose.ts";
import { type Fragment, type Sql, toNumberArray, toTextArray, type Tx } from "../database/connect.ts";

const toNested = (values: readonly (readonly number[])[]): string => toTextArray(values.map(toNumberArray));

/** The stored durations of test cases by test_case.number, the newest last. */
export async function selectCaseDurations(
  sql: Sql,
  projectId: string,
  testCases: readonly number[],
): Promise<Map<number, number[]>> {
  if (testCases.length === 0) return new Map();
  const rows = await sql<{ number: number; passed: number[] }[]>`
    select n.number, to_json(d.passed_ms) as passed
    from unnest(${toNumberArray(testCases)}::int[]) as n (number), lateral (
      select passed_ms from case_duration where project_id = ${projectId} and test_case = n.number offset 0) d`;
  return new Map(rows.map(({ number, passed }) => [number, passed]));
}

/** What is known of how long test cases take on the default branch, by test_case.number, the newest last. */
export async function selectCaseHistories(
  sql: Sql,
  projectId: string,
  testCases: readonly number[],
): Promise<Map<number, number[]>> {
  if (testCases.length === 0) return new Map();
  const rows = await sql<{ number: number; passed: number[] | null; recent: number[]; mainRuns: number }[]>`
    select n.number, to_json(d.passed_ms) as passed, to_json(h.recent_ms) as recent, h.main_runs as "mainRuns"
    from unnest(${toNumberArray(testCases)}::int[]) as n (number), lateral (
      select recent_ms, main_runs from case_health where project_id = ${projectId} and test_case = n.number offset 0) h
    left join lateral (
      select passed_ms from case_duration where project_id = ${projectId} and test_case = n.number offset 0) d on true`;
  return new Map(
    rows.map(({ number, passed, recent, mainRuns }) => [number, passed ?? untrackedHistory(recent, mainRuns)]),
  );
}

/** In a transaction that holds `lockHealth`. */
export const upsertCaseDurations = (sql: Tx, projectId: string, rows: readonly [number, readonly number[]][]) => sql`
  insert into case_duration (project_id, test_case, passed_ms)
  select ${projectId}, test_case, passed_ms::int[]
  from unnest(${toNumberArray(rows.map(([number]) => number))}::int[], ${toNested(rows.map(([, passed]) => passed))}::text[])
    as fresh (test_case, passed_ms)
  on conflict (project_id, test_case) do update set passed_ms = excluded.passed_ms`;

/** Wall times of the last passed runs on the default branch by task, the newest last. */
export async function selectTaskHistories(
  sql: Sql,
  projectId: string,
  taskSlugs: readonly string[],
): Promise<Map<string, number[]>> {
  if (taskSlugs.length === 0) return new Map();
  const rows = await sql<{ slug: string; passed: number[] }[]>`
    select task_slug as slug, to_json(passed_ms) as passed from task_duration
    where project_id = ${projectId} and task_slug = any(${toTextArray(taskSlugs)}::text[])`;
  return new Map(rows.map(({ slug, passed }) => [slug, passed]));
}

/** In a transaction that holds `lockHealth`. */
export const upsertTaskDurations = (sql: Tx, projectId: string, rows: readonly [string, readonly number[]][]) => sql`
  insert into task_duration (project_id, task_slug, passed_ms)
  select ${projectId}, task_slug, passed_ms::bigint[]
  from unnest(${toTextArray(rows.map(([slug]) => slug))}::text[], ${toNested(rows.map(([, passed]) => passed))}::text[])
    as fresh (task_slug, passed_ms)
  on conflict (project_id, task_slug) do update set passed_ms = excluded.passed_ms`;

/** Removes what is stored of test cases that are deleted, and of tasks without any run. */
export async function deleteDurations(sql: Tx, projectId: string, testCases: readonly number[]): Promise<void> {
  await sql`
    delete from case_duration
    where project_id = ${projectId} and test_case = any(${toNumberArray(testCases)}::int[])`;
  await sql`
    delete from task_duration d where project_id = ${projectId} and not exists (
      select from test_run r where r.project_id = ${projectId} and r.task_slug = d.task_slug)`;
}

/** A passed result of a test case that took longer than usual. */
export type SlowerResult = Slower & { testCase: number; durationMs: number };

/** `rows`: slower results with their `runId`, see `toRows`. */
export const insertSlowerResults = (sql: Sql, projectId: Given, rows: Given) => sql`
  insert into slower_result (project_id, run_id, test_case, duration_ms, usual_ms, longest_ms)
  select ${projectId}, "runId", "testCase", "durationMs", "usualMs", "longestMs"
  from json_to_recordset(${rows}::text::json) as fresh ("runId" uuid, "testCase" int, "durationMs" int, "usualMs" int,
    "longestMs" int)
  on conflict (project_id, run_id, test_case) do update set
    duration_ms = excluded.duration_ms, usual_ms = excluded.usual_ms, longest_ms = excluded.longest_ms`;

export type SlowerTest = CaseRef & Slower & { durationMs: number };
export type SlowerRow = SlowerTest & {
  /** The number of all of them, listed or not. */
  total: number;
};

/** The test cases of `runs`, a statement that selects ids as `id`, that took longer than usual; the greatest difference first. */
const selectSlower = (sql: Sql, projectId: string, runs: Fragment, limit: number) => sql<SlowerRow[]>`
  select c.id as "testCaseId", c.task_slug as "taskSlug", c.suite, c.name, c.file, s.duration_ms as "durationMs",
    s.usual_ms as "usualMs", s.longest_ms as "longestMs", s.total
  from (
    select s.*, (count(*) over ())::int as total from (${runs}) r, lateral (
      select * from slower_result where project_id = ${projectId} and run_id = r.id offset 0) s
    order by s.duration_ms - s.usual_ms desc, s.test_case limit ${limit}
  ) s, lateral (
    select * from test_case where project_id = ${projectId} and number = s.test_case offset 0) c
  order by s.duration_ms - s.usual_ms desc, s.test_case`;

export const selectSlowerTests = (sql: Sql, projectId: string, executionId: string, limit: number) =>
  selectSlower(
    sql,
    projectId,
    sql`select id from test_run where project_id = ${projectId} and execution_id = ${executionId}`,
    limit,
  );

export const selectSlowerTestsOfRun = (sql: Sql, projectId: string, runId: string, limit: number) =>
  selectSlower(sql, projectId, sql`select ${runId}::uuid as id`, limit);

/** In which of these runs a test case took longer than usual, by the id of the run. */
export async function selectSlowerResults(
  sql: Sql,
  projectId: string,
  testCaseId: string,
  runIds: readonly string[],
): Promise<Map<string, Slower>> {
  if (runIds.length === 0) return new Map();
  const rows = await sql<(Slower & { runId: string })[]>`
    select s.run_id as "runId", s.usual_ms as "usualMs", s.longest_ms as "longestMs"
    from test_case c, unnest(${toTextArray(runIds)}::uuid[]) as r (id), lateral (
      select * from slower_result where project_id = ${projectId} and run_id = r.id and test_case = c.number offset 0) s
    where c.project_id = ${projectId} and c.id = ${testCaseId}`;
  return new Map(rows.map(({ runId, ...slower }) => [runId, slower]));
}
