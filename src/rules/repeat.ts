/** Reduces the report of a rerun or a probe to the test cases that were asked for. */

import { type CaseName, erroredCase, type Report, type ReportedCase } from "../reports/report.ts";
import { mayBeSameFile, normalizeFile } from "./identity.ts";

/** A test in all formats of its tool: some join the titles of the suites with arrows, others with blanks. */
const titleOf = ({ suite, name }: CaseName): string =>
  `${suite} ${name}`
    .split(/[\s>›]+/)
    .filter(Boolean)
    .join(" ");

const toFile = (file: string | null): string | null => (file === null ? null : normalizeFile(file));

/** Maximum number of files with one title that are compared: the stored path of a test may be longer or shorter than in the report. */
const MAX_FILES = 100;

/** Finds out whether a test is among those of a report, whose format and directory may be other ones than it is stored with. */
function createSearch(cases: readonly ReportedCase[]): (one: CaseName) => boolean {
  const files = new Map<string, Set<string | null>>();
  for (const one of cases)
    for (const known of one.reportedName ? [one, one.reportedName] : [one]) {
      const title = titleOf(known);
      const found = files.get(title) ?? new Set();
      files.set(title, found.add(toFile(known.file)));
    }
  return (one) => {
    const [found, file] = [files.get(titleOf(one)), toFile(one.file)];
    if (!found) return false;
    return (
      found.has(file) ||
      found
        .values()
        .take(MAX_FILES)
        .some((other) => mayBeSameFile(file, other))
    );
  };
}

/**
 * Leaves out skipped tests. A result that matches exactly one wanted test, which matches no other result, gets the stored names of the
 * test, which the report may spell differently. A test that did not run has no result.
 */
export function probeOnly(report: Report, only: readonly CaseName[]): Report {
  if (report.countsOnly || only.length === 0) return report;
  const cases = report.cases.filter(({ status }) => status !== "skipped");
  const byTitle = Map.groupBy(cases, titleOf);
  const wantedOf = new Map<ReportedCase, CaseName[]>();
  for (const wanted of only) {
    const found = (byTitle.get(titleOf(wanted)) ?? []).filter((one) => createSearch([one])(wanted));
    for (const one of found) wantedOf.set(one, [...(wantedOf.get(one) ?? []), ...(found.length === 1 ? [wanted] : [])]);
  }
  return {
    ...report,
    cases: cases.map((one) => {
      const [wanted, ...others] = wantedOf.get(one) ?? [];
      if (!wanted || others.length > 0) return one;
      const { suite, name, file } = wanted;
      return { ...one, suite, name, file };
    }),
  };
}

const NOT_RUN = "It had failed and was to run again, but the report does not have it, or has it as skipped";

/**
 * Tools that run only some tests of a file report the others as skipped, and do not report names that they do not find. So skipped tests
 * are left out, and a test that did not run has not passed.
 */
export function repeatOnly(report: Report, only: readonly CaseName[]): Report {
  if (report.countsOnly) return report;
  const cases = report.cases.filter(({ status }) => status !== "skipped");
  const hasRun = createSearch(cases);
  const missing = new Map(only.filter((one) => !hasRun(one)).map((one) => [JSON.stringify(one), one]));
  return { ...report, cases: [...cases, ...[...missing.values()].map((one) => erroredCase(one, NOT_RUN))] };
}
