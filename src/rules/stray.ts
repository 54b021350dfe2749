/** Which failures are a case's own, because it fails on branches that have nothing to do with each other. */

import { type Failure, fingerprint } from "./fingerprint.ts";

export type StrayFailure = Failure & {
  testCase: number;
  /** Of the run itself. */
  isMine: boolean;
  branch: string | null;
  /** ISO 8601. */
  at: string;
  /** The share of the case's results on other branches that failed. */
  rate: number;
};

/** So many other branches are enough, whatever the case fails with there. */
const BRANCHES = 2;

/**
 * `record` holds the failures of a run and those of the same cases on other branches, newest first; neither the baseline
 * nor the default branch since then has failed. One other branch is enough where it failed in the same words, and these
 * tell more than what every assertion of the test would say: two changes that break one test break it differently.
 */
export function findStrays(record: readonly StrayFailure[]): { testCase: number; rate: number; at: string }[] {
  return [...Map.groupBy(record, ({ testCase }) => testCase)].flatMap(([testCase, failures]) => {
    const mine = failures.find(({ isMine }) => isMine);
    const others = failures.filter(({ isMine }) => !isMine);
    const [last] = others;
    if (!mine || !last) return [];
    const branches = new Set(others.map(({ branch }) => branch)).size;
    return branches >= BRANCHES || isSaidBy(mine, others) ? [{ testCase, rate: last.rate, at: last.at }] : [];
  });
}

function isSaidBy(mine: Failure, others: readonly Failure[]): boolean {
  if (mine.message === null && mine.stack === null) return false;
  const { digest, test } = fingerprint(mine);
  return test === null && others.some((other) => fingerprint(other).digest === digest);
}
