/** Counts pending runs before the health of a project's test cases is read. */

import { countSome } from "./case_health.ts";
import { selectHasPendingHealth } from "../../store/pending_health.ts";
import { type Database, isConflict, isDiskFull, isUnavailable, type Sql } from "../../database/connect.ts";

type Begin = Database["begin"];

/** Time limit of a reader: after a burst of uploads it is better to answer with what is counted so far. */
const PATIENCE_MS = 5_000;

/** Counts pending runs before the health of a project's test cases is read. A run that cannot be counted does not prevent reading. */
export async function catchUp(sql: Sql, begin: Begin, projectId: string, patienceMs = PATIENCE_MS): Promise<void> {
  if (!(await selectHasPendingHealth(sql, projectId))) return;
  const until = performance.now() + patienceMs;
  try {
    while (performance.now() < until && (await countSome(begin, projectId)));
  } catch (error) {
    // The loop postpones the run and logs the reason. A reader continues, also if the disk is full.
    if (isUnavailable(error) && !isConflict(error) && !isDiskFull(error)) throw error;
  }
}

type CatchUp = { running: Promise<void>; next: Promise<void> | undefined };

/** Running counts by project. Concurrent readers share the next one. */
const catchingUp = new Map<string, CatchUp>();

/**
 * Counts pending runs within a time limit and then continues without the rest: a run of 100,000 cases that is being counted, here or by
 * another server, takes longer than a caller should wait.
 */
export async function catchUpWithin(sql: Sql, begin: Begin, projectId: string, patienceMs: number): Promise<void> {
  if (!(await selectHasPendingHealth(sql, projectId))) return;
  const start = (): Promise<void> => {
    const mine: CatchUp = { running: catchUp(sql, begin, projectId, patienceMs), next: undefined };
    catchingUp.set(projectId, mine);
    const end = () => void (catchingUp.get(projectId) === mine && !mine.next && catchingUp.delete(projectId));
    mine.running.then(end, end);
    return mine.running;
  };
  const current = catchingUp.get(projectId);
  const shared = current ? (current.next ??= current.running.then(start, start)) : start();
  // A caller that does not wait for it any more does not hear of its failure either: the loop meets the same, and logs it.
  shared.catch(() => {});
  const { promise: isOver, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, patienceMs);
  try {
    await Promise.race([isOver, shared]);
  } finally {
    clearTimeout(timer);
  }
}
