/** Decides when a verification has its answer, and how many more runs it begins. */

import type { VerificationStatus } from "../schema/verifications.ts";

/** The probes of a verification. */
export type VerificationTally = {
  passed: number;
  /** Runs in which the test failed, also if it passed when its tool repeated it. */
  failed: number;
  /** The test did not run, the runner failed, or the commit cannot be built. */
  noResult: number;
  /** Among them: the commit cannot be checked out or built. */
  noBuild: number;
  queued: number;
  running: number;
};

/** A test that has failed so often, and has passed as well, is flaky. */
const FLAKY_FAILURES = 3;
/** A test that has failed so often, and has never passed, is broken: it fails in more than half of its runs with 95 % certainty. */
const BROKEN_FAILURES = 5;
/** A commit that cannot be built so often has no results. */
const MAX_NO_BUILD = 2;
/** A verification is inconclusive if at least this number of runs, and no fewer than have a result, have none. */
const MAX_NO_RESULT = 5;

const MAX_OPEN_PROBES = 32;

/**
 * One failure already shows that the test does not always pass, so only the status "passed" needs all runs. After a failure the
 * verification continues until it can distinguish a flaky test from a broken one, but not beyond the number of runs.
 */
export function decideVerification(
  runs: number,
  { passed, failed, noResult, noBuild }: VerificationTally,
): VerificationStatus {
  const isOver =
    passed + failed >= runs || (failed >= FLAKY_FAILURES && passed > 0) || (failed >= BROKEN_FAILURES && passed === 0);
  if (isOver) return failed === 0 ? "passed" : passed === 0 ? "failed" : "flaky";
  const hasNone = noBuild >= MAX_NO_BUILD && passed + failed === 0;
  return hasNone || (noResult >= MAX_NO_RESULT && noResult >= passed + failed) ? "inconclusive" : "running";
}

/**
 * Returns the number of probes to create now: as many as could begin at once, and as many as run, so that no runner is idle until the next
 * decision. One waits if there is no free runner.
 */
export function countWantedProbes(
  runs: number,
  { passed, failed, queued, running }: VerificationTally,
  freeRunners: number,
): number {
  const left = runs - passed - failed - queued - running;
  const waiting = Math.min(Math.max(freeRunners + running, 1), MAX_OPEN_PROBES - running);
  return Math.max(0, Math.min(left, waiting - queued));
}
