/** The range that a search for a culprit begins with: the last good and the first bad commit on the default branch. */

import { isSameCommit } from "./commit.ts";

/** A commit of a range. */
export type SearchedCommit = { hash: string; author: string; date: string; subject: string };
/** A commit with the files that it changes compared with its first parent; some are missing if there are many. */
export type RangeCommit = SearchedCommit & { files: string[] };

/** A result of the test case on the default branch. */
export type RangeResult = {
  executionId: string;
  commit: string | null;
  isPassed: boolean;
  /** Whether it failed because of the bug. */
  isBug: boolean;
};

/** `failure`: an execution in which the test failed because of the bug; null: none is stored. */
export type SearchRange = { good: string; bad: string; failure: string | null };
/** Commits that a person has chosen. */
export type GivenRange = { good?: string | undefined; bad?: string | undefined };

/**
 * Returns the range of the latest series of failures, or the reason why there is none. `results`: newest first, in the order in
 * which the builds arrived. Results that are neither a pass nor a failure of the bug say nothing.
 */
export function findSearchRange(
  results: readonly RangeResult[],
  given: GivenRange = {},
): SearchRange | { obstacle: string } {
  const newest = results.findIndex(({ isBug }) => isBug);
  if (given.good !== undefined && given.bad !== undefined)
    return { good: given.good, bad: given.bad, failure: results[newest]?.executionId ?? null };
  if (newest === -1) return { obstacle: "none of the stored results of the default branch failed because of it" };
  const before = results.slice(newest);
  const passed = before.findIndex(({ isPassed }) => isPassed);
  const end = passed === -1 ? before.length : passed;
  if (passed === -1 && given.good === undefined)
    return { obstacle: "no stored result of the default branch passed before it" };
  const first = before.slice(0, end).findLast(({ isBug }) => isBug)!;
  const [good, bad] = [given.good ?? before[end]?.commit ?? null, given.bad ?? first.commit];
  if (good === null || bad === null)
    return { obstacle: `the commit of the ${good === null ? "last good" : "first bad"} build is unknown` };
  if (isSameCommit(good, bad)) return { obstacle: `the test passed and failed on the same commit ${bad.slice(0, 10)}` };
  return { good, bad, failure: first.executionId };
}
