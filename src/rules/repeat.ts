/** What the report of a rerun says of the test cases that it was asked for, and only of them. */

import type { Report, ReportedCase } from "../reports/report.ts";

export type CaseName = { suite: string; name: string; file: string | null };

const keyOf = ({ suite, name, file }: CaseName) => JSON.stringify([suite, name, file]);

/** What stands for a runner's failure is no test case that could be run again. */
const isTest = ({ suite, name, file }: CaseName) =>
  !(suite === "" && file === null && /^runner (exited|failed)\b/.test(name));

const notRun = ({ suite, name, file }: CaseName): ReportedCase => ({
  suite,
  name,
  file,
  line: null,
  status: "failed",
  kind: "error",
  flaky: false,
  attempts: 1,
  durationMs: null,
  message: "It had failed and was to run again, but the report does not have it, or has it as skipped",
  stack: null,
  output: null,
  properties: null,
});

/**
 * Tools that are told to run some tests of a file report the others as skipped, and say nothing of a test whose name they
 * do not find: the former are left out, and what did not run has not passed.
 */
export function repeatOnly(report: Report, only: readonly CaseName[]): Report {
  if (report.countsOnly) return report;
  const asked = new Map(only.filter(isTest).map((one) => [keyOf(one), one]));
  const ran = new Set(report.cases.filter(({ status }) => status !== "skipped").map(keyOf));
  const missing = [...asked].flatMap(([key, one]) => (ran.has(key) ? [] : [notRun(one)]));
  return { ...report, cases: [...report.cases.filter(({ status }) => status !== "skipped"), ...missing] };
}
