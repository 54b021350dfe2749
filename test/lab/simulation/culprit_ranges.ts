/** Ranges of commits whose culprit is known, and what a probe of one of their commits answers. */

import type { ProbeResult } from "../../../src/rules/culprit.ts";
import { createRandom, type Random } from "../../random.ts";

export const FLAKE_RATES = [0, 0.05, 0.15, 0.3] as const;

const MAX_COMMITS = 256;
/** Share of commits that do not build. */
const NO_BUILD = 0.1;
/** How often a commit that does not build is followed by another one. */
const NO_BUILD_CONTINUES = 0.4;
const SECOND_CULPRIT = 0.05;
const OUTAGE = 0.15;
const OUTAGE_ROUNDS = { least: 3, most: 8 };
/** Share of ranges whose failure is none of the code: every commit fails today, or none does. */
const ENVIRONMENT = 0.05;
const RECOVERED = 0.02;
/** How often a broken test passes. */
const MISS_RATE = 0.01;
/** Earlier results of sound code that the flake rate is measured with. */
const EARLIER_RESULTS = 100;
/** Share of commits that change what the failing test uses, and of culprits. */
const OVERLAP = { other: 0.05, culprit: 0.6 };

export type SimulatedRange = {
  /** Number of commits after the good one. */
  commits: number;
  /** The first commit that fails; 0: the good one fails too, `commits` + 1: none fails any more. */
  culprit: number;
  /** For the commits 0 to `commits`. */
  doesBuild: readonly boolean[];
  /** For the commits 1 to `commits`: whether they change what the test uses. */
  overlaps: readonly boolean[];
  earlier: { failures: number; runs: number };
  /** A commit that broke another test: the culprit with this probability, if a commit is. */
  other: (rightness: number) => number;
  /** Whether every commit fails in this round. */
  isOutage: (round: number) => boolean;
  /** Whether the commit builds and no second fault hides the first one. */
  isTestable: (index: number) => boolean;
  probe: (index: number, round: number) => ProbeResult;
};

export function createRange(seed: number, flakeRate: number): SimulatedRange {
  const random = createRandom(seed, `culprit ${flakeRate}`);
  const commits = Math.round(random.logBetween(2, MAX_COMMITS));
  const end = random.chance(ENVIRONMENT) ? 0 : random.chance(RECOVERED) ? commits + 1 : undefined;
  const culprit = end ?? random.integer(1, commits);
  const doesBuild = createBuilds(commits, random);
  const second = random.chance(SECOND_CULPRIT) ? random.integer(1, commits) : Infinity;
  const outage = createOutage(random);
  const failures = Array.from({ length: EARLIER_RESULTS }, () => random.chance(flakeRate)).filter(Boolean).length;
  return {
    ...{ commits, culprit, doesBuild },
    overlaps: Array.from({ length: commits }, (_, at) =>
      random.chance(at + 1 === culprit ? OVERLAP.culprit : OVERLAP.other),
    ),
    earlier: { failures, runs: EARLIER_RESULTS },
    other(rightness) {
      const random = createRandom(seed, `other ${flakeRate}`);
      const isRight = random.chance(rightness) && culprit >= 1 && culprit <= commits;
      return isRight ? culprit : random.integer(1, commits);
    },
    isOutage: outage.isOn,
    isTestable: (index) => doesBuild[index]! && (index >= culprit || index < second || culprit > commits),
    probe(index, round) {
      if (!doesBuild[index]) return "no_build";
      if (outage.isOn(round)) return outage.result;
      if (index >= culprit) return random.chance(MISS_RATE) ? "passed" : "failed";
      if (index >= second && culprit <= commits) return "other_failure";
      return random.chance(flakeRate) ? "failed" : "passed";
    },
  };
}

/** The first and the last commit have results, so they build. */
function createBuilds(commits: number, random: Random): boolean[] {
  const begins = (NO_BUILD * (1 - NO_BUILD_CONTINUES)) / (1 - NO_BUILD);
  const builds: boolean[] = [true];
  while (builds.length < commits) builds.push(!random.chance(builds.at(-1) ? begins : NO_BUILD_CONTINUES));
  return [...builds, true];
}

function createOutage(random: Random): { isOn: (round: number) => boolean; result: ProbeResult } {
  const result = random.chance(0.5) ? "failed" : "other_failure";
  if (!random.chance(OUTAGE)) return { isOn: () => false, result };
  const begin = random.integer(1, 8);
  const end = begin + random.integer(OUTAGE_ROUNDS.least, OUTAGE_ROUNDS.most);
  return { isOn: (round) => round >= begin && round < end, result };
}

/** The hypotheses that no probe can tell from the culprit: more than one if commits before it have no result. */
export function provable({ commits, culprit, isTestable }: SimulatedRange): number[] {
  let [first, last] = [culprit, culprit];
  while (first > 0 && !isTestable(first - 1)) first--;
  while (last <= commits && !isTestable(last)) last++;
  return Array.from({ length: last - first + 1 }, (_, at) => first + at);
}
