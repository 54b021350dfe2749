/** The exact confidence interval, against published values and against its definition. */

import { describe, expect, test } from "bun:test";
import { failureInterval } from "../../src/rules/failure_rate.ts";

const rounded = (failed: number, runs: number) => {
  const { lower, upper } = failureInterval(failed, runs);
  return [lower, upper].map((bound) => Number(bound.toFixed(4)));
};

describe("the interval", () => {
  // Two-sided values of Clopper and Pearson at 95 %, as binom.test of R and statsmodels return them.
  test.each([
    [1, 10, [0.0025, 0.445]],
    [5, 10, [0.1871, 0.8129]],
    [3, 20, [0.0321, 0.3789]],
    [10, 100, [0.049, 0.1762]],
    [50, 1_000, [0.0373, 0.0654]],
  ])("of %i failures in %i runs is that of Clopper and Pearson", (failed, runs, expected) => {
    expect(rounded(failed, runs)).toEqual(expected);
  });

  test.each([1, 3, 10, 59, 200, 1_000])(
    "of no failure in %i runs has a closed form, as that of failures alone",
    (runs) => {
      const bound = 1 - 0.05 ** (1 / runs);
      expect(failureInterval(0, runs).lower).toBe(0);
      expect(failureInterval(0, runs).upper).toBeCloseTo(bound, 10);
      expect(failureInterval(runs, runs).lower).toBeCloseTo(1 - bound, 10);
      expect(failureInterval(runs, runs).upper).toBe(1);
    },
  );

  test("contains the share of failures, grows with the failures, and mirrors that of the passes", () => {
    for (const runs of [2, 7, 40]) {
      let before = failureInterval(0, runs);
      for (let failed = 1; failed <= runs; failed++) {
        const here = failureInterval(failed, runs);
        expect(here.lower).toBeLessThan(failed / runs);
        expect(here.upper).toBeGreaterThanOrEqual(failed / runs);
        expect(here.lower).toBeGreaterThan(before.lower);
        expect(here.upper).toBeGreaterThan(before.upper);
        const mirrored = failureInterval(runs - failed, runs);
        expect(here.lower).toBeCloseTo(1 - mirrored.upper, 10);
        before = here;
      }
    }
  });
});
