/** Stores the plans that assign the files of a task to shards, and reads the file durations for new plans. */

import { type FileTiming, type PlannedFile, UNIT_IN_SUITE } from "../rules/plan.ts";
import { type Fragment, type Sql, toNumberArray, toTextArray, type Tx } from "../database/connect.ts";
import { caseOfResult } from "./packing.ts";
import { isOnDefault, isTrustedBuild } from "./predicates.ts";
import { indexedTask } from "./task_runs.ts";

/** An expression: the file of a test case, or else its class or package; see `unitOf`. */
const unitOfCase = (sql: Sql, testCase: Fragment): Fragment =>
  sql`coalesce(${testCase}.file, (regexp_match(${testCase}.suite, ${UNIT_IN_SUITE}))[1])`;

/** Maximum number of runs of the task, newest first, among which runs of the relevant branches are searched. */
const MAX_RUNS_READ = 200;
/** Maximum number of runs of the default branch. The median of five is not affected by one slow machine or one timeout. */
const MAX_MAIN_RUNS = 5;
/** Maximum number of runs of the execution's own branch, which may have files that the default branch lacks. */
const MAX_OWN_RUNS = 2;
/** Number of results after which no further run of a branch is read. Reading that many takes 150 ms. */
const MAX_RESULTS = 150_000;

export type FileTimings = {
  /** Number of runs that the durations come from. */
  runs: number;
  timings: FileTiming[];
};

/**
 * Returns how long the files of a task took: per file, the median over recent runs on the default branch and on the execution's own branch,
 * or over the newest runs at all if there are none. The duration of a file in a run is the sum of its cases. Cases without recent results
 * do not count, and names that change with every run count once. Outages and reruns, which have only some of the cases, are excluded.
 * Returns undefined if the execution does not exist.
 */
export async function selectFileTimings(
  sql: Sql,
  { projectId, executionId, taskSlug }: PlanKey,
): Promise<FileTimings | undefined> {
  const [row] = await sql<{ runs: number; files: string[] | null; durations: (number | null)[] | null }[]>`
    with mine as (
      select coalesce(e.branch, e.base_branch, p.default_branch) as branch, p.default_branch
      from execution e join project p on p.id = e.project_id
      where e.project_id = ${projectId} and e.id = ${executionId}
    ), ranked as (
      select id, kind, row_number() over newest_first as place, sum(results) over newest_first - results as before
      from (
        select r.id, r.completed_at, r.results,
          case when ${isOnDefault(sql, sql`e`, sql`m.default_branch`)} then 'main'
            when e.branch = m.branch and m.branch <> m.default_branch then 'own' else 'other' end as kind
        from mine m, (
          select id, execution_id, completed_at, passed + failed + skipped as results from test_run
          where project_id = ${projectId} and ${indexedTask(sql)} = ${taskSlug} and completed_at is not null and not outage
            and ${isTrustedBuild(sql, sql`test_run`)}
          order by completed_at desc, id desc limit ${MAX_RUNS_READ}) r
        join execution e on e.project_id = ${projectId} and e.id = r.execution_id and e.rerun_of is null
      ) looked
      window newest_first as (partition by kind order by completed_at desc, id desc)
    ), chosen as materialized (
      select id from ranked
      where before < ${MAX_RESULTS} and place <= case kind when 'own' then ${MAX_OWN_RUNS}::int else ${MAX_MAIN_RUNS}::int end
        and (kind <> 'other' or not exists (select from ranked where kind <> 'other'))
    ), per_run as (
      -- Without any duration it stays null, which "least" would pass over.
      select ${unitOfCase(sql, sql`t`)} as file, case when sum(result.ms) > 2147483647 then 2147483647 when sum(result.ms) < 0 then 0 else sum(result.ms) end as ms
      from chosen c, lateral (
        select of_case.number, of_case.ms from case_result b, lateral unnest(b.test_cases, b.durations) as of_case (number, ms)
        where b.project_id = ${projectId} and b.run_id = c.id
        union all
        -- A later attempt often repeats only a part of a file.
        select of_file.number, of_file.ms from attempt a, lateral unnest(a.overhead_cases, a.overheads) as of_file (number, ms)
        where a.project_id = ${projectId} and a.run_id = c.id and a.number = 1) result,
        lateral ${caseOfResult(sql, projectId, sql`result.number`)} t
      where ${unitOfCase(sql, sql`t`)} is not null
      group by c.id, 1
    ), per_file as (
      select file, percentile_cont(0.5) within group (order by ms)::int as ms from per_run group by file
    )
    select (select count(*) from chosen)::int as runs, (select json_agg(file order by file) from per_file) as files,
      (select json_agg(ms order by file) from per_file) as durations
    from mine`;
  if (!row) return undefined;
  const { runs, files, durations } = row;
  return { runs, timings: (files ?? []).map((file, index) => ({ file, ms: durations![index]! })) };
}

