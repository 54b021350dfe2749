/** The failures of test cases that may be their own, and how often each has failed by itself. */

import { type Flakiness, type OwnFailure, RATE_RESULTS } from "../rules/flakiness.ts";
import { toJsonTime, toNumberArray, toTextArray, type Tx } from "../database/connect.ts";
import { executionsOfCommit } from "./commits.ts";
import { blockOfCase, lettersOf } from "./packing.ts";
import { isFromOutsideCode, isOnDefault, isTrustedBuild } from "./predicates.ts";

/** Maximum number of runs of the same commit that a run is compared with. */
const MAX_COMPARED_RUNS = 20;
/** A test that failed in at least this many runs of a commit before it passed was fixed from outside. */
const MIN_FIXED_RUNS = 3;
/** Maximum number of recent failures of a test case that are read. */
const MAX_PAST_FAILURES = 200;
/** Runs whose `disturbed` share exceeds this are no evidence about their test cases. */
const MAX_DISTURBED = 0.5;

/** A build, all its tasks together; `fresh`: the number of test cases that passed on retry in it and are not known as flaky. */
type RetriedBuild = { executionId: string; passed: number; failed: number; fresh: number };

/** Returns the builds of these runs in which at least `least` test cases passed on retry. */
export const selectRetriedBuilds = (sql: Tx, projectId: string, runIds: readonly string[], least: number) => sql<
  RetriedBuild[]
>`
  select r.id as "executionId", r.passed, r.failed, f.fresh
  from (
    select distinct r.execution_id as id from unnest(${toTextArray(runIds)}::uuid[]) as run (id) cross join lateral (
      select execution_id from test_run where project_id = ${projectId} and id = run.id offset 0) r
  ) e cross join lateral (
    select execution_id as id, sum(passed)::int as passed, sum(failed)::int as failed from test_run
    where project_id = ${projectId} and execution_id = e.id and not outage
    group by 1 having sum(flaky) >= ${least}::int offset 0) r
  cross join lateral (
    select count(*)::int as fresh
    from ${lettersOf(sql, projectId, sql`select id from test_run where project_id = ${projectId} and execution_id = r.id and not outage`)} f
    left join case_health h on h.project_id = ${projectId} and h.test_case = f.number
    where f.letter = 'P' and not coalesce(h.flaky, false) offset 0) f
  where f.fresh >= ${least}::int`;

/** Deletes the passes on retry of these builds, because they are no evidence about the test cases. */
export const deleteFlakes = (sql: Tx, projectId: string, executionIds: readonly string[]) => sql`
  delete from flake where project_id = ${projectId} and run_id in (
    select id from test_run where project_id = ${projectId} and execution_id = any(${toTextArray(executionIds)}::uuid[]))`;

/** The failures of a run that a later run of its task passed on the same commit; `flaky`: of those that are known as flaky. */
type Contradicted = { runId: string; passed: number; failed: number; testCases: number[]; flaky: number };

