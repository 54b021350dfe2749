/** The facts that the failures of a run are judged by, and the judgement: see odds.ts. */
// The line of a build is the branch that it is compared with: the branch of its baseline, or the default branch.
// A cause is the fingerprint of a failure. A run is disturbed if its environment made tests fail.

/** The probabilities and weights of the model, fitted to builds of simulated teams: see test/lab/judge. For units, see odds_units.ts. */
export const CONSTANTS = {
  /** Prior probability that a build breaks something. */
  guilty: 0.15,
  /** Expected number of tests that a breaking change breaks. */
  broken: 0.5,
  /** Like `broken`, for a unit whose failures are in several files: divided also by the number of sets of tests of that size. */
  many: 0.4,
  /** Factor for each earlier consecutive build of the pull request in which the tests failed as well. */
  streak: 0.7,
  /** Probability that a breaking change fails a share of all tests of the run (SHARES in odds.ts), with any causes. */
  wide: 0.05,
  /** Factor for each further unit that the same change breaks. */
  further: 0.15,
  /** Factor for a break by the change if the task has passed the test at the same commit. */
  passedAtCommit: 0.001,
  /** Probability that a change that breaks a unit also breaks another unit of the same file. */
  inFile: 0.03,
  /** Probability that a flaky test that has failed once fails with a new cause; it decreases with each further failure. */
  otherCause: 0.3,
  /** Probability that a change breaks tests that no other build has. Does not depend on their number: a change may add any number. */
  newTest: 0.3,
  /** Probability that a failure is inherited if the last result on the line failed with the same cause. */
  inheritedLast: 0.8,
  /** Probability that a failure is inherited if the last result on the line failed with another cause. */
  inheritedOther: 0.15,
  /** Probability that a failure is inherited if the next result on the line after the base failed with the same cause. */
  inheritedNext: 0.75,
  /** How many times as likely as a break by the change an inherited failure is if other builds or lines have it too. */
  siblings: 6,
  /** The prior of the share of disturbed builds, as pseudo-counts: (disturbed builds + unrestA) / (builds + unrestB). */
  unrestA: 0.2,
  unrestB: 25,
  /** Factor on the probability that the change of another pull request broke the test with the same cause. */
  sameBreak: 0.1,
  /** Factor on the probability that the change of another pull request broke the test with another cause. */
  otherBreak: 3,
  /** Number of runs that the share of disturbed builds counts as in the estimate for one machine. */
  hostWeight: 3,
  /** Factor for failures of a disturbed run whose cause was seen in other builds as well; see `Sightings.isSpread`. */
  sighted: 300,
  /** Factor for failures of a disturbed run in one file whose cause was not seen elsewhere and whose text names no outside cause. */
  strange: 0.3,
  /** Share of disturbed runs in which all causes are novel, so that `strange` does not apply. */
  novel: 0.3,
  /** Factor for failures of a disturbed run in several files whose text names an outside cause. */
  saysMany: 1000,
  /** Probability that the environment disturbs the next build of the branch in the same way, but no other build. */
  repeated: 0.0005,
};
export type Constants = typeof CONSTANTS;

/** The results of a failed test on the line, around the base commit of the build. */
export type Inheritance = {
  /** The last result at or before the base. */
  last: "this cause" | "other cause" | "passed" | "none";
  /** The probability that this result was a flaky failure. */
  doubt: number;
  /** Whether the next result after the base failed with this cause, and no later one passed. */
  isNextBroken: boolean;
  /** Whether the test currently fails with this cause on another line, if the build names no target branch. */
  isOnOtherLine: boolean;
  /** Numbers of results in up to five other branches and pull requests within five days: failed with this cause, and passed. */
  siblings: { failed: number; passed: number };
};

/** The facts about one failed test of a build. */
export type FailedTestFacts = {
  test: number;
  cause: string;
  file: string;
  /** Whether the text of the failure names a cause outside of the code, such as a refused connection. */
  saysOutside: boolean;
  /** Number of consecutive builds of this pull request in which the test failed, including this one. */
  inARow: number;
  /** Number of its results in other builds. */
  results: number;
  /** Number of its failures in other builds whose cause was not outside of the code. */
  failed: number;
  /** Number of flaky failures: single failures on the line, and failures that passed on retry or in a rerun. */
  failures: number;
  /** Lengths of the episodes: two or more consecutive failures on the line. */
  episodes: readonly number[];
  /** Number of other pull requests in which it failed: with this cause, and with other causes. */
  pullRequests: { same: number; other: number };
  /** Whether it has failed in other builds. */
  hasFailed: boolean;
  /** Whether it has failed in other builds with this cause. */
  hasFailedForThis: boolean;
  /** Whether its last known result on the line is a failure with this cause. */
  isOpen: boolean;
  /** Whether the build itself is on the line. */
  isOnLine: boolean;
  /** Whether the task has passed it at the same commit. */
  passedAtCommit: boolean;
  inheritance: Inheritance;
};

/** How often a cause was seen in runs of the task in other builds within 72 hours. */
export type Sightings = {
  /** Number of failures with the cause. */
  hits: number;
  /** Number of results in all runs that were searched for the cause. */
  results: number;
  /** Whether the cause failed three tests in each of two runs, six tests in one run, or three in another task of the same build. */
  isSpread: boolean;
};

/** The failures of one run, or of one shard of it. */
export type FailedRun = {
  /** Number of tests that passed or failed. */
  tests: number;
  failures: readonly FailedTestFacts[];
  sightings: ReadonlyMap<string, Sightings>;
  /** Runs of the last three days on the same machine, and how many of them were disturbed. */
  onHost: { runs: number; disturbed: number } | null;
};

/** The facts that a run is judged by. */
export type RunFacts = {
  /** The share of builds that were disturbed lately. */
  disturbed: number;
  /** The shares of the team's tests that are flaky, by rate. */
  rates: readonly RateShare[];
  run: FailedRun;
};

/** The share of tests that fail by themselves at a rate: see flaky_rates.ts. */
export type RateShare = { rate: number; share: number };

export type ExplanationKind = "change" | "flaky" | "inherited" | "outside";
export type Judgement = {
  test: number;
  shares: Record<ExplanationKind, number>;
  /** The strongest explanation. */
  kind: ExplanationKind;
  /** Whether the change breaks many tests of the run at once, so that the failure is no evidence about this test. */
  isOfMany: boolean;
  /** The probability that the run is disturbed; at least 0.5 for many failures at once that are new in the pull request. */
  disturbed: number;
};