export type PlanKey = { projectId: string; executionId: string; taskSlug: string };

/** `given` are the files that the first job named; null if it named none. */
export type StoredPlan = { runs: number; files: PlannedFile[]; given: string[] | null };

export async function selectPlan(
  sql: Sql,
  { projectId, executionId, taskSlug }: PlanKey,
  shards: number,
): Promise<StoredPlan | undefined> {
  const [row] = await sql<
    { runs: number; files: string[]; durations: number[]; places: number[]; given: string[] | null }[]
  >`
    select runs, to_json(given) as given, to_json(files) as files, to_json(durations) as durations, to_json(file_shards) as places from shard_plan
    where project_id = ${projectId} and execution_id = ${executionId} and task_slug = ${taskSlug} and shards = ${shards}`;
  if (!row) return undefined;
  const { runs, files, durations, places, given } = row;
  return { runs, given, files: files.map((file, index) => ({ file, ms: durations[index]!, shard: places[index]! })) };
}

/** Inserts the first plan; later or concurrent requests, also on other servers, find it. */
export const insertPlan = (
  sql: Tx,
  { projectId, executionId, taskSlug }: PlanKey,
  shards: number,
  { runs, files, given }: StoredPlan,
) => sql`
  insert into shard_plan (project_id, execution_id, task_slug, shards, runs, files, durations, file_shards, given)
  select ${projectId}, id, ${taskSlug}, ${shards}, ${runs}, ${toTextArray(files.map(({ file }) => file))}::text[],
    ${toNumberArray(files.map(({ ms }) => ms))}::int[], ${toNumberArray(files.map(({ shard }) => shard))}::smallint[],
    ${given === null ? null : toTextArray(given)}::text[]
  from execution where project_id = ${projectId} and id = ${executionId} for key share
  on conflict do nothing`;

/** The maximum number of files that the jobs of a plan name together. */
const MAX_GIVEN = 100_000;

/** Adds files that a job has named to those of the plan: a command may split several lists. */
export const addPlanFiles = (
  sql: Tx,
  { projectId, executionId, taskSlug }: PlanKey,
  shards: number,
  given: readonly string[],
) => sql`
  update shard_plan set given = array(
    select name from unnest(coalesce(given, '{}') || ${toTextArray(given)}::text[]) with ordinality as n (name, place)
    group by name order by min(place))
  where project_id = ${projectId} and execution_id = ${executionId} and task_slug = ${taskSlug} and shards = ${shards}
    and (given is null or not given @> ${toTextArray(given)}::text[]) and coalesce(cardinality(given), 0) < ${MAX_GIVEN}::int`;

/** Returns the files of the test cases in a run. */
export const selectFilesOfRun = async (sql: Sql, projectId: string, runId: string): Promise<string[]> => {
  const rows = await sql<{ file: string }[]>`
    select distinct ${unitOfCase(sql, sql`c`)} as file from (select test_cases from case_result where project_id = ${projectId} and run_id = ${runId}) b,
      lateral unnest(b.test_cases) as r (number), lateral ${caseOfResult(sql, projectId, sql`r.number`)} c
    where ${unitOfCase(sql, sql`c`)} is not null`;
  return rows.map(({ file }) => file);
};

/** Postpones the timeout of the execution by `ms`, the duration of the longest shard, because reports arrive only after it. */
export const postponeExpiry = (sql: Tx, { projectId, executionId }: PlanKey, ms: number) => sql`
  update execution
  set expires_at = greatest(expires_at, now() + timeout_minutes * interval '1 minute' + ${ms} * interval '1 millisecond')
  where project_id = ${projectId} and id = ${executionId} and expires_at is not null and mode = 'report'`;
