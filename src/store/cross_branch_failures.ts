/** Failures of the same test cases on other branches: see rules/cross_branch_flakes.ts. */

import { BROKEN_IN_A_ROW, type CrossBranchFlake, type BranchFailure } from "../rules/cross_branch_flakes.ts";
import { isUsable } from "./baselines.ts";
import { type Sql, toNumberArray, toTextArray, type Tx } from "../database/connect.ts";
import { isOfIncident, type JudgedRun } from "./failures.ts";
import { firstIdAt } from "../database/time_bounds.ts";
import { lastResults } from "./packing.ts";
import { isOfOtherLine, isOnDefault } from "./predicates.ts";

/** So many of a case's last results tell whether it fails here and there. */
const RECORD = 200;
/** So many of its last failures on other branches are told. */
const FAILURES_TOLD = 8;

/** These failures of a run, and others of the same cases on other branches and other commits, newest first. */
export const selectCrossBranchFailures = (
  sql: Sql,
  projectId: string,
  { id, executionId, completedAt }: JudgedRun,
  numbers: readonly number[],
) => {
  const until = sql`b.run_id < ${firstIdAt(completedAt === null ? Date.now() + 1 : Date.parse(completedAt) + 1)}`;
  return sql<BranchFailure[]>`
  select n.number as "testCase", x.*, c.suite, c.name, c.file
  from unnest(${toNumberArray(numbers)}::int[]) as n (number)
  join test_case c on c.project_id = ${projectId} and c.number = n.number
  join execution mine on mine.project_id = ${projectId} and mine.id = ${executionId},
  lateral (
    with result as (
      select h.*, e.branch, e."isLongLived", e."isDefault", e.completed_at, h.run_id = ${id} as mine,
        h.letter in ('f', 'F') as failed
      from (
        ${lastResults(sql, projectId, sql`n.number`, until, RECORD)}
      ) h, lateral (
        -- Looked up for each of them: a join would read all runs where the planner knows little of the tables.
        select coalesce(r.completed_at, now()) as completed_at, e.branch, e.commit,
          e.pull_request is null and is_long_lived(e.branch, p.long_lived_branches) as "isLongLived",
          ${isOnDefault(sql, sql`e`, sql`p.default_branch`)} as "isDefault",
          (e.branch is distinct from mine.branch or mine.queue_ref is not null)
            and ${isOfOtherLine(sql, sql`e`, sql`mine`)} as "isOther"
        from test_run r
        join project p on p.id = ${projectId}
        join execution e on e.project_id = ${projectId} and e.id = r.execution_id
        where r.project_id = ${projectId} and r.id = h.run_id and (r.id = ${id} or ${isUsable(sql)}) offset 0
      ) e
      where upper(h.letter) <> 'S' and (h.run_id = ${id}
        or e."isOther" and not coalesce(is_same_commit(e.commit, mine.commit), false)
          and not (h.letter in ('f', 'F') and ${isOfIncident(sql, projectId, sql`h.run_id`, sql`n.number`)}))
    ), passed as (
      select *, count(*) filter (where not failed) over (partition by branch, mine order by run_id desc) as passes from result
    ), streak as (
      select *, count(*) filter (where failed) over (partition by branch, mine, passes)::int as streak from passed
    ), rated as (
      -- What a branch has broken fails each time, and is no rate of the case.
      select *, avg(failed::int) filter (where not mine and not (failed and streak >= ${BROKEN_IN_A_ROW})) over ()::real as rate
      from streak
    )
    select o.mine as "isMine", o.branch, o."isLongLived", o."isDefault", o.streak, o.passes = 0 as "isLast", o.completed_at as at, o.rate,
      d.kind, left(d.message, 5000) as message, left(d.stack, 5000) as stack
    from rated o
    left join case_detail d on d.project_id = ${projectId} and d.run_id = o.run_id and d.test_case = n.number
      and d.attempt = o.attempt
    where o.failed
    order by o.mine desc, o.run_id desc limit ${FAILURES_TOLD + 1}
  ) x`;
};

/** Failures that other branches explain after all. */
export const updateCrossBranchFlakes = (
  sql: Tx,
  projectId: string,
  runId: string,
  strays: readonly CrossBranchFlake[],
) => sql`
  update failure f set blame = s.blame, flake_rate = case s.blame when 'flaky' then s.rate end,
    flaky_at = case s.blame when 'flaky' then s.at::timestamptz end, in_a_row = null
  from unnest(
    ${toNumberArray(strays.map(({ testCase }) => testCase))}::int[], ${toTextArray(strays.map(({ blame }) => blame))}::text[],
    ${toNumberArray(strays.map(({ rate }) => rate))}::real[], ${toTextArray(strays.map(({ at }) => at))}::text[]
  ) as s (number, blame, rate, at)
  where f.project_id = ${projectId} and f.run_id = ${runId} and f.test_case = s.number`;
