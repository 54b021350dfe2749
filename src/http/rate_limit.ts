/** An exact sliding window per client in this process: at most `limit` admissions in any 60 seconds. */

const WINDOW_MS = 60_000;
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
 * `monotonic` returns milliseconds that never jump, `wall` Unix milliseconds. A rejected request does not count. A client that is idle for
 * two windows takes no memory.
 */
export function createRateLimit(
  limit: number,
  monotonic: () => number = () => performance.now(),
  wall: () => number = Date.now,
) {
  // Two generations: clients not seen for a whole window remain in the older one, which is then dropped at once.
  let current = new Map<string, Ring>();
  let previous = new Map<string, Ring>();
  let turned = monotonic();

  function turn(now: number): void {
    if (now - turned < WINDOW_MS) return;
    previous = now - turned < 2 * WINDOW_MS ? current : new Map();
    current = new Map();
    turned = now;
  }

  function ringOf(client: string): Ring {
    let ring = current.get(client);
    if (ring) return ring;
    ring = previous.get(client) ?? { moments: new Float64Array(Math.min(limit, 8)), head: 0, count: 0 };
    current.set(client, ring);
    return ring;
  }

  /** Removes what has left the window; returns whether there is room for one more. */
  function hasRoom(ring: Ring, now: number): boolean {
    while (ring.count > 0 && now - ring.moments[ring.head]! >= WINDOW_MS) {
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

  function decide(client: string, isCounted: boolean): Admission {
    const reset = (inMs: number) => Math.ceil((wall() + inMs) / 1000);
    if (limit === 0) return { admitted: true, limit: UNLIMITED, remaining: UNLIMITED, reset: reset(0) };
    const now = monotonic();
    turn(now);
    const ring = ringOf(client);
    const admitted = hasRoom(ring, now);
    if (admitted && isCounted) push(ring, now);
    const oldest = ring.count === 0 ? now : ring.moments[ring.head]!;
    return { admitted, limit, remaining: limit - ring.count, reset: reset(oldest + WINDOW_MS - now) };
  }

  return {
    admit: (client: string): Admission => decide(client, true),

    /** Returns what the next request would find, and counts nothing. */
    look: (client: string): Admission => decide(client, false),

    /** Releases the memory of idle clients. */
    sweep(): void {
      turn(monotonic());
    },

    /** The number of clients in memory. */
    get size(): number {
      let both = current.size;
      for (const client of previous.keys()) if (!current.has(client)) both++;
      return both;
    },
  };
}

export type RateLimit = ReturnType<typeof createRateLimit>;
