/** Counts what is pending before somebody reads what is remembered of a project's test cases. */

import { countSome } from "./case_health.ts";
import { selectHasUnremembered } from "../store/case_health.ts";
import { type Database, isConflict, isDiskFull, isUnavailable, type Sql } from "../database/connect.ts";

type Begin = Database["begin"];

/** A flood of uploads may leave more than this: then it is better to answer with what is counted so far. */
const PATIENCE_MS = 5_000;

/** Before reading what is remembered of a project's test cases. What cannot be counted keeps nobody from the rest. */
export async function catchUp(sql: Sql, begin: Begin, projectId: string, patienceMs = PATIENCE_MS): Promise<void> {
  if (!(await selectHasUnremembered(sql, projectId))) return;
  const until = performance.now() + patienceMs;
  try {
    while (performance.now() < until && (await countSome(begin, projectId)));
  } catch (error) {
    // The loop meets it as well: it puts off the run and logs why. Whoever only reads gets through to a full disk.
    if (isUnavailable(error) && !isConflict(error) && !isDiskFull(error)) throw error;
  }
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
