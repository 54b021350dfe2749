/** Reads and changes the records of test cases. */

import { type CaseHealth, countChange, countedAt, type CountedRun, NO_HEALTH } from "../../rules/health.ts";
import type { ChangedResult } from "../../rules/merge.ts";
import type { Tx } from "../../database/connect.ts";
import { selectCaseHealth, storeCaseHealth } from "../../store/case_health.ts";

/** Number of results after which other requests are served. */
export const PORTION_RESULTS = 1_000;

/** Counts the changes of a further attempt in a run that has been counted. */
export async function countChanges(
  sql: Tx,
  projectId: string,
  run: CountedRun,
  changes: readonly ChangedResult[],
): Promise<void> {
  const at = countedAt(run, new Date());
  for (let start = 0; start < changes.length; start += PORTION_RESULTS) {
    const portion = changes.slice(start, start + PORTION_RESULTS);
    const memory = await recall(
      sql,
      projectId,
      portion.map(({ testCase }) => testCase),
    );
    for (const change of portion) {
      memory.set(change.testCase, countChange(memory.get(change.testCase), run, at, change));
    }
    await memory.store();
  }
}

/** The records of some test cases, until they are stored. In a transaction that holds `lockHealth`. */
export async function recall(sql: Tx, projectId: string, testCases: readonly number[]) {
  const stored = await selectCaseHealth(sql, projectId, testCases);
  const current = new Map(stored);
  return {
    get: (testCase: number): CaseHealth => current.get(testCase) ?? NO_HEALTH,
    set: (testCase: number, health: CaseHealth) => void current.set(testCase, health),
    async store(): Promise<void> {
      const rows = Array.from(current, ([testCase, health]) => ({ testCase, isKnown: stored.has(testCase), health }));
      await storeCaseHealth(sql, projectId, rows);
    },
  };
}
