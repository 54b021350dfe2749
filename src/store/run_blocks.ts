/** Results of complete runs, as the health of test cases is counted from them. */

import { isFailure } from "../rules/merge.ts";
import { BY_ITSELF, INCIDENT } from "../rules/health.ts";
import { type Sql, toNumbers, toTextArray } from "../database/connect.ts";
import { isFromOutsideCode } from "./predicates.ts";

/** Results of up to 128 neighbouring test cases of a run, in step. */
export type CountedBlock = {
  /** The place of the run among those asked for, from 0. */
  run: number;
  block: number;
  /** test_case.number, ascending. */
  testCases: number[];
  /** A letter per case; `INCIDENT` for a failure in an incident, `BY_ITSELF` for a failure that is explained as flaky. */
  statuses: string;
  durations: (number | null)[];
};

type Packed = Pick<CountedBlock, "run" | "block" | "statuses"> & {
  testCases: string;
  durations: string;
  explained: [testCase: number, letter: string][] | null;
};

/** Returns at most `limit` blocks of each run, from the block after `after`. */
export async function selectRunBlocks(
  sql: Sql,
  projectId: string,
  runIds: readonly string[],
  after: number,
  limit: number,
): Promise<CountedBlock[]> {
  // One index look-up per run; a join would depend on the statistics of the table.
  const rows = await sql<Packed[]>`
    select run.place::int - 1 as run, b.*
    from unnest(${toTextArray(runIds)}::uuid[]) with ordinality as run (id, place), lateral (
      select block, test_cases as "testCases", statuses, durations, ${explainedIn(sql)} as explained from case_result
      where project_id = ${projectId} and run_id = run.id and block > ${after} order by block limit ${limit}::int) b`;
  return rows.map(toRunBlock);
}

/** The failures of a row of `case_result` with another letter, as [test case, letter]; null: nothing in it failed. */
const explainedIn = (sql: Sql) => sql`
  case when case_result.statuses ~ '[fF]' then (
    select json_agg(json_build_array(f.test_case, case when ${isFromOutsideCode(sql, sql`f`)} then ${INCIDENT}::text else ${BY_ITSELF}::text end))
    from failure f
    where f.project_id = case_result.project_id and f.run_id = case_result.run_id
      and (${isFromOutsideCode(sql, sql`f`)} or f.explained = 'flaky')
      and f.test_case between case_result.test_cases[1] and case_result.test_cases[cardinality(case_result.test_cases)]) end`;

function toRunBlock({ testCases: given, durations, explained, ...row }: Packed): CountedBlock {
  const testCases = toNumbers(given) as number[];
  const letters = new Map(explained);
  const toLetter = (testCase: number, at: number) => {
    const letter = row.statuses[at]!;
    return isFailure(letter) ? (letters.get(testCase) ?? letter) : letter;
  };
  const statuses = explained ? testCases.map(toLetter).join("") : row.statuses;
  return { ...row, testCases, statuses, durations: toNumbers(durations) };
}
