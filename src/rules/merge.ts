/** Joins the results of an upload with those that a run already has, case by case. */

import type { CaseStatus } from "../schema/fields.ts";

/** Up to 128 neighbouring test cases of one run; the arrays run in step. */
export type ResultBlock = {
  block: number;
  /** test_case.number, ascending. */
  testCases: number[];
  /** A letter per case, see `toLetter`. */
  statuses: string;
  /** The attempt that each result is from; null: all from the first. */
  attempts: number[] | null;
  durations: (number | null)[];
};

export type Result = { testCase: number; letter: string; durationMs: number | null };

/** `through` of the failed ones failed only through a case that they contain. */
export type Counts = { passed: number; failed: number; skipped: number; flaky: number; through: number };

export const BLOCK_SIZE = 128;

/** The row that holds the results of a test case. */
export const blockOf = (testCase: number): number => Math.floor(testCase / BLOCK_SIZE);

/** `p`, `f`, `s`, beside `THROUGH_CHILD`; a capital letter when the case had failed earlier in the run: `P` is flaky. */
export const toLetter = (status: CaseStatus, failedBefore: boolean): string =>
  failedBefore ? status[0]!.toUpperCase() : status[0]!;

/** The letter of a case that failed only because a case that it contains did: it is failed, and no failure of its own. */
export const THROUGH_CHILD = "c";
const isThroughChild = (letter: string) => letter === "c" || letter === "C";

/** Whether the result is a failure, which something has to explain. */
export const isFailure = (letter: string): boolean => letter === "f" || letter === "F";

export const toStatus = (letter: string): CaseStatus =>
  letter === "p" || letter === "P" ? "passed" : isFailure(letter) || isThroughChild(letter) ? "failed" : "skipped";

/** Severity, worst first: it decides when two shards of one attempt report the same case. */
const SEVERITY: Record<string, number> = { f: 3, c: 2, p: 1, s: 0 };

const isSkipped = (letter: string) => letter === "s" || letter === "S";
const hasFailed = (letter: string) => letter === "f" || letter < "a";

type Entry = { letter: string; attempt: number; durationMs: number | null };

function join(old: Entry, fresh: Entry): Entry {
  if (fresh.attempt === old.attempt) {
    // Shards may come in any order, so the outcome must not depend on it.
    const worse = SEVERITY[fresh.letter.toLowerCase()]! > SEVERITY[old.letter.toLowerCase()]! ? fresh : old;
    const capital = old.letter < "a" || fresh.letter < "a";
    return capital && !isFailure(worse.letter) ? { ...worse, letter: worse.letter.toUpperCase() } : worse;
  }
  const [earlier, later] = fresh.attempt > old.attempt ? [old, fresh] : [fresh, old];
  // A skipped result does not change what an earlier attempt has shown.
  if (isSkipped(later.letter) && !isSkipped(earlier.letter)) return earlier;
  return hasFailed(earlier.letter) ? { ...later, letter: later.letter.toUpperCase() } : later;
}

/** The latest attempt of a case that ran it counts; within one attempt the worst. `fresh` is ascending by test case. */
export function mergeBlock(
  block: number,
  old: ResultBlock | undefined,
  fresh: readonly Result[],
  attempt: number,
): ResultBlock {
  if (!old && isAscending(fresh)) return packFresh(block, fresh, attempt);
  const entries = new Map<number, Entry>();
  old?.testCases.forEach((testCase, index) =>
    entries.set(testCase, {
      letter: old.statuses[index]!,
      attempt: old.attempts?.[index] ?? 1,
      durationMs: old.durations[index] ?? null,
    }),
  );
  for (const { testCase, letter, durationMs } of fresh) {
    const entry = { letter, attempt, durationMs };
    const before = entries.get(testCase);
    entries.set(testCase, before ? join(before, entry) : entry);
  }
  return pack(block, entries);
}

/** The results of a run that has none yet. */
export const packResults = (results: readonly Result[], attempt: number): ResultBlock[] =>
  [...Map.groupBy(results, ({ testCase }) => blockOf(testCase))].map(([block, fresh]) =>
    mergeBlock(block, undefined, fresh, attempt),
  );

const isAscending = (results: readonly Result[]): boolean =>
  results.every(({ testCase }, index) => index === 0 || testCase > results[index - 1]!.testCase);

/** Packs results that have nothing to be joined with, as most of 100,000 do not. */
const packFresh = (block: number, fresh: readonly Result[], attempt: number): ResultBlock => ({
  block,
  testCases: fresh.map(({ testCase }) => testCase),
  statuses: fresh.map(({ letter }) => letter).join(""),
  attempts: attempt > 1 ? fresh.map(() => attempt) : null,
  durations: fresh.map(({ durationMs }) => durationMs),
});

/** The previous and current outcome of a case in a run; `before` is null if it had none. */
export type ChangedResult = { testCase: number; before: string | null; letter: string; durationMs: number | null };

export function changesOf(old: ResultBlock | undefined, joined: ResultBlock): ChangedResult[] {
  return joined.testCases.flatMap((testCase, index) => {
    const at = old?.testCases.indexOf(testCase) ?? -1;
    const before = at === -1 ? null : old!.statuses[at]!;
    const letter = joined.statuses[index]!;
    return letter === before ? [] : [{ testCase, before, letter, durationMs: joined.durations[index] ?? null }];
  });
}

/** The block without one case; undefined when nothing is left. */
export function removeFromBlock(old: ResultBlock, testCase: number): ResultBlock | undefined {
  const index = old.testCases.indexOf(testCase);
  if (index === -1) return old;
  if (old.testCases.length === 1) return undefined;
  return {
    block: old.block,
    testCases: old.testCases.toSpliced(index, 1),
    statuses: old.statuses.slice(0, index) + old.statuses.slice(index + 1),
    attempts: old.attempts?.toSpliced(index, 1) ?? null,
    durations: old.durations.toSpliced(index, 1),
  };
}

function pack(block: number, entries: Map<number, Entry>): ResultBlock {
  const sorted = [...entries].sort(([a], [b]) => a - b);
  return {
    block,
    testCases: sorted.map(([testCase]) => testCase),
    statuses: sorted.map(([, entry]) => entry.letter).join(""),
    attempts: sorted.some(([, entry]) => entry.attempt > 1) ? sorted.map(([, entry]) => entry.attempt) : null,
    durations: sorted.map(([, entry]) => entry.durationMs),
  };
}

export function countStatuses(statuses: string): Counts {
  const counts = { passed: 0, failed: 0, skipped: 0, flaky: 0, through: 0 };
  for (const letter of statuses) {
    counts[toStatus(letter)]++;
    if (letter === "P") counts.flaky++;
    if (isThroughChild(letter)) counts.through++;
  }
  return counts;
}
