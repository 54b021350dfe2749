/** What complete runs tell of the health of their test cases, counted case by case as the runs complete. */

import type { ChangedResult } from "../rules/merge.ts";
import type { TurnedCase } from "../schema/events.ts";
import { isCommit } from "./commits.ts";
import { type Fragment, type Sql, type Tx, toNumberArray, toTextArray } from "./connect.ts";
import { isTakeable } from "./put_offs.ts";
import { takeTurn } from "./locks.ts";
import { FIRST_EVIDENCE, HEALTH_COLUMNS, healthAfter } from "./health.ts";

/** One server at a time counts for a project; whoever wants to read counts what is left first. */
export const lockHealth = (sql: Tx, projectId: string) => takeTurn(sql, ["counting", projectId]);

export const selectHasUnremembered = async (sql: Sql, projectId: string): Promise<boolean> =>
  (
    await sql`
      select from test_run r where project_id = ${projectId} and not remembered
        and ${isTakeable(sql, "counting", sql`r.id::text`)} limit 1`
  ).length === 1;

/** Projects with runs that are not counted yet. */
export const selectUnremembered = async (sql: Sql): Promise<string[]> => {
  const rows = await sql<{ id: string }[]>`
    select distinct project_id as id from test_run r where not remembered
      and ${isTakeable(sql, "counting", sql`r.id::text`)}
      and ${isTakeable(sql, "counting", sql`r.project_id::text`)} limit 100`;
  return rows.map(({ id }) => id);
};

export type UnrememberedRun = {
  id: string;
  taskSlug: string;
  commit: string | null;
  completedAt: string;
  outage: boolean;
  /** A retry that has passed says that the outage is over, and nothing of the cases. */
  wasOutage: boolean;
  onDefaultBranch: boolean;
};

export type CountedRun = Omit<UnrememberedRun, "commit" | "taskSlug">;

/** Some runs that are not counted yet, those that were completed first first, with the number of their results. */
export const selectUnrememberedRuns = (sql: Sql, projectId: string) => sql<{ id: string; results: number }[]>`
  select id, passed + failed + skipped as results from test_run r where project_id = ${projectId} and not remembered
    and ${isTakeable(sql, "counting", sql`r.id::text`)}
  order by completed_at, id limit 20`;

/** Of these, locked, in that order; a run that an upload is changing right now comes the next time. */
export const lockUnrememberedRuns = (sql: Tx, projectId: string, ids: readonly string[]) => sql<UnrememberedRun[]>`
  select r.id, r.task_slug as "taskSlug", e.commit, r.completed_at as "completedAt", r.outage, r.was_outage as "wasOutage",
    e.branch is null or e.branch = p.default_branch as "onDefaultBranch"
  from test_run r
  join execution e on e.project_id = r.project_id and e.id = r.execution_id
  join project p on p.id = r.project_id
  where r.project_id = ${projectId} and r.id = any(${toTextArray(ids)}::uuid[]) and not r.remembered
  order by r.completed_at, r.id for no key update of r skip locked`;

export const markRemembered = (sql: Tx, projectId: string, runId: string) => sql`
  update test_run set remembered = true where project_id = ${projectId} and id = ${runId}`;

/** Test cases that had the other outcome in an earlier run of the same task on the same commit. */
export const selectContradicted = async (sql: Sql, projectId: string, run: UnrememberedRun): Promise<number[]> => {
  if (run.commit === null) return [];
  const rows = await sql<{ number: number }[]>`
    with other as (
      select r.id from execution e
      join test_run r on r.project_id = e.project_id and r.execution_id = e.id and r.task_slug = ${run.taskSlug}
      where e.project_id = ${projectId} and ${isCommit(sql, run.commit)} and r.id <> ${run.id} and r.remembered
        and not r.outage
      order by r.id desc limit 20)
    select distinct mine.number
    from other
    join case_result theirs on theirs.project_id = ${projectId} and theirs.run_id = other.id
    join case_result ours on ours.project_id = ${projectId} and ours.run_id = ${run.id} and ours.block = theirs.block
      and (ours.statuses ~ '[fF]' or theirs.statuses ~ '[fF]'),
      lateral unnest(ours.test_cases, string_to_array(ours.statuses, null)) as mine (number, letter),
      lateral unnest(theirs.test_cases, string_to_array(theirs.statuses, null)) as its (number, letter)
    where its.number = mine.number and upper(its.letter) <> upper(mine.letter) and upper(its.letter) <> 'S'
      and upper(mine.letter) <> 'S'`;
  return rows.map(({ number }) => number);
};

/** Runs side by side are completed in any order: a result that is older than the last one by more than this is history. */
const SIDE_BY_SIDE_MINUTES = 10;

