/** Durations of test cases and tasks on the default branch, and results that took longer than usual. */

import {
  type ComparedWithUsual,
  LEAST_FACTOR,
  MAX_RECENT,
  type Slower,
  untrackedHistory,
  usualOf,
} from "../rules/slower.ts";
import { UNTRUSTED_BLOCKS } from "../rules/untrusted.ts";
import type { CaseRef } from "../schema/case_ref.ts";
import type { Given } from "../database/compose.ts";
import { type Fragment, type Sql, toNumberArray, toTextArray, type Tx } from "../database/connect.ts";
import { blockOfCase } from "./packing.ts";

const toNested = (values: readonly (readonly number[])[]): string => toTextArray(values.map(toNumberArray));

type StoredDurations = {
  /** Durations of the last passes on the default branch, the newest last. */
  history: number[];
  /** See `usualOf`; null: there are too few. */
  usualMs: number | null;
};

/** Returns the stored durations of test cases on the default branch, by test_case.number. */
export async function selectCaseDurations(
  sql: Sql,
  projectId: string,
  testCases: readonly number[],
): Promise<Map<number, StoredDurations>> {
  if (testCases.length === 0) return new Map();
  const rows = await sql<(StoredDurations & { number: number })[]>`
    select n.number, to_json(d.passed_ms) as history, d.usual_ms as "usualMs"
    from unnest(${toNumberArray(testCases)}::int[]) as n (number), lateral (
      select passed_ms, usual_ms from case_duration where project_id = ${projectId} and test_case = n.number offset 0) d`;
  return new Map(rows.map(({ number, ...durations }) => [number, durations]));
}

type TimedCase = { testCase: number; durationMs: number };

const toColumns = (sql: Sql, results: readonly TimedCase[]): Fragment => sql`
  unnest(${toNumberArray(results.map(({ testCase }) => testCase))}::int[],
    ${toNumberArray(results.map(({ durationMs }) => durationMs))}::int[]) as n (number, ms)`;

/** The histories of the test cases whose results may be slower than usual, by test_case.number. */
export async function selectSuspectCases(
  sql: Sql,
  projectId: string,
  results: readonly TimedCase[],
): Promise<Map<number, readonly number[]>> {
  if (results.length === 0) return new Map();
  const rows = await sql<{ number: number; history: number[] | null; recent: number[] | null; mainRuns: number }[]>`
    select n.number, to_json(d.passed_ms) as history, to_json(h.recent_ms) as recent, h.main_runs as "mainRuns"
    from ${toColumns(sql, results)}
    left join lateral (
      select usual_ms, passed_ms from case_duration where project_id = ${projectId} and test_case = n.number offset 0) d on true
    left join lateral (
      -- The test case has never taken long enough for its durations to be stored.
      select recent_ms, main_runs from case_health
      where d.passed_ms is null and project_id = ${projectId} and test_case = n.number offset 0) h on true
    where n.ms >= ${LEAST_FACTOR}::int * d.usual_ms or h.recent_ms is not null`;
  return new Map(
    rows.map(({ number, history, recent, mainRuns }) => [number, history ?? untrackedHistory(recent ?? [], mainRuns)]),
  );
}

/** The usual durations of test cases next to those of results, where they are known. */
export const selectUsualDurationsOfCases = (
  sql: Sql,
  projectId: string,
  results: readonly TimedCase[],
): PromiseLike<ComparedWithUsual[]> => sql<ComparedWithUsual[]>`
  select n.ms as "durationMs", d.usual_ms as "usualMs" from ${toColumns(sql, results)}, lateral (
    select usual_ms from case_duration where project_id = ${projectId} and test_case = n.number offset 0) d
  where d.usual_ms is not null`;

/** Stores durations of test cases, in a transaction that holds `lockHealth`. */
export const upsertCaseDurations = (sql: Tx, projectId: string, rows: readonly [number, readonly number[]][]) => sql`
  insert into case_duration (project_id, test_case, passed_ms, usual_ms)
  select ${projectId}, test_case, passed_ms::int[], usual_ms
  from unnest(${toNumberArray(rows.map(([number]) => number))}::int[], ${toNested(rows.map(([, passed]) => passed))}::text[],
    ${toNumberArray(rows.map(([, passed]) => usualOf(passed) ?? null))}::int[]) as fresh (test_case, passed_ms, usual_ms)
  on conflict (project_id, test_case) do update set passed_ms = excluded.passed_ms, usual_ms = excluded.usual_ms`;

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

/** The histories of tasks whose runs may be slower than usual, by slug, as `selectTaskHistories` returns them. */
export async function selectSuspectTasks(
  sql: Sql,
  projectId: string,
  runs: readonly { taskSlug: string; durationMs: number }[],
): Promise<Map<string, number[]>> {
  if (runs.length === 0) return new Map();
  const rows = await sql<{ slug: string; passed: number[] }[]>`
    select n.slug, to_json(d.passed_ms) as passed
    from unnest(${toTextArray(runs.map(({ taskSlug }) => taskSlug))}::text[],
      ${toNumberArray(runs.map(({ durationMs }) => durationMs))}::bigint[]) as n (slug, ms), lateral (
      select passed_ms, usual_ms from task_duration where project_id = ${projectId} and task_slug = n.slug offset 0) d
    where n.ms / ${LEAST_FACTOR}::int >= d.usual_ms`;
  return new Map(rows.map(({ slug, passed }) => [slug, passed]));
}

