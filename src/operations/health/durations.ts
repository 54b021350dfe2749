/** Updates the usual durations of test cases and tasks on the default branch when runs are counted. */

import type { CaseHealth, CountedRun } from "../../rules/health.ts";
import { addPass, type ComparedWithUsual, slownessOf, TRACKED_MS, untrackedHistory } from "../../rules/slower.ts";
import type { CountedBlock } from "../../store/run_blocks.ts";
import type { PendingRun } from "../../store/pending_health.ts";
import type { Tx } from "../../database/connect.ts";
import {
  selectCaseDurations,
  selectTaskHistories,
  upsertCaseDurations,
  upsertTaskDurations,
} from "../../store/slower.ts";

const isCompared = ({ onDefaultBranch, outage }: CountedRun): boolean => onDefaultBranch && !outage;
const hasPassed = (letter: string): boolean => letter === "p" || letter === "P";

type CountedResult = { letter: string; durationMs: number | null };

/** The durations of some test cases, until they are stored. In a transaction that holds `lockHealth`. */
export async function recallDurations(
  sql: Tx,
  projectId: string,
  runs: readonly CountedRun[],
  portion: readonly CountedBlock[],
) {
  const compared = portion.filter(({ run }) => isCompared(runs[run]!));
  const numbers = new Set(compared.flatMap(({ testCases }) => testCases));
  const known = await selectCaseDurations(sql, projectId, [...numbers]);
  const histories = new Map([...known].map(([testCase, { history }]) => [testCase, history]));
  const changed = new Set<number>();
  const toCompared = ({ testCases, statuses, durations }: CountedBlock): ComparedWithUsual[] =>
    testCases.flatMap((testCase, index) => {
      const [usualMs, durationMs] = [known.get(testCase)?.usualMs ?? null, durations[index] ?? null];
      return usualMs !== null && durationMs !== null && hasPassed(statuses[index]!) ? [{ durationMs, usualMs }] : [];
    });
  const blocksOfRuns = [...Map.groupBy(compared, ({ run }) => run)];
  const slowness = new Map(blocksOfRuns.map(([run, blocks]) => [run, slownessOf(blocks.flatMap(toCompared))]));
  return {
    /** Adds a pass, unless newer results of the test case are known. `before` and `after` it was counted. */
    add(run: number, testCase: number, result: CountedResult, before: CaseHealth, after: CaseHealth): void {
      const { letter, durationMs } = result;
      if (durationMs === null || !hasPassed(letter) || !isCompared(runs[run]!)) return;
      const history = histories.get(testCase);
      if (history === undefined && durationMs < TRACKED_MS) return;
      if (after.lastRunAt !== runs[run]!.completedAt) return;
      const former = history ?? untrackedHistory(before.recentMs, before.mainRuns);
      histories.set(testCase, addPass(former, durationMs, slowness.get(run)));
      changed.add(testCase);
    },
    async store(): Promise<void> {
      const rows = [...changed].map((testCase): [number, number[]] => [testCase, histories.get(testCase)!]);
      if (rows.length > 0) await upsertCaseDurations(sql, projectId, rows);
    },
  };
}

/** Adds the wall times of passed runs in their order, in a transaction that holds `lockHealth`. */
export async function addTaskDurations(sql: Tx, projectId: string, runs: readonly PendingRun[]): Promise<void> {
  const passed = runs.filter((run) => isCompared(run) && run.isPassed && run.durationMs > 0);
  if (passed.length === 0) return;
  const histories = await selectTaskHistories(sql, projectId, [...new Set(passed.map(({ taskSlug }) => taskSlug))]);
  for (const { taskSlug, durationMs } of passed)
    histories.set(taskSlug, addPass(histories.get(taskSlug) ?? [], durationMs));
  await upsertTaskDurations(sql, projectId, [...histories]);
}