/** Test cases of a run that have had a result in a run that was completed well after it: it has come late. */
export const selectOvertaken = async (sql: Sql, projectId: string, run: UnrememberedRun): Promise<number[]> => {
  // What a clock that is ahead has dated overtakes nothing that is completed now.
  const overtakes = (time: Fragment) => sql`
    least(${time}, now()) > ${run.completedAt}::timestamptz + interval '1 minute' * ${SIDE_BY_SIDE_MINUTES}::int`;
  // Nearly every run is the newest of all, which one look at an index tells.
  const rows = await sql<{ number: number }[]>`
    select h.test_case as number
    from case_result b, lateral unnest(b.test_cases) as r (number), case_health h
    where b.project_id = ${projectId} and b.run_id = ${run.id} and h.project_id = ${projectId} and h.test_case = r.number
      and ${overtakes(sql`h.last_run_at`)}
      and ${overtakes(sql`(select max(last_run_at) from case_health where project_id = ${projectId})`)}`;
  return rows.map(({ number }) => number);
};

/**
 * Counts the results of a run that has not been counted; answers the cases that have become flaky or recovered. For
 * `overtaken` cases it only changes the sums: what they are now was decided by newer results.
 */
export async function countRun(
  sql: Tx,
  projectId: string,
  run: CountedRun,
  contradicted: readonly number[],
  overtaken: readonly number[],
): Promise<TurnedCase[]> {
  const resultsWhere = (condition: Fragment) => sql`
    select r.number, null as before, r.letter, r.ms
    from case_result b, lateral unnest(b.test_cases, string_to_array(b.statuses, null), b.durations)
      as r (number, letter, ms)
    where b.project_id = ${projectId} and b.run_id = ${run.id} ${condition}`;
  const late = sql`r.number = any(${toNumberArray(overtaken)}::int[])`;
  if (overtaken.length > 0)
    await countLate(sql, projectId, run, judge(sql, run, contradicted, resultsWhere(sql`and ${late}`)));
  const results = resultsWhere(overtaken.length > 0 ? sql`and not ${late}` : sql``);
  // Rows that are written as they are to be cost half of those that are made empty first.
  const insert = sql`
    insert into case_health (project_id, test_case, runs, failures, recent, flake_rate, flaky_at, clean, broken, timed,
      total_ms, recent_ms, p95_ms, last_status, last_run_id, last_run_at, last_passed_at, last_failed_at, flaky,
      flaky_since, flaky_signs, main_runs, flakiness)
    select ${projectId}, number, counted, failed, case when counted = 1 then mark else '' end, evidence::int,
      case when evidence then ${run.completedAt}::timestamptz end, (counted = 1 and failed = 0 and not evidence)::int,
      case when ${run.onDefaultBranch} then failed else 0 end, is_timed::int, case when is_timed then ms else 0 end,
      case when is_timed then array[ms] else '{}' end, case when is_timed then ms end, status, ${run.id},
      ${run.completedAt}::timestamptz, case when has_passed then ${run.completedAt}::timestamptz end,
      case when has_failed then ${run.completedAt}::timestamptz end, evidence,
      case when evidence then ${run.completedAt}::timestamptz end,
      case when not evidence then '' when letter = 'P' then 'r' else 'c' end,
      case when ${run.onDefaultBranch} then counted else 0 end, case when evidence then ${FIRST_EVIDENCE}::real else 0 end
    from r
    where not exists (select from case_health h where h.project_id = ${projectId} and h.test_case = r.number)
    returning test_case, flaky`;
  return await count(sql, projectId, run, contradicted, results, insert);
}

/** Counts what a further attempt has changed in a run that has been counted; answers as countRun does. */
export async function countChanges(
  sql: Tx,
  projectId: string,
  run: CountedRun,
  changes: readonly ChangedResult[],
): Promise<TurnedCase[]> {
  const numbers = toNumberArray(changes.map(({ testCase }) => testCase));
  await sql`
    insert into case_health (project_id, test_case) select ${projectId}, number from unnest(${numbers}::int[]) as number
    on conflict (project_id, test_case) do nothing`;
  const results = sql`
    select * from unnest(
      ${numbers}::int[], ${toTextArray(changes.map(({ before }) => before))}::text[],
      ${toTextArray(changes.map(({ letter }) => letter))}::text[],
      ${toNumberArray(changes.map(({ durationMs }) => durationMs))}::int[]) as r (number, before, letter, ms)`;
  return await count(sql, projectId, run, [], results, sql`select 0 as test_case, false as flaky where false`);
}

