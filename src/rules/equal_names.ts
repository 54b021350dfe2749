/** Rows of one upload that have the same name are attempts of one test if the tool says so, and otherwise rows of one test. */

import type { ReportedCase } from "../reports/report.ts";
import { markThroughChild } from "./through_child.ts";

type Counts = { passed: number; failed: number; skipped: number };

export type FoldedCases = {
  /** Each test once. */
  cases: ReportedCase[];
  /** The other rows of tests that have several: they count, and are no tests of their own. */
  rows: Counts;
};

type FoldOptions = {
  /** The exit code of the tool; undefined: unknown. */
  exitCode: number | undefined;
  /** The client says that equal names are attempts. */
  areAttempts: boolean;
};

/** Whether rows are attempts, the last of which counts: of the last run of the tests, see `ReportedCase.round`. */
const areAttempts = (rows: readonly ReportedCase[], { exitCode, areAttempts }: FoldOptions): boolean =>
  areAttempts || (exitCode === 0 && rows.at(-1)!.status === "passed");

const SEVERITY = { failed: 2, passed: 1, skipped: 0 } as const;

function toAttempts(rows: readonly ReportedCase[]): ReportedCase {
  const ran = rows.filter(({ status }) => status !== "skipped");
  const last = ran.at(-1) ?? rows.at(-1)!;
  const failure = ran.findLast(({ status, isThroughChild }) => status === "failed" && !isThroughChild);
  const flaky = last.status === "passed" && (failure !== undefined || ran.some((row) => row.flaky));
  const { message, stack, kind } = failure ?? last;
  const attachments = ran.flatMap((row) => row.attachments ?? []);
  return {
    ...last,
    ...(flaky && failure ? { message, stack, kind } : {}),
    flaky,
    attempts: ran.reduce((sum, row) => sum + row.attempts, 0) || 1,
    ...(attachments.length > 0 ? { attachments } : {}),
  };
}

/** A tool that exited with 0 has passed a test of which its report counts that it is flaky, and lists only the failures. */
const toRecovered = (one: ReportedCase, { exitCode }: FoldOptions): ReportedCase =>
  one.isFlakyByCount && one.status === "failed" && exitCode === 0
    ? { ...one, status: "passed", flaky: true, attempts: one.attempts + 1 }
    : one;

/** Each run of the tests by itself, in their order. */
const roundsOf = (rows: readonly ReportedCase[]): ReportedCase[][] =>
  [...Map.groupBy(rows, ({ round = 0 }) => round)].sort(([one], [other]) => one - other).map(([, of]) => of);

/**
 * Makes one case of the rows of each test, and marks parents that failed only because of a child. `equal`: the indexes of all rows by that
 * of the first, for each name that several rows have.
 */
export function foldCases(
  cases: readonly ReportedCase[],
  equal: ReadonlyMap<number, readonly number[]>,
  options: FoldOptions,
): FoldedCases {
  // A parent is not flaky because a child was, and has failed itself if the child passed in the end.
  const folded = foldEqualNames(equal.size === 0 ? cases : markThroughChild(cases), equal, options);
  const unmarked = folded.cases.map((one) => (one.isThroughChild ? { ...one, isThroughChild: false } : one));
  return { ...folded, cases: markThroughChild(unmarked) };
}

function foldEqualNames(
  cases: readonly ReportedCase[],
  equal: ReadonlyMap<number, readonly number[]>,
  options: FoldOptions,
): FoldedCases {
  const counts: Counts = { passed: 0, failed: 0, skipped: 0 };
  const further = new Set([...equal.values()].flatMap((indexes) => indexes.slice(1)));
  const folded = cases.flatMap((one, index): ReportedCase[] => {
    if (further.has(index)) return [];
    const rows = equal.get(index)?.map((at) => cases[at]!);
    if (!rows) return [toRecovered(one, options)];
    const attempts = roundsOf(rows).map((round, place, all) => {
      if (areAttempts(round, options)) return toAttempts(round);
      const worst = round.reduce((a, b) => (SEVERITY[b.status] > SEVERITY[a.status] ? b : a));
      if (place === all.length - 1) for (const row of round) if (row !== worst) counts[row.status]++;
      return worst;
    });
    return [attempts.length === 1 ? attempts[0]! : toAttempts(attempts)];
  });
  return { cases: folded, rows: counts };
}
