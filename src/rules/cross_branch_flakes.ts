/** Which failures are a case's own, because it fails on branches that have nothing to do with each other. */

import { type Failure, fingerprint } from "./fingerprint.ts";
import { isFromOutside } from "./outside.ts";

export type BranchFailure = Failure & {
  testCase: number;
  /** Of the run itself. */
  isMine: boolean;
  branch: string | null;
  /** The branch is one of the project's long-lived ones. */
  isLongLived: boolean;
  /** The branch is the default one. */
  isDefault: boolean;
  /** How many results of the case on the branch have failed in a row, this one among them. */
  streak: number;
  /** It has not passed there since then. */
  isLast: boolean;
  /** ISO 8601. */
  at: string;
  /** The share of the case's results on other branches that failed, without those where it fails each time; null: there are none. */
  rate: number | null;
};

/** A failure that other branches explain. */
export type CrossBranchFlake = { testCase: number; blame: "flaky" | "main"; rate: number; at: string };

/** So many other branches are enough, whatever the case fails with there. */
const BRANCHES = 2;
/** So many cases of one run that fail for one reason in the code are no chance: both branches have the change. */
const TOGETHER = 3;
/** A branch where it fails so many times in a row has broken it. */
export const BROKEN_IN_A_ROW = 2;

/**
 * `record` holds the failures of a run and those of the same cases on other branches, newest first; neither the baseline
 * nor the default branch since then has failed. What a long-lived branch fails with now, in the same words, is none of this
 * branch's doing. Else the case is flaky that fails here and there: one other branch is enough where it failed in the same words,
 * and these tell more than what every assertion of the test would say; two changes that break one test break it differently.
 * Cases that fail together for one reason are not flaky: one change is on both branches, as where one branch builds on another,
 * unless the default branch has failed so as well. A case that fails in a row on this branch, or that has never passed on another
 * one, is not flaky either.
 */
export function findCrossBranchFlakes(record: readonly BranchFailure[], onLongLived: boolean): CrossBranchFlake[] {
  const together = digestsTogether(record);
  return [...Map.groupBy(record, ({ testCase }) => testCase)].flatMap(([testCase, failures]): CrossBranchFlake[] => {
    const mine = failures.find(({ isMine }) => isMine);
    if (!mine) return [];
    const others = failures.filter(({ isMine }) => !isMine);
    const onLines = onLongLived ? [] : others.filter(({ isLongLived, isLast }) => isLongLived && isLast);
    const [line] = onLines;
    if (line && isSaidBy(mine, onLines)) return [{ testCase, blame: "main", rate: 0, at: line.at }];
    // What a long-lived branch has broken fails on the branches that come from it as well.
    const here = others.filter(({ streak, isLast }) => streak < BROKEN_IN_A_ROW && !(onLongLived && isLast));
    const [last] = here;
    if (!last) return [];
    if (mine.streak >= BROKEN_IN_A_ROW || last.rate === null || last.rate === 1) return [];
    // What the default branch has shown comes from there.
    if (together.has(fingerprint(mine).digest) && !here.some(({ isDefault }) => isDefault)) return [];
    const branches = new Set(here.map(({ branch }) => branch)).size;
    return branches >= BRANCHES || isSaidBy(mine, here)
      ? [{ testCase, blame: "flaky", rate: last.rate ?? 0, at: last.at }]
      : [];
  });
}

/** The reasons in the code for which many cases of the run fail. */
function digestsTogether(record: readonly BranchFailure[]): Set<string> {
  const mine = record.filter(({ isMine, ...failure }) => isMine && !isFromOutside(failure));
  const groups = Map.groupBy(mine, (failure) => fingerprint(failure).digest);
  return new Set([...groups].flatMap(([digest, { length }]) => (length >= TOGETHER ? [digest] : [])));
}

function isSaidBy(mine: Failure, others: readonly Failure[]): boolean {
  if (mine.message === null && mine.stack === null) return false;
  const { digest, test } = fingerprint(mine);
  return test === null && others.some((other) => fingerprint(other).digest === digest);
}
