/** Tests without a result in a run: those that a rerun does not repeat, and those of its baseline that did not run. */

import { ABSENT_NAMED, type Absence, type AbsentCases } from "../rules/absent_tests.ts";
import { type Result, toStatus } from "../rules/merge.ts";
import type { BuildResults } from "../rules/rerun_results.ts";
import type { CaseRef } from "../schema/case_ref.ts";
import { type Fragment, type Sql, toNumberArray, toTextArray, type Tx } from "../database/connect.ts";
import { baseRuns, rerunsOf } from "./baselines.ts";
import { hasResult } from "./outcome.ts";
import { caseOfResult, lettersOf } from "./packing.ts";
import { isOnDefault, isTrustedBuild, skippedCases } from "./predicates.ts";
import { indexedTask } from "./task_runs.ts";

/** A task of a rerun. */
export type RerunTask = { buildId: string; executionId: string; taskSlug: string };

/** Results that the earlier runs of the build left for test cases that did not run in a rerun. */
export type EarlierResults = {
  /** Failed ones, ascending. */
  notRerun: number[];
  passed: number;
  /** Skipped ones that the rerun does not have. */
  skipped: number;
  /** Cases that were skipped in the rerun but ran before. */
  skippedHere: number;
};

/** The runs of the task in the build and its reruns that have results, before the rerun. */
const earlierRuns = (sql: Sql, projectId: string, { buildId, executionId, taskSlug }: RerunTask): Fragment => sql`
  select id, execution_id from test_run r
  where project_id = ${projectId} and execution_id = ${buildId} and task_slug = ${taskSlug} and ${hasResult(sql, sql`r`)}
  union all
  ${rerunsOf(sql, projectId, { buildId, taskSlug, before: executionId })}`;

const casesOf = (results: readonly Result[], hasRun: boolean): number[] =>
  results.flatMap(({ testCase, letter }) => ((toStatus(letter) !== "skipped") === hasRun ? testCase : []));

/** A statement: the test cases of `runs` and of further results, and whether each has run in one of them. */
const casesIn = (sql: Sql, projectId: string, runs: Fragment, fresh: readonly Result[]): Fragment => sql`
  select number, bool_or(has_run) as has_run from (
    select number, letter not in ('s', 'S') as has_run from ${lettersOf(sql, projectId, runs)} r
    union all
    select number, true from unnest(${toNumberArray(casesOf(fresh, true))}::int[]) as r (number)
    union all
    select number, false from unnest(${toNumberArray(casesOf(fresh, false))}::int[]) as r (number)
  ) r group by number`;

/** A condition: the result `r` stands for the exit code of a test tool. */
const isStandIn = (sql: Sql, projectId: string): Fragment => sql`exists (
  select from attempt a where a.project_id = ${projectId} and a.run_id = r.run_id and a.exit_case = r.number)`;

/**
 * `runId` is the run of the rerun, whose results are stored already; `fresh` are further results of it. A skipped result replaces none. A
 * result that stands for the exit code of a test tool ends with the next run of the tool.
 */
export async function selectResultsBefore(
  sql: Sql,
  projectId: string,
  task: RerunTask,
  { runId, fresh }: { runId: string | undefined; fresh: readonly Result[] },
): Promise<EarlierResults> {
  const [row] = await sql<[EarlierResults]>`
    with earlier_run as materialized (${earlierRuns(sql, projectId, task)}),
    earlier as (
      select distinct on (r.number) r.number, r.letter
      from ${lettersOf(sql, projectId, sql`select id from earlier_run`)} r join earlier_run e on e.id = r.run_id
      where not ${isStandIn(sql, projectId)}
      order by r.number, r.letter in ('s', 'S'), e.execution_id desc
    ), own as (${casesIn(sql, projectId, sql`select ${runId ?? null}::uuid as id`, fresh)})
    select
      coalesce(json_agg(e.number order by e.number) filter (where e.letter in ('f', 'F')), '[]') as "notRerun",
      (count(*) filter (where e.letter in ('p', 'P')))::int as passed,
      (count(*) filter (where e.letter in ('s', 'S') and own.number is null))::int as skipped,
      (count(*) filter (where e.letter not in ('s', 'S') and own.number is not null))::int as "skippedHere"
    from earlier e left join own on own.number = e.number where own.has_run is not true`;
  return row;
}

/**
 * Returns the last run of each task of a build that belongs to a rerun and has a result, with the fields that decide its verdict besides
 * its uploads.
 */
export const selectLastReruns = (sql: Sql, projectId: string, buildId: string) => sql<
  { id: string; executionId: string; taskSlug: string; quarantined: number; shadowed: number }[]
>`
  select distinct on (r.task_slug) r.id, r.execution_id as "executionId", r.task_slug as "taskSlug", r.quarantined, r.shadowed
  from execution e join test_run r on r.project_id = e.project_id and r.execution_id = e.id
  where e.project_id = ${projectId} and e.build_id = ${buildId} and r.status in ('passed', 'failed') and r.build_failed is not null
  order by r.task_slug, r.execution_id desc`;

