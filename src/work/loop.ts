/** Repeats a piece of work beside the server until it is stopped. */

import type { Log } from "../log.ts";

export type Loop = { stop(): Promise<void> };

/** Whether a round may take up something more: a server that stops waits for what has begun, not for what is left. */
export type GoOn = () => boolean;
export const always: GoOn = () => true;

/** The next round begins `everyMs` after the end of the last; a round that fails is logged and not the last. */
export function startLoop(name: string, everyMs: number, log: Log, work: (goOn: GoOn) => Promise<unknown>): Loop {
  let stopped = false;
  let timer: Timer;
  let round: Promise<void>;

  async function run(): Promise<void> {
    try {
      await work(() => !stopped);
    } catch (error) {
      log.warn(`Loop "${name}" failed, it goes on`, { error });
    }
    if (!stopped) wait();
  }

  function wait(): void {
    // Several servers that started together should not all come at the same moment.
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
