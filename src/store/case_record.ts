/** The record of one test case: its state, where it began to fail, and its last message. */

import { blockOf } from "../rules/merge.ts";
import { numberOfTestCase } from "../rules/test_case_id.ts";
import type { Sql } from "../database/connect.ts";
import { defaultBranchOf } from "./default_branch.ts";
import { isBroken, isFlaky } from "./health.ts";
import { ownersOf } from "./owners.ts";
import { indexedTask } from "./task_runs.ts";
import { isOnDefault, isTrustedBuild } from "./predicates.ts";

export type CaseRecord = {
  /** Passed in a row since the last failure, also before a retry. */
  clean: number;
  /** Passes in a row after which a flaky case has recovered. */
  recoversAfter: number;
  /** Failed in a row on the default branch. */
  failing: number;
};

/** Undefined: no complete run had it. */
export const selectCaseRecord = async (sql: Sql, projectId: string, id: string): Promise<CaseRecord | undefined> => {
  const [row] = await sql<CaseRecord[]>`
    select clean, recovers_after as "recoversAfter", failing from case_health
    where project_id = ${projectId} and test_case = ${numberOfTestCase(id)}`;
  return row;
};

type CaseBuild = {
  executionId: string;
  key: string | null;
  number: number;
  branch: string | null;
  commit: string | null;
  createdAt: string;
  completedAt: string | null;
};

/**
 * The first build of the current streak of failures, and the last that passed before it. Without `good` no pass is stored, or none among
 * the results read: then others may have failed before `bad`, unless it `isFirst`.
 */
export type FirstBad = { bad: CaseBuild; good: CaseBuild | undefined; isFirst: boolean };

/** Maximum number of results of a test case that are read. */
const MAX_RESULTS_READ = 1_000;

/** On the default branch, outages left out; undefined where the case does not fail there now. */
export async function selectFirstBad(sql: Sql, projectId: string, id: string): Promise<FirstBad | undefined> {
  const number = numberOfTestCase(id);
  const rows = await sql<(CaseBuild & { isGood: boolean; looked: number })[]>`
    with looked as materialized (
      select run_id, statuses, test_cases from case_result
      where project_id = ${projectId} and block = ${blockOf(number)} order by run_id desc limit ${MAX_RESULTS_READ}
    ), main as materialized (
      select h.run_id, h.letter in ('p', 'P') as passed, e.*
      from (
        select b.run_id, substr(b.statuses, array_position(b.test_cases, ${number}::int), 1) as letter
        from looked b
      ) h, lateral (
        -- Looked up for each of them: a join would read all runs where the planner knows little of the tables.
        select r.execution_id, e.key, e.number, e.branch, e.commit, e.created_at, r.completed_at from test_run r
        join execution e on e.project_id = ${projectId} and e.id = r.execution_id
        where r.project_id = ${projectId} and r.id = h.run_id and r.completed_at is not null and not r.outage
          and ${isOnDefault(sql, sql`e`, defaultBranchOf(sql, projectId))} offset 0
      ) e
      where h.letter in ('p', 'P', 'f', 'F')
    ), good as (select * from main where passed order by run_id desc limit 1),
    bad as (
      select * from main where not passed
        and run_id > coalesce((select run_id from good), '00000000-0000-0000-0000-000000000000')
      order by run_id limit 1)
    select x.passed as "isGood", x.execution_id as "executionId", x.key, x.number, x.branch, x.commit, x.created_at as "createdAt",
      x.completed_at as "completedAt", (select count(*)::int from looked) as looked
    from (select * from good union all select * from bad) x`;
  const bad = rows.find(({ isGood }) => !isGood);
  const good = rows.find(({ isGood }) => isGood);
  return bad && { bad, good, isFirst: good !== undefined || bad.looked < MAX_RESULTS_READ };
}

/** A run of a task that was completed at this moment, the newest of several; ISO 8601. */
export const selectRunCompletedAt = async (
  sql: Sql,
  projectId: string,
  taskSlug: string,
  completedAt: string,
): Promise<string | undefined> => {
  const [run] = await sql<{ id: string }[]>`
    select id from test_run
    where project_id = ${projectId} and ${indexedTask(sql)} = ${taskSlug} and completed_at = ${completedAt}
      and ${isTrustedBuild(sql, sql`test_run`)}
    order by id desc limit 1`;
  return run?.id;
};

export type CaseMessage = { message: string | null; stack: string | null };

/** Returns message and stack of a result, each at most `limit` characters, from its last attempt that has any. */
export const selectCaseMessage = async (
  sql: Sql,
  projectId: string,
  id: string,
  runId: string,
  limit: number,
): Promise<CaseMessage | undefined> => {
  const [row] = await sql<CaseMessage[]>`
    select left(message, ${limit}) as message, left(stack, ${limit}) as stack from case_detail
    where project_id = ${projectId} and run_id = ${runId} and test_case = ${numberOfTestCase(id)}
      and (message is not null or stack is not null)
    order by attempt desc limit 1`;
  return row;
};

export type OwnerTally = { owner: string | null; flaky: number; broken: number };

/** Counts flaky and broken test cases per owner, most first. A case with several owners counts for each of them. */
export const selectOwnerTally = (sql: Sql, projectId: string, limit: number) => sql<OwnerTally[]>`
  select o.owner, (count(*) filter (where not h.broken))::int as flaky, (count(*) filter (where h.broken))::int as broken
  from (
    select test_case, false as broken from case_health h
    where h.project_id = ${projectId} and ${isFlaky(sql)} and not ${isBroken(sql)}
    union all select test_case, true from case_health h where h.project_id = ${projectId} and ${isBroken(sql)}
  ) h left join lateral (
    select * from test_case where project_id = ${projectId} and number = h.test_case offset 0
  ) c on true
  left join lateral unnest(${ownersOf(sql, sql`c`)}) as o (owner) on true
  group by o.owner order by count(*) desc, o.owner limit ${limit}`;
