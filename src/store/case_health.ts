/** What complete runs tell of the health of their test cases, counted case by case as the runs complete. */

import type { ChangedResult } from "../rules/merge.ts";
import { type Sql, toNumberArray, toTextArray } from "./connect.ts";

/** One server at a time counts for a project; whoever wants to read counts what is left first. */
export const lockHealth = (sql: Sql, projectId: string) =>
  sql`select pg_advisory_xact_lock(hashtextextended(${projectId}::text, 1))`;

export const selectHasUnremembered = async (sql: Sql, projectId: string): Promise<boolean> =>
  (await sql`select from test_run where project_id = ${projectId} and not remembered limit 1`).length === 1;

/** Projects with runs that are not counted yet. */
export const selectUnremembered = async (sql: Sql): Promise<string[]> => {
  const rows = await sql<{ id: string }[]>`
    select distinct project_id as id from test_run where not remembered limit 100`;
  return rows.map(({ id }) => id);
};

export type UnrememberedRun = {
  id: string;
  taskSlug: string;
  commit: string | null;
  completedAt: string;
  outage: boolean;
  onDefaultBranch: boolean;
};

/** Oldest first, locked; a run that an upload is changing right now comes the next time. */
export const lockUnrememberedRuns = (sql: Sql, projectId: string) => sql<UnrememberedRun[]>`
  select r.id, r.task_slug as "taskSlug", e.commit, r.completed_at as "completedAt", r.outage,
    e.branch is null or e.branch = p.default_branch as "onDefaultBranch"
  from test_run r
  join execution e on e.project_id = r.project_id and e.id = r.execution_id
  join project p on p.id = r.project_id
  where r.project_id = ${projectId} and not r.remembered
  order by r.id limit 20 for update of r skip locked`;

export const markRemembered = (sql: Sql, projectId: string, runId: string) => sql`
  update test_run set remembered = true where project_id = ${projectId} and id = ${runId}`;

