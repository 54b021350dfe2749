/**
 * The rule for results that took longer than usual, without a server: builds of a suite whose slowdowns are known, with noisy
 * durations. `bun test/lab/simulation/slower.ts [--seeds 3] [--first-seed 1]` prints false alarms and recall.
 */

import {
  addPass,
  findSlower,
  mayBeSlower,
  MAX_RECENT,
  SLOW_MS,
  slownessOf,
  TRACKED_MS,
  usualOf,
} from "../../../src/rules/slower.ts";
import { createRandom, type Random } from "../../random.ts";

export type Suite = {
  testCases: number;
  weeks: number;
  mainBuildsPerDay: number;
  /** For each build of the default branch. */
  pullRequestBuilds: number;
  /** How often one result takes a pause of the machine longer. */
  pauses: number;
  /** Share of runs on a machine that is slower by 1.5 to 4. */
  slowMachines: number;
  /** Slowdowns of each factor on the default branch; a third of the pull requests have one besides. */
  slowdowns: number;
};

export const SUITE: Suite = {
  testCases: 5_000,
  weeks: 4,
  mainBuildsPerDay: 10,
  pullRequestBuilds: 1.5,
  pauses: 1e-4,
  slowMachines: 0.05,
  slowdowns: 20,
};

export const FACTORS = [2, 5, 10] as const;
export type Factor = (typeof FACTORS)[number];

const DAYS_PER_WEEK = 5;
/** Builds of the default branch before anything is counted. */
const WARM_UP = 15;
/** A slowdown is to be found within this many builds. */
const WITHIN = 5;

/** Builds of a pull request, on average. */
const MEAN_BUILDS = 3.7;
/** Of a test case that was always quick, only the last results are known. */
const MAX_UNTRACKED = 20;

type TestCase = {
  /** Median duration in milliseconds. */
  trueMs: number;
  /** Standard deviation of the logarithm of a duration. */
  spread: number;
  history: number[];
  /** The median of the history, once it is known. */
  usualMs: number | undefined;
  isTracked: boolean;
  /** Slowed down on the default branch. */
  slowdown?: Slowdown;
};

/** A slowdown that a change caused, from the build `from` of the default branch on, or on a pull request of `WITHIN` builds. */
type Slowdown = { factor: Factor; from: number; foundAfter: number | undefined };

const normal = (random: Random): number =>
  Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next());

/** Most test cases take milliseconds, one in thirty more than a second; the durations of some vary widely. */
const createTestCase = (random: Random): TestCase => {
  const trueMs = Math.min(120_000, 25 * Math.exp(2 * normal(random)));
  const spread = Math.min(0.8, 0.15 * Math.exp(0.6 * normal(random)));
  return { trueMs, spread, history: [], usualMs: undefined, isTracked: false };
};

export type Found = { injected: number; found: number };
export type SlowerScore = {
  /** False alarms a week: results that were called slower although no change slowed them down. */
  falseAlarms: { main: number; pullRequests: number };
  /** By factor, of those that take more than a second longer. */
  recall: Record<"main" | "pullRequests", Record<Factor, Found>>;
  /** Of all alarms, by tests and not by results. */
  precision: number;
};

/** Durations of one run. */
function createRun({ pauses, slowMachines }: Suite, random: Random) {
  const isSlow = random.chance(slowMachines);
  const machine = Math.exp(0.08 * normal(random)) * (isSlow ? random.between(1.5, 4) : 1);
  return ({ trueMs, spread }: TestCase, factor: number): number => {
    // A slow machine slows down what waits for something else less than what computes.
    const own = machine > 1 ? 1 + (machine - 1) * random.between(0.6, 1.2) : machine;
    const pause = random.chance(pauses) ? random.logBetween(200, 8_000) : 0;
    return Math.round(trueMs * factor * own * Math.exp(spread * normal(random)) + pause);
  };
}

const isCounted = ({ trueMs }: TestCase, factor: number): boolean => trueMs * (factor - 1) > SLOW_MS;