/** Returns contradicted failures that are not marked yet, from the commits of these runs. */
export const selectContradicted = (sql: Tx, projectId: string, runIds: readonly string[]) => sql<Contradicted[]>`
  with mine as materialized (
    select r.id, r.task_slug, e.commit
    from unnest(${toTextArray(runIds)}::uuid[]) as run (id)
    cross join lateral (
      select * from test_run where project_id = ${projectId} and id = run.id offset 0) r
    join execution e on e.project_id = ${projectId} and e.id = r.execution_id
    where e.commit is not null and not r.outage and ${isTrustedBuild(sql, sql`e`)}
  ), same as materialized (
    select m.id as mine, o.* from mine m cross join lateral (
      select r.id, r.completed_at, r.failed
      from (${executionsOfCommit(sql, projectId, sql`m.commit`)}) e cross join lateral (
        select * from test_run
        where project_id = ${projectId} and execution_id = e.id and task_slug = m.task_slug offset 0) r
      where r.health_applied and not r.outage
      order by r.id desc limit ${MAX_COMPARED_RUNS}) o
  ), failed as materialized (
    select distinct s.mine, f.test_case from same s cross join lateral (
      select test_case from failure where project_id = ${projectId} and run_id = s.id offset 0) f
    where s.failed > 0 and exists (select from same other where other.mine = s.mine and other.id <> s.id)
  ), result as (
    select f.mine, f.test_case, s.id, b.letter in ('f', 'F') as has_failed,
      count(*) filter (where b.letter in ('p', 'P')) over (
        partition by f.mine, f.test_case order by s.completed_at desc, s.id desc) as passes
    from failed f join same s on s.mine = f.mine cross join lateral (
      select substr(statuses, array_position(test_cases, f.test_case), 1) as letter from case_result
      where project_id = ${projectId} and run_id = s.id and block = ${blockOfCase(sql, sql`f.test_case`)} offset 0) b
    where b.letter in ('p', 'P', 'f', 'F')
  ), again as (
    select id, test_case, count(*) over (partition by mine, test_case, passes) as in_a_row
    from result where has_failed and passes > 0
  )
  select r.id as "runId", r.passed, r.failed, json_agg(a.test_case) as "testCases", (count(*) filter (where h.flaky))::int as flaky
  from (select distinct id, test_case from again where in_a_row < ${MIN_FIXED_RUNS}::int) a
  cross join lateral (
    select from failure f
    where f.project_id = ${projectId} and f.run_id = a.id and f.test_case = a.test_case and not f.passed_again and not f.of_many
      and f.explained in ('change', 'flaky') and not ${isFromOutsideCode(sql, sql`f`)} offset 0) f
  join test_run r on r.project_id = ${projectId} and r.id = a.id
  left join case_health h on h.project_id = ${projectId} and h.test_case = a.test_case
  group by r.id, r.passed, r.failed`;

export const markContradicted = (sql: Tx, projectId: string, { runId, testCases }: Contradicted) => sql`
  update failure set passed_again = true
  where project_id = ${projectId} and run_id = ${runId} and test_case = any(${toNumberArray(testCases)}::int[])`;

/** Returns the test cases that failed in one of these runs, and those that were flaky before and have results in them. */
export const selectConcerned = async (sql: Tx, projectId: string, runIds: readonly string[]): Promise<number[]> => {
  const runs = sql`unnest(${toTextArray(runIds)}::uuid[]) as run (id)`;
  const rows = await sql<{ number: number }[]>`
    select f.test_case as number from ${runs} cross join lateral (
      select test_case from failure where project_id = ${projectId} and run_id = run.id
      union all select test_case from flake where project_id = ${projectId} and run_id = run.id offset 0) f
    union
    select test_case from case_health
    where project_id = ${projectId} and flake_rate > 0 and last_run_id = any(${toTextArray(runIds)}::uuid[])
    union
    select test_case from case_health h
    where project_id = ${projectId} and flaky and last_run_id = any(${toTextArray(runIds)}::uuid[])`;
  return rows.map(({ number }) => number);
};

/** What decides whether a test case is flaky; `results` are at most 200. */
type FlakinessFacts = {
  testCase: number;
  results: number;
  clean: number;
  flaky: boolean;
  lastRunId: string | null;
  longLivedBranches: string[];
  failures: PlacedFailure[];
};
/** A failure with the fields that its line or branch is derived from. */
type PlacedFailure = Omit<OwnFailure, "place"> & {
  runId: string;
  branch: string | null;
  pullRequest: string | null;
  isOnDefault: boolean;
};

