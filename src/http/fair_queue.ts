/** A queue that is fair among keys: the items of a key only wait for each other, and do not delay those of other keys. */

/** Creates a queue in which keys take turns; items of one key are in order. */
export function createFairQueue<Item>() {
  // A Map keeps the order of insertion: its first key is the next one.
  const lines = new Map<string, Item[]>();
  return {
    isEmpty: (): boolean => lines.size === 0,

    push(key: string, item: Item): void {
      const line = lines.get(key);
      if (line) line.push(item);
      else lines.set(key, [item]);
    },

    shift(): Item | undefined {
      for (const [key, line] of lines) {
        const item = line.shift();
        lines.delete(key);
        if (line.length > 0) lines.set(key, line);
        return item;
      }
      return undefined;
    },

    /** Takes the first such item of a key out of the line; whether there was one. */
    remove(key: string, isIt: (item: Item) => boolean): boolean {
      const line = lines.get(key) ?? [];
      const at = line.findIndex(isIt);
      if (at === -1) return false;
      line.splice(at, 1);
      if (line.length === 0) lines.delete(key);
      return true;
    },
  };
}

/** Creates a queue in which owners take turns, and the keys of each owner: who has many keys gets no more than others. */
export function createOwnersQueue<Item>() {
  const owners = new Map<string, ReturnType<typeof createFairQueue<Item>>>();
  return {
    isEmpty: (): boolean => owners.size === 0,

    push(owner: string, key: string, item: Item): void {
      const own = owners.get(owner) ?? createFairQueue<Item>();
      owners.set(owner, own);
      own.push(key, item);
    },

    shift(): Item | undefined {
      for (const [owner, own] of owners) {
        const item = own.shift();
        owners.delete(owner);
        if (!own.isEmpty()) owners.set(owner, own);
        return item;
      }
      return undefined;
    },

    /** Takes the first such item of a key out of the line; whether there was one. */
    remove(owner: string, key: string, isIt: (item: Item) => boolean): boolean {
      const own = owners.get(owner);
      const isRemoved = own?.remove(key, isIt) ?? false;
      if (own?.isEmpty()) owners.delete(owner);
      return isRemoved;
    },
  };
}
