/** Repeats background work: processes one item after the other, postpones failed items, and finally gives them up. */

import { createLog, type Fields, type Log } from "../log.ts";
import { isUnavailable, isTimeout, type Sql } from "../database/connect.ts";
import { type LoopName, postponeRetry, type RetryBackoff } from "../database/retry_backoff.ts";

export type Loop = { stop(): Promise<void> };

/** Whether a round may begin another item: a server that stops waits for begun items only. */
export type GoOn = () => boolean;
export const always: GoOn = () => true;

/** Gets the number of rows that were deleted from a table for their age. */
export type OnDeleted = (table: string, rows: number) => void;

/** The log of loops that get none, so that no failure is lost. */
export const standardLog: Log = createLog("warn");

/** Minimum time between repeated log messages of a failing loop. */
const REPEATED_MS = 60_000;

/**
 * Starts a loop whose next round begins `everyMs` after the end of the last. A failed round does not end the loop. For consecutive failures
 * with the same message the log has the first one, then one a minute, and their end: loops that fail ten times a second would hide
 * everything else.
 */
export function startLoop(name: string, everyMs: number, log: Log, work: (goOn: GoOn) => Promise<unknown>): Loop {
  let stopped = false;
  let timer: Timer;
  let round: Promise<void>;
  let failures = 0;
  let logged: { error: string; at: number } | undefined;

  async function run(): Promise<void> {
    try {
      await work(() => !stopped);
      if (failures > 0) log.info(`Loop "${name}" works again`, { failures });
      failures = 0;
      logged = undefined;
    } catch (error) {
      failures++;
      const now = performance.now();
      if (!logged || logged.error !== String(error) || now - logged.at >= REPEATED_MS) {
        log.warn(`Loop "${name}" failed; it continues`, { failures, error });
        logged = { error: String(error), at: now };
      }
    }
    if (!stopped) wait();
  }

  function wait(): void {
    // Servers that started together should not run at the same moment.
    timer = setTimeout(() => (round = run()), everyMs * (0.8 + 0.4 * Math.random()));
  }

  round = run();
  return {
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await round;
    },
  };
}

/** Number of internal errors after which an item is given up, because it would always fail. */
export const MAX_TRIES = 8;
/** A database that is too slow for one item so often, which is most of a day, will not become quicker. */
export const MAX_STALLS = 30;

export type Item = {
  loop: LoopName;
  id: string;
  /** The fields that the log has for it. */
  about: Fields;
};

export type Work<I extends Item> = {
  /** The log message of a failure, such as "Cannot handle an event". */
  failing: string;
  /**
   * Processes the next due item that is not postponed, and calls `take` as soon as the item is known, and again with a part of it if the
   * part can be postponed separately. Returns false if there is none, or if the round should end.
   */
  next(take: (item: I) => void): Promise<boolean>;
  /** Postpones an item that stores its own due time. Undefined: the loop stores the backoff. */
  postpone?(item: I, isStall: boolean): Promise<RetryBackoff | undefined>;
  /** Ends an item that has failed too often, or that always timed out, and notifies the user. Without it the item is retried every hour. */
  giveUp?(item: I, isStall: boolean): Promise<unknown>;
};

/**
 * Processes items until none is due, and returns their number. An item that fails is postponed on all servers, and the others continue. If
 * the database is unavailable nothing is postponed or counted: this throws, and the round ends. If it is only too slow, the item is
 * postponed as a stall and the round ends too, because either the item or an overloaded database is the cause.
 */
export async function takeAll<I extends Item>(
  pool: Sql,
  { failing, next, postpone, giveUp }: Work<I>,
  log: Log,
  goOn: GoOn = always,
): Promise<number> {
  for (let count = 0; ;) {
    if (!goOn()) return count;
    let item: I | undefined;
    try {
      if (!(await next((taken) => void (item = taken)))) return count;
      count++;
    } catch (error) {
      if (!item) throw error;
      const state = await postponeItem(item, isUnavailable(error));
      if (isUnavailable(error)) {
        log.warn(`${failing}: the database was unavailable or too slow; it is retried`, {
          ...item.about,
          ...state,
          error,
        });
      } else log.error(failing, { ...item.about, ...state, error });
      if (state && (state.tries >= MAX_TRIES || state.stalls >= MAX_STALLS)) await end(item, isUnavailable(error));
      // The item was not postponed, so it would be due again at once.
      if (isUnavailable(error) || !state) return count;
    }
  }

  async function postponeItem(item: I, isStall: boolean): Promise<RetryBackoff | undefined> {
    try {
      const state = await postpone?.(item, isStall);
      if (state) return state;
    } catch (error) {
      if (isUnavailable(error)) throw error;
      log.error("Cannot postpone an item", { ...item.about, error });
    }
    return await postponeRetry(pool, item.loop, item.id, isStall);
  }

  async function end(item: I, isStall: boolean): Promise<void> {
    if (!giveUp) return;
    try {
      await giveUp(item, isStall);
      log.error(`${failing}: given up`, item.about);
    } catch (error) {
      if (isUnavailable(error)) throw error;
      log.error(`${failing}: giving it up failed as well`, { ...item.about, error });
    }
  }
}

/**
 * Processes each item regardless of failures of others; a failure is logged, and the item is processed again in the next round. Throws if
 * the database is unavailable.
 */
export async function eachOf<I>(
  items: readonly I[],
  { failing, about }: { failing: string; about: (item: I) => Fields },
  work: (item: I) => Promise<unknown>,
  log: Log,
  goOn: GoOn = always,
): Promise<void> {
  for (const item of items) {
    if (!goOn()) return;
    try {
      await work(item);
    } catch (error) {
      if (isUnavailable(error) && !isTimeout(error)) throw error;
      log.error(failing, { ...about(item), error });
    }
  }
}