/** Test cases that had the other outcome in an earlier run of the same task on the same commit. */
export const selectContradicted = async (sql: Sql, projectId: string, run: UnrememberedRun): Promise<number[]> => {
  if (run.commit === null) return [];
  const rows = await sql<{ number: number }[]>`
    with other as (
      select r.id from execution e
      join test_run r on r.project_id = e.project_id and r.execution_id = e.id and r.task_slug = ${run.taskSlug}
      where e.project_id = ${projectId} and e.commit = ${run.commit} and r.id <> ${run.id} and r.remembered
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

/** Counts the results of a run that has not been counted. */
export async function countRun(
  sql: Sql,
  projectId: string,
  run: Omit<UnrememberedRun, "commit" | "taskSlug">,
  contradicted: readonly number[],
): Promise<void> {
  await sql`
    insert into case_health (project_id, test_case)
    select ${projectId}, number from case_result b, lateral unnest(b.test_cases) as number
    where b.project_id = ${projectId} and b.run_id = ${run.id}
    on conflict (project_id, test_case) do nothing`;
  await count(
    sql,
    projectId,
    run,
    contradicted,
    sql`
    select r.number, null as before, r.letter, r.ms
    from case_result b, lateral unnest(b.test_cases, string_to_array(b.statuses, null), b.durations)
      as r (number, letter, ms)
    where b.project_id = ${projectId} and b.run_id = ${run.id}`,
  );
}

/** Counts what a further attempt has changed in a run that has been counted. */
export async function countChanges(
  sql: Sql,
  projectId: string,
  run: Omit<UnrememberedRun, "commit" | "taskSlug">,
  changes: readonly ChangedResult[],
): Promise<void> {
  const numbers = toNumberArray(changes.map(({ testCase }) => testCase));
  await sql`
    insert into case_health (project_id, test_case) select ${projectId}, number from unnest(${numbers}::int[]) as number
    on conflict (project_id, test_case) do nothing`;
  await count(
    sql,
    projectId,
    run,
    [],
    sql`
    select * from unnest(
      ${numbers}::int[], ${toTextArray(changes.map(({ before }) => before))}::text[],
      ${toTextArray(changes.map(({ letter }) => letter))}::text[],
      ${toNumberArray(changes.map(({ durationMs }) => durationMs))}::int[]) as r (number, before, letter, ms)`,
  );
}

/**
 * `results` has the columns number, before, letter and ms. A result that takes the place of another one in the run that
 * a test case had last replaces it in `recent`; in an older run it only changes the sums.
 */
const count = (
  sql: Sql,
  projectId: string,
  run: Omit<UnrememberedRun, "commit" | "taskSlug">,
  contradicted: readonly number[],
  results: ReturnType<Sql>,
) => sql`
  update case_health h set
    runs = h.runs + n.counted - n.counted_before,
    failures = h.failures + n.failed - n.failed_before,
    recent = n.recent,
    flake_rate = case when n.recent ~ '[A-Z]'
      then (length(n.recent) - length(translate(n.recent, 'PF', '')))::real / length(n.recent) else 0 end,
    flaky_at = case when n.evidence then ${run.completedAt}::timestamptz else h.flaky_at end,
    clean = case
      when n.evidence or n.failed = 1 then 0
      when n.counted > n.counted_before then h.clean + 1
      else h.clean end,
    broken = case
      when not ${run.onDefaultBranch} or n.counted = 0 or not n.is_last then h.broken
      when n.failed = 0 then 0
      when n.failed > n.failed_before then h.broken + 1
      else h.broken end,
    timed = h.timed + n.is_timed,
    total_ms = h.total_ms + n.is_timed * coalesce(n.ms, 0),
    recent_ms = n.recent_ms,
    -- Exact whenever it can have grown, and every ten runs: sorting for every case of every run would cost the most.
    p95_ms = case
      when n.is_timed = 0 then h.p95_ms
      when h.p95_ms is null or n.ms > h.p95_ms or h.timed < 20 or h.timed % 10 = 0
      then (select ms from unnest(n.recent_ms) as ms order by ms desc
        offset cardinality(n.recent_ms) - ceil(0.95 * cardinality(n.recent_ms))::int limit 1)
      else h.p95_ms end,
    last_status = case when n.is_last then n.status else h.last_status end,
    last_run_id = case when n.is_last then ${run.id} else h.last_run_id end,
    last_run_at = case when n.is_last then ${run.completedAt}::timestamptz else h.last_run_at end
  from (
    select c.test_case, r.ms, s.*,
      case
        when s.counted = 0 or not s.is_last then c.recent
        when s.counted_before = 1 then left(c.recent, -1) || s.mark
        else right(c.recent || s.mark, 50) end as recent,
      case when s.is_timed = 1 then (c.recent_ms || r.ms)[greatest(1, cardinality(c.recent_ms) - 18):]
        else c.recent_ms end as recent_ms
    from (${results}) r
    join case_health c on c.project_id = ${projectId} and c.test_case = r.number,
      lateral (
        select
          (upper(r.letter) <> 'S' and not ${run.outage})::int as counted,
          (upper(r.before) is not null and upper(r.before) <> 'S' and not ${run.outage})::int as counted_before,
          (upper(r.letter) = 'F' and not ${run.outage})::int as failed,
          (upper(r.before) is not null and upper(r.before) = 'F' and not ${run.outage})::int as failed_before,
          not ${run.outage} and (r.letter = 'P' or r.number = any(${toNumberArray(contradicted)}::int[])) as evidence,
          r.before is null or c.last_run_id = ${run.id} as is_last,
          (r.ms is not null and r.before is null and upper(r.letter) <> 'S')::int as is_timed,
          case upper(r.letter) when 'P' then 'passed' when 'F' then 'failed' else 'skipped' end as status
      ) e,
      lateral (
        select e.*, case when e.evidence then upper(r.letter) else lower(r.letter) end as mark
      ) s
  ) n
  where h.project_id = ${projectId} and h.test_case = n.test_case`;
