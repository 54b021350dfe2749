/** The memory that the bodies of uploads may take, all together: who does not fit in waits in turn. */

import { createTurns } from "./turns.ts";

/** Up to this size a body has room of its own, which large ones cannot take: small uploads go on beside them. */
const SMALL = 1_048_576;
const LARGE_SHARE = 7 / 8;
/** Of what all may take, for one key: who sends much, and slowly, keeps others from at most half. */
const KEY_SHARE = 1 / 2;

/** What one body takes; it must be released on every way out. */
export type Hold = {
  /** Takes so many bytes more: at once, or when the promise resolves. It rejects when the hold is released meanwhile. */
  grow: (bytes: number) => Promise<void> | undefined;
  release: () => void;
};

type Entry = { key: string; held: number; wanted: number; grant: () => void; refuse: (error: Error) => void };

/**
 * `bytes` for all bodies together. One of those that wait may go beyond it until it is released: otherwise bodies of
 * which half is there could wait for each other for ever.
 */
export function createUploadBudget(bytes: number) {
  const heldBy = new Map<string, number>();
  const waiting = createTurns<Entry>();
  let held = 0;
  let first: Entry | undefined;

  function fits({ key, held: own }: Entry, more: number): boolean {
    const room = own + more <= SMALL ? bytes : bytes * LARGE_SHARE;
    return held + more <= room && (heldBy.get(key) ?? 0) + more <= room * KEY_SHARE;
  }

  function take(entry: Entry, more: number): void {
    entry.held += more;
    held += more;
    const all = (heldBy.get(entry.key) ?? 0) + more;
    if (all === 0) heldBy.delete(entry.key);
    else heldBy.set(entry.key, all);
  }

  /** Lets everybody in who fits, and the next in turn in any case, as long as nobody else goes beyond the limit. */
  function admit(): void {
    const left: Entry[] = [];
    for (let entry = waiting.shift(); entry; entry = waiting.shift()) {
      const isIn = entry === first || fits(entry, entry.wanted);
      if (!isIn && first) {
        left.push(entry);
        continue;
      }
      if (!isIn) first = entry;
      take(entry, entry.wanted);
      entry.wanted = 0;
      entry.grant();
    }
    for (const entry of left) waiting.push(entry.key, entry);
  }

  return {
    /** `key` is who sends the body. */
    open(key: string): Hold {
      const entry: Entry = { key, held: 0, wanted: 0, grant() {}, refuse() {} };
      let isOpen = true;
      return {
        grow(more) {
          if (!isOpen) return Promise.reject(new Error("The memory of this upload has been released"));
          if (entry === first || fits(entry, more)) return void take(entry, more);
          return new Promise((resolve, reject) => {
            Object.assign(entry, { wanted: more, grant: resolve, refuse: reject });
            waiting.push(key, entry);
            if (!first) admit();
          });
        },

        release() {
          if (!isOpen) return;
          isOpen = false;
          if (entry.wanted > 0 && waiting.remove(key, (one) => one === entry))
            entry.refuse(new Error("The memory of this upload has been released"));
          if (first === entry) first = undefined;
          take(entry, -entry.held);
          admit();
        },
      };
    },

    /** Bytes, now. */
    held: (): number => held,
  };
}
