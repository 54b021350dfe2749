/** Selects the other runs that are evidence about a judged run. */

import { isLongLived } from "../../rules/branch.ts";
import { isSameCommit } from "../../rules/commit.ts";
import type { PastOrigin } from "../../store/failure_facts.ts";
import {
  type FailedRunKey,
  LINE_RUNS,
  type LineRun,
  EXECUTIONS_LOOKED_AT,
  type OtherOrigin,
  type OtherRun,
  outsideSince,
  type RunPlace,
  SIBLINGS,
  siblingsSince,
  untilOf,
} from "../../store/judged_runs.ts";

/** An earlier run whose failures are evidence about the judged run. */
export type PastRun = Pick<PastOrigin, "pullRequest" | "branch" | "at"> & {
  /** Whether it has the same branch and pull request as the judged run. */
  isMine: boolean;
  /** Whether it tested the same commit, or belongs to the execution that the judged run repeats. */
  isSameCommit: boolean;
};

/** Maximum number of runs on the line after the base whose results of a test case are read. */
const AFTER_BASE = 20;

type Commit = { commit: string | null; executionId: string };

const isOfCommit = ({ commit }: Commit, mine: RunPlace) =>
  commit !== null && mine.commit !== null && isSameCommit(commit, mine.commit);
/** Whether the run tested the same commit, or belongs to the execution that the judged run repeats. */
const isSame = (one: Commit, mine: RunPlace) => isOfCommit(one, mine) || one.executionId === mine.rerunOf;

/**
 * Whether a run has another branch or pull request, and cannot contain the same change through a merge queue. store/predicates.ts has the
 * same condition in SQL.
 */
const isOfOtherLine = ({ branch, pullRequest, queueRef, wasQueued }: OtherOrigin, mine: RunPlace) =>
  (branch !== mine.branch || (pullRequest !== null && mine.pullRequest !== null && pullRequest !== mine.pullRequest)) &&
  queueRef === null &&
  (mine.queueRef === null || !wasQueued);

/** Whether a run was complete when the judged run was: a build may be imported later, and must not use later runs as evidence. */
const wasComplete = (completedAt: string | null, { at }: FailedRunKey) => completedAt === null || completedAt <= at;

/** Distributes runs that were read for several judged runs: returns the runs for each judged run, in their order. */
export function byPlace<Run extends { places: readonly number[] }>(runs: readonly Run[], count: number): Run[][] {
  const all = Array.from({ length: count }, (): Run[] => []);
  for (const run of runs) for (const place of run.places) all[place]!.push(run);
  return all;
}

/**
 * Returns the runs that show the state of the test cases of a run, oldest first: `ofLine` on its line, `ofMine` on its own branch, and
 * `asked`, which are the runs of its baseline and of the line after it.
 */
export function toLineRuns(own: FailedRunKey, place: RunPlace, runs: readonly LineRun[]) {
  const { pullRequest, queueRef, branch, defaultBranch, line } = place;
  // If two builds on the line are concurrent, only the earlier one is evidence about the other.
  const seesLater = pullRequest !== null || queueRef !== null || (branch ?? defaultBranch) !== line;
  const of = (wanted: LineRun["of"]) => runs.filter((run) => run.of === wanted && wasComplete(run.completedAt, own));
  const ofLine = of("line")
    .filter(({ executionId: id }) => (seesLater ? id !== own.executionId : id < own.executionId))
    .slice(-LINE_RUNS);
  const ofMine = of("mine").filter(({ executionId }) => executionId !== own.executionId);
  return { ofLine, ofMine, asked: [...of("base"), ...afterBase(ofLine, place)] };
}

/**
 * Returns the runs of commits that are new on the line after the baseline. For a run on the line, other builds of the same commit are left
 * out, because they do not explain its failures.
 */
function afterBase(ofLine: readonly LineRun[], place: RunPlace): LineRun[] {
  const { baselineId, isOnLine } = place;
  const isAfter = ({ executionId }: LineRun) => baselineId === null || executionId > baselineId;
  const before = new Set(ofLine.flatMap((run) => (isAfter(run) ? [] : (run.commit?.toLowerCase() ?? []))));
  const isSeen = ({ commit }: LineRun) => commit !== null && before.has(commit.toLowerCase());
  return ofLine.filter((run) => isAfter(run) && !(isOnLine && isSame(run, place)) && !isSeen(run)).slice(0, AFTER_BASE);
}

/**
 * Returns `siblings`, the last run of each of up to SIBLINGS other branches and pull requests, and `outside`, the runs in which the causes
 * of the judged run are looked for. `runs` are in order, the newest first.
 */
export function toOtherRuns(own: FailedRunKey, place: RunPlace, runs: readonly OtherRun[]) {
  const others = runs.filter((one) => one.executionId !== own.executionId && isOfOtherLine(one, place));
  const [outside, near] = [outsideSince(own), siblingsSince(own)];
  const looked = others
    .filter(({ executionId, isRerun }) => executionId >= near && executionId < untilOf(own) && !isRerun)
    .filter((one) => (one.pullRequest !== null || one.branch !== place.line) && !isSame(one, place))
    .slice(0, EXECUTIONS_LOOKED_AT);
  const isLine = ({ pullRequest, branch }: OtherRun) =>
    pullRequest === null &&
    (branch === null || branch === place.defaultBranch || isLongLived(branch, place.longLivedBranches));
  const siblings = new Map<string | null, OtherRun & { isLine: boolean }>();
  for (const one of looked) {
    const origin = one.pullRequest ?? one.branch;
    if (one.outage || !wasComplete(one.completedAt, own) || siblings.has(origin)) continue;
    siblings.set(origin, { ...one, isLine: isLine(one) });
    if (siblings.size === SIBLINGS) break;
  }
  return {
    siblings: [...siblings.values()].toReversed(),
    outside: others
      .filter((one) => one.executionId >= outside && !isOfCommit(one, place))
      .slice(0, EXECUTIONS_LOOKED_AT)
      .filter(({ completedAt }) => completedAt <= own.seenAt),
  };
}

/** Returns the origin of an earlier run relative to the judged one; undefined if the earlier run is no evidence about it. */
export function toPastRun(own: FailedRunKey, until: string, mine: RunPlace, one: PastOrigin): PastRun | undefined {
  const { pullRequest, branch, executionId, at } = one;
  if (one.id === own.id || one.id >= until || !wasComplete(at, own)) return undefined;
  const isMine = branch === mine.branch && pullRequest === mine.pullRequest;
  // The branch of a fork's pull request may have the name of the default branch.
  const isOnDefault = (branch === null || branch === mine.defaultBranch) && pullRequest === null;
  // Later builds of the same branch are no evidence. Builds ahead of it in a merge queue are part of its change.
  const isSeen = isMine ? executionId <= own.executionId : isOfOtherLine(one, mine) || isOnDefault;
  return isSeen ? { pullRequest, branch, at, isMine, isSameCommit: isSame(one, mine) } : undefined;
}
