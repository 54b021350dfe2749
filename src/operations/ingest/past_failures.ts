/** Weighs the failures of a test case before: those in a row on this branch, and what the others say of it. */

import type { PastRun } from "./odds_runs.ts";
import type { PastFailure } from "../../store/failure_facts.ts";

/** A failure with the run that it was in. */
export type PlacedFailure = PastFailure & PastRun;

/** Where the judged failure is, and what is known of the line. */
type PastContext = {
  testCase: number;
  cause: string | null;
  isOnLine: boolean;
  line: string;
  /** The places of runs on the line, and on this branch where that is another one: two that follow each other differ by one. */
  ofLine: ReadonlyMap<string, number>;
  ofMine: ReadonlyMap<string, number>;
  /** On the line, as far as it is asked. */
  hasPassedSince: (testCase: number, runId: string) => boolean;
};

/** The failures of a test case before: those in a row on this branch, and the weight of the others. */
export function weighPast(past: readonly PlacedFailure[], context: PastContext) {
  const { cause, isOnLine, line, ofLine, ofMine } = context;
  const isOfLine = ({ pullRequest, branch }: PastRun) => pullRequest === null && (branch === null || branch === line);
  const mine = past.filter(
    (one) => one.isMine && !one.isRetried && (one.explained !== "outside" || one.cause === cause),
  );
  const inARow = 1 + countStreak(mine, isOnLine ? ofLine : ofMine);
  const streak = new Set(mine.slice(0, inARow - 1));
  // What a branch did before it passed again may have been its change; on a line it is the test's.
  const others = past.filter(
    (one) =>
      !streak.has(one) &&
      (!one.isMine || isOnLine) &&
      // Builds of one commit that fail are one event.
      (!one.isSameCommit || one.isRetried) &&
      // What failed in a pull request may have come to the line with it.
      (!isOnLine || one.isRetried || isOfLine(one) || one.cause !== cause) &&
      !one.isOfMany &&
      one.explained !== "outside" &&
      one.explained !== "inherited",
  );
  const [onLine, elsewhere] = [others.filter(isOfLine), others.filter((one) => !isOfLine(one))];
  // What a row on the line goes on with is inherited from its beginning.
  const rows = past.filter((one) => isOfLine(one) && !one.isRetried && !streak.has(one) && one.explained !== "outside");
  const { open, closed } = toEpisodes(rows, new Set(onLine), context);
  const ofBranches = past.filter((one) => !isOfLine(one) && !streak.has(one));
  const broughtBy = closed.map(([first]) => ofBranches.filter((one) => mayHaveBrought(one, first!)));
  const brought = new Set(broughtBy.flatMap((some) => some.map(placeOf)));
  const isRetried = (some: readonly PlacedFailure[]) => some.some((one) => one.isRetried);
  const places = [...Map.groupBy(elsewhere, placeOf)].flatMap(([place, some]) => (brought.has(place) ? [] : [some]));
  const changed = places.filter((some) => !isRetried(some)).concat(open ? [open] : []);
  const same = changed.filter((some) => some.some((one) => one.cause === cause)).length;
  // A row that a pull request has brought began there.
  const lengths = closed.map(({ length }, at) => length + Math.max(0, ...broughtBy[at]!.map(({ inARow }) => inARow)));
  return {
    inARow,
    failed: past.filter((one) => !streak.has(one) && one.explained !== "outside").length,
    // A single one is the test's own; a row of them may be a change that was mended.
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

const placeOf = ({ pullRequest, branch }: PastRun) => `${pullRequest} ${branch}`;

/** A change that was merged within so many days may be what then failed on the line. */
const MERGED_WITHIN_MS = 5 * 86_400_000;

/** Whether a failure of a branch came to the line with its change: it failed there again and again, and shortly before, in the same words. */
const mayHaveBrought = (one: PlacedFailure, onLine: PlacedFailure): boolean =>
  one.inARow > 1 &&
  one.cause === onLine.cause &&
  one.runId < onLine.runId &&
  Date.parse(one.at) >= Date.parse(onLine.at) - MERGED_WITHIN_MS &&
  !one.isRetried &&
  !one.isOfMany &&
  (one.explained === "change" || one.explained === "flaky");

/** Of failures, newest first, those without another run of the branch after them. */
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

/** Failures of a line that follow each other, of which at least one counts. The last row is open: it may be a change that is not mended yet. */
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
