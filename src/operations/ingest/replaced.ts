/** Finds the failures outside of tests that a later attempt shows to be over. */

import type { ResolvedReport } from "./prepare.ts";
import { normalizeFile } from "../../rules/identity.ts";
import { isOutsideOfTests, isRepeated, type ReplacedFailure, type TestPlace } from "../../rules/outside_of_tests.ts";
import { nextNumber, WHOLE } from "../../rules/run_outcome.ts";
import type { Report } from "../../reports/report.ts";
import type { Tx } from "../../database/connect.ts";
import { selectFailuresOfRun } from "../../store/outside_failures.ts";
import type { Attempt } from "../../store/test_runs.ts";

/** Returns the distinct suites and files of the tests that ran. */
function placesOf({ cases }: Report): TestPlace[] {
  const places = new Map<string, TestPlace>();
  for (const one of cases) {
    if (one.status === "skipped" || isOutsideOfTests(one)) continue;
    places.set(`${one.suite}\0${one.file ?? ""}`, {
      suite: one.suite,
      file: one.file === null ? null : normalizeFile(one.file),
    });
  }
  return [...places.values()];
}

/** Returns the failures outside of tests in earlier attempts that the next attempt of this shard shows to be over. */
export async function findReplaced(
  sql: Tx,
  projectId: string,
  {
    run,
    attempts,
    resolved,
    shard,
  }: { run: { id: string; failed: number }; attempts: readonly Attempt[]; resolved: ResolvedReport; shard: number },
): Promise<ReplacedFailure[]> {
  if (run.failed === 0) return [];
  const number = nextNumber(attempts, shard);
  const failed = (await selectFailuresOfRun(sql, projectId, run.id)).filter(
    (one) => isOutsideOfTests(one) && one.attempt < number && (shard === WHOLE || one.shard === shard),
  );
  if (failed.length === 0) return [];
  const own = new Set(resolved.results.map(({ testCase }) => testCase));
  const places = placesOf(resolved.report);
  const isComplete = !resolved.report.partial;
  return failed
    .filter((one) => !own.has(one.testCase) && isRepeated(one, places, { isComplete }))
    .map(({ shard: _, ...one }) => one);
}