export const updateRerun = (
  sql: Tx,
  projectId: string,
  id: string,
  { verdict, buildPassed, buildFailed, buildSkipped, notRerun }: BuildResults & { verdict: "passed" | "failed" },
) => sql`
  update test_run set status = ${verdict}, verdict = ${verdict}, build_passed = ${buildPassed}, build_failed = ${buildFailed},
    build_skipped = ${buildSkipped}, not_rerun = ${toNumberArray(notRerun)}::int[]
  where project_id = ${projectId} and id = ${id}
    and (verdict, build_passed, build_failed, build_skipped, not_rerun) is distinct from
      (${verdict}, ${buildPassed}::int, ${buildFailed}::int, ${buildSkipped}::int, ${toNumberArray(notRerun)}::int[])`;

/** The first of these test cases, in the order in which they were first seen. */
export const selectCaseRefs = (sql: Sql, projectId: string, numbers: readonly number[]) =>
  numbers.length === 0
    ? []
    : sql<CaseRef[]>`
        select c.id as "testCaseId", c.task_slug as "taskSlug", c.suite, c.name, c.file
        from unnest(${toNumberArray(numbers)}::int[]) as r (number)
        cross join lateral ${caseOfResult(sql, projectId, sql`r.number`)} c order by r.number`;

/** Maximum number of runs of a task that are searched for one of the default branch, if the baseline has none. */
const MAX_BASE_RUNS = 20;

type BaseTask = { baselineId: string; taskSlug: string };

/**
 * Returns in their order how many tests have a result in the run of the task in its baseline, or in the last earlier one on the default
 * branch, including those that did not run there; null: there is none.
 */
export async function selectExpectedCounts(
  sql: Sql,
  projectId: string,
  tasks: readonly BaseTask[],
): Promise<(number | null)[]> {
  if (tasks.length === 0) return [];
  const expected = sql`
    r.passed + r.failed + coalesce((r.absence->>'missing')::int + (r.absence->>'skipped')::int, 0)`;
  const rows = await sql<{ expected: number | null }[]>`
    select r.expected from unnest(
      ${toTextArray(tasks.map(({ baselineId }) => baselineId))}::uuid[],
      ${toTextArray(tasks.map(({ taskSlug }) => taskSlug))}::text[]) with ordinality as asked (execution_id, task_slug, place)
    cross join lateral (
      select coalesce((
        select ${expected} from test_run r
        where r.project_id = ${projectId} and r.execution_id = asked.execution_id and r.task_slug = asked.task_slug
          and r.completed_at is not null
      ), (
        select ${expected} from (
          select * from test_run
          where project_id = ${projectId} and ${indexedTask(sql)} = asked.task_slug and completed_at is not null
            and ${isTrustedBuild(sql, sql`test_run`)}
          order by completed_at desc, id desc limit ${MAX_BASE_RUNS}) r
        join execution e on e.project_id = ${projectId} and e.id = r.execution_id
        join project p on p.id = ${projectId}
        where e.id < asked.execution_id and e.build_id is null and ${isOnDefault(sql, sql`e`, sql`p.default_branch`)}
        order by e.id desc limit 1)) as expected offset 0) r
    order by asked.place`;
  return rows.map(({ expected }) => expected);
}

/**
 * Returns the tests of the baseline that a run lacks. A baseline that is incomplete is completed by the runs before it, up to a complete
 * one.
 */
export async function selectAbsentCases(
  sql: Sql,
  projectId: string,
  { baselineId, taskSlug, executionId, buildId }: BaseTask & { executionId: string; buildId: string | null },
  { runId, fresh }: { runId: string | undefined; fresh: readonly Result[] },
): Promise<AbsentCases> {
  const earlier =
    buildId === null
      ? sql`select null::uuid as id where false`
      : sql`select id from (${earlierRuns(sql, projectId, { buildId, executionId, taskSlug })}) e`;
  const [row] = await sql<[AbsentCases]>`
    with used as materialized (
      select id from (${baseRuns(sql, projectId, { baseline: sql`${baselineId}::uuid`, taskSlug })}) r where is_expected
    ), base as (
      select distinct r.number from ${lettersOf(sql, projectId, sql`select id from used`)} r
      where r.letter not in ('s', 'S') and not ${isStandIn(sql, projectId)}
        and r.number not in (${skippedCases(sql, projectId)})
    ), own as (${casesIn(sql, projectId, sql`select ${runId ?? null}::uuid as id union all ${earlier}`, fresh)}
    ), compared as (
      select base.number, own.has_run, row_number() over (partition by own.has_run order by base.number) as place
      from base left join own on own.number = base.number
    )
    select count(*)::int as of, (count(*) filter (where has_run is null))::int as missing,
      (count(*) filter (where not has_run))::int as skipped,
      coalesce(json_agg(number order by number) filter (where has_run is null and place <= ${ABSENT_NAMED}::int), '[]') as "missingCases",
      coalesce(json_agg(number order by number) filter (where not has_run and place <= ${ABSENT_NAMED}::int), '[]') as "skippedCases"
    from compared`;
  return row;
}

/** The runs of an execution that lack results. */
export const selectRunsWithAbsence = (sql: Sql, projectId: string, executionId: string) => sql<
  { notRerun: number[]; absence: Absence | null }[]
>`
  select to_json(not_rerun) as "notRerun", absence from test_run
  where project_id = ${projectId} and execution_id = ${executionId} and (absence is not null or not_rerun <> '{}') order by id`;

/** Returns how many tests ran in each task of an execution. */
export const selectRanCounts = (sql: Sql, projectId: string, executionId: string) => sql<
  { taskSlug: string; ran: number }[]
>`
  select task_slug as "taskSlug", passed + failed as ran from test_run
  where project_id = ${projectId} and execution_id = ${executionId}`;
