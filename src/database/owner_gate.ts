/** Bounds how many transactions of one owner run at once: those that wait for a lock would otherwise take all connections from others. */

type Owner = { running: number; waiting: (() => void)[] };

/** Returns a function that runs `work`, which must not wait for other work of the same owner within it. */
export function createOwnerGate(max: number) {
  const owners = new Map<string, Owner>();
  return async function within<T>(owner: string | undefined, work: () => Promise<T>): Promise<T> {
    if (owner === undefined) return await work();
    const mine = owners.get(owner) ?? { running: 0, waiting: [] };
    owners.set(owner, mine);
    if (mine.running < max) mine.running++;
    else await new Promise<void>((enter) => mine.waiting.push(enter));
    try {
      return await work();
    } finally {
      const enter = mine.waiting.shift();
      if (enter) enter();
      else if (--mine.running === 0) owners.delete(owner);
    }
  };
}
