/** Finds which results of reports took longer than usual. */

import { durationOf, type ResolvedReport } from "./prepare.ts";
import { type Result, type ResultBlock, blockOf, toStatus } from "../../rules/merge.ts";
import {
  type ComparedDuration,
  findSlower,
  mayBeSlower,
  SLOW_MS,
  slownessOf,
  TRACKED_MS,
  usualOf,
} from "../../rules/slower.ts";
import type { Tx } from "../../database/connect.ts";
import {
  type BranchBuild,
  selectRecentDurations,
  selectTaskHistories,
  selectUsualOfCases,
  type SlowerResult,
  type UsualDuration,
} from "../../store/slower.ts";

/** Maximum number of test cases of a report that are compared: those that took longest. */
const MAX_COMPARED = 2_000;
/** Maximum number of other test cases that show how slow the machine was. */
const MAX_SAMPLED = 200;
/** Maximum number of test cases whose earlier results on a branch are read. */
const MAX_CONFIRMED = 200;

export type ReportDurations = {
  resolved: ResolvedReport;
  /** Undefined: it is of the default branch. */
  build: BranchBuild | undefined;
  /** Not the first report of its run, whose duration is more than that of the report. */
  isFurther: boolean;
};

/** How long the results of a report took, compared with what is usual. */
export type ComparedDurations = {
  slower: readonly SlowerResult[];
  /** With what the wall time of the run is compared. */
  task: Omit<ComparedDuration, "durationMs">;
};

type TimedResult = Result & { durationMs: number };

/** The results to compare: none unless one of them took long enough to be slower than usual. */
function timedResults(results: readonly Result[]): TimedResult[] {
  const isTimed = (result: Result): result is TimedResult =>
    result.durationMs !== null && result.durationMs >= TRACKED_MS && toStatus(result.letter) === "passed";
  const timed = results.filter(isTimed);
  const long = timed.filter(({ durationMs }) => durationMs > SLOW_MS);
  if (long.length === 0) return [];
  const others = timed.filter(({ durationMs }) => durationMs <= SLOW_MS);
  const step = Math.ceil(others.length / MAX_SAMPLED);
  return [
    ...long.sort((a, b) => b.durationMs - a.durationMs).slice(0, MAX_COMPARED),
    ...others.filter((_, index) => index % step === 0),
  ];
}

/** In the order of the reports. */
export async function compareDurations(
  sql: Tx,
  projectId: string,
  reports: readonly ReportDurations[],
): Promise<ComparedDurations[]> {
  const timed = reports.map(({ resolved }) => timedResults(resolved.results));
  const isLong = ({ resolved: { report }, isFurther }: ReportDurations) => isFurther || durationOf(report) > SLOW_MS;
  const tasks = reports.filter(isLong).map(({ resolved }) => resolved.taskSlug);
  const [usual, histories] = await Promise.all([
    selectUsualOfCases(sql, projectId, timed.flat()),
    selectTaskHistories(sql, projectId, [...new Set(tasks)]),
  ]);
  return await Promise.all(
    reports.map((report, index) => {
      const history = isLong(report) ? (histories.get(report.resolved.taskSlug) ?? []) : [];
      return compareReport(sql, projectId, report, { timed: timed[index]!, usual, history });
    }),
  );
}

type Known = { timed: readonly TimedResult[]; usual: ReadonlyMap<number, UsualDuration>; history: readonly number[] };

async function compareReport(
  sql: Tx,
  projectId: string,
  { resolved: { report, taskSlug }, build, isFurther }: ReportDurations,
  { timed, usual, history }: Known,
): Promise<ComparedDurations> {
  const known = timed.flatMap((result) => {
    const durations = usual.get(result.testCase);
    return durations ? [{ ...result, ...durations }] : [];
  });
  const slowness = slownessOf(known);
  const suspects = known.filter(({ durationMs, usualMs }) => mayBeSlower(durationMs / Math.max(1, slowness), usualMs));
  const usualMs = usualOf(history);
  const isTaskSuspect = usualMs !== undefined && (isFurther || mayBeSlower(durationOf(report), usualMs));
  const confirmed = suspects.slice(0, MAX_CONFIRMED).map(({ testCase }) => testCase);
  const recent =
    build && (isTaskSuspect || confirmed.length > 0)
      ? await selectRecentDurations(sql, projectId, { ...build, taskSlug }, confirmed)
      : undefined;
  const recentOf = (testCase: number) => (build ? (recent?.cases.get(testCase) ?? []) : undefined);
  return {
    slower: suspects.flatMap(({ testCase, durationMs, history = [] }): SlowerResult[] => {
      const found = findSlower({ durationMs, history, recent: recentOf(testCase) }, slowness);
      return found ? [{ ...found, testCase, durationMs }] : [];
    }),
    task: { history, recent: build ? (recent?.runs ?? []) : undefined },
  };
}

/** Those of the slower results of a report that count in its run: another attempt or shard may have replaced them. */
export const slowerInRun = (slower: readonly SlowerResult[], blocks: readonly ResultBlock[]): SlowerResult[] =>
  slower.filter(({ testCase, durationMs }) => {
    const block = blocks.find((one) => one.block === blockOf(testCase));
    const index = block?.testCases.indexOf(testCase) ?? -1;
    return toStatus(block?.statuses[index] ?? "f") === "passed" && block!.durations[index] === durationMs;
  });
