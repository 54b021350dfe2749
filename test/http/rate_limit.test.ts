import { describe, expect, test } from "bun:test";
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
