/** The probability of each commit as the culprit, compared with sums over everything that can have happened. */

import { describe, expect, test } from "bun:test";
import {
  assumeFlakeRate,
  believe,
  chanceOfResult,
  type CommitProbe,
  type CulpritRange,
  failureRateGrid,
  flakeRateGrid,
  measureFlakeRate,
  priorOf,
  type ProbeResult,
  weighCommits,
} from "../../src/rules/culprit.ts";
import { createRandom, type Random } from "../random.ts";

const rangeOf = (commits: number, flakeRate = 0.05): CulpritRange => ({
  weights: Array<number>(commits).fill(1),
  flakeRate: assumeFlakeRate(flakeRate),
});

const RESULTS: ProbeResult[] = ["failed", "passed", "other_failure", "no_build"];

function drawProbes(random: Random, commits: number, count: number, rounds: number): CommitProbe[] {
  return Array.from({ length: count }, () => ({
    index: random.integer(0, commits),
    result: random.pick(RESULTS),
    ...(random.chance(0.2) ? {} : { round: random.integer(0, rounds - 1) }),
  }));
}

/** The same model without prefix sums, shared hypotheses or a forward algorithm: a sum over flake rates and all courses of outages. */
function enumerate(range: CulpritRange, probes: readonly CommitProbe[]): number[] {
  const rounds = [...new Set(probes.flatMap(({ round, result }) => (result === "no_build" ? [] : (round ?? []))))].sort(
    (a, b) => a - b,
  );
  const inOutage = { failed: 0.5, other_failure: 0.48, passed: 0.02, no_build: 1 };
  const joint = priorOf(range).map((prior, first) => {
    let sum = 0;
    for (const rates of failureRateGrid(range.flakeRate))
      for (let course = 0; course < 2 ** rounds.length; course++) {
        const isOutage = rounds.map((_, at) => (course >> at) % 2 === 1);
        let likelihood = rates.chance;
        for (const [at, now] of isOutage.entries()) {
          const begins = at > 0 && isOutage[at - 1] ? 0.8 : 0.02;
          likelihood *= now ? begins : 1 - begins;
        }
        for (const { index, result, round } of probes)
          likelihood *=
            round !== undefined && isOutage[rounds.indexOf(round)]
              ? inOutage[result]
              : chanceOfResult(result, index >= first, rates);
        sum += likelihood;
      }
    return prior * sum;
  });
  const total = joint.reduce((sum, mass) => sum + mass, 0);
  return joint.map((mass) => mass / total);
}

describe("believe", () => {
  test("the probabilities sum to one, for ranges of every size", () => {
    const random = createRandom(1, "sum");
    for (const commits of [1, 2, 3, 17, 256, 5_000])
      for (const count of [0, 1, 5, 60]) {
        const { chances } = believe(rangeOf(commits), drawProbes(random, commits, count, 40));
        expect(chances.length).toBe(commits + 2);
        expect(chances.every((chance) => chance >= 0)).toBe(true);
        expect(chances.reduce((sum, chance) => sum + chance, 0)).toBeCloseTo(1, 9);
      }
  });

  test("the order in which results are listed does not matter", () => {
    const random = createRandom(2, "order");
    for (let at = 0; at < 20; at++) {
      const probes = drawProbes(random, 12, 10, 4);
      const expected = believe(rangeOf(12), probes);
      const shuffled = believe(rangeOf(12), random.sample(probes, probes.length));
      for (const of of ["chances", "flakeRates", "outages"] as const)
        for (const [index, value] of shuffled[of].entries()) expect(value).toBeCloseTo(expected[of][index]!, 9);
    }
  });

  test("it agrees with the sum over all flake rates and courses of outages on small ranges", () => {
    const random = createRandom(3, "enumeration");
    for (let at = 0; at < 60; at++) {
      const commits = random.integer(1, 6);
      const range = {
        weights: Array.from({ length: commits }, () => random.between(0.5, 8)),
        flakeRate: measureFlakeRate(random.integer(0, 20), 60),
      };
      const probes = drawProbes(random, commits, random.integer(0, 9), 5);
      const expected = enumerate(range, probes);
      for (const [index, chance] of believe(range, probes).chances.entries())
        expect(chance).toBeCloseTo(expected[index]!, 9);
    }
  });

  test("a pass says more than a failure if the test is flaky", () => {
    const [sound, flaky] = [0.01, 0.3].map((rate) =>
      believe(rangeOf(8, rate), [{ index: 4, result: "failed", round: 0 }]).chances.slice(1, 5),
    );
    const sum = (chances: readonly number[]) => chances.reduce((all, chance) => all + chance, 0);
    expect(sum(sound!)).toBeGreaterThan(0.85);
    expect(sum(flaky!)).toBeLessThan(0.75);
    const passed = believe(rangeOf(8, 0.3), [{ index: 4, result: "passed", round: 0 }]).chances.slice(1, 5);
    expect(sum(passed)).toBeLessThan(0.05);
  });

  test("a commit that does not build, or fails in another way, says nothing about the others", () => {
    const prior = priorOf(rangeOf(6));
    for (const result of ["no_build", "other_failure"] as const)
      for (const [index, chance] of believe(rangeOf(6), [{ index: 3, result, round: 0 }]).chances.entries())
        expect(chance).toBeCloseTo(prior[index]!, 9);
  });

  test("failures of all commits from some time on are an outage, and not the code", () => {
    const probes: CommitProbe[] = [
      ...[2, 2].map((index): CommitProbe => ({ index, result: "passed", round: 0 })),
      ...[2, 0, 1].map((index, at): CommitProbe => ({ index, result: "failed", round: at + 1 })),
    ];
    const { chances, outages } = believe(rangeOf(8, 0.01), probes);
    const outage = chances.reduce((sum, chance, index) => sum + chance * outages[index]!, 0);
    expect(outage).toBeGreaterThan(0.9);
    const after = believe(rangeOf(8, 0.01), [...probes, { index: 2, result: "passed", round: 4 }]);
    expect(after.chances[0]! + after.chances[1]! + after.chances[2]!).toBeLessThan(0.05);
  });
});

describe("flake rates", () => {
  const meanOf = (rate: { failures: number; passes: number }) =>
    flakeRateGrid(rate).reduce((sum, { rate, chance }) => sum + rate * chance, 0);

  test("few results are less certain than many", () => {
    const spread = (rate: { failures: number; passes: number }) => {
      const mean = meanOf(rate);
      return flakeRateGrid(rate).reduce((sum, { rate, chance }) => sum + chance * (rate - mean) ** 2, 0);
    };
    expect(meanOf(measureFlakeRate(50, 500))).toBeCloseTo(0.1, 1);
    expect(spread(measureFlakeRate(1, 10))).toBeGreaterThan(5 * spread(measureFlakeRate(50, 500)));
    expect(meanOf(measureFlakeRate(0, 0))).toBeLessThan(0.15);
  });

  test("an assumed rate is the mean", () => {
    for (const rate of [0.05, 0.15, 0.3]) expect(Math.abs(meanOf(assumeFlakeRate(rate)) - rate)).toBeLessThan(0.02);
    expect(meanOf(assumeFlakeRate(0))).toBeLessThan(0.02);
  });
});

test("a commit that changes what the test uses is more probable, and no commit is impossible", () => {
  const prior = priorOf({ weights: weighCommits(["none", "test", "none"]), flakeRate: assumeFlakeRate(0) });
  expect(prior[2]).toBeCloseTo(8 * prior[1]!, 9);
  expect(prior.every((chance) => chance > 0)).toBe(true);
});
