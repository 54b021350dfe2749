import { closeSync } from "node:fs";
import { tmpdir } from "node:os";
import { afterAll, describe, expect, test } from "bun:test";
import { BehindError, createSharedRateLimitFile, openSharedRateLimit } from "../../src/http/shared_rate_limit.ts";
import { createRateLimit } from "../../src/http/rate_limit.ts";

/** A limiter on clocks that the test moves; `wall` starts at Unix second 1000. */
function create(limit: number) {
  let now = 5_000;
  let offset = 995_000;
  const rateLimit = createRateLimit(
    limit,
    () => now,
    () => now + offset,
  );
  return {
    ...rateLimit,
    size: () => rateLimit.size,
    advance: (ms: number) => void (now += ms),
    setWallBack: (ms: number) => void (offset -= ms),
  };
}

describe("the limiter", () => {
  test("admits the limit and tells the truth about it", () => {
    const limiter = create(3);
    expect(limiter.admit("a")).toEqual({ admitted: true, limit: 3, remaining: 2, reset: 1060 });
    limiter.advance(500);
    expect(limiter.admit("a")).toEqual({ admitted: true, limit: 3, remaining: 1, reset: 1060 });
    expect(limiter.admit("a")).toEqual({ admitted: true, limit: 3, remaining: 0, reset: 1060 });
    expect(limiter.admit("a")).toEqual({ admitted: false, limit: 3, remaining: 0, reset: 1060 });
    expect(limiter.admit("b").remaining).toBe(2);
  });

  test("waiting until reset is always enough, and a rejected request does not count", () => {
    const limiter = create(2);
    limiter.admit("a");
    limiter.advance(30_250);
    limiter.admit("a");
    for (let index = 0; index < 100; index++) expect(limiter.admit("a").admitted).toBe(false);
    limiter.advance(29_749);
    expect(limiter.admit("a").admitted).toBe(false);
    limiter.advance(1);
    expect(limiter.admit("a")).toEqual({ admitted: true, limit: 2, remaining: 0, reset: 1091 });
  });

  test("never admits more than the limit in any window, whatever the rhythm", () => {
    const limiter = create(60);
    const admitted: number[] = [];
    let now = 0;
    for (let step = 0; step < 20_000; step++) {
      const ms = (step * 7919) % 97;
      limiter.advance(ms);
      now += ms;
      if (limiter.admit("a").admitted) admitted.push(now);
    }
    const full = admitted.filter((moment, index) => index >= 60 && moment - admitted[index - 60]! < 60_000);
    expect(full).toEqual([]);
    expect(admitted.length).toBeGreaterThan(60 * 14);
  });

  test("a wall clock that jumps changes nothing but the number of reset", () => {
    const limiter = create(1);
    limiter.admit("a");
    limiter.setWallBack(3_600_000);
    expect(limiter.admit("a").admitted).toBe(false);
    limiter.advance(60_000);
    expect(limiter.admit("a").admitted).toBe(true);
  });

  test("gives back the memory of idle clients and keeps what counts", () => {
    const limiter = create(2);
    for (let client = 0; client < 1_000; client++) limiter.admit(`client ${client}`);
    limiter.advance(59_000);
    limiter.admit("late");
    limiter.admit("late");
    limiter.advance(1_000);
    limiter.sweep();
    expect(limiter.admit("late").admitted).toBe(false);
    expect(limiter.size()).toBe(1_001);
    limiter.advance(60_000);
    limiter.sweep();
    expect(limiter.size()).toBe(1);
    limiter.advance(120_000);
    limiter.sweep();
    expect(limiter.size()).toBe(0);
  });

  test("a limit of 0 is no limit", () => {
    const limiter = create(0);
    for (let index = 0; index < 1_000; index++) expect(limiter.admit("a").admitted).toBe(true);
    expect(limiter.admit("a")).toEqual({ admitted: true, limit: 2147483647, remaining: 2147483647, reset: 1000 });
    expect(limiter.size()).toBe(0);
  });
});

