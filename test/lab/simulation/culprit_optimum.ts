/**
 * The fewest probes that any search for a culprit can need on average, computed exactly for a simple range, beside what the search of
 * Assay needs there. `bun test/lab/simulation/culprit_optimum.ts [--commits 8] [--ranges 2000]` prints both (8 commits: a minute and
 * 0.6 GB; each commit more multiplies both).
 *
 * The simple range: each commit is the culprit with the same probability, all commits build, there is no outage, the flake rate is known,
 * and a broken commit always fails. A culprit is proven as in Assay: its probability is at least 0.99, it has failed twice, and its
 * parent has passed twice.
 */

import { NAMED_FROM } from "../../../src/rules/culprit_suspects.ts";
import { bisect, DEFAULT_BUDGET, scoreOutcomes, search } from "./culprit.ts";
import { FLAKE_RATES, type SimulatedRange } from "./culprit_ranges.ts";
import { createRandom } from "../../random.ts";

const CONFIRMATIONS = 2;

/**
 * Returns a lower bound of the expected number of probes of any search, for a range of this number of commits after the good one. It is
 * exact but for one gift: a commit that has failed so often that the commits after it are less probable than a hundredth together counts
 * as failing for certain.
 *
 * A state is what is known: how often the last commit that passed did so, and the failures of each commit after it, as the digits of a
 * number, the first commit being the lowest digit. Passes of earlier commits are equally probable for all commits that are left.
 */
export function leastProbes(commits: number, flakeRate: number): number {
  const certain = flakeRate === 0 ? 1 : Math.ceil(Math.log((1 - NAMED_FROM) / commits) / Math.log(flakeRate));
  const base = Math.max(certain, CONFIRMATIONS) + 1;
  const powers = Array.from({ length: commits + 1 }, (_, digits) => base ** digits);
  // For each number of commits that are left and each number of passes.
  const known = powers.map((states) =>
    Array.from({ length: CONFIRMATIONS + 1 }, () => new Float64Array(states).fill(Number.NaN)),
  );
  const cost = (left: number, passes: number, failures: number): number => {
    const cache = known[left]![passes]!;
    if (Number.isNaN(cache[failures]!)) cache[failures] = compute(left, passes, failures);
    return cache[failures]!;
  };
  const compute = (left: number, passes: number, failures: number): number => {
    const counts = Array.from({ length: left }, (_, index) => Math.floor(failures / powers[index]!) % base);
    const chances = chancesOf(counts, flakeRate);
    if (chances[0]! >= NAMED_FROM && counts[0]! >= CONFIRMATIONS && passes >= CONFIRMATIONS) return 0;
    // A failure of the last commit that passed says nothing, so it is probed until it passes again.
    let least = passes < CONFIRMATIONS ? 1 / (1 - flakeRate) + cost(left, passes + 1, failures) : Infinity;
    let broken = 0;
    for (const [index, chance] of chances.entries()) {
      broken += chance;
      if (counts[index]! + 1 >= base) continue;
      const failing = broken + (1 - broken) * flakeRate;
      const failed = failures + powers[index]!;
      const isCertain = counts[index]! + 1 >= certain;
      let expected =
        1 + failing * (isCertain ? cost(index + 1, passes, failed % powers[index + 1]!) : cost(left, passes, failed));
      if (index + 1 < left)
        expected += (1 - failing) * cost(left - index - 1, 1, Math.floor(failures / powers[index + 1]!));
      least = Math.min(least, expected);
    }
    return least;
  };
  return cost(commits, 0, 0);
}

/** Returns the probability that each commit is the culprit: each failure of a commit before it is one without a reason. */
function chancesOf(failures: readonly number[], flakeRate: number): number[] {
  let earlier = 0;
  const weights = failures.map((own) => {
    const weight = flakeRate ** earlier;
    earlier += own;
    return weight;
  });
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return weights.map((weight) => weight / sum);
}

/** Earlier results that make the flake rate known. */
const EARLIER_RESULTS = 10_000;

function createSimpleRange(commits: number, flakeRate: number, seed: number): SimulatedRange {
  const random = createRandom(seed, `simple ${flakeRate}`);
  const culprit = random.integer(1, commits);
  return {
    ...{ commits, culprit },
    doesBuild: Array<boolean>(commits + 1).fill(true),
    overlaps: Array<boolean>(commits).fill(false),
    earlier: { failures: Math.round(flakeRate * EARLIER_RESULTS), runs: EARLIER_RESULTS },
    other: () => culprit,
    isOutage: () => false,
    isTestable: () => true,
    probe: (index) => (index >= culprit || random.chance(flakeRate) ? "failed" : "passed"),
  };
}

/** Returns the mean number of probes of Assay's search over such ranges. */
export function meanProbes(commits: number, flakeRate: number, seeds: readonly number[]): number {
  const options = { atOnce: 1, budget: DEFAULT_BUDGET, useOverlaps: false };
  return scoreOutcomes(seeds.map((seed) => search(createSimpleRange(commits, flakeRate, seed), options))).probes;
}

if (import.meta.main) {
  const option = (name: string, value: number) =>
    Number(process.argv[process.argv.indexOf(name) + 1 || Infinity] ?? value);
  const commits = option("--commits", 8);
  const seeds = Array.from({ length: option("--ranges", 2000) }, (_, at) => 1 + at);
  for (const flakeRate of FLAKE_RATES) {
    const { probes: thrice } = scoreOutcomes(
      seeds.map((seed) => bisect(createSimpleRange(commits, flakeRate, seed), 3)),
    );
    const [least, mean] = [leastProbes(commits, flakeRate), meanProbes(commits, flakeRate, seeds)];
    console.log(
      `flake rate ${flakeRate}, ${commits} commits: at least ${least.toFixed(2)} probes, ${(least / thrice).toFixed(2)} of a bisection with ` +
        `three runs; Assay ${mean.toFixed(2)}, ${(mean / least).toFixed(2)} of the least`,
    );
  }
}
