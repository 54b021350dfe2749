/** Tests of the baseline that a run does not have: when they are worth a sentence, and when they keep a gate closed. */

import type { Report } from "../reports/report.ts";

/** Up to this share of the baseline's tests, in percent, may be absent before that is said, or a gate stays red. */
export const ABSENT_PERCENT = 5;

/** The maximum number of test cases that are named of each kind. */
export const ABSENT_NAMED = 10;

/** Counts the tests of the baseline that a run does not have. */
export type AbsentCases = {
  /** The number of tests that have a result in the baseline. */
  of: number;
  /** The run has no result of `missing` tests, and has `skipped` ones as skipped. */
  missing: number;
  skipped: number;
  /** The first of each, by test_case.number. */
  missingCases: number[];
  skippedCases: number[];
};

export type Absence = AbsentCases & {
  /** Whether enough tests are absent for answers to name them. */
  isShort: boolean;
};

/** Whether more than this share of the baseline's tests did not run. */
export const isAbove = (
  { of, missing, skipped }: Pick<AbsentCases, "of" | "missing" | "skipped">,
  percent: number,
): boolean => (missing + skipped) * 100 > percent * of;

/** Whether a report with this number of results is searched for absent tests. `expected` is the number in its baseline; null: unknown. */
export const mayBeShort = (hasRun: number, expected: number | null, hasStopped: boolean): boolean =>
  expected !== null &&
  (hasStopped ? hasRun < expected : isAbove({ of: expected, missing: expected - hasRun, skipped: 0 }, ABSENT_PERCENT));

/** `hasStopped`: the run ended early, so it matters whatever the share is. Null: everything ran. */
export const toAbsence = (cases: AbsentCases | undefined, hasStopped: boolean): Absence | null =>
  cases === undefined || cases.missing + cases.skipped === 0
    ? null
    : { ...cases, isShort: hasStopped || isAbove(cases, ABSENT_PERCENT) };

/** Whether the tests were not run to their end: the report breaks off, or nothing has run after a failure. */
export function hasStoppedEarly({ partial, cases }: Pick<Report, "partial" | "cases">): boolean {
  return partial || cases.findLast(({ status }) => status !== "skipped")?.status === "failed";
}