/** Adds the results of a run to the sums of cases that have had newer ones; the statement `judged` tells the results. */
const countLate = (sql: Tx, projectId: string, run: CountedRun, judged: Fragment) => sql`
  update case_health h set
    runs = h.runs + r.counted,
    failures = h.failures + r.failed,
    ${lastOutcomes(sql, run)},
    flaky_at = case when r.evidence then greatest(h.flaky_at, ${run.completedAt}::timestamptz) else h.flaky_at end,
    timed = h.timed + r.is_timed::int,
    total_ms = h.total_ms + case when r.is_timed then r.ms else 0 end,
    recent_ms = case when r.is_timed and h.timed < 20 then r.ms || h.recent_ms else h.recent_ms end,
    p95_ms = case when r.is_timed and h.timed < 19 then greatest(h.p95_ms, r.ms) else h.p95_ms end
  from (${judged}) r
  where h.project_id = ${projectId} and h.test_case = r.number`;

/** Whichever order runs come in, the newest of each outcome stays. */
const lastOutcomes = (sql: Sql, { completedAt }: CountedRun) => sql`
  last_passed_at = case when r.has_passed then greatest(h.last_passed_at, ${completedAt}::timestamptz)
    else h.last_passed_at end,
  last_failed_at = case when r.has_failed then greatest(h.last_failed_at, ${completedAt}::timestamptz)
    else h.last_failed_at end`;

/** What a result, in the columns number, before, letter and ms, counts for by itself. */
const judge = (sql: Sql, { outage, wasOutage }: CountedRun, contradicted: readonly number[], results: Fragment) => sql`
  select number, before, letter, ms, is_counted::int as counted, was_counted::int as counted_before,
    (is_counted and letter in ('f', 'F'))::int as failed, (was_counted and before in ('f', 'F'))::int as failed_before,
    evidence, is_counted and before is null and ms is not null as is_timed,
    letter in ('p', 'P') as has_passed, letter not in ('p', 's') as has_failed,
    case when evidence then upper(letter) when letter in ('p', 'P') then 'p' else 'f' end as mark,
    case when letter in ('p', 'P') then 'passed' when letter in ('f', 'F') then 'failed' else 'skipped' end as status
  from (
    select *, letter in ('p', 'f', 'P', 'F') and ${!outage} as is_counted,
      before is not null and before in ('p', 'f', 'P', 'F') and ${!outage} as was_counted,
      ${!outage} and (letter = 'P' and ${!wasOutage} or number = any(${toNumberArray(contradicted)}::int[])) as evidence
    from (${results}) results
  ) judged`;

/**
 * A result that takes the place of another one in the run that a test case had last replaces it in `recent`; in an older
 * run it only changes the sums. What `insert` has inserted the update does not see.
 */
async function count(
  sql: Tx,
  projectId: string,
  run: CountedRun,
  contradicted: readonly number[],
  results: Fragment,
  insert: Fragment,
): Promise<TurnedCase[]> {
  const turn = Bun.randomUUIDv7();
  const isNewest = sql`((r.before is null or h.last_run_id = ${run.id})
    and coalesce(h.last_run_at <= ${run.completedAt}::timestamptz or h.last_run_at > now(), true))`;
  const counting = { onMain: run.onDefaultBranch, isNewest, at: run.completedAt, turn };
  const turned = await sql<TurnedCase[]>`
  with r as materialized (${judge(sql, run, contradicted, results)}), fresh as (${insert}), counted as (
  update case_health h set
    runs = h.runs + r.counted - r.counted_before,
    failures = h.failures + r.failed - r.failed_before,
    (${sql.unsafe(HEALTH_COLUMNS.join(", "))}) = (${healthAfter(sql, counting)}),
    timed = h.timed + r.is_timed::int,
    total_ms = case when r.is_timed then h.total_ms + r.ms else h.total_ms end,
    recent_ms = case
      when not r.is_timed then h.recent_ms
      when h.timed < 20 then h.recent_ms || r.ms
      else h.recent_ms[2:] || r.ms end,
    ${lastOutcomes(sql, run)},
    last_status = case when ${isNewest} then r.status else h.last_status end,
    last_run_at = case when ${isNewest} then ${run.completedAt}::timestamptz else h.last_run_at end,
    last_run_id = case when r.before is null then ${run.id} else h.last_run_id end,
    -- Of fewer than 20 it is the greatest. Then it is exact whenever it can have grown, and every ten results: sorting
    -- for every case of every run would cost more than the rest.
    p95_ms = case
      when not r.is_timed then h.p95_ms
      when h.timed < 19 then greatest(h.p95_ms, r.ms)
      when r.ms > h.p95_ms or h.timed % 10 = 9 then (
        select ms from unnest(case when h.timed < 20 then h.recent_ms else h.recent_ms[2:] end || r.ms) as ms
        order by ms desc offset 1 limit 1)
      else h.p95_ms end
  from r
  where h.project_id = ${projectId} and h.test_case = r.number
  returning h.test_case, h.flaky, h.turn)
  select test_case as "testCase", flaky from counted where turn = ${turn}
  union all select test_case, flaky from fresh where flaky`;
  return [...turned];
}
