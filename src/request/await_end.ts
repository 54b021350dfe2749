/** Long polls: an answer that is sent as soon as an execution has ended. */

import type { Context } from "./route.ts";

type Polled = Pick<Context<{ executionId: string }>, "services" | "caller" | "params">;

/**
 * Reads until `hasEnded`, at most for `waitSeconds`; undefined: once. It also returns what it has read when the key is revoked or
 * the server stops.
 */
export async function awaitEnd<Found>(
  { services, caller, params }: Polled,
  waitSeconds: number | undefined,
  read: () => Promise<Found>,
  hasEnded: (found: Found) => boolean,
): Promise<Found> {
  if (waitSeconds === undefined) return await read();
  const until = performance.now() + waitSeconds * 1000;
  // The watch begins before the first look: an end between the two would be missed otherwise.
  const watch = services.signals.watch([
    ["execution_ended", params.executionId],
    ["key_revoked", caller.id],
  ]);
  try {
    for (let isLast = false; ;) {
      const found = await read();
      const left = until - performance.now();
      if (isLast || left <= 0 || hasEnded(found)) return found;
      isLast = ["closed", "key_revoked"].includes(await watch.next(left));
    }
  } finally {
    watch.end();
  }
}
