/** The differences between an execution and its baseline, case by case. */

import type { Blamed } from "../rules/blame.ts";
import type { Blame } from "../schema/failures.ts";
import { expectedRuns, withReruns } from "./baselines.ts";
import type { Fragment, Sql } from "../database/connect.ts";
import { LISTED } from "./failures.ts";
import { lettersOf } from "./packing.ts";
import { isFromOutsideCode, isTrustedBuild } from "./predicates.ts";

/** The newest execution on the branch that was over before this one began. */
export const selectBaseline = async (
  sql: Sql,
  projectId: string,
  executionId: string,
  branch: string,
): Promise<string | undefined> => {
  const [row] = await sql<{ id: string }[]>`
    select b.id from execution b
    join execution mine on mine.project_id = b.project_id and mine.id = ${executionId}
    where b.project_id = ${projectId} and b.branch = ${branch} and b.status in ('passed', 'failed')
      and ${isTrustedBuild(sql, sql`b`)}
      and b.id < ${executionId} and b.completed_at <= mine.created_at
    order by b.id desc limit 1`;
  return row?.id;
};

/** The latest result of each test in runs and their reruns. One that was skipped or failed in an incident replaces none. */
const latestLettersOf = (sql: Sql, projectId: string, runs: Fragment) => sql`
  select distinct on (r.number) r.number, r.letter in ('f', 'F') and not r.is_outside as failed, r.letter in ('s', 'S') as skipped, r.is_flaky from (
    select r.number, r.letter, run.execution_id, coalesce(f.is_outside, false) as is_outside, coalesce(f.is_flaky, false) as is_flaky
    from (${withReruns(sql, projectId, runs)}) run
    cross join lateral (
      select * from case_result where project_id = ${projectId} and run_id = run.id offset 0) b
    cross join lateral unnest(b.test_cases, string_to_array(b.statuses, null)) as r (number, letter)
    left join lateral (
      select ${isFromOutsideCode(sql, sql`f`)} as is_outside, f.explained = 'flaky' or f.passed_again as is_flaky from failure f
      where r.letter in ('f', 'F') and f.project_id = ${projectId} and f.run_id = run.id and f.test_case = r.number offset 0
    ) f on true) r
  order by r.number, r.is_outside or r.letter in ('s', 'S'), r.execution_id desc`;

const outcomesOf = (sql: Sql, projectId: string, runs: Fragment) => sql`
  select number, letter in ('f', 'F') as failed, letter in ('p', 'P') as passed, run_id
  from ${lettersOf(sql, projectId, runs)} r`;

/** `skipped`: newly; it had a result in the other execution. */
type Kind = Blame | "fixed" | "added" | "missing" | "skipped";

export type ComparedRow = Omit<Blamed, "blame"> & { kind: Kind; total: number };

/** Selects the runs of the last build of the same pull request before an execution that has ended. */
const formerRuns = (sql: Sql, projectId: string, executionId: string) => sql`
  select r.id from execution mine cross join lateral (
    select * from execution e
    where e.project_id = ${projectId} and e.pull_request = mine.pull_request and e.branch = mine.branch and e.untrusted = mine.untrusted
      and e.build_id is null and e.status in ('passed', 'failed', 'timed_out') and e.id < coalesce(mine.build_id, mine.id)
    order by e.id desc limit 1) e
  join test_run r on r.project_id = ${projectId} and r.execution_id = e.id
  where mine.project_id = ${projectId} and mine.id = ${executionId}`;

/**
 * Compares an execution with another one, or with the fixed baseline: test by test, and for fixed tests also with the last build of the
 * same pull request.
 */
export async function selectComparison(
  sql: Sql,
  projectId: string,
  executionId: string,
  baselineId: string | undefined,
): Promise<ComparedRow[]> {
  const runsOf = (id: string) => sql`
    select id from test_run where project_id = ${projectId} and execution_id = ${id}`;
  const isFixed = baselineId === undefined;
  const base = isFixed ? expectedRuns(sql, projectId, executionId) : runsOf(baselineId);
  const former = isFixed ? formerRuns(sql, projectId, executionId) : sql`select null::uuid as id where false`;
  const rows = await sql<ComparedRow[]>`
    with former as materialized (
      select number from (${latestLettersOf(sql, projectId, former)}) r where failed and not is_flaky
    ), kinds as (
      select coalesce(mine.number, base.number) as number, kind, f.flake_rate, f.flaky_at
      from (${outcomesOf(sql, projectId, runsOf(executionId))}) mine
      full join (${latestLettersOf(sql, projectId, base)}) base on base.number = mine.number
      -- Looked up for what failed: a join reads all failures that there have ever been.
      left join lateral (
        select blame, flake_rate, flaky_at from failure
        where mine.failed and project_id = ${projectId} and run_id = mine.run_id and test_case = mine.number offset 0
      ) f on true,
        lateral (values
          -- What was judged when it came stays, whatever has become of the fixed baseline: only of another one it is that
          -- one's to say whether it failed.
          (case
            when not mine.failed or mine.failed is null then null
            when ${isFixed} and f.blame is not null then f.blame
            when f.blame in ('unclear', 'flaky', 'quarantined', 'incident') then f.blame
            when f.blame is null and exists (
              select from test_run r where r.project_id = ${projectId} and r.id = mine.run_id and r.outage) then null
            when base.failed then 'still'
            when f.blame = 'main' then 'main'
            else 'new' end),
          (case when mine.passed and (base.failed and not base.is_flaky or mine.number in (select number from former)) then 'fixed' end),
          (case when base.number is null and f.blame is distinct from 'still' then 'added' end),
          (case when mine.number is null then 'missing' end),
          (case when not mine.failed and not mine.passed and not base.skipped then 'skipped' end)
        ) as kinds (kind)
      where kind is not null
    ), listed as (
      select *, row_number() over (partition by kind order by number) as place,
        (count(*) over (partition by kind))::int as total
      from kinds
    )
    select l.kind, l.total, c.id as "testCaseId", c.task_slug as "taskSlug", c.suite, c.name, c.file,
      round(l.flake_rate::numeric, 4)::float8 as "flakeRate", l.flaky_at as "lastFlakyAt"
    from listed l cross join lateral (
      select * from test_case where project_id = ${projectId} and number = l.number offset 0) c
    where l.place <= ${LISTED} order by l.kind, l.number`;
  return [...rows];
}
