/** What explains a failure: the one definition of blame. */

import type { Blame } from "../schema/failures.ts";

/** A flaky test case does not explain what its own rate makes less likely than this. */
const EXCUSE_ODDS = 0.01;
/** Number of results that are looked through for those that failed on one branch in a row. */
export const EXCUSE_RESULTS = 50;

/** What is known of a failed test case when its run is judged. */
export type FailureFacts = {
  runId: string;
  /** test_case.number. */
  testCase: number;
  isQuarantined: boolean;
  /** The run that this one is compared with has a result of the test case. */
  isInBaseline: boolean;
  /** It failed there, and not because of an incident. */
  failedInBaseline: boolean;
  /** It failed in a build of the default branch since the baseline. */
  failedOnDefault: boolean;
  /** The run itself is on the default branch. */
  isOnDefault: boolean;
  /** The record of the test case ends no later than a day after the run: an imported run is not judged by what came later. */
  isCurrent: boolean;
  /** The test case is known as flaky, and is not broken. */
  isFlaky: boolean;
  /** Its last five results on the default branch failed. */
  isBroken: boolean;
  hasFailedOnDefault: boolean;
  /** It had several short series of failures on the default branch. */
  hadEpisodes: boolean;
  /** The default branch was broken until not long ago. */
  wasFixed: boolean;
  /** It is a build of a merge queue, so the newest commit of the default branch is in it. */
  hasNewestDefault: boolean;
  /** It represents a test tool that failed although no test did. */
  isStandIn: boolean;
  /** It belonged to a live bug before the execution began. */
  hasOpenBug: boolean;
  /** Share of its results that failed as a flaky test case fails; 0 to 1. */
  flakeRate: number | null;
  /** Share of its results on the default branch that began a short series of failures; 0 to 1. */
  episodeRate: number | null;
  /** When it was flaky last, or failed for a short time; ISO 8601. */
  flakyAt: string | null;
  /** Number of its failures in a row on the branch, this one included; null: it is not known as flaky. */
  inARow: number | null;
};

export type BlamedFailure = {
  runId: string;
  testCase: number;
  blame: Blame;
  inARow: number | null;
  /** 0 to 1; null where it explains nothing. */
  flakeRate: number | null;
  /** ISO 8601. */
  flakyAt: string | null;
};

/** Decides by quarantine, by the record of the test case, by the baseline, and by what the default branch has shown since. */
export function assignBlame(facts: FailureFacts): BlamedFailure {
  const { runId, testCase, inARow, isCurrent, isFlaky, flakeRate, episodeRate, flakyAt } = facts;
  const rate = isCurrent && isFlaky ? Math.max(flakeRate ?? 0, episodeRate ?? 0) : episodeRate;
  const blame = decide(facts, rate);
  return {
    ...{ runId, testCase, blame, inARow },
    flakeRate: blame === "flaky" || inARow !== null ? rate : null,
    flakyAt: blame === "flaky" ? flakyAt : null,
  };
}

function decide(facts: FailureFacts, rate: number | null): Blame {
  const { inARow, isCurrent, isOnDefault } = facts;
  if (facts.isQuarantined) return "quarantined";
  // A flaky test case fails here and there: several times in a row on one branch only as often as its rate allows.
  if (!facts.isStandIn && inARow !== null && (rate ?? 0) ** inARow >= EXCUSE_ODDS) return "flaky";
  if (facts.failedInBaseline) return "still";
  if (facts.failedOnDefault) return "main";
  if (!isCurrent) return "new";
  // The baseline does not have the test case, but the default branch fails: its last results do, or it has a live bug.
  const isKnownBug = facts.hasFailedOnDefault && facts.hasOpenBug && !facts.isInBaseline;
  if (facts.isBroken || isKnownBug) return isOnDefault ? "still" : "main";
  if (facts.hadEpisodes && !facts.isStandIn) return "flaky";
  // A branch that began before the fix lacks it; the default branch itself and a merge queue have it.
  if (facts.wasFixed && !isOnDefault && !facts.hasNewestDefault) return "main";
  return "new";
}
