/** Summarises the earlier failures of a test case: its streak on the branch of the judged run, and its other failures. */

import type { PastRun } from "./odds_runs.ts";
import type { PastFailure } from "../../store/failure_facts.ts";

/** An earlier failure, with the origin of its run. */
export type PlacedFailure = PastFailure & PastRun;

/** The judged failure, and the runs around it. */
type PastContext = {
  testCase: number;
  cause: string | null;
  isOnLine: boolean;
  line: string;
  /**
   * Ordinals of runs by id: of the runs on the line, and of those on the own branch if that is not the line. The ordinals of consecutive
   * runs differ by one.
   */
  ofLine: ReadonlyMap<string, number>;
  ofMine: ReadonlyMap<string, number>;
  /** Whether the test case has passed after this run, in one of the runs that were read on the line. */
  hasPassedSince: (testCase: number, runId: string) => boolean;
};

/**
 * Summarises the earlier failures of a test case. `inARow` is the length of the streak of failures that the judged failure continues on its
 * branch, this failure included; the other fields are described at `FailedTestFacts`, and their counts leave the streak out.
 */
export function weighPast(past: readonly PlacedFailure[], context: PastContext) {
  const { cause, isOnLine, line, ofLine, ofMine } = context;
  const isOfLine = ({ pullRequest, branch }: PastRun) => pullRequest === null && (branch === null || branch === line);
  const mine = past.filter(
    (one) => one.isMine && !one.isRetried && (one.explained !== "outside" || one.cause === cause),
  );
  const inARow = 1 + countStreak(mine, isOnLine ? ofLine : ofMine);
  const streak = new Set(mine.slice(0, inARow - 1));
  // Failures of the own branch before it passed again may be due to its change, so they do not count; on the line they are the test's own.
  const others = past.filter(
    (one) =>
      !streak.has(one) &&
      (!one.isMine || isOnLine) &&
      // Failures in several builds of one commit are one event.
      (!one.isSameCommit || one.isRetried) &&
      // A failure of a pull request may have been merged into the line, with the same cause.
      (!isOnLine || one.isRetried || isOfLine(one) || one.cause !== cause) &&
      !one.isOfMany &&
      one.explained !== "outside" &&
      one.explained !== "inherited",
  );
  const [onLine, elsewhere] = [others.filter(isOfLine), others.filter((one) => !isOfLine(one))];
  // The later failures of an episode are explained as inherited from its first one, so they belong to the episode here.
  const rows = past.filter((one) => isOfLine(one) && !one.isRetried && !streak.has(one) && one.explained !== "outside");
  const { open, closed } = toEpisodes(rows, new Set(onLine), context);
  const ofBranches = past.filter((one) => !isOfLine(one) && !streak.has(one));
  const broughtBy = closed.map(([first]) => ofBranches.filter((one) => mayHaveBrought(one, first!)));
  const brought = new Set(broughtBy.flatMap((some) => some.map(branchKey)));
  const isRetried = (some: readonly PlacedFailure[]) => some.some((one) => one.isRetried);
  const places = [...Map.groupBy(elsewhere, branchKey)].flatMap(([place, some]) => (brought.has(place) ? [] : [some]));
  const changed = places.filter((some) => !isRetried(some)).concat(open ? [open] : []);
  const same = changed.filter((some) => some.some((one) => one.cause === cause)).length;
  // An episode that a merged pull request has caused began in that pull request, so its failures there add to the length.
  const lengths = closed.map(({ length }, at) => length + Math.max(0, ...broughtBy[at]!.map(({ inARow }) => inARow)));
  return {
    inARow,
    failed: past.filter((one) => !streak.has(one) && one.explained !== "outside").length,
    // A single failure is the test's own; an episode of several may be a change that was fixed later.
    failures:
      places.filter(isRetried).length +
      onLine.filter((one) => one.isRetried).length +
      lengths.filter((length) => length === 1).length,
    episodes: lengths.filter((length) => length > 1),
    pullRequests: { same, other: changed.length - same },
    hasFailed: others.length > 0,
    hasFailedForThis: others.some((one) => one.cause === cause),
    isOpen: (isOnLine && inARow > 1 ? mine[0] : open?.at(-1))?.cause === cause,
  };
}

const branchKey = ({ pullRequest, branch }: PastRun) => `${pullRequest} ${branch}`;

/** Maximum time from the failure of a branch to the failure on the line that its merge may have caused. */
const MERGED_WITHIN_MS = 5 * 86_400_000;

/**
 * Whether the change of a branch may have brought its failure to the line: the test failed repeatedly on the branch, shortly before, and
 * with the same cause.
 */
const mayHaveBrought = (one: PlacedFailure, onLine: PlacedFailure): boolean =>
  one.inARow > 1 &&
  one.cause === onLine.cause &&
  one.runId < onLine.runId &&
  Date.parse(one.at) >= Date.parse(onLine.at) - MERGED_WITHIN_MS &&
  !one.isRetried &&
  !one.isOfMany &&
  (one.explained === "change" || one.explained === "flaky");

/**
 * Counts the failures in the newest consecutive runs of a branch. `mine` are its failures, the newest first; `ordinals` are those of its
 * runs.
 */
function countStreak(mine: readonly PlacedFailure[], ordinals: ReadonlyMap<string, number>): number {
  let next = Math.max(-1, ...ordinals.values()) + 1;
  let count = 0;
  for (const { runId } of mine) {
    if (ordinals.get(runId) !== next - 1) break;
    next--;
    count++;
  }
  return count;
}

/**
 * Groups failures on the line into episodes, that is failures in consecutive runs. Only episodes with at least one failure in `counted` are
 * returned. The last one is `open` if the test has not passed since: it may be a change that is not fixed yet.
 */
function toEpisodes(
  rows: readonly PlacedFailure[],
  counted: ReadonlySet<PlacedFailure>,
  { testCase, ofLine, hasPassedSince }: PastContext,
) {
  const episodes: PlacedFailure[][] = [];
  const placeOf = (one: PlacedFailure | undefined) => (one && ofLine.get(one.runId)) ?? -1;
  for (const one of rows.toReversed()) {
    const last = episodes.at(-1);
    if (last && placeOf(one) === placeOf(last.at(-1)) + 1) last.push(one);
    else episodes.push([one]);
  }
  const closed = episodes.filter((row) => row.some((one) => counted.has(one)));
  const last = closed.at(-1)?.at(-1);
  const open = last && !hasPassedSince(testCase, last.runId) ? closed.pop() : undefined;
  return { open, closed };
}
