/** The facts that the failures of a run are judged by, and the judgement: see odds.ts. */

/** Fitted to the builds of simulated teams: test/lab/judge. */
export const CONSTANTS = {
  /** Share of the builds of pull requests that break something. */
  guilty: 0.15,
  /** Number of tests of a run that a breaking change is expected to break. */
  broken: 0.5,
  /** Probability that a change breaks so many tests at once that they are no unit. */
  many: 0.4,
  /** Each further build of the pull request in a row. */
  streak: 0.7,
  /** Share of the runs of a breaking build that lose a share of their tests, for any reasons. */
  wide: 0.05,
  /** Each further thing that a change breaks for another reason. */
  further: 0.15,
  /** A change breaks a test that has passed at the commit as well. */
  passedAtCommit: 0.001,
  /** A change that breaks a test breaks another one of its file, for another reason. */
  inFile: 0.03,
  otherCause: 0.3,
  /** Probability of a failure of a test that no other build has: the change may add any number of them. */
  newTest: 0.3,
  inheritedLast: 0.8,
  inheritedOther: 0.15,
  inheritedNext: 0.75,
  siblings: 6,
  /** Disturbed builds are as frequent as before: (k + a) / (n + b). */
  unrestA: 0.2,
  unrestB: 25,
  /** Given that a change breaks a test, the probability that another change breaks it with the same cause. */
  sameBreak: 0.1,
  otherBreak: 3,
  hostWeight: 3,
  /** Failures of a disturbed run that say the same as those of another one. */
  sighted: 300,
  /** Probability of failures of one file with a message that was seen nowhere else and does not name an outside cause. */
  strange: 0.3,
  /** Share of disturbed runs that show only novel causes. */
  novel: 0.3,
  /** Many tests in several files say that something outside failed. */
  saysMany: 1000,
  /** The surroundings do the same to the next build of the branch, and to no other one. */
  repeated: 0.0005,
};
export type Constants = typeof CONSTANTS;

/** The results of a failed test on the line, around the base of the build. */
export type Inheritance = {
  /** The last result at or before the base. */
  last: "this cause" | "other cause" | "passed" | "none";
  /** The probability that this result had a cause in the test itself. */
  doubt: number;
  /** The next result after the base failed with this cause, and nothing later passes. */
  isNextBroken: boolean;
  /** Whether it currently fails with this cause on another line, if the line of the build is unknown. */
  isOnOtherLine: boolean;
  /** The last results of up to five other builds on the line within five days: failed with this cause, and passed. */
  siblings: { failed: number; passed: number };
};

/** The facts about one failed test of a build. */
export type FailedTestFacts = {
  test: number;
  cause: string;
  file: string;
  saysOutside: boolean;
  /** Builds of this pull request in a row in which it failed, this one included. */
  inARow: number;
  /** Number of its results in other builds, and of those that failed for a reason in the code. */
  results: number;
  failed: number;
  /** Single failures on the line, and those that passed on retry or again at the same commit. */
  failures: number;
  /** The lengths of rows of failures on the line: two or more. */
  episodes: readonly number[];
  /** Number of other pull requests in which it failed, for any reason: with this cause, and with others. */
  pullRequests: { same: number; other: number };
  hasFailed: boolean;
  hasFailedForThis: boolean;
  /** Whether its last results on the line are failures with this cause. */
  isOpen: boolean;
  /** The build itself is of the line. */
  isOnLine: boolean;
  /** The task has passed it at the same commit. */
  passedAtCommit: boolean;
  inheritance: Inheritance;
};

/** How often a cause was seen in runs of the task in other builds within 72 hours. */
export type Sightings = {
  hits: number;
  results: number;
  /** Whether it hit three tests in two of them, or six in one. */
  isSpread: boolean;
};

/** The failures of one run, or of one shard of it. */
export type FailedRun = {
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
  /** The change breaks many tests of the run at once, which says nothing of one of them. */
  isOfMany: boolean;
  /** How likely the run is disturbed. Many failures at once are suspect at first, until further runs on the machine show more. */
  disturbed: number;
};
