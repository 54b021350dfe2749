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

/** Maximum number of test cases of a report that are compared: those that took longest. */
const MAX_COMPARED = 2_000;
/** Maximum number of test cases that show how slow the machine was. */
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

const isTimed = (result: Result): result is TimedResult =>
  result.durationMs !== null && result.durationMs >= TRACKED_MS && toStatus(result.letter) === "passed";

/** The results that are long enough to be slower than usual. */
const longResults = (results: readonly Result[]): TimedResult[] =>
  results
    .filter(isTimed)
    .filter(({ durationMs }) => durationMs > SLOW_MS)
    .sort((a, b) => b.durationMs - a.durationMs)
    .slice(0, MAX_COMPARED);

/** Results of all parts of a report, which show how slow its machine was. */
function sampleOf(results: readonly Result[]): TimedResult[] {
  const timed = results.filter(isTimed);
  const step = Math.ceil(timed.length / MAX_SAMPLED);
  return timed.filter((_, index) => index % step === 0);
}

/** The wall time of the run as far as the report shows it: with earlier reports it may be any longer one. */
const runDurationOf = ({ resolved: { report }, isFurther }: ReportDurations): number =>
  isFurther ? Number.MAX_SAFE_INTEGER : durationOf(report);

/** In the order of the reports. */
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
  /** Of the task. */
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

/** Those of the slower results of a report that count in its run: another attempt or shard may have replaced them. */
export const slowerInRun = (slower: readonly SlowerResult[], blocks: readonly ResultBlock[]): SlowerResult[] =>
  slower.filter(({ testCase, durationMs }) => {
    const block = blocks.find((one) => one.block === blockOf(testCase));
    const index = block?.testCases.indexOf(testCase) ?? -1;
    return toStatus(block?.statuses[index] ?? "f") === "passed" && block!.durations[index] === durationMs;
  });
