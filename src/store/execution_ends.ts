/** Tells those who wait for an execution that it has ended, whichever server ended it. */

import type { Sql } from "./connect.ts";

/** A notification that is lost while the database restarts is made up for by looking again this often. */
const LOOK_AGAIN_MS = 3_000;

export function createExecutionEnds(sql: Sql) {
  const waiting = new Map<string, Set<(goOn: boolean) => void>>();
  let listening: Promise<unknown> | undefined;
  let closed = false;

  function wake(id: string, goOn: boolean): void {
    for (const resolve of waiting.get(id) ?? []) resolve(goOn);
  }

  return {
    /** Resolves at the end of the execution or after `ms`, at times earlier; to false when nobody may wait any more. */
    async wait(id: string, ms: number): Promise<boolean> {
      if (closed) return false;
      // The connection that listens is opened for the first who waits.
      listening ??= sql
        .listen("execution_ended", (ended) => wake(ended, true))
        .catch(() => {
          listening = undefined;
        });
      const { promise, resolve } = Promise.withResolvers<boolean>();
      const waiters = waiting.get(id) ?? new Set();
      waiting.set(id, waiters.add(resolve));
      const timer = setTimeout(() => resolve(true), Math.min(ms, LOOK_AGAIN_MS));
      try {
        await Promise.race([listening, promise]);
        return await promise;
      } finally {
        clearTimeout(timer);
        waiters.delete(resolve);
        if (waiters.size === 0) waiting.delete(id);
      }
    },

    /** Sends everybody who waits home, for the drain. */
    close(): void {
      closed = true;
      for (const id of waiting.keys()) wake(id, false);
    },
  };
}
