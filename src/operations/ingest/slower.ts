/** Finds which results of reports took longer than usual. */

import type { ResolvedReport } from "./prepare.ts";
import { type Result, toStatus } from "../../rules/merge.ts";
import { findSlower, SLOW_MS, slownessOf, TRACKED_MS } from "../../rules/slower.ts";
import type { Tx } from "../../database/connect.ts";
import { selectCaseHistories, selectTaskHistories, type SlowerResult } from "../../store/slower.ts";

/** Maximum number of test cases of a report that are compared: those that took longest. */
const MAX_COMPARED = 2_000;

export type ReportDurations = {
  resolved: ResolvedReport;
  onDefaultBranch: boolean;
};

/** How long the results of a report took, compared with what is usual. */
export type ComparedDurations = {
  slower: readonly SlowerResult[];
  /** Wall times of the last passed runs of the task on the default branch, the newest last. */
  taskHistory: readonly number[];
};

type TimedResult = Result & { durationMs: number };

/** The results to compare: none unless one of them took long enough to be slower than usual. */
function timedResults(results: readonly Result[]): TimedResult[] {
  const isTimed = (result: Result): result is TimedResult =>
    result.durationMs !== null && result.durationMs >= TRACKED_MS && toStatus(result.letter) === "passed";
  const timed = results.filter(isTimed);
  if (!timed.some(({ durationMs }) => durationMs > SLOW_MS)) return [];
  return timed.length <= MAX_COMPARED
    ? timed
    : timed.toSorted((a, b) => b.durationMs - a.durationMs).slice(0, MAX_COMPARED);
}

const mayBeSlow = ({ report }: ResolvedReport): boolean =>
  (report.durationMs ?? report.cases.reduce((sum, { durationMs }) => sum + (durationMs ?? 0), 0)) > SLOW_MS;

/** In the order of the reports. */
export async function compareDurations(
  sql: Tx,
  projectId: string,
  reports: readonly ReportDurations[],
): Promise<ComparedDurations[]> {
  const timed = reports.map(({ resolved }) => timedResults(resolved.results));
  const tasks = reports.flatMap(({ resolved }) => (mayBeSlow(resolved) ? resolved.taskSlug : []));
  const [histories, taskHistories] = await Promise.all([
    selectCaseHistories(sql, projectId, [...new Set(timed.flat().map(({ testCase }) => testCase))]),
    selectTaskHistories(sql, projectId, [...new Set(tasks)]),
  ]);
  return reports.map(({ resolved, onDefaultBranch }, index) => {
    const compared = timed[index]!.map((result) => ({ ...result, history: histories.get(result.testCase) ?? [] }));
    const comparedIn = { slowness: slownessOf(compared), onDefaultBranch };
    const slower = compared.flatMap((result): SlowerResult[] => {
      const found = findSlower(result, comparedIn);
      return found ? [{ ...found, testCase: result.testCase, durationMs: result.durationMs }] : [];
    });
    return { slower, taskHistory: taskHistories.get(resolved.taskSlug) ?? [] };
  });
}
