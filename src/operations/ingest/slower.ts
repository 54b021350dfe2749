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
  selectSuspectCases,
  selectSuspectTasks,
  selectUsualDurationsOfCases,
  type SlowerResult,
} from "../../store/slower.ts";

/** Maximum number of test cases of a report that are compared: the longest ones. */
const MAX_COMPARED = 2_000;
/** Maximum number of test cases that the slowness of the machine is estimated from. */
const MAX_SAMPLED = 200;
/** Maximum number of test cases whose earlier results on a branch are read. */
const MAX_CONFIRMED = 200;

export type ReportDurations = {
  resolved: ResolvedReport;
  /** The build, for a comparison with its own branch; undefined on the default branch. */
  build: BranchBuild | undefined;
  /** Whether the run has earlier reports, so that the duration of the run is longer than that of the report. */
  isFurther: boolean;
};

/** The durations of a report compared with the usual ones. */
export type ComparedDurations = {
  slower: readonly SlowerResult[];
  /** The durations that the wall time of the run is compared with. */
  task: Omit<ComparedDuration, "durationMs">;
};

type TimedResult = Result & { durationMs: number };

const isTimed = (result: Result): result is TimedResult =>
  result.durationMs !== null && result.durationMs >= TRACKED_MS && toStatus(result.letter) === "passed";

/** Returns the passed results that took longer than SLOW_MS, the longest first. */
const longResults = (results: readonly Result[]): TimedResult[] =>
  results
    .filter(isTimed)
    .filter(({ durationMs }) => durationMs > SLOW_MS)
    .sort((a, b) => b.durationMs - a.durationMs)
    .slice(0, MAX_COMPARED);

/** Returns an evenly spaced sample of the results, to estimate how slow the machine was. */
function sampleOf(results: readonly Result[]): TimedResult[] {
  const timed = results.filter(isTimed);
  const step = Math.ceil(timed.length / MAX_SAMPLED);
  return timed.filter((_, index) => index % step === 0);
}

/** Returns an upper bound of the wall time of the run: unlimited if it has earlier reports, else the duration of the report. */
const runDurationOf = ({ resolved: { report }, isFurther }: ReportDurations): number =>
  isFurther ? Number.MAX_SAFE_INTEGER : durationOf(report);

/** Compares the durations of reports with the usual ones. Returns the results in the order of the reports. */
export async function compareDurations(
  sql: Tx,
  projectId: string,
  reports: readonly ReportDurations[],
): Promise<ComparedDurations[]> {
  const long = reports.map(({ resolved }) => longResults(resolved.results));
  const runs = reports
    .map((report) => ({ taskSlug: report.resolved.taskSlug, durationMs: runDurationOf(report) }))
    .filter(({ durationMs }) => durationMs > SLOW_MS);
  const [cases, tasks] = await Promise.all([
    selectSuspectCases(sql, projectId, long.flat()),
    selectSuspectTasks(sql, projectId, runs),
  ]);
  return await Promise.all(
    reports.map(async (report, index): Promise<ComparedDurations> => {
      const suspects = long[index]!.flatMap((result) => {
        const history = cases.get(result.testCase);
        const usualMs = history && usualOf(history);
        return usualMs !== undefined && mayBeSlower(result.durationMs, usualMs)
          ? [{ ...result, history: history! }]
          : [];
      });
      const history = tasks.get(report.resolved.taskSlug) ?? [];
      if (suspects.length === 0 && history.length === 0) return NOTHING_SLOWER;
      return await compareReport(sql, projectId, report, { suspects, history });
    }),
  );
}

const NOTHING_SLOWER: ComparedDurations = { slower: [], task: { history: [] } };

type Suspects = {
  suspects: readonly (TimedResult & { history: readonly number[] })[];
  /** The recent durations of the task, in milliseconds. */
  history: readonly number[];
};

async function compareReport(
  sql: Tx,
  projectId: string,
  { resolved: { results, taskSlug }, build }: ReportDurations,
  { suspects, history }: Suspects,
): Promise<ComparedDurations> {
  const confirmed = suspects.slice(0, MAX_CONFIRMED).map(({ testCase }) => testCase);
  const [sample, recent] = await Promise.all([
    suspects.length > 0 ? selectUsualDurationsOfCases(sql, projectId, sampleOf(results)) : [],
    build ? selectRecentDurations(sql, projectId, { ...build, taskSlug }, confirmed) : undefined,
  ]);
  const slowness = slownessOf(sample);
  return {
    slower: suspects.flatMap(({ testCase, durationMs, history }): SlowerResult[] => {
      const own = recent && (recent.cases.get(testCase) ?? []);
      const found = findSlower({ durationMs, history, recent: own }, slowness);
      return found ? [{ ...found, testCase, durationMs }] : [];
    }),
    task: { history, recent: recent?.runs },
  };
}

/** Returns the slower results that are still in the merged run: a result of another attempt or shard may take precedence. */
export const slowerInRun = (slower: readonly SlowerResult[], blocks: readonly ResultBlock[]): SlowerResult[] =>
  slower.filter(({ testCase, durationMs }) => {
    const block = blocks.find((one) => one.block === blockOf(testCase));
    const index = block?.testCases.indexOf(testCase) ?? -1;
    return toStatus(block?.statuses[index] ?? "f") === "passed" && block!.durations[index] === durationMs;
  });
