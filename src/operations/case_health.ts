/** Keeps what is remembered of test cases up to date with the runs that have completed. */

import { isNews } from "../rules/news.ts";
import {
  countRun,
  lockHealth,
  lockUnrememberedRuns,
  markRemembered,
  selectContradicted,
  selectHasUnremembered,
  selectOvertaken,
  selectUnrememberedRuns,
} from "../store/case_health.ts";
import { type Database, isUnavailable, type Sql } from "../store/connect.ts";
import { insertTurns } from "../store/events.ts";

/** In one transaction: a further attempt of one of its runs has to wait for its end. */
const MAX_RESULTS = 5_000;

type Begin = Database["begin"];

/**
 * Counts the complete runs of a project that have not been counted; false when none was left. A run of 100,000 cases
 * takes a second of the database, which no upload should wait for: a loop does it, and whoever reads what it makes.
 * `take` is told of each run before it is counted: when this throws, it was the last one.
 */
export async function countSome(
  begin: Begin,
  projectId: string,
  take: (runId: string) => void = () => {},
): Promise<boolean> {
  return await begin(async (sql) => {
    await lockHealth(sql, projectId);
    const waiting = await selectUnrememberedRuns(sql, projectId);
    let results = 0;
    const ids = waiting
      .filter((run, index) => (results += run.results) <= MAX_RESULTS || index === 0)
      .map(({ id }) => id);
    const runs = ids.length === 0 ? [] : await lockUnrememberedRuns(sql, projectId, ids);
    for (const run of runs) {
      take(run.id);
      const contradicted = run.outage ? [] : await selectContradicted(sql, projectId, run);
      const overtaken = await selectOvertaken(sql, projectId, run);
      const turned = await countRun(sql, projectId, run, contradicted, overtaken);
      if (isNews(run.completedAt)) await insertTurns(sql, projectId, run.id, turned);
      await markRemembered(sql, projectId, run.id);
    }
    return runs.length > 0;
  });
}

/** Of each project: whoever waits for the lock of counting holds a connection, and one is enough. */
const catchingUp = new Map<string, Promise<void>>();

/**
 * The same for whoever goes on with what is known by then: a run of 100,000 cases that is being counted, here or by
 * another server, takes longer than its caller should wait, and is counted on without him.
 */
export async function catchUpWithin(sql: Sql, begin: Begin, projectId: string, patienceMs: number): Promise<void> {
  if (!(await selectHasUnremembered(sql, projectId))) return;
  const { promise: isOver, resolve } = Promise.withResolvers<"over">();
  const timer = setTimeout(() => resolve("over"), patienceMs);
  try {
    const before = catchingUp.get(projectId);
    if (before && (await Promise.race([isOver, before.catch(() => {})])) === "over") return;
    const mine = catchUp(sql, begin, projectId, patienceMs).finally(
      () => void (catchingUp.get(projectId) === mine && catchingUp.delete(projectId)),
    );
    catchingUp.set(projectId, mine);
    // Who does not wait for it any more is not told either: the loop meets the same, and logs it.
    mine.catch(() => {});
    await Promise.race([isOver, mine]);
  } finally {
    clearTimeout(timer);
  }
}

/** A flood of uploads may leave more than this: then it is better to answer with what is counted so far. */
const PATIENCE_MS = 5_000;

/** Before reading what is remembered of a project's test cases. What cannot be counted keeps nobody from the rest. */
export async function catchUp(sql: Sql, begin: Begin, projectId: string, patienceMs = PATIENCE_MS): Promise<void> {
  if (!(await selectHasUnremembered(sql, projectId))) return;
  const until = performance.now() + patienceMs;
  try {
    while (performance.now() < until && (await countSome(begin, projectId)));
  } catch (error) {
    // The loop meets it as well: it puts off the run and logs why.
    if (isUnavailable(error)) throw error;
  }
}
