/** The search for a culprit reaches its goals in a small simulation; `culprit.ts` runs a large one. */

import { expect, test } from "bun:test";
import { DEFAULT_BUDGET, scoreCulprits } from "./culprit.ts";
import { leastProbes, meanProbes } from "./culprit_optimum.ts";
import { FLAKE_RATES } from "./culprit_ranges.ts";

const SEEDS = Array.from({ length: 60 }, (_, at) => 5_000 + at);

test.each(FLAKE_RATES)("a test that fails in %p of its runs", (flakeRate) => {
  const options = { atOnce: 1, budget: DEFAULT_BUDGET, useOverlaps: true };
  const { search, plain, thrice } = scoreCulprits(flakeRate, SEEDS, options);
  expect(search.right).toBeGreaterThanOrEqual(flakeRate > 0.05 ? 0.85 : 0.95);
  // One range of 60 is more than the goal of 1 % over many.
  expect(search.wrong).toBeLessThanOrEqual(1 / SEEDS.length);
  expect(search.right).toBeGreaterThan(Math.max(plain.right, thrice.right));
  expect(search.probes).toBeLessThan(thrice.probes * (flakeRate > 0.05 ? 1.2 : 0.7));
});

test("a commit that broke another test makes a search no less right if it did not break this one", () => {
  const [alone, misled, led] = [undefined, 0, 1].map((provenRight) =>
    scoreCulprits(0.15, SEEDS, { atOnce: 1, budget: DEFAULT_BUDGET, useOverlaps: true, provenRight }),
  );
  expect(misled!.search.right).toBeGreaterThanOrEqual(0.95);
  expect(misled!.search.wrong).toBeLessThanOrEqual(1 / SEEDS.length);
  expect(led!.search.probes).toBeLessThan(alone!.search.probes);
});

test("several probes at once need fewer rounds", () => {
  const [one, four] = [1, 4].map((atOnce) =>
    scoreCulprits(0.05, SEEDS, { atOnce, budget: DEFAULT_BUDGET, useOverlaps: true }),
  );
  expect(four!.search.right).toBeGreaterThanOrEqual(0.95);
  expect(four!.search.rounds).toBeLessThan(one!.search.rounds / 1.8);
});

test("the fewest probes of small ranges", () => {
  expect(leastProbes(1, 0)).toBe(4);
  // Only the passes of the good commit may have to be repeated.
  expect(leastProbes(1, 0.3)).toBeCloseTo(2 + 2 / 0.7);
  // Whichever of two commits is the culprit, the probe that decides is one of the four that prove it.
  expect(leastProbes(2, 0)).toBe(4);
});

test.each(FLAKE_RATES)(
  "a test that fails in %p of its runs: the probes of the search are close to the fewest",
  (flakeRate) => {
    const ratio = meanProbes(5, flakeRate, SEEDS) / leastProbes(5, flakeRate);
    expect(ratio).toBeGreaterThan(0.9);
    expect(ratio).toBeLessThan(1.25);
  },
);
