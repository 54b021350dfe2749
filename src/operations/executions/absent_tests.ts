/** Reads the tests that runs have no result of. */

import { ABSENT_NAMED, type Absence } from "../../rules/absent_tests.ts";
import type { AbsentTests } from "../../schema/absent_tests.ts";
import type { Sql } from "../../database/connect.ts";
import { hasEnded } from "../../rules/execution.ts";
import { selectAbsentCases, selectCaseRefs, selectRanCounts, selectRunsWithAbsence } from "../../store/absent_tests.ts";
import type { ExecutionRow } from "../../store/executions.ts";
import { selectRunId } from "../../store/test_runs.ts";

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

/** Maximum number of tasks of an execution that are searched for tests that did not run. */
const MAX_SEARCHED_TASKS = 5;

/** Finds tests of the baseline that did not run in tasks with fewer results, also few of them, or those of shards that are missing. */
async function searchTasks(
  sql: Sql,
  projectId: string,
  { id: executionId, tasks }: ExecutionRow,
  baselineId: string,
): Promise<RunAbsence[]> {
  const counts = await selectRanCounts(sql, projectId, baselineId);
  const expected = new Map(counts.map(({ taskSlug, ran }) => [taskSlug, ran]));
  const found = tasks.filter(({ slug, passed, failed }) => passed + failed < (expected.get(slug) ?? 0));
  return await Promise.all(
    found.slice(0, MAX_SEARCHED_TASKS).map(async ({ slug: taskSlug }) => {
      const runId = await selectRunId(sql, projectId, executionId, taskSlug);
      const task = { baselineId, taskSlug, executionId, buildId: null };
      const absent = await selectAbsentCases(sql, projectId, task, { runId, fresh: [] });
      return { notRerun: [], absence: { ...absent, isShort: true } };
    }),
  );
}

/** As `readAbsentOfExecution`. An execution that did not pass is searched, unless it is a rerun. */
export async function searchAbsentTests(sql: Sql, projectId: string, execution: ExecutionRow): Promise<AbsentTests> {
  const { id, status, baselineId, buildId } = execution;
  const stored = await selectRunsWithAbsence(sql, projectId, id);
  const isSaid = stored.some(({ notRerun, absence }) => notRerun.length > 0 || absence?.isShort);
  const isSearched = !isSaid && hasEnded(status) && status !== "passed" && buildId === null && baselineId !== null;
  const runs = isSearched ? await searchTasks(sql, projectId, execution, baselineId) : stored;
  return runs.length === 0 ? NOTHING_ABSENT : await readAbsentTests(sql, projectId, runs);
}
