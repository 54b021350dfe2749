/** A rate limit for several processes of one machine: a log of admissions of the last minute in shared memory. */

import { closeSync, openSync, unlinkSync, writeSync } from "node:fs";
import { join } from "node:path";

/** Words of 4 bytes: who holds the lock (0: nobody), how many entries were ever written, two seeds. */
const [LOCK, TAIL, SEEDS] = [0, 1, 2];
const HEADER_BYTES = 64;
/** Two words that stand for the client, and the moment in 8 bytes. */
const ENTRY_BYTES = 16;
/** Readers skip this part of the oldest entries, because it may be overwritten while they read. */
const MARGIN = 1 / 8;
/** A holder needs less than a microsecond; who finds it for longer lets others have the processor. */
const SPINS = 2_000;
const SHORT_SLEEP_MS = 0.02;
/** The death of a process that held the lock is detected within some milliseconds. */
const PATIENCE_MS = 2_000;

/** A process that did not come to read the log for so long that it does not know what it has missed. */
export class BehindError extends Error {
  override name = "BehindError";
}

export type SharedRateLimit = ReturnType<typeof openSharedRateLimit>;

/**
 * A file that nothing but its descriptor leads to: it is gone with the last process that has it open, however that ends.
 * It takes 16 bytes for each of `entries`, a power of two; all of it at once, because a shared mapping without room ends
 * the process that writes. The first of `folders` that has room holds it. Throws when none has.
 */
export function createSharedRateLimitFile(entries: number, folders: readonly string[]): number {
  const content = new Uint8Array(HEADER_BYTES + entries * ENTRY_BYTES);
  crypto.getRandomValues(content.subarray(SEEDS * 4, SEEDS * 4 + 8));
  let reason: unknown;
  for (const folder of folders) {
    const path = join(folder, `assay-admissions-${Bun.randomUUIDv7()}`);
    let file: number | undefined;
    try {
      file = openSync(path, "wx+", 0o600);
      unlinkSync(path);
      for (let at = 0; at < content.length;) at += writeSync(file, content, at);
      return file;
    } catch (error) {
      reason = error;
      if (file !== undefined) closeSync(file);
    }
  }
  throw new Error(`Cannot create the shared memory of the workers in ${folders.join(", ")}: ${String(reason)}`);
}

/**
 * `file` is the descriptor, in this process, of what `createSharedRateLimitFile` has made; `self` tells this process from the
 * others, from 1 on. An entry counts from the moment that TAIL does: whoever dies before leaves nothing behind but the
 * lock, which `forget` takes away.
 */
export function openSharedRateLimit(file: number, self: number) {
  const { buffer } = Bun.mmap(`/dev/fd/${file}`, { shared: true });
  const words = new Int32Array(buffer);
  const moments = new Float64Array(buffer);
  const capacity = (buffer.byteLength - HEADER_BYTES) / ENTRY_BYTES;
  const [first, second] = [words[SEEDS]! >>> 0, words[SEEDS + 1]! >>> 0];
  /** The numbers of entries wrap at 2³²: only their differences mean something. */
  let seen = (Atomics.load(words, TAIL) - capacity * (1 - MARGIN)) | 0;
  const offsetOf = (entry: number) => HEADER_BYTES + (entry & (capacity - 1)) * ENTRY_BYTES;
  const firstKnown = moments[offsetOf(seen) / 8 + 1]!;
  // Where nobody has written yet: there are fewer than these in all.
  if (firstKnown === 0) seen = 0;

  function lock(): void {
    let until: number | undefined;
    for (let spins = 1; Atomics.compareExchange(words, LOCK, 0, self) !== 0; spins++) {
      if (spins % SPINS !== 0) continue;
      until ??= performance.now() + PATIENCE_MS;
      if (performance.now() > until) throw new Error("Another worker does not release the lock of the rate limit");
      Bun.sleepSync(SHORT_SLEEP_MS);
    }
  }

  return {
    /** Returns the hash of a client in the log, the same in all processes: 53 of 64 bits that outsiders cannot guess. */
    keyOf: (client: string): number =>
      Bun.hash.xxHash32(client, first) * 2_097_152 + (Bun.hash.xxHash32(client, second) >>> 11),

    /** From when on it knows all admissions; 0 unless it came late to a log that holds less than all. */
    knownSince: (): number => firstKnown,

    /** Gives what was admitted since the last time, here or elsewhere, oldest first. Throws BehindError. */
    read(take: (key: number, moment: number) => void): void {
      const tail = Atomics.load(words, TAIL);
      for (; seen !== tail; seen = (seen + 1) | 0) {
        const offset = offsetOf(seen);
        const moment = moments[offset / 8 + 1]!;
        const key = (words[offset / 4]! >>> 0) * 2_097_152 + words[offset / 4 + 1]!;
        if ((Atomics.load(words, TAIL) - seen) >>> 0 > capacity - 1)
          throw new BehindError("This worker was suspended for too long to know the admissions of the other workers");
        take(key, moment);
      }
    },

    /** Runs `work` while no other process may write; it may not wait for anything. */
    alone<T>(work: () => T): T {
      lock();
      try {
        return work();
      } finally {
        Atomics.store(words, LOCK, 0);
      }
    },

    /** To be called alone, when all has been read. */
    write(key: number, moment: number): void {
      const offset = offsetOf(seen);
      words[offset / 4] = Math.floor(key / 2_097_152);
      words[offset / 4 + 1] = key % 2_097_152;
      moments[offset / 8 + 1] = moment;
      seen = (seen + 1) | 0;
      Atomics.store(words, TAIL, seen);
    },

    /** Takes the lock from a process that has died with it. */
    forget: (dead: number): void => void Atomics.compareExchange(words, LOCK, dead, 0),
  };
}
