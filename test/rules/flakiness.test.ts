import { describe, expect, test } from "bun:test";
import { judgeFlakiness, type OwnFailure } from "../../src/rules/flakiness.ts";
import { readRates } from "../../src/rules/flaky_rates.ts";

const RATES = readRates(null);
const fail = (place: string, more: Partial<OwnFailure> = {}): OwnFailure => ({
  ...{ sign: "unexplained", place, share: 0.9, isExplainedAsFlaky: true, known: { failed: 1, results: 20 }, at: place },
  ...more,
});
const byChange = (place: string) =>
  fail(place, { share: 0.1, isExplainedAsFlaky: false, known: { failed: 0, results: 3 } });
const judge = (failures: readonly OwnFailure[], results: number, clean = 0) =>
  judgeFlakiness(RATES, failures, { results, clean });

describe("judgeFlakiness", () => {
  test("a test without failures of its own is not flaky", () => {
    expect(judge([], 50)).toEqual({ flaky: false, own: [], recoversAfter: 0 });
  });

  test("one pass on retry is enough where there are few results, and not in two hundred", () => {
    const retried = fail("1", { sign: "retry", share: 1 });
    expect(judge([retried], 14)).toMatchObject({ flaky: true, own: [retried] });
    expect(judge([retried], 200)).toMatchObject({ flaky: false, own: [retried] });
    expect(judge([retried, fail("2", { sign: "retry", share: 1 })], 200).flaky).toBe(true);
  });

  test("failures of one place are one, unless it passed again each time", () => {
    expect(judge([fail("7"), fail("7"), fail("8")], 25).own).toHaveLength(2);
    const again = { sign: "same_commit", share: 1 } as const;
    expect(judge([fail("7", again), fail("7", again), fail("7")], 25).own).toHaveLength(2);
  });

  test("failures that were put down to changes are the test's own once it is known to be flaky", () => {
    const early = byChange("1");
    expect(judge([early, fail("2"), fail("3"), fail("4")], 25)).toMatchObject({ flaky: true, own: { length: 4 } });
    expect(judge([early, byChange("2")], 25)).toMatchObject({ flaky: false, own: [] });
  });

  test("it recovers by passes that its rate makes unlikely, the rarer it fails the more", () => {
    const often = Array.from({ length: 10 }, (_, index) => fail(String(index)));
    const passes = judge(often, 20).recoversAfter;
    expect(passes).toBe(20);
    expect(judge(often, 20 + passes - 1, passes - 1).flaky).toBe(true);
    expect(judge(often, 20 + passes, passes)).toMatchObject({ flaky: false, own: { length: 10 } });
    const seldom = judge(often.slice(0, 2), 60).recoversAfter;
    expect(seldom).toBeGreaterThan(50);
    expect(judge(often.slice(0, 1), 190, 1).recoversAfter).toBeLessThanOrEqual(200);
  });
});
