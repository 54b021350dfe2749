/** Packed results in statements. Only `rules/merge.ts` knows how many go into a row. */

import { BLOCK_SIZE } from "../rules/merge.ts";
import type { Given } from "../database/compose.ts";
import type { Fragment, Sql } from "../database/connect.ts";

/** The block of a test case; `number` is an expression. */
export const blockOfCase = (sql: Sql, number: Fragment): Fragment => sql`${number} / ${BLOCK_SIZE}::int`;

/**
 * The rows of results of `runs`, a statement that selects ids as `id`, with one look-up per run. For a join, the planner would read the
 * whole table if its statistics are older than a large import.
 */
export const resultsOf = (sql: Sql, projectId: Given, runs: Fragment): Fragment => sql`(
  select b.* from (${runs}) run, lateral (
    select * from case_result where project_id = ${projectId} and run_id = run.id offset 0) b)`;

/**
 * The test case of a result, for a lateral join; `number` is an expression. Like in `resultsOf`, there is one look-up per result: while the
 * statistics do not know the project, a join would read all results for each test case.
 */
export const caseOfResult = (sql: Sql, projectId: Given, number: Fragment): Fragment => sql`(
  select * from test_case where project_id = ${projectId} and number = ${number} offset 0)`;

/** The results of `runs`, a statement that selects ids as `id`: run_id, number, letter. */
export const lettersOf = (sql: Sql, projectId: Given, runs: Fragment): Fragment => sql`(
  select b.run_id, r.number, r.letter from ${resultsOf(sql, projectId, runs)} b,
    lateral unnest(b.test_cases, string_to_array(b.statuses, null)) as r (number, letter))`;

/** The failed results of `runs`, a statement that selects ids as `id`: run_id, number, attempt. */
export const failedResultsOf = (sql: Sql, projectId: Given, runs: Fragment): Fragment => sql`(
  select b.run_id, f.number, coalesce(f.attempt, 1)::int as attempt from ${resultsOf(sql, projectId, runs)} b,
    lateral unnest(b.test_cases, string_to_array(b.statuses, null), b.attempts) as f (number, letter, attempt)
  where b.statuses ~ '[fF]' and f.letter in ('f', 'F'))`;

/** Number of rows of its block per wanted result that are searched for a case, because a new case is in none of them. */
export const ROWS_LOOKED_AT = 10;

/** The last results of a case in the runs of `condition`, newest first; `number` is an expression. */
export const lastResults = (sql: Sql, projectId: Given, number: Fragment, condition: Fragment, limit: number) => sql`
  select b.run_id, substr(b.statuses, b.place, 1) as letter, coalesce(b.attempts[b.place], 1) as attempt
  from (
    select b.run_id, b.statuses, b.attempts, array_position(b.test_cases, ${number}) as place from case_result b
    where b.project_id = ${projectId} and b.block = ${blockOfCase(sql, number)} and ${condition}
    order by b.run_id desc limit ${limit * ROWS_LOOKED_AT}
  ) b where b.place is not null order by b.run_id desc limit ${limit}`;
