/** The state of an execution that code hosts show at its pull request: a comment, and annotations at the lines that failed. */

/** A test, or another object that has a page. */
export type NamedTest = {
  title: string;
  /** The address of its page. */
  url: string;
};

export type FailedTest = NamedTest & {
  owners: readonly string[];
  /** `test/cart.test.ts:42`; null: the report names no file. */
  location: string | null;
};

/** Failures that have one cause. */
export type FailedCause = {
  /** The first line of the message of the first failure; empty: there is none. */
  message: string;
  /** The known bug that they belong to; null: none. */
  bug: NamedTest | null;
  tests: SomeOf<FailedTest>;
};

/** The first ones, and how many there are in all. */
export type SomeOf<Item> = { first: readonly Item[]; total: number };

/** An execution as the comment on its pull request shows it. */
export type PullRequestState = {
  projectName: string;
  /** "3 new failures since #412", "Running, 3 of 5 tasks". */
  headline: string;
  isOver: boolean;
  /** Whether it has ended and nothing needs attention. */
  isGood: boolean;
  /** "passed in a rerun"; null: no rerun has changed the outcome. */
  rerun: string | null;
  url: string;
  buildUrl: string | null;
  commit: string | null;
  /** The branch, where it is one of a merge queue. */
  queue: string | null;
  /** Wall time; 0: not known. */
  durationMs: number;
  baseline: NamedTest | null;
  tasks: SomeOf<NamedTest & { outcome: string; durationMs: number; slower: { usualMs: number } | null }>;
  /** By cause; `total` counts failures. */
  newFailures: SomeOf<FailedCause>;
  /** Each with the sentence about it. */
  unclearFailures: SomeOf<NamedTest & { reason: string }>;
  /** Known bugs, each with the commit that broke its tests and the address of the search, if a culprit is proven. */
  knownBugs: SomeOf<NamedTest & { failed: number; culprit: NamedTest | null }>;
  /** Failures of tests that are known to be flaky. */
  flakyFailures: SomeOf<NamedTest>;
  /** Tests that passed on retry. */
  flaky: SomeOf<NamedTest>;
  fixed: SomeOf<NamedTest>;
  /** Tests of the baseline that did not run, and those that are skipped now. */
  missing: SomeOf<NamedTest>;
  newlySkipped: SomeOf<NamedTest>;
  slower: SomeOf<NamedTest & { durationMs: number; usualMs: number }>;
  /** New tests that failed in further runs, with statements about these. */
  unreliableNewTests: SomeOf<NamedTest & { statement: string }>;
};

/** A failure at its line, as GitHub shows it beside the code. */
export type Annotation = { path: string; line: number; title: string; message: string };

/** A commit that was proven to have broken a test, as the comment on its pull request shows it. */
export type CulpritComment = {
  projectId: string;
  test: NamedTest;
  commit: string;
  /** "it failed there 2 of 2 times, on its parent 0a1b2c3d4e it passed 2 of 2 times" */
  proof: string;
  bugReport: { id: string; number: number; url: string };
};
