/** The memory budget of the bodies of uploads: bodies that do not fit wait in turn. */

import { createFairQueue } from "./fair_queue.ts";

/** Up to this size a body has room of its own, which large ones cannot take: small uploads go on beside them. */
const MAX_SMALL_BYTES = 1_048_576;
const SMALL_SHARE = 1 / 8;
/** The share of the budget for small or large bodies that one team may use, so that a slow client blocks at most half. */
const TEAM_SHARE = 1 / 2;
/** While others wait, a large body must bring MIN_BYTES within CHECK_MS, or it is evicted. */
const MIN_BYTES = 655_360;
const CHECK_MS = 10_000;
/** Maximum number of waiting bodies. Further ones would only occupy connections and memory. */
const MAX_WAITING = 256;

/** A body that has to give way to others. */
export class OverdrawnError extends Error {
  override name = "OverdrawnError";
}

/** The budget of one body; it must be released in every case. */
export type Hold = {
  /**
   * Reserves further bytes, at once or when the promise resolves. Rejects if the hold is released meanwhile, and with OverdrawnError if too
   * many wait, or if the body is so slow that it keeps others waiting.
   */
  grow: (bytes: number) => Promise<void> | undefined;
  /** Reports bytes that have arrived and take no memory. */
  passed: (bytes: number) => void;
  /** Reports that the whole body has arrived: it keeps its memory until it is released. */
  arrived: () => void;
  release: () => void;
};

type Entry = {
  key: string;
  held: number;
  wanted: number;
  /** The size at the last check. */
  seen: number;
  /** Bytes since the last check that need no memory. */
  passed: number;
  hasArrived: boolean;
  grant: () => void;
  refuse: (error: Error) => void;
  evict: () => void;
};

/** The used budget of one kind of bodies, by team. */
function createRoom(bytes: number) {
  const heldBy = new Map<string, number>();
  let held = 0;
  return {
    held: () => held,
    fits: (key: string, more: number) => held + more <= bytes && (heldBy.get(key) ?? 0) + more <= bytes * TEAM_SHARE,
    take(key: string, more: number): void {
      held += more;
      const all = (heldBy.get(key) ?? 0) + more;
      if (all === 0) heldBy.delete(key);
      else heldBy.set(key, all);
    },
  };
}

const isSmall = (size: number) => size <= MAX_SMALL_BYTES;

/** The rooms of small and large bodies; a body that outgrows the small ones takes all that it has with it. */
function createRooms(bytes: number) {
  const small = createRoom(bytes * SMALL_SHARE);
  const large = createRoom(bytes * (1 - SMALL_SHARE));
  return {
    held: () => small.held() + large.held(),
    fits({ key, held }: Entry, more: number): boolean {
      if (isSmall(held + more)) return small.fits(key, more);
      return large.fits(key, isSmall(held) ? held + more : more);
    },
    /** `more` is negative where the body gives room back. */
    take(entry: Entry, more: number): void {
      const { key, held } = entry;
      entry.held += more;
      if (isSmall(held) === isSmall(entry.held)) (isSmall(held) ? small : large).take(key, more);
      else {
        small.take(key, isSmall(held) ? -held : entry.held);
        large.take(key, isSmall(held) ? entry.held : -held);
      }
    },
  };
}

/** Evicts the large bodies that arrive slowly, while others wait for their room. */
function createEviction(open: ReadonlySet<Entry>) {
  let checking: Timer | undefined;

  function check(): void {
    for (const entry of [...open]) {
      const isSlow =
        !entry.hasArrived &&
        entry.wanted === 0 &&
        !isSmall(entry.held) &&
        entry.held - entry.seen + entry.passed < MIN_BYTES;
      entry.seen = entry.held;
      entry.passed = 0;
      if (isSlow) entry.evict();
    }
  }

  return {
    check,
    start(): void {
      if (checking) return;
      for (const entry of open) entry.seen = entry.held;
      checking = setInterval(check, CHECK_MS);
      checking.unref();
    },
    stop(): void {
      clearInterval(checking);
      checking = undefined;
    },
  };
}

/**
 * Shares `bytes` between all bodies. One waiting large body may exceed the budget until it is released: otherwise bodies that have arrived
 * by half could wait for each other forever.
 */
export function createUploadBudget(bytes: number) {
  const rooms = createRooms(bytes);
  const open = new Set<Entry>();
  const eviction = createEviction(open);
  const waiting = createFairQueue<Entry>();
  let waitingCount = 0;
  /** The body that may go beyond the limit. */
  let first: Entry | undefined;

  /** Admits all waiting bodies that fit, and the next in turn in any case, as long as no other one exceeds the limit. */
  function admit(): void {
    const left: Entry[] = [];
    for (let entry = waiting.shift(); entry; entry = waiting.shift()) {
      const isIn = entry === first || rooms.fits(entry, entry.wanted);
      if (!isIn && first) {
        left.push(entry);
        continue;
      }
      if (!isIn) first = entry;
      waitingCount--;
      rooms.take(entry, entry.wanted);
      entry.wanted = 0;
      entry.grant();
    }
    for (const entry of left) waiting.push(entry.key, entry);
    if (left.length === 0) eviction.stop();
  }

  /** Undefined: the body has the bytes at once. */
  function grow(entry: Entry, more: number): Promise<void> | undefined {
    if (entry === first || rooms.fits(entry, more)) return void rooms.take(entry, more);
    if (waitingCount >= MAX_WAITING) return Promise.reject(new OverdrawnError("Too many bodies are waiting"));
    return new Promise((resolve, reject) => {
      Object.assign(entry, { wanted: more, grant: resolve, refuse: reject });
      waiting.push(entry.key, entry);
      waitingCount++;
      eviction.start();
      if (!first) admit();
    });
  }

  /** `toError` is for a body that waits. */
  function close(entry: Entry, toError: () => Error): void {
    open.delete(entry);
    if (entry.wanted > 0 && waiting.remove(entry.key, (one) => one === entry)) {
      waitingCount--;
      entry.refuse(toError());
    }
    if (first === entry) first = undefined;
    rooms.take(entry, -entry.held);
    admit();
  }

  return {
    /** `key` identifies the team that sends the body. */
    open(key: string): Hold {
      let state: "open" | "released" | "evicted" = "open";
      const toError = () =>
        state === "evicted"
          ? new OverdrawnError("The body came too slowly while others were waiting")
          : new Error("The memory of this upload has been released");
      const end = (as: "released" | "evicted") => {
        if (state !== "open") return;
        state = as;
        close(entry, toError);
      };
      const evict = () => end("evicted");
      const entry: Entry = {
        key,
        held: 0,
        wanted: 0,
        seen: 0,
        passed: 0,
        hasArrived: false,
        grant() {},
        refuse() {},
        evict,
      };
      open.add(entry);
      return {
        grow: (more) => (state === "open" ? grow(entry, more) : Promise.reject(toError())),
        passed: (bytes) => void (entry.passed += bytes),
        arrived: () => void (entry.hasArrived = true),
        release: () => end("released"),
      };
    },

    /** Bytes, now. */
    held: rooms.held,

    /** Runs the check that otherwise runs every 10 s while bodies wait. */
    look: eviction.check,
  };
}
