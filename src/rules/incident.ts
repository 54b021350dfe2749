/** Incidents: failures of many tests at once whose cause is outside of the code. They blame nobody. */

import { type Failure, readFailure } from "./fingerprint.ts";
import { isFromOutside } from "./outside.ts";

/**
 * So many tests that are not known to fail, in so many files, fail for one reason. Where each of them fails by itself once in a
 * hundred builds, this happens in one build in 10^16.
 */
export const FAMILY = { cases: 8, files: 3 };

/** In a run that is disturbed, see `isDisturbed` (rules/health.ts), so many that fail for one reason are no chance. */
export const SHARED = { cases: 2, files: 1 };

/**
 * A run of a machine is bad in which at least so many tests, so large a share and in so many files fail without explanation; or so
 * many pass only when they are tried again.
 */
export const BAD_RUN = { cases: 5, share: 0.03, files: 3 };
/** Only runs of the last hours are looked at. */
export const MACHINE_HOURS = 24;
/** Maximum number of last runs of a machine that are looked at. */
const MACHINE_RUNS = 10;
/** After so many runs in a row that were not bad, a machine is healthy again. */
const WELL_RUNS = 3;
/** Minimum number of runs on other machines: with fewer, nothing is known of the usual rate. */
const OTHER_RUNS = 10;
/** A machine is unhealthy if its bad runs are less likely than this. */
const MACHINE_ODDS = 1e-4;

/** A run of the last hours on a known machine. */
export type MachineRun = {
  /** Whether it ran on the machine that is looked at. */
  isMine: boolean;
  /** Tells branches apart. */
  line: string;
  isBad: boolean;
  /** Whether failures of it were put down to its machine. */
  isOfMachine: boolean;
};

/**
 * Tells whether a machine is unhealthy: so many of its last runs were bad, on two branches at least, as have odds below 1 in 10,000
 * at the rate of bad runs on the other machines; or it was unhealthy in its last three runs, and one of the last ten was bad. `run` is
 * the last one, `runs` are those before it, newest first.
 */
export function isIll(run: MachineRun, runs: readonly MachineRun[]): boolean {
  const [own, others] = [runs.filter(({ isMine }) => isMine), runs.filter(({ isMine }) => !isMine)];
  if (others.length < OTHER_RUNS) return false;
  const last = [run, ...own].slice(0, MACHINE_RUNS);
  if (own.slice(0, WELL_RUNS).some(({ isOfMachine }) => isOfMachine) && last.some(({ isBad }) => isBad)) return true;
  if (!last.slice(0, WELL_RUNS).some(({ isBad }) => isBad)) return false;
  // Not much is known from few runs: 20 more are assumed, one of them bad.
  const rate = (others.filter(({ isBad }) => isBad).length + 1) / (others.length + 20);
  const lines = new Set<string>();
  let bad = 0;
  for (const [index, one] of last.entries()) {
    if (!one.isBad) continue;
    bad++;
    lines.add(one.line);
    if (lines.size > 1 && oddsOf(bad, index + 1, rate) < MACHINE_ODDS) return true;
  }
  return false;
}

/** Tells whether a machine may be unhealthy: it has had a bad run lately, and it is known how runs on others are. */
export const mayBeIll = (runs: readonly MachineRun[]): boolean =>
  runs.filter(({ isMine }) => !isMine).length >= OTHER_RUNS &&
  runs
    .filter(({ isMine }) => isMine)
    .slice(0, WELL_RUNS)
    .some(({ isBad }) => isBad);

/** The odds that at least `wanted` of `count` happen, each at this rate. */
function oddsOf(wanted: number, count: number, rate: number): number {
  let [odds, term] = [0, (1 - rate) ** count];
  for (let happened = 0; happened <= count; happened++) {
    if (happened >= wanted) odds += term;
    term *= ((count - happened) / (happened + 1)) * (rate / (1 - rate));
  }
  return odds;
}

/** What is elsewhere at the same time was seen there within so many hours. */
export const ELSEWHERE_HOURS = 6;
/** Of so many cases at least. */
export const ELSEWHERE_CASES = 3;

/** Failures of a run that have one fingerprint and that nothing explains; `sample` is one of them. */
export type FailureFamily = { cause: string; cases: number; files: number; sample: Failure };

/** Where else its fingerprint was seen. */
export type Sightings = {
  /** In the run of the task before, on the same branch. */
  before: boolean;
  /** On another branch, for another commit, within the hours before. */
  elsewhere: boolean;
  /** It was in the last two runs of the task on the same branch, and another branch has run the task without it since the first. */
  isOwn: boolean;
};

/** Whether it happened in code of the project that is tested, as far as the stack tells. */
const isInOwnCode = (failure: Failure): boolean => {
  const { frame, isTest } = readFailure(failure);
  return frame !== null && !isTest;
};

/** Whether tests that fail with it in a run that is disturbed have failed for a change all the same. */
export const isOwnDoing = (failure: Failure): boolean => isInOwnCode(failure) && !isFromOutside(failure);

/**
 * Tells whether the cause is outside the code: the message says so, and the branch shows it for the first time. What a branch
 * shows again is its own doing, unless other branches show it as well; and what it shows for the third time in a row, while
 * another one ran without, in any case. Any other message tells of a change, however many tests have it.
 */
export const isIncident = ({ cases, files, sample }: FailureFamily, { before, elsewhere, isOwn }: Sightings): boolean =>
  cases >= FAMILY.cases && files >= FAMILY.files && !isOwn && (elsewhere || !before) && isFromOutside(sample);
