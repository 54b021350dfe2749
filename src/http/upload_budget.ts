/** The memory that the bodies of uploads may take, all together: who does not fit in waits in turn. */

import { createTurns } from "./turns.ts";

/** Up to this size a body has room of its own, which large ones cannot take: small uploads go on beside them. */
const SMALL = 1_048_576;
const SMALL_SHARE = 1 / 8;
/** Of the room of small ones, or of large ones, for one key: who sends much, and slowly, keeps others from at most half. */
const KEY_SHARE = 1 / 2;
/** While others wait, a large body must bring so many bytes in so long, or it gives way. */
const MIN_BYTES = 655_360;
const LOOK_MS = 10_000;
/** More would hold their connections, and what those have received, for nothing. */
const MAX_WAITING = 256;

/** A body that has to give way to others. */
export class OverdrawnError extends Error {
  override name = "OverdrawnError";
}

/** What one body takes; it must be released on every way out. */
export type Hold = {
  /**
   * Takes so many bytes more: at once, or when the promise resolves. It rejects when the hold is released meanwhile, and
   * with OverdrawnError when too many wait, or the body comes so slowly that it keeps others waiting.
   */
  grow: (bytes: number) => Promise<void> | undefined;
  /** All of it is there: it holds what it has until it is released. */
  arrived: () => void;
  release: () => void;
};

type Entry = {
  key: string;
  held: number;
  wanted: number;
  /** What it held at the last look. */
  seen: number;
  hasArrived: boolean;
  grant: () => void;
  refuse: (error: Error) => void;
  evict: () => void;
};

/** What is held of one kind of bodies, and by whom. */
function createRoom(bytes: number) {
  const heldBy = new Map<string, number>();
  let held = 0;
  return {
    held: () => held,
    fits: (key: string, more: number) => held + more <= bytes && (heldBy.get(key) ?? 0) + more <= bytes * KEY_SHARE,
    take(key: string, more: number): void {
      held += more;
      const all = (heldBy.get(key) ?? 0) + more;
      if (all === 0) heldBy.delete(key);
      else heldBy.set(key, all);
    },
  };
}

/**
 * `bytes` for all bodies together. One of the large ones that wait may go beyond it until it is released: otherwise bodies
 * of which half is there could wait for each other for ever.
 */
export function createUploadBudget(bytes: number) {
  const small = createRoom(bytes * SMALL_SHARE);
  const large = createRoom(bytes * (1 - SMALL_SHARE));
  const open = new Set<Entry>();
  const waiting = createTurns<Entry>();
  let waitingCount = 0;
  let first: Entry | undefined;
  let looking: Timer | undefined;

  const isSmall = (size: number) => size <= SMALL;

  function fits({ key, held }: Entry, more: number): boolean {
    if (isSmall(held + more)) return small.fits(key, more);
    // A body that outgrows the small ones takes all that it has with it.
    return large.fits(key, isSmall(held) ? held + more : more);
  }

  function take(entry: Entry, more: number): void {
    const { key, held } = entry;
    entry.held += more;
    if (isSmall(held) === isSmall(entry.held)) (isSmall(held) ? small : large).take(key, more);
    else {
      small.take(key, isSmall(held) ? -held : entry.held);
      large.take(key, isSmall(held) ? entry.held : -held);
    }
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
      waitingCount--;
      take(entry, entry.wanted);
      entry.wanted = 0;
      entry.grant();
    }
    for (const entry of left) waiting.push(entry.key, entry);
    if (left.length === 0) {
      clearInterval(looking);
      looking = undefined;
    }
  }

  /** Who holds much and brings little gives way to those that wait. */
  function look(): void {
    for (const entry of [...open]) {
      const isSlow =
        !entry.hasArrived && entry.wanted === 0 && !isSmall(entry.held) && entry.held - entry.seen < MIN_BYTES;
      entry.seen = entry.held;
      if (isSlow) entry.evict();
    }
  }

  function startLooking(): void {
    if (looking) return;
    for (const entry of open) entry.seen = entry.held;
    looking = setInterval(look, LOOK_MS);
    looking.unref();
  }

  return {
    /** `key` is who sends the body. */
    open(key: string): Hold {
      let isOpen = true;
      let isEvicted = false;
      const entry: Entry = { key, held: 0, wanted: 0, seen: 0, hasArrived: false, grant() {}, refuse() {}, evict };
      open.add(entry);
      const gone = () =>
        isEvicted
          ? new OverdrawnError("The body came too slowly while others were waiting")
          : new Error("The memory of this upload has been released");

      function release(): void {
        if (!isOpen) return;
        isOpen = false;
        open.delete(entry);
        if (entry.wanted > 0 && waiting.remove(key, (one) => one === entry)) {
          waitingCount--;
          entry.refuse(gone());
        }
        if (first === entry) first = undefined;
        take(entry, -entry.held);
        admit();
      }

      function evict(): void {
        isEvicted = true;
        release();
      }

      return {
        grow(more) {
          if (!isOpen) return Promise.reject(gone());
          if (entry === first || fits(entry, more)) return void take(entry, more);
          if (waitingCount >= MAX_WAITING) return Promise.reject(new OverdrawnError("Too many bodies are waiting"));
          return new Promise((resolve, reject) => {
            Object.assign(entry, { wanted: more, grant: resolve, refuse: reject });
            waiting.push(key, entry);
            waitingCount++;
            startLooking();
            if (!first) admit();
          });
        },
        arrived: () => void (entry.hasArrived = true),
        release,
      };
    },

    /** Bytes, now. */
    held: (): number => small.held() + large.held(),

    /** For who does not want to wait for it: what is done every 10 s while somebody waits. */
    look,
  };
}
