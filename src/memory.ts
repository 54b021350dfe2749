/** Keeps what is remembered of test cases up to date with the runs that have completed. */

import {
  countRun,
  lockHealth,
  lockUnrememberedRuns,
  markRemembered,
  selectContradicted,
  selectHasUnremembered,
  selectUnrememberedRuns,
  selectUnremembered,
} from "./store/case_health.ts";
import type { Database, Sql } from "./store/connect.ts";
import { insertTurns } from "./store/events.ts";

/** In one transaction: a further attempt of one of its runs has to wait for its end. */
const MAX_RESULTS = 5_000;

type Begin = Database["begin"];

/**
 * Counts the complete runs of a project that have not been counted; false when none was left. A run of 100,000 cases
 * takes a second of the database, which no upload should wait for: a loop does it, and whoever reads what it makes.
 */
async function rememberSome(begin: Begin, projectId: string): Promise<boolean> {
  return await begin(async (sql) => {
    await lockHealth(sql, projectId);
    const waiting = await selectUnrememberedRuns(sql, projectId);
    let results = 0;
    const ids = waiting
      .filter((run, index) => (results += run.results) <= MAX_RESULTS || index === 0)
      .map(({ id }) => id);
    const runs = ids.length === 0 ? [] : await lockUnrememberedRuns(sql, projectId, ids);
    for (const run of runs) {
      const contradicted = run.outage ? [] : await selectContradicted(sql, projectId, run);
      await insertTurns(sql, projectId, run.id, await countRun(sql, projectId, run, contradicted));
      await markRemembered(sql, projectId, run.id);
    }
    return runs.length > 0;
  });
}

/** A flood of uploads may leave more than this: then it is better to answer with what is counted so far. */
const PATIENCE_MS = 5_000;

/** Before reading what is remembered of a project's test cases. */
export async function catchUp(sql: Sql, begin: Begin, projectId: string): Promise<void> {
  if (!(await selectHasUnremembered(sql, projectId))) return;
  const until = performance.now() + PATIENCE_MS;
  while (performance.now() < until && (await rememberSome(begin, projectId)));
}

/** As long as `goOn` allows: after a flood of uploads this takes its time. */
export async function rememberAll(
  { pool, begin }: Pick<Database, "pool" | "begin">,
  goOn: () => boolean = () => true,
): Promise<void> {
  for (const projectId of await selectUnremembered(pool)) while (goOn() && (await rememberSome(begin, projectId)));
}
