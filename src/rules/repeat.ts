/** What the report of a rerun says of the test cases that it was asked for, and only of them. */

import { type CaseName, erroredCase, type Report } from "../reports/report.ts";

const keyOf = ({ suite, name, file }: CaseName) => JSON.stringify([suite, name, file]);

const NOT_RUN = "It had failed and was to run again, but the report does not have it, or has it as skipped";

/**
 * Tools that are told to run some tests of a file report the others as skipped, and say nothing of a test whose name they
 * do not find: the former are left out, and what did not run has not passed.
 */
export function repeatOnly(report: Report, only: readonly CaseName[]): Report {
  if (report.countsOnly) return report;
  const cases = report.cases.filter(({ status }) => status !== "skipped");
  const ran = new Set(cases.map(keyOf));
  const missing = new Map(only.filter((one) => !ran.has(keyOf(one))).map((one) => [keyOf(one), one]));
  return { ...report, cases: [...cases, ...[...missing.values()].map((one) => erroredCase(one, NOT_RUN))] };
}