/** `rule`: decides whether a duration is slower than usual. */
export function scoreSlower(suite: Suite, seed: number, rule: typeof findSlower = findSlower): SlowerScore {
  const random = createRandom(seed, "slower");
  const cases = Array.from({ length: suite.testCases }, () => createTestCase(random));
  const builds = suite.weeks * DAYS_PER_WEEK * suite.mainBuildsPerDay;
  const noFindings = () =>
    Object.fromEntries(FACTORS.map((factor) => [factor, { injected: 0, found: 0 }])) as Record<Factor, Found>;
  const recall = { main: noFindings(), pullRequests: noFindings() };
  const falseAlarms = { main: 0, pullRequests: 0 };
  let right = 0;

  for (const factor of FACTORS)
    for (const testCase of random.sample(
      cases.filter((one) => isCounted(one, factor) && !one.slowdown),
      suite.slowdowns,
    ))
      testCase.slowdown = { factor, from: random.integer(WARM_UP, builds - 2 * WITHIN), foundAfter: undefined };

  const factorOf = ({ slowdown }: TestCase, build: number) =>
    slowdown && slowdown.from <= build ? slowdown.factor : 1;

  /** The results that are slower than usual, by the indexes of their test cases. */
  const judge = (durations: readonly number[], recent?: readonly (readonly number[])[]): number[] => {
    const timed = cases.flatMap(({ usualMs }, index) => {
      const durationMs = durations[index]!;
      return usualMs !== undefined && durationMs >= TRACKED_MS ? [{ durationMs, usualMs, index }] : [];
    });
    const slowness = slownessOf(timed);
    return timed.flatMap(({ durationMs, usualMs, index }) => {
      if (!mayBeSlower(durationMs / Math.max(1, slowness), usualMs)) return [];
      const own = recent?.slice(-MAX_RECENT).map((run) => run[index]!);
      return rule({ durationMs, history: cases[index]!.history, recent: own }, slowness) ? [index] : [];
    });
  };

  /** Adds the durations of a run of the default branch to what is known. */
  const remember = (durations: readonly number[]): void => {
    const tracked = cases.flatMap(({ isTracked, usualMs }, index) =>
      isTracked && usualMs !== undefined ? [{ durationMs: durations[index]!, usualMs }] : [],
    );
    const slowness = slownessOf(tracked);
    for (const [index, one] of cases.entries()) {
      one.isTracked ||= durations[index]! >= TRACKED_MS;
      one.history = addPass(one.history, durations[index]!, slowness);
      if (!one.isTracked) one.history = one.history.slice(-MAX_UNTRACKED);
      one.usualMs = usualOf(one.history);
    }
  };

  /** A third of the pull requests slow down one test case, in all of their builds. */
  const playPullRequest = (base: number): void => {
    const factor = random.chance(0.33) ? random.pick(FACTORS) : undefined;
    const slowed = factor && random.pick(cases.filter((one) => isCounted(one, factor) && factorOf(one, base) === 1));
    const runs: number[][] = [];
    let isFound = false;
    for (let left = slowed ? WITHIN : random.integer(1, WITHIN); left > 0; left--) {
      const durationOf = createRun(suite, random);
      const durations = cases.map((one) => durationOf(one, one === slowed ? factor! : factorOf(one, base)));
      for (const index of judge(durations, runs)) {
        if (cases[index] === slowed) isFound = true;
        else if (factorOf(cases[index]!, base) === 1) falseAlarms.pullRequests++;
      }
      runs.push(durations);
    }
    if (!slowed) return;
    right += Number(isFound);
    recall.pullRequests[factor!].injected++;
    recall.pullRequests[factor!].found += Number(isFound);
  };

  let pullRequestBuilds = 0;
  for (let build = 0; build < builds; build++) {
    const durationOf = createRun(suite, random);
    const durations = cases.map((one) => durationOf(one, factorOf(one, build)));
    for (const index of build < WARM_UP ? [] : judge(durations)) {
      const { slowdown } = cases[index]!;
      if (!slowdown || slowdown.from > build) falseAlarms.main++;
      else slowdown.foundAfter ??= build - slowdown.from + 1;
    }
    remember(durations);
    pullRequestBuilds += suite.pullRequestBuilds;
    for (; build >= WARM_UP && pullRequestBuilds > MEAN_BUILDS; pullRequestBuilds -= MEAN_BUILDS)
      playPullRequest(build);
  }
  for (const { slowdown } of cases) {
    if (!slowdown) continue;
    const isFound = slowdown.foundAfter !== undefined && slowdown.foundAfter <= WITHIN;
    right += Number(slowdown.foundAfter !== undefined);
    recall.main[slowdown.factor].injected++;
    recall.main[slowdown.factor].found += Number(isFound);
  }
  const wrong = falseAlarms.main + falseAlarms.pullRequests;
  const weeks = (builds - WARM_UP) / (DAYS_PER_WEEK * suite.mainBuildsPerDay);
  return {
    falseAlarms: { main: falseAlarms.main / weeks, pullRequests: falseAlarms.pullRequests / weeks },
    recall,
    precision: right / (right + wrong),
  };
}

if (import.meta.main) {
  const option = (name: string) => process.argv[process.argv.indexOf(name) + 1 || Infinity];
  const first = Number(option("--first-seed") ?? 1);
  const scores = Array.from({ length: Number(option("--seeds") ?? 3) }, (_, index) =>
    scoreSlower(SUITE, first + index),
  );
  const alarms = scores.map(({ falseAlarms }) => falseAlarms.main + falseAlarms.pullRequests);
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  console.log(`false alarms a week: ${mean(alarms).toFixed(2)} on average, ${Math.max(...alarms).toFixed(2)} at most`);
  const precisions = scores.map(({ precision }) => precision);
  console.log(`precision: ${mean(precisions).toFixed(3)} on average, ${Math.min(...precisions).toFixed(3)} at least`);
  for (const where of ["main", "pullRequests"] as const)
    for (const factor of FACTORS) {
      const sum = (of: keyof Found) => scores.reduce((all, { recall }) => all + recall[where][factor][of], 0);
      console.log(
        `${where}: ${sum("found")} of ${sum("injected")} slowdowns by ${factor} found within ${WITHIN} builds`,
      );
    }
}