export const selectFlakinessFacts = (sql: Tx, projectId: string, numbers: readonly number[]) => sql<FlakinessFacts[]>`
  select n.number as "testCase", h.results, least(h.clean, h.results) as clean, h.flaky, h.last_run_id as "lastRunId",
    to_json(p.long_lived_branches) as "longLivedBranches", f.failures
  from (select default_branch, long_lived_branches from project where id = ${projectId} offset 0) p
  cross join unnest(${toNumberArray(numbers)}::int[]) as n (number)
  cross join lateral (
    select least(runs, ${RATE_RESULTS}::int) as results, runs, clean, flaky, last_run_id from case_health
    where project_id = ${projectId} and test_case = n.number offset 0) h
  cross join lateral (
    select case when h.runs > ${RATE_RESULTS}::int then (
      select b.run_id from case_result b, lateral array_position(b.test_cases, n.number) as place
      where b.project_id = ${projectId} and b.block = ${blockOfCase(sql, sql`n.number`)}
        and lower(substr(b.statuses, place, 1)) in ('p', 'f')
      order by b.run_id desc offset ${RATE_RESULTS - 1}::int limit 1) end as first_id offset 0) w
  cross join lateral (
    select coalesce(json_agg(json_build_object(
      'sign', f.sign, 'share', f.share, 'isExplainedAsFlaky', f.explained = 'flaky',
      'known', json_build_object(
        'failed', coalesce((f.evidence->>'failed')::real, 0), 'results', coalesce((f.evidence->>'results')::int, 0)),
      'runId', f.run_id, 'branch', r.branch, 'pullRequest', r.pull_request, 'isOnDefault', r.is_on_default, 'at', ${toJsonTime(sql, sql`r.completed_at`)}) order by r.completed_at, f.run_id), '[]') as failures
    from (
      select run_id, 'retry' as sign, 1 as share, 'flaky' as explained, null::json as evidence from flake
      where project_id = ${projectId} and test_case = n.number and run_id >= coalesce(w.first_id, ${FIRST_ID}::uuid)
      union all
      select run_id, case when passed_again then 'same_commit' else 'unexplained' end, case when passed_again then 1 else flaky end,
        case when passed_again then 'flaky' else explained end, evidence
      from failure f
      where project_id = ${projectId} and test_case = n.number and run_id >= coalesce(w.first_id, ${FIRST_ID}::uuid)
        and explained in ('change', 'flaky') and not of_many and not ${isFromOutsideCode(sql, sql`f`)}
        -- What only changes are known to have failed with may be a change's.
        and (passed_again or evidence->>'onlyIn' is null)
      order by run_id desc limit ${MAX_PAST_FAILURES}
    ) f cross join lateral (
      select r.completed_at, e.branch, e.pull_request, ${isOnDefault(sql, sql`e`, sql`p.default_branch`)} as is_on_default
      from test_run r
      join execution e on e.project_id = ${projectId} and e.id = r.execution_id
      where r.project_id = ${projectId} and r.id = f.run_id and r.health_applied and not r.outage
        and not (f.sign = 'retry' and r.was_outage) and r.disturbed <= ${MAX_DISTURBED}::real
        and ${isTrustedBuild(sql, sql`r`)} offset 0) r
  ) f`;

const FIRST_ID = "00000000-0000-0000-0000-000000000000";

type TestFlakiness = Pick<FlakinessFacts, "testCase" | "results"> & Flakiness & { signs: string };

export const updateFlakiness = (sql: Tx, projectId: string, rows: readonly TestFlakiness[]) => sql`
  update case_health h set flaky = f.flaky, flake_failures = f.failures, flaky_at = f.last_at, recovers_after = f.recovers_after,
    flaky_signs = f.signs, flake_rate = f.failures::real / greatest(f.results, f.failures, 1),
    flaky_since = case when not f.flaky then null when h.flaky then h.flaky_since else f.first_at end
  from unnest(
    ${toNumberArray(rows.map(({ testCase }) => testCase))}::int[],
    ${toTextArray(rows.map(({ flaky }) => String(flaky)))}::boolean[],
    ${toNumberArray(rows.map(({ own }) => own.length))}::int[],
    ${toNumberArray(rows.map(({ results }) => results))}::int[],
    ${toTextArray(rows.map(({ own }) => own[0]?.at ?? null))}::timestamptz[],
    ${toTextArray(rows.map(({ own }) => own.at(-1)?.at ?? null))}::timestamptz[],
    ${toNumberArray(rows.map(({ recoversAfter }) => recoversAfter))}::int[],
    ${toTextArray(rows.map(({ signs }) => signs))}::text[]
  ) as f (number, flaky, failures, results, first_at, last_at, recovers_after, signs)
  where h.project_id = ${projectId} and h.test_case = f.number`;
