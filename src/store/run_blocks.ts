/** Results of complete runs, as the health of test cases is counted from them. */

import { isFailure } from "../rules/merge.ts";
import { INCIDENT } from "../rules/health.ts";
import { type Sql, toNumberArray, toNumbers, toTextArray } from "../database/connect.ts";
import { isFromOutsideCode } from "./predicates.ts";

/** Results of up to 128 neighbouring test cases of a run, in step. */
export type CountedBlock = {
  /** The place of the run among those asked for, from 0. */
  run: number;
  block: number;
  /** test_case.number, ascending. */
  testCases: number[];
  /** A letter per case; `INCIDENT` for one that failed in an incident. */
  statuses: string;
  durations: (number | null)[];
};

type Packed = Pick<CountedBlock, "run" | "block" | "statuses"> & {
  testCases: string;
  durations: string;
  incidents: string | null;
};

/** Of each run at most `limit` blocks, those that follow the block `after`. */
export async function selectRunBlocks(
  sql: Sql,
  projectId: string,
  runIds: readonly string[],
  after: number,
  limit: number,
): Promise<CountedBlock[]> {
  // One look at an index for each run: a join would be left to what the planner knows of the table.
  const rows = await sql<Packed[]>`
    select run.place::int - 1 as run, b.*
    from unnest(${toTextArray(runIds)}::uuid[]) with ordinality as run (id, place), lateral (
      select block, test_cases as "testCases", statuses, durations, ${incidentsIn(sql)} as incidents from case_result
      where project_id = ${projectId} and run_id = run.id and block > ${after} order by block limit ${limit}::int) b`;
  return rows.map(toRunBlock);
}

/** Those of these blocks that there are; `run` is the place of the block asked for, from 0. */
export async function selectBlocksOfRuns(
  sql: Sql,
  projectId: string,
  wanted: readonly { runId: string; block: number }[],
): Promise<CountedBlock[]> {
  const rows = await sql<Packed[]>`
    select wanted.place::int - 1 as run, b.*
    from unnest(${toTextArray(wanted.map(({ runId }) => runId))}::uuid[],
      ${toNumberArray(wanted.map(({ block }) => block))}::int[]) with ordinality as wanted (run_id, block, place),
    lateral (
      select block, test_cases as "testCases", statuses, durations, ${incidentsIn(sql)} as incidents from case_result
      where project_id = ${projectId} and run_id = wanted.run_id and block = wanted.block offset 0) b`;
  return rows.map(toRunBlock);
}

/** The test cases of a row of `case_result` whose failures have a cause outside of the code; null where nothing in it has failed. */
const incidentsIn = (sql: Sql) => sql`
  case when case_result.statuses ~ '[fF]' then (
    select array_agg(f.test_case)
    from failure f
    where f.project_id = case_result.project_id and f.run_id = case_result.run_id and ${isFromOutsideCode(sql, sql`f`)}
      and f.test_case between case_result.test_cases[1] and case_result.test_cases[cardinality(case_result.test_cases)]) end`;

function toRunBlock({ testCases: given, durations, incidents, ...row }: Packed): CountedBlock {
  const testCases = toNumbers(given) as number[];
  const isOfIncident = new Set(incidents === null ? [] : toNumbers(incidents));
  const statuses = incidents
    ? testCases.map((testCase, at) => toCounted(row.statuses[at]!, isOfIncident.has(testCase))).join("")
    : row.statuses;
  return { ...row, testCases, statuses, durations: toNumbers(durations) };
}

/** A failure with a cause outside of the code is not counted. */
const toCounted = (letter: string, isOfIncident: boolean): string =>
  isOfIncident && isFailure(letter) ? INCIDENT : letter;