/** Stores durations of tasks, in a transaction that holds `lockHealth`. */
export const upsertTaskDurations = (sql: Tx, projectId: string, rows: readonly [string, readonly number[]][]) => sql`
  insert into task_duration (project_id, task_slug, passed_ms, usual_ms)
  select ${projectId}, task_slug, passed_ms::bigint[], usual_ms
  from unnest(${toTextArray(rows.map(([slug]) => slug))}::text[], ${toNested(rows.map(([, passed]) => passed))}::text[],
    ${toNumberArray(rows.map(([, passed]) => usualOf(passed) ?? null))}::bigint[]) as fresh (task_slug, passed_ms, usual_ms)
  on conflict (project_id, task_slug) do update set passed_ms = excluded.passed_ms, usual_ms = excluded.usual_ms`;

/** The build of a report that is not of the default branch. */
export type BranchBuild = {
  executionId: string;
  branch: string | null;
  pullRequest: string | null;
  untrusted: boolean;
  /** When the report was completed, ISO 8601. */
  completedAt: string;
};

/** How long earlier runs of a task on one branch took, the newest last. */
type RecentDurations = {
  /** Wall times of the runs that passed. */
  runs: number[];
  /** Durations of the passes, by test_case.number. */
  cases: Map<number, number[]>;
};

/** Maximum number of earlier builds of a branch that are searched for runs of a task. */
const MAX_BUILDS = 20;

/** The last `MAX_RECENT` runs of a task on a branch before a build. */
export async function selectRecentDurations(
  sql: Sql,
  projectId: string,
  { executionId, branch, pullRequest, untrusted, completedAt, taskSlug }: BranchBuild & { taskSlug: string },
  testCases: readonly number[],
): Promise<RecentDurations> {
  // The branch of a fork may have the name of the default branch.
  const [isOfBranch, order] =
    pullRequest === null
      ? [sql`branch = ${branch} and pull_request is null`, sql`branch, id desc`]
      : [sql`pull_request = ${pullRequest}`, sql`pull_request, id desc`];
  const rows = await sql<{ durationMs: number | null; passes: [number, number][] | null }[]>`
    with run as materialized (
      select r.* from (
        select id, untrusted from execution
        where project_id = ${projectId} and ${isOfBranch} and id < ${executionId} and untrusted = ${untrusted}
        order by ${order} limit ${MAX_BUILDS}
      ) e, lateral (
        select id, status, duration_ms from test_run
        where project_id = ${projectId} and execution_id = e.id and task_slug = ${taskSlug}
          and completed_at < ${completedAt} and not outage offset 0) r
      order by e.id desc limit ${MAX_RECENT}
    )
    select case when run.status = 'passed' then run.duration_ms end as "durationMs", (
      select json_agg(json_build_array(p.number, p.ms)) from (
        select n.number, b.durations[b.place] as ms
        from unnest(${toNumberArray(testCases)}::int[]) as n (number), lateral (
          select statuses, durations, array_position(test_cases, n.number) as place from case_result
          where project_id = ${projectId} and run_id = run.id
            and block = ${blockOfCase(sql, sql`n.number`)} + ${untrusted ? UNTRUSTED_BLOCKS : 0}::int offset 0) b
        where upper(substr(b.statuses, b.place, 1)) = 'P' and b.durations[b.place] is not null) p) as passes
    from run order by run.id`;
  const cases = new Map<number, number[]>();
  for (const [number, ms] of rows.flatMap(({ passes }) => passes ?? [])) {
    const known = cases.get(number);
    if (known) known.push(ms);
    else cases.set(number, [ms]);
  }
  return { runs: rows.flatMap(({ durationMs }) => durationMs ?? []), cases };
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

/** Test cases of a run whose last results are usual after all. */
export const deleteSlowerResults = (sql: Tx, projectId: string, runId: string, testCases: readonly number[]) => sql`
  delete from slower_result
  where project_id = ${projectId} and run_id = ${runId} and test_case = any(${toNumberArray(testCases)}::int[])`;

type SlowerTest = CaseRef & Slower & { durationMs: number };
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

/** Names a result: `number` is test_case.number. */
type ResultName = { runId: string; number: number };
const nameOf = ({ runId, number }: ResultName): string => `${runId} ${number}`;

/** Returns a function that returns the usual durations for a result, if it took longer. */
export async function selectSlowerResults(
  sql: Sql,
  projectId: string,
  keys: readonly ResultName[],
): Promise<(key: ResultName) => Slower | undefined> {
  if (keys.length === 0) return () => undefined;
  const rows = await sql<(ResultName & Slower)[]>`
    select k.run_id as "runId", k.number, s.usual_ms as "usualMs", s.longest_ms as "longestMs"
    from unnest(${toTextArray(keys.map(({ runId }) => runId))}::uuid[],
      ${toNumberArray(keys.map(({ number }) => number))}::int[]) as k (run_id, number), lateral (
      select usual_ms, longest_ms from slower_result
      where project_id = ${projectId} and run_id = k.run_id and test_case = k.number offset 0) s`;
  const found = new Map(rows.map(({ usualMs, longestMs, ...key }) => [nameOf(key), { usualMs, longestMs }]));
  return (key) => found.get(nameOf(key));
}
