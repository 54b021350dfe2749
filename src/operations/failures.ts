/** Judges the failures of a run, and tells them. */

import { toCounts } from "../rules/blame.ts";
import { fingerprint } from "../rules/fingerprint.ts";
import { findStrays } from "../rules/stray.ts";
import type { Blame, BlameCounts } from "../schema/failures.ts";
import type { Tx } from "../store/connect.ts";
import {
  countFailures,
  deleteFailures,
  type FailureRow,
  insertFailures,
  type JudgedRun,
  selectStrayFailures,
  updateStrayFailures,
} from "../store/failures.ts";

/** More new ones in one run come from the change, not from flaky cases: their records need not be looked up. */
const MAX_STRAYS = 20;

/** In the transaction of the upload. `before`: the run has been judged after an earlier attempt. */
export async function judgeFailures(
  sql: Tx,
  projectId: string,
  run: JudgedRun & { failed: number; outage: boolean },
  { before, onDefaultBranch }: { before: boolean; onDefaultBranch: boolean },
): Promise<BlameCounts> {
  if (before) await deleteFailures(sql, projectId, run.id);
  // An outage blames nobody.
  if (run.failed === 0 || run.outage) return toCounts({});
  const judged = await insertFailures(sql, projectId, run);
  const counts: Partial<Record<Blame, number>> = Object.fromEntries(judged.map(({ blame, number }) => [blame, number]));
  const fresh = judged.find(({ blame }) => blame === "new");
  // What a branch has brought to the default branch fails there in the same words, and is new there.
  if (fresh && fresh.number <= MAX_STRAYS && !onDefaultBranch) {
    const strays = findStrays(await selectStrayFailures(sql, projectId, run, fresh.testCases));
    if (strays.length > 0) await updateStrayFailures(sql, projectId, run.id, strays);
    counts.new = fresh.number - strays.length;
    counts.flaky = (counts.flaky ?? 0) + strays.length;
  }
  return toCounts(counts);
}

/** How many failures of an execution have which blame. */
export const countBlames = async (sql: Tx, projectId: string, executionId: string) =>
  toCounts(await countFailures(sql, projectId, executionId));

/** Failures that are one: they have joined one bug report, or bear the same fingerprint. */
export type CauseOf<Row> = { exceptionType: string | null; failures: [Row, ...Row[]] };

/** In the order of their first failures. */
export function toCauses<Row extends FailureRow>(rows: readonly Row[]): CauseOf<Row>[] {
  const causes = new Map<string, CauseOf<Row>>();
  for (const row of rows) {
    const mark = fingerprint(row);
    const key = row.bugId ?? mark.digest;
    const cause = causes.get(key);
    if (cause) cause.failures.push(row);
    else causes.set(key, { exceptionType: mark.exceptionType, failures: [row] });
  }
  return [...causes.values()];
}
