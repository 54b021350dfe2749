/** An exact sliding window per client, in this process or over several: at most `limit` admissions in any 60 seconds. */

import type { SharedRateLimit } from "./shared_rate_limit.ts";

export const WINDOW_MS = 60_000;
/** The clocks of several processes are read at most half of this apart: their window is longer by it. */
export const CLOCKS_MS = 1;
/** The value of the headers when there is no limit: the largest number that every client can read. */
const UNLIMITED = 2_147_483_647;

/** The moments of the admissions that still count, oldest first, in a ring that grows up to the limit. */
type Ring = { moments: Float64Array; head: number; count: number };

export type Admission = {
  admitted: boolean;
  limit: number;
  remaining: number;
  /** Unix seconds, rounded up: when the oldest counted request leaves the window. */
  reset: number;
};

/**
 * `monotonic` gives milliseconds that never jump, `wall` Unix milliseconds.
 * A rejected request does not count. A client that is idle for two windows costs no memory.
 * With `log` the limit is one over all processes that share it, whose `monotonic` are one clock to within half of
 * CLOCKS_MS: each knows the admissions of all, and admits only while no other does, after it has read what they did.
 */
export function createRateLimit(
  limit: number,
  monotonic: () => number = () => performance.now(),
  wall: () => number = Date.now,
  log?: SharedRateLimit,
) {
  const windowMs = WINDOW_MS + (log ? CLOCKS_MS : 0);
  // Two generations: whoever is not seen for a whole window stays in the older one, which is then dropped at once.
  let current = new Map<string | number, Ring>();
  let previous = new Map<string | number, Ring>();
  let turned = monotonic();
  let latest = 0;

  function turn(now: number): void {
    if (now - turned < windowMs) return;
    previous = now - turned < 2 * windowMs ? current : new Map();
    current = new Map();
    turned = now;
  }

  function ringOf(client: string | number): Ring {
    let ring = current.get(client);
    if (ring) return ring;
    ring = previous.get(client) ?? { moments: new Float64Array(Math.min(limit, 8)), head: 0, count: 0 };
    current.set(client, ring);
    return ring;
  }

  /** Forgets what has left the window; whether there is room for one more. */
  function hasRoom(ring: Ring, now: number): boolean {
    while (ring.count > 0 && now - ring.moments[ring.head]! >= windowMs) {
      ring.head = (ring.head + 1) % ring.moments.length;
      ring.count--;
    }
    return ring.count < limit;
  }

  function push(ring: Ring, now: number): void {
    if (ring.count === ring.moments.length) {
      const grown = new Float64Array(Math.min(limit, ring.count * 2));
      for (let i = 0; i < ring.count; i++) grown[i] = ring.moments[(ring.head + i) % ring.count]!;
      ring.moments = grown;
      ring.head = 0;
    }
    ring.moments[(ring.head + ring.count) % ring.moments.length] = now;
    ring.count++;
  }

  /** Counts what others have admitted. */
  function follow(key: number, moment: number): void {
    latest = moment;
    if (moment <= monotonic() - windowMs) return;
    const ring = ringOf(key);
    if (hasRoom(ring, moment)) push(ring, moment);
  }

  function pushShared(shared: SharedRateLimit, key: number, ring: Ring): boolean {
    return shared.alone(() => {
      shared.read(follow);
      // The moments of the log ascend, whoever wrote the last one.
      const now = Math.max(monotonic(), latest);
      if (!hasRoom(ring, now)) return false;
      push(ring, now);
      shared.write(key, (latest = now));
      return true;
    });
  }

  return {
    admit(client: string): Admission {
      const reset = (inMs: number) => Math.ceil((wall() + inMs) / 1000);
      if (limit === 0) return { admitted: true, limit: UNLIMITED, remaining: UNLIMITED, reset: reset(0) };
      const now = monotonic();
      turn(now);
      log?.read(follow);
      const key = log ? log.keyOf(client) : client;
      const ring = ringOf(key);
      let admitted = hasRoom(ring, now);
      // If known admissions already exceed the limit, unknown ones cannot change that, so nobody has to wait.
      if (admitted && log) admitted = pushShared(log, key as number, ring);
      else if (admitted) push(ring, now);
      const oldest = ring.moments[ring.head]!;
      return { admitted, limit, remaining: limit - ring.count, reset: reset(oldest + windowMs - now) };
    },

    /** Gives back the memory of idle clients when nobody asks any more. */
    sweep(): void {
      turn(monotonic());
    },

    /** To be called several times a second by each process of a log, whether or not somebody asks. Throws BehindError. */
    keepUp(): void {
      turn(monotonic());
      log?.read(follow);
    },

    /** How many clients are remembered. */
    get size(): number {
      let both = current.size;
      for (const client of previous.keys()) if (!current.has(client)) both++;
      return both;
    },
  };
}

export type RateLimit = ReturnType<typeof createRateLimit>;
