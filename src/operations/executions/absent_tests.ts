/** Reads the tests that runs have no result of. */

import { ABSENT_NAMED, type Absence } from "../../rules/absent_tests.ts";
import type { AbsentTests } from "../../schema/absent_tests.ts";
import type { Sql } from "../../database/connect.ts";
import { selectCaseRefs, selectRunsWithAbsence } from "../../store/absent_tests.ts";

type RunAbsence = { notRerun: readonly number[]; absence: Absence | null };

const NONE = { count: 0, testCases: [] };
export const NOTHING_ABSENT: AbsentTests = { missing: NONE, newlySkipped: NONE, notRerun: NONE };

/** Names the tests that runs of one execution have no result of. */
export async function readAbsentTests(sql: Sql, projectId: string, runs: readonly RunAbsence[]): Promise<AbsentTests> {
  const short = runs.flatMap(({ absence }) => (absence?.isShort ? absence : []));
  const toTests = async (counts: readonly number[], cases: readonly (readonly number[])[]) => ({
    count: counts.reduce((sum, count) => sum + count, 0),
    testCases: [...(await selectCaseRefs(sql, projectId, cases.flat().slice(0, ABSENT_NAMED)))],
  });
  const notRerun = runs.map((run) => run.notRerun);
  const [missing, newlySkipped, ofReruns] = await Promise.all([
    toTests(
      short.map(({ missing }) => missing),
      short.map(({ missingCases }) => missingCases),
    ),
    toTests(
      short.map(({ skipped }) => skipped),
      short.map(({ skippedCases }) => skippedCases),
    ),
    toTests(
      notRerun.map((cases) => cases.length),
      notRerun,
    ),
  ]);
  return { missing, newlySkipped, notRerun: ofReruns };
}

export async function readAbsentOfExecution(sql: Sql, projectId: string, executionId: string): Promise<AbsentTests> {
  const runs = await selectRunsWithAbsence(sql, projectId, executionId);
  return runs.length === 0 ? NOTHING_ABSENT : await readAbsentTests(sql, projectId, runs);
}
