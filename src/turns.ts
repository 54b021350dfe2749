/** Work that takes turns: long computations beside a server, and tasks of which few may run at the same time. */

/** Milliseconds after which other work gets its turn. */
const TURN_MS = 10;

/** Lets other requests be served. */
export const letOthersRun = () => new Promise<void>((resolve) => void setImmediate(resolve));

/** Computes the items one after the other. A single one must be short: it is what others wait for. */
export async function mapInTurns<Item, Result>(
  items: readonly Item[],
  compute: (item: Item) => Result,
): Promise<Result[]> {
  const results: Result[] = [];
  let begun = performance.now();
  for (const item of items) {
    results.push(compute(item));
    if (performance.now() - begun < TURN_MS) continue;
    await letOthersRun();
    begun = performance.now();
  }
  return results;
}

/** Limits how many tasks run at the same time. The others wait, in the order of the calls. */
export function createLimit(max: number) {
  const waiting: (() => void)[] = [];
  let running = 0;
  return {
    /** Returns the number of tasks that have not begun. */
    waiting: (): number => waiting.length,

    async run<T>(task: () => Promise<T>): Promise<T> {
      if (running < max) running++;
      else await new Promise<void>((begin) => waiting.push(begin));
      try {
        return await task();
      } finally {
        // The next task takes the place of this one, so that no later call gets it in between.
        const begin = waiting.shift();
        if (begin) begin();
        else running--;
      }
    },
  };
}
