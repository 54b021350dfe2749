/** Merges the reports of several files into one. */

import { type Report, ReportError } from "./report.ts";
import { casesInRounds, casesOfRounds } from "./rounds.ts";
import { cut, MAX_CASES, MAX_COUNT } from "./text.ts";

/**
 * `named`: the reports with the names of their files. `rounds`: the run of the tests that each is from; undefined: their times decide.
 * Throws a ReportError if they cannot be merged.
 */
export function mergeReports(named: [string, Report][], rounds?: readonly number[]): Report {
  const reports = named.map(([, report]) => report);
  const cases = rounds ? casesOfRounds(reports, rounds) : casesInRounds(reports);
  if (cases.length > MAX_CASES) throw tooManyTogether();
  const countsOnly = reports.filter((report) => report.countsOnly);
  if (countsOnly.length > 0 && countsOnly.length < reports.length) {
    const [name] = named.find(([, report]) => report.countsOnly)!;
    throw new ReportError(
      `Cannot read "${cut(name, 200)}": it lists no cases, so it cannot be merged with files that do`,
    );
  }
  const counts = countsOnly.length === 0 ? null : countsOnly.map((report) => report.countsOnly!).reduce(add);
  if (counts && counts.passed + counts.failed + counts.skipped > MAX_COUNT) {
    throw new ReportError(
      `Cannot read the files: together they count more than ${MAX_COUNT.toLocaleString("en")} cases`,
    );
  }
  const agreed = <T>(values: T[]): T | null => (values.every((value) => value === values[0]) ? values[0]! : null);
  const complete = (values: (number | null)[]) => values.filter((value) => value !== null);
  const durations = complete(reports.map(({ durationMs }) => durationMs));
  const ends = complete(reports.map(({ completedAt }) => completedAt && completedAt.getTime()));
  const attachments = reports.flatMap((report) => report.attachments ?? []);
  return {
    format: agreed(reports.map(({ format }) => format)) ?? "mixed",
    suite: agreed(reports.map(({ suite }) => suite)),
    cases,
    countsOnly: counts,
    partial: reports.some(({ partial }) => partial),
    durationMs: durations.length < reports.length ? null : durations.reduce((sum, ms) => sum + ms, 0),
    completedAt: ends.length < reports.length ? null : new Date(ends.reduce((latest, end) => Math.max(latest, end))),
    // The first file that has a field takes precedence.
    context: Object.assign({}, ...reports.map(({ context }) => context).reverse()),
    ...(attachments.length > 0 ? { attachments } : {}),
    warnings: named.flatMap(([name, { warnings, cases, countsOnly }]) => {
      const messages = cases.length > 0 || countsOnly || warnings.length > 0 ? warnings : ["It holds no test case"];
      return messages.map((warning) => `${cut(name, 200)}: ${warning}`);
    }),
  };
}

export const tooManyTogether = (): ReportError =>
  new ReportError(`Cannot read the files: together they have more than ${MAX_CASES.toLocaleString("en")} cases`);

function add(a: NonNullable<Report["countsOnly"]>, b: typeof a): typeof a {
  return { passed: a.passed + b.passed, failed: a.failed + b.failed, skipped: a.skipped + b.skipped };
}
