/** The results of a build with those of a rerun put over them, test by test. */

import type { Result } from "../rules/merge.ts";
import { toStatus } from "../rules/merge.ts";
import type { CaseRef } from "../schema/case_ref.ts";
import { type Fragment, type Sql, toNumberArray, type Tx } from "../database/connect.ts";
import { hasResult } from "./outcome.ts";
import { caseOfResult, resultsOf } from "./packing.ts";

/** A task of a rerun. */
export type RerunTask = { buildId: string; executionId: string; taskSlug: string };

/** Results of the build, as its earlier runs have left them, of test cases that did not run in a rerun. */
export type EarlierResults = {
  /** Failed ones, ascending. */
  notRerun: number[];
  passed: number;
  /** Skipped ones that the rerun does not have. */
  skipped: number;
  /** Those that the rerun has as skipped, and that ran before. */
  skippedHere: number;
};

/** The runs of a task in a build and its reruns that have results, before the execution `before`. */
const earlierRuns = (sql: Sql, projectId: string, { buildId, executionId, taskSlug }: RerunTask): Fragment => sql`
  select r.id, r.execution_id from (
    select ${buildId}::uuid as id
    union all
    select id from execution where project_id = ${projectId} and build_id = ${buildId} and id < ${executionId}) e
  cross join lateral (
    select * from test_run r
    where r.project_id = ${projectId} and r.execution_id = e.id and r.task_slug = ${taskSlug} and ${hasResult(sql, sql`r`)} offset 0) r`;

/**
 * `runId` is the run of the rerun, with what is stored of it; `fresh` are further results of it. A skipped result replaces none. What
 * stands for the exit code of a test tool is over with the next run of the tool.
 */
export async function selectEarlierResults(
  sql: Sql,
  projectId: string,
  task: RerunTask,
  { runId, fresh }: { runId: string | undefined; fresh: readonly Result[] },
): Promise<EarlierResults> {
  const [row] = await sql<[EarlierResults]>`
    with earlier_run as materialized (${earlierRuns(sql, projectId, task)}),
    earlier as (
      select distinct on (r.number) r.number, r.letter
      from ${resultsOf(sql, projectId, sql`select id from earlier_run`)} b
      join earlier_run e on e.id = b.run_id,
        lateral unnest(b.test_cases, string_to_array(b.statuses, null)) as r (number, letter)
      where not exists (
        select from attempt a where a.project_id = ${projectId} and a.run_id = b.run_id and a.exit_case = r.number)
      order by r.number, r.letter in ('s', 'S'), e.execution_id desc
    ), own as (
      select number, bool_or(has_run) as has_run from (
        select number, letter not in ('s', 'S') as has_run
        from ${resultsOf(sql, projectId, sql`select ${runId ?? null}::uuid as id`)} b,
          lateral unnest(b.test_cases, string_to_array(b.statuses, null)) as r (number, letter)
        union all
        select number, true from unnest(${toNumberArray(casesOf(fresh, true))}::int[]) as r (number)
        union all
        select number, false from unnest(${toNumberArray(casesOf(fresh, false))}::int[]) as r (number)
      ) r group by number
    )
    select
      coalesce(json_agg(e.number order by e.number) filter (where e.letter in ('f', 'F')), '[]') as "notRerun",
      (count(*) filter (where e.letter in ('p', 'P')))::int as passed,
      (count(*) filter (where e.letter in ('s', 'S') and own.number is null))::int as skipped,
      (count(*) filter (where e.letter not in ('s', 'S') and own.number is not null))::int as "skippedHere"
    from earlier e left join own on own.number = e.number where own.has_run is not true`;
  return row;
}

const casesOf = (results: readonly Result[], hasRun: boolean): number[] =>
  results.flatMap(({ testCase, letter }) => ((toStatus(letter) !== "skipped") === hasRun ? testCase : []));

/** The last run of each task of a build that is one of a rerun and has a result, with what decides its verdict beside its uploads. */
export const selectLastReruns = (sql: Sql, projectId: string, buildId: string) => sql<
  { id: string; executionId: string; taskSlug: string; quarantined: number }[]
>`
  select distinct on (r.task_slug) r.id, r.execution_id as "executionId", r.task_slug as "taskSlug", r.quarantined
  from execution e join test_run r on r.project_id = e.project_id and r.execution_id = e.id
  where e.project_id = ${projectId} and e.build_id = ${buildId} and r.status in ('passed', 'failed') and r.build_failed is not null
  order by r.task_slug, r.execution_id desc`;

export type BuildResults = {
  buildPassed: number | null;
  buildFailed: number | null;
  buildSkipped: number | null;
  notRerun: number[];
};

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
