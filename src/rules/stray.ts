/** Which failures are a case's own, because it fails on branches that have nothing to do with each other. */

import { type Failure, fingerprint } from "./fingerprint.ts";

export type Record = Failure & { testCase: number; isMine: boolean; branch: string | null; at: string; rate: number };

/** So many other branches are enough, whatever the case fails with there. */
const BRANCHES = 2;

/**
 * `record` holds the failures of a run and those of the same cases on other branches, newest first; neither the baseline nor
 * the default branch since then has failed. One other branch is enough where it failed in the same words, and these tell more than what every assertion of
 * the test would say: two changes that break one test break it differently.
 */
export function findStrays(record: readonly Record[]): { testCase: number; rate: number; at: string }[] {
  return [...Map.groupBy(record, ({ testCase }) => testCase)].flatMap(([testCase, failures]) => {
    const others = failures.filter(({ isMine }) => !isMine);
    const [mine] = failures.filter(({ isMine }) => isMine);
    const [last] = others;
    if (!mine || !last) return [];
    const isStray =
      new Set(others.map(({ branch }) => branch)).size >= BRANCHES || others.some((other) => saysTheSame(mine, other));
    return isStray ? [{ testCase, rate: last.rate, at: last.at }] : [];
  });
}

function saysTheSame(one: Failure, other: Failure): boolean {
  if (one.message === null && one.stack === null) return false;
  const [a, b] = [fingerprint(one), fingerprint(other)];
  return a.test === null && a.digest === b.digest;
}
