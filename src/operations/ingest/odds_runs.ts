/** Which of the runs beside a judged one it may learn from. */

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

/** A run whose failures are evidence. */
export type PastRun = Pick<PastOrigin, "pullRequest" | "branch" | "at"> & {
  /** Of the same branch and pull request. */
  isMine: boolean;
  /** Of the same commit, or of the execution that this one repeats. */
  isSameCommit: boolean;
};

/** So many runs of the line after the base are asked for the state of a test case. */
const AFTER_BASE = 20;

type Commit = { commit: string | null; executionId: string };

const isOfCommit = ({ commit }: Commit, mine: RunPlace) =>
  commit !== null && mine.commit !== null && isSameCommit(commit, mine.commit);
/** Of the same commit, or repeated by the judged one. */
const isSame = (one: Commit, mine: RunPlace) => isOfCommit(one, mine) || one.executionId === mine.rerunOf;

/** `isOfOtherLine` of the predicates says the same to the database. */
const isOfOtherLine = ({ branch, pullRequest, queueRef, wasQueued }: OtherOrigin, mine: RunPlace) =>
  (branch !== mine.branch || (pullRequest !== null && mine.pullRequest !== null && pullRequest !== mine.pullRequest)) &&
  queueRef === null &&
  (mine.queueRef === null || !wasQueued);

/** A build does not see what came after it, though it may be imported later. */
const wasComplete = (completedAt: string | null, { at }: FailedRunKey) => completedAt === null || completedAt <= at;

/** Of what is read for several runs, in its order, what concerns each. */
export function byPlace<Run extends { places: readonly number[] }>(runs: readonly Run[], count: number): Run[][] {
  const all = Array.from({ length: count }, (): Run[] => []);
  for (const run of runs) for (const place of run.places) all[place]!.push(run);
  return all;
}

/** The runs that tell the state of its test cases, oldest first: of its line and its branch, of its baseline and the line after it. */
export function toLineRuns(own: FailedRunKey, place: RunPlace, runs: readonly LineRun[]) {
  const { pullRequest, queueRef, branch, defaultBranch, line } = place;
  // Of two builds of the line side by side only the earlier one explains the other.
  const seesLater = pullRequest !== null || queueRef !== null || (branch ?? defaultBranch) !== line;
  const of = (wanted: LineRun["of"]) => runs.filter((run) => run.of === wanted && wasComplete(run.completedAt, own));
  const ofLine = of("line")
    .filter(({ executionId: id }) => (seesLater ? id !== own.executionId : id < own.executionId))
    .slice(-LINE_RUNS);
  const ofMine = of("mine").filter(({ executionId }) => executionId !== own.executionId);
  return { ofLine, ofMine, asked: [...of("base"), ...afterBase(ofLine, place)] };
}

/** The runs of commits that the line has seen after the baseline; a commit of the line itself is not explained by its other builds. */
function afterBase(ofLine: readonly LineRun[], place: RunPlace): LineRun[] {
  const { baselineId, isOnLine } = place;
  const isAfter = ({ executionId }: LineRun) => baselineId === null || executionId > baselineId;
  const before = new Set(ofLine.flatMap((run) => (isAfter(run) ? [] : (run.commit?.toLowerCase() ?? []))));
  const isSeen = ({ commit }: LineRun) => commit !== null && before.has(commit.toLowerCase());
  return ofLine.filter((run) => isAfter(run) && !(isOnLine && isSame(run, place)) && !isSeen(run)).slice(0, AFTER_BASE);
}

/** The last run of each of a few other branches and pull requests, and the runs in which its causes are looked for. `runs`: newest first. */
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

/** Where the run was as the judged one sees it; undefined: that may not learn from it. */
export function toPastRun(own: FailedRunKey, until: string, mine: RunPlace, one: PastOrigin): PastRun | undefined {
  const { pullRequest, branch, executionId, at } = one;
  if (one.id === own.id || one.id >= until || !wasComplete(at, own)) return undefined;
  const isMine = branch === mine.branch && pullRequest === mine.pullRequest;
  // The branch of a fork's pull request may have its name.
  const isOnDefault = (branch === null || branch === mine.defaultBranch) && pullRequest === null;
  // A build does not show what came before it on its branch; those in front of it in a merge queue have its change.
  const isSeen = isMine ? executionId <= own.executionId : isOfOtherLine(one, mine) || isOnDefault;
  return isSeen ? { pullRequest, branch, at, isMine, isSameCommit: isSame(one, mine) } : undefined;
}
