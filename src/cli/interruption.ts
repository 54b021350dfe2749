/** Ends a long command in order when it is interrupted: files and transactions that are incomplete are removed. */

import type { Invocation } from "./invocation.ts";

/** The second signal ends the process at once. */
export async function untilInterrupted<T>(
  { onStopSignal }: Pick<Invocation, "onStopSignal">,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const stopListening = onStopSignal(() => {
    stopListening();
    controller.abort(new Error("Interrupted: nothing was kept"));
  });
  try {
    return await work(controller.signal);
  } finally {
    stopListening();
  }
}