describe("limiters over one log", () => {
  const files: number[] = [];
  afterAll(() => files.forEach((file) => closeSync(file)));

  /** As many processes would be: each with a clock that is a little off, and the log mapped for itself. */
  function createShared(limit: number, entries = 4_096) {
    const file = createSharedRateLimitFile(entries, [tmpdir()]);
    files.push(file);
    let now = 5_000;
    let count = 0;
    return {
      file,
      advance: (ms: number) => void (now += ms),
      open(offMs = 0) {
        const log = openSharedRateLimit(file, ++count);
        const limiter = createRateLimit(
          limit,
          () => now + offMs,
          () => now + 995_000,
          log,
        );
        return { ...limiter, size: () => limiter.size, log };
      },
    };
  }

  test("admit the limit between them, and each tells the truth about all", () => {
    const shared = createShared(3);
    const [a, b] = [shared.open(), shared.open()];
    expect(a.admit("k")).toEqual({ admitted: true, limit: 3, remaining: 2, reset: 1061 });
    shared.advance(500);
    expect(b.admit("k")).toEqual({ admitted: true, limit: 3, remaining: 1, reset: 1061 });
    expect(a.admit("other").remaining).toBe(2);
    expect(a.admit("k").remaining).toBe(0);
    for (const limiter of [a, b]) expect(limiter.admit("k")).toMatchObject({ admitted: false, remaining: 0 });
    expect(b.admit("other").remaining).toBe(1);
  });

  test("waiting until reset is always enough, and a rejected request does not count anywhere", () => {
    const shared = createShared(2);
    const [a, b] = [shared.open(), shared.open()];
    a.admit("k");
    shared.advance(30_250);
    b.admit("k");
    for (let index = 0; index < 100; index++) expect((index % 2 ? a : b).admit("k").admitted).toBe(false);
    shared.advance(29_750);
    expect(b.admit("k").admitted).toBe(false);
    // The window is a millisecond longer: the clocks of two processes may be half of one off, each.
    shared.advance(1);
    expect(b.admit("k").admitted).toBe(true);
    expect(a.admit("k")).toMatchObject({ admitted: false, remaining: 0, reset: 1091 });
  });

  test("never admit more than the limit in any window, whatever the rhythm and whoever is asked", () => {
    const shared = createShared(60, 8_192);
    const all = [shared.open(), shared.open(-0.45), shared.open(0.45)];
    const admitted: number[] = [];
    let refusedWithRoom = 0;
    let now = 0;
    for (let step = 0; step < 20_000; step++) {
      const ms = (step * 7919) % 97;
      shared.advance(ms);
      now += ms;
      const inWindow = admitted.filter((moment) => now - moment < 60_002).length;
      if (all[(step * 31) % 3]!.admit("k").admitted) admitted.push(now);
      else if (inWindow < 60) refusedWithRoom++;
      if (step % 10 === 0) for (const limiter of all) limiter.keepUp();
    }
    const full = admitted.filter((moment, index) => index >= 60 && moment - admitted[index - 60]! < 60_000);
    expect(full).toEqual([]);
    expect(refusedWithRoom).toBe(0);
    expect(admitted.length).toBeGreaterThan(60 * 14);
  });

  test("one that comes later knows the last minute, and one that nobody asked for long what came since", () => {
    const shared = createShared(5);
    const [a, idle] = [shared.open(), shared.open()];
    for (let count = 0; count < 3; count++) a.admit("k");
    shared.advance(200_000);
    for (let count = 0; count < 4; count++) a.admit("k");
    const late = shared.open();
    expect(late.log.knownSince()).toBe(0);
    expect(late.admit("k")).toMatchObject({ admitted: true, remaining: 0 });
    expect(idle.admit("k").admitted).toBe(false);
    expect(idle.size()).toBe(1);
  });

  test("one that died with the lock, in the middle of an entry, leaves nothing behind", () => {
    const shared = createShared(3);
    const [a, b] = [shared.open(), shared.open()];
    a.admit("k");
    const words = new Int32Array(Bun.mmap(`/dev/fd/${shared.file}`, { shared: true }).buffer);
    words[0] = 7;
    words[(64 + (words[1]! % 4_096) * 16) / 4] = 12_345;
    b.log.forget(8);
    expect(words[0]).toBe(7);
    b.log.forget(7);
    expect(b.admit("k")).toMatchObject({ admitted: true, remaining: 1 });
    expect(a.admit("k")).toMatchObject({ admitted: true, remaining: 0 });
  });

  test("one that has stood still while the log was written over says so, and a new one from when on it knows", () => {
    const shared = createShared(1_000_000);
    const [a, still] = [shared.open(), shared.open()];
    for (let count = 0; count < 5_000; count++) {
      a.admit("k");
      shared.advance(1);
    }
    expect(() => still.keepUp()).toThrow(BehindError);
    // It reads the newest 3,584 of 4,096: the others may be written over while it does.
    expect(shared.open().log.knownSince()).toBe(5_000 + 5_000 - 3_584);
    const fresh = shared.open();
    expect(fresh.admit("k").remaining).toBe(1_000_000 - 3_584 - 1);
  });
});
