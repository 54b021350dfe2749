/** Batches what many requests ask for at one moment into one transaction; what a batch leaves out takes the slow path. */

import type { Caller } from "./callers.ts";
import { type Database, isUndone, type Tx } from "../database/connect.ts";
import { lockLiveKeysAtOnce } from "../store/keys.ts";
import type { AdvisoryLock } from "../database/locks.ts";

/**
 * Work on a batch, in a transaction for one project. It reads at once, and writes nothing before it is known which items are
 * admitted, nor anything for the others.
 */
export type BatchWork<Input, Output> = (
  sql: Tx,
  projectId: string,
  inputs: readonly Input[],
  admitted: Promise<readonly boolean[]>,
) => Promise<{
  /** The result of each item, in their order; undefined for an item for which nothing is stored. */
  outputs: readonly (Output | undefined)[];
  /** Resolves when everything is stored. Its last statement has been sent: the commit may follow at once. */
  written: Promise<unknown>;
}>;

type BatchItem = {
  key: Caller;
  locks: readonly AdvisoryLock[];
  input: unknown;
  /** Runs in the transaction with the result of the item. An error undoes the whole batch. */
  settle: (sql: Tx, output: unknown) => Promise<void> | undefined;
  resolve: (isDone: boolean) => void;
  /** It is not known whether the item is stored. */
  reject: (error: unknown) => void;
};

type PendingBatch = {
  /** A transaction for the project is running. */
  isRunning: boolean;
  /** The items are looked at after this iteration of the event loop. */
  isScheduled: boolean;
  waiting: BatchItem[];
  /** Number of items that are likely to come: those that the last batch has answered, and those that waited for it. */
  expected: number;
  /** They are waited for until then, by `performance.now()`. */
  until: number;
  windowTimer: ReturnType<typeof setTimeout> | undefined;
};

/** Maximum number of items of one transaction. */
const MAX_BATCH_SIZE = 32;
/** How long a client that has been answered takes to ask again. A transaction of eight costs little more than one of four. */
const BATCH_WINDOW_MS = 3;

/** `maxWaitMs`: an item that has waited so long for the transaction before it takes the slow path. */
export function createBatcher({ beginAhead }: Pick<Database, "beginAhead">, maxWaitMs = 2_000) {
  const batches = new Map<BatchWork<never, unknown>, Map<string, PendingBatch>>();

  async function run(work: BatchWork<never, unknown>, projectId: string, items: readonly BatchItem[]): Promise<void> {
    let settled: readonly BatchItem[] = [];
    let isAnswered = false;
    try {
      const { written } = await beginAhead(async (sql, begun) => {
        // Nothing is written before both are known.
        const holding = Promise.all([lockLiveKeysAtOnce(sql, items), begun]).then(([holding]) => holding);
        const admitted = holding.then((holding) => items.map((item) => holding.has(item)));
        const inputs = items.map(({ input }) => input as never);
        const { outputs, written } = await work(sql, projectId, inputs, admitted);
        // If nothing waits for it, the commit reports the failure.
        written.catch(() => {});
        const settlements = items.map((item, index) =>
          outputs[index] === undefined ? undefined : settle(item, sql, outputs[index]),
        );
        if (settlements.some((one) => one !== undefined)) await Promise.all(settlements);
        settled = items.filter((_, index) => outputs[index] !== undefined);
        return { written };
      });
      isAnswered = true;
      // If this fails, the database has rolled back at the commit.
      await written;
      for (const item of items) item.resolve(settled.includes(item));
    } catch (error) {
      // The commit may have succeeded, and its answer was lost: an item that is run again would be stored twice.
      const lost = !isAnswered && !isUndone(error) ? settled : [];
      // The slow path shows which of the items has failed.
      for (const item of items) lost.includes(item) ? item.reject(error) : item.resolve(false);
    }
  }

  function startIfReady(work: BatchWork<never, unknown>, projectId: string, batch: PendingBatch): void {
    const { isRunning, waiting, expected, until } = batch;
    if (isRunning || waiting.length === 0) return;
    if (waiting.length < Math.min(expected, MAX_BATCH_SIZE) && performance.now() < until) return;
    clearTimeout(batch.windowTimer);
    const items = waiting.splice(0, MAX_BATCH_SIZE);
    batch.isRunning = true;
    const timer = setInterval(() => {
      for (const item of waiting.splice(0)) item.resolve(false);
    }, maxWaitMs);
    void run(work, projectId, items).then(() => {
      clearInterval(timer);
      batch.isRunning = false;
      batch.expected = items.length + waiting.length;
      batch.until = performance.now() + BATCH_WINDOW_MS;
      batch.windowTimer = setTimeout(() => {
        batch.until = 0;
        if (waiting.length === 0) batches.get(work)?.delete(projectId);
        else startIfReady(work, projectId, batch);
      }, BATCH_WINDOW_MS);
      startIfReady(work, projectId, batch);
    });
  }

  /** Answers false if nothing has been stored for the item. Rejects where that is not known. */
  return function join<Input, Output>(
    work: BatchWork<Input, Output>,
    projectId: string,
    item: Omit<BatchItem, "input" | "settle" | "resolve" | "reject"> & {
      input: Input;
      settle: (sql: Tx, output: Output) => Promise<void> | undefined;
    },
  ): Promise<boolean> {
    const { promise, resolve, reject } = Promise.withResolvers<boolean>();
    const ofWork = batches.get(work as never) ?? new Map<string, PendingBatch>();
    batches.set(work as never, ofWork);
    const batch = ofWork.get(projectId) ?? {
      isRunning: false,
      isScheduled: false,
      waiting: [],
      expected: 0,
      until: 0,
      windowTimer: undefined,
    };
    ofWork.set(projectId, batch);
    batch.waiting.push({ ...item, resolve, reject } as BatchItem);
    if (!batch.isScheduled) {
      batch.isScheduled = true;
      // Items that come in one iteration of the event loop share a batch.
      setImmediate(() => {
        batch.isScheduled = false;
        startIfReady(work as never, projectId, batch);
      });
    }
    return promise;
  };
}

/** A synchronous error becomes a rejection: the others are running already, and must be waited for. */
function settle(item: BatchItem, sql: Tx, output: unknown): Promise<void> | undefined {
  try {
    return item.settle(sql, output);
  } catch (error) {
    return Promise.reject(error);
  }
}
