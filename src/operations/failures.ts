/** Judges the failures of a run, and tells them. */

import { findIncidents } from "./incidents.ts";
import { BLAME_ORDER, toCounts } from "../rules/blame.ts";
import { findStrays } from "../rules/stray.ts";
import type { Blame, BlameCounts } from "../schema/failures.ts";
import { type CauseMember, type CauseQuery, type FailurePosition, selectCauses } from "../store/causes.ts";
import type { Sql, Tx } from "../database/connect.ts";
import { countFailures, deleteFailures, insertFailures, type JudgedRun, selectJudged } from "../store/failures.ts";
import { selectStrayFailures, updateStrayFailures } from "../store/stray_failures.ts";

/** More new ones in one run come from the change, not from flaky cases: their records need not be looked up. */
const MAX_STRAYS = 20;

/** In the transaction of the upload. `before`: the run has been judged after an earlier attempt. */
export async function judgeFailures(
  sql: Tx,
  projectId: string,
  run: JudgedRun & { passed: number; failed: number; flaky: number; outage: boolean },
  { before, onDefaultBranch }: { before: boolean; onDefaultBranch: boolean },
): Promise<BlameCounts> {
  if (before) await deleteFailures(sql, projectId, run.id);
  // An outage blames nobody.
  if (run.failed === 0 || run.outage) return toCounts({});
  let judged = await insertFailures(sql, projectId, run);
  if (await findIncidents(sql, projectId, run, judged)) judged = await selectJudged(sql, projectId, run.id);
  const counts: Partial<Record<Blame, number>> = Object.fromEntries(judged.map(({ blame, number }) => [blame, number]));
  const fresh = judged.find(({ blame }) => blame === "new");
  // What a branch has brought to the default branch fails there in the same words, and is new there.
  if (fresh && fresh.number <= MAX_STRAYS && !onDefaultBranch) {
    const record = await selectStrayFailures(sql, projectId, run, fresh.testCases);
    const strays = findStrays(
      record,
      record.some(({ isMine, isLongLived }) => isMine && isLongLived),
    );
    if (strays.length > 0) await updateStrayFailures(sql, projectId, run.id, strays);
    counts.new = fresh.number - strays.length;
    for (const { blame } of strays) counts[blame] = (counts[blame] ?? 0) + 1;
  }
  return toCounts(counts);
}

/** How many failures of an execution have which blame. */
export const countBlames = async (sql: Tx, projectId: string, executionId: string) =>
  toCounts(await countFailures(sql, projectId, executionId));

/** The number of a cause's failures, and the first of them. */
export type Cause = { failed: number; failures: [CauseMember, ...CauseMember[]] };

export type CausePage = {
  /** In the order of their first failures: new ones first. */
  causes: Cause[];
  /** The number of causes of the whole execution by the blame of their first failure; "none": the failure was not judged. */
  totals: Partial<Record<Blame | "none", number>>;
  /** The first failure of the page's last cause, when there are further causes. */
  last: FailurePosition | undefined;
};

/** A page of the causes of an execution's failures. All of its failures are grouped, not only those of the page. */
export async function readCauses(
  sql: Sql,
  projectId: string,
  executionId: string,
  query: CauseQuery,
): Promise<CausePage> {
  const rows = await selectCauses(sql, projectId, executionId, query);
  const found = [...Map.groupBy(rows, ({ place }) => place).values()];
  const causes = found.slice(0, query.limit).map(([first, ...others]): Cause => ({
    failed: first!.failed,
    failures: [first!, ...others],
  }));
  const ranks = Object.entries(rows[0]?.causes ?? {});
  const totals = Object.fromEntries(ranks.map(([rank, number]) => [BLAME_ORDER[Number(rank) - 1] ?? "none", number]));
  return { causes, totals, last: found.length > query.limit ? causes.at(-1)!.failures[0] : undefined };
}
