/** Several reports of one upload that are runs of the same tests, one after the other: a retry writes a file of its own. */

import { caseKey, type Report, type ReportedCase } from "./report.ts";

const hasRun = ({ status }: ReportedCase): boolean => status !== "skipped";

/** Returns when the tests of a report ran, if known. */
function spanOf({ span, completedAt, durationMs }: Report): Report["span"] {
  if (span || completedAt === null || durationMs === null) return span;
  return { from: completedAt.getTime() - durationMs, to: completedAt.getTime() };
}

/**
 * Whether a report repeats a part of an earlier one: it began after the end of that one, and contains tests of it that had failed, but not
 * all others. Equal sets of tests may be those of two browsers.
 */
function repeats(later: Report, earlier: Report): boolean {
  const [own, other] = [spanOf(later), spanOf(earlier)];
  if (!own || !other || own.from < other.to || own.from <= other.from) return false;
  const ran = new Map(earlier.cases.filter(hasRun).map((one) => [caseKey(one), one.status]));
  const again = later.cases.filter(hasRun);
  const failed = again.filter((one) => ran.get(caseKey(one)) === "failed");
  if (failed.length === 0 || !again.every((one) => ran.has(caseKey(one)))) return false;
  return again.length < ran.size || failed.length === again.length;
}

/** The maximum number of files that are compared with each other: a retry has few. */
const MAX_COMPARED = 20;

/** Returns the cases of all reports with the rounds that the reports are from. */
export const casesOfRounds = (reports: readonly Report[], rounds: readonly number[]): ReportedCase[] =>
  reports.flatMap(({ cases }, index) => cases.map((one) => ({ ...one, round: rounds[index]! })));

/** Returns the cases of all reports; those of a report that repeats others have a higher round. */
export function casesInRounds(reports: readonly Report[]): ReportedCase[] {
  if (reports.length > MAX_COMPARED) return reports.flatMap(({ cases }) => cases);
  const order = reports.toSorted((a, b) => (spanOf(a)?.from ?? 0) - (spanOf(b)?.from ?? 0));
  const rounds = new Map<Report, number>();
  for (const [index, later] of order.entries()) {
    const before = order.slice(0, index).filter((earlier) => repeats(later, earlier));
    rounds.set(later, Math.max(0, ...before.map((earlier) => rounds.get(earlier)! + 1)));
  }
  return reports.flatMap((report) => {
    const round = rounds.get(report)!;
    return round === 0 ? report.cases : report.cases.map((one) => ({ ...one, round }));
  });
}
