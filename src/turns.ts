/** Long computations beside a server: other requests are served in between. */

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
