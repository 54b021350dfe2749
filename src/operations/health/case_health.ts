/** Keeps what is remembered of test cases up to date with the runs that have completed. */

import {
  type CaseHealth,
  countChange,
  type CountedAt,
  countedAt,
  type CountedRun,
  countResult,
  isDisturbed,
  NO_HEALTH,
} from "../../rules/health.ts";
import type { ChangedResult } from "../../rules/merge.ts";
import { isRecent } from "../../rules/recency.ts";
import type { TurnedCase } from "../../schema/events.ts";
import {
  lockHealth,
  lockPendingRuns,
  markHealthApplied,
  selectPendingRuns,
  type PendingRun,
} from "../../store/pending_health.ts";
import type { CountedBlock } from "../../store/run_blocks.ts";
import { selectCaseHealth, storeCaseHealth } from "../../store/case_health.ts";
import { type Database, isTimeout, isUnavailable, setKeepsPlans, type Tx } from "../../database/connect.ts";
import { insertTurns } from "../../store/events.ts";
import { markRemoved } from "../../store/removed_cases.ts";
import { addTaskDurations, recallDurations } from "./durations.ts";
import { releaseBroken } from "../automation/automatic_quarantine.ts";
import { resolveRemoved } from "../bugs/bug_reports.ts";
import {
  collectEvidence,
  type Contradicted,
  isDisturbedRun,
  letOthersRun,
  MAX_RESULTS,
  portionsOf,
  selectCompared,
  selectContradicted,
} from "./flaky_evidence.ts";

/** Maximum number of runs that are counted in one transaction: a further attempt of one of them waits for its end. */
const MAX_RUNS = 1_000;
/** Failures that are put down to the surroundings of a run by more than this share say nothing of its test cases. */
const DISTURBED = 0.5;
/** Number of results after which other requests are served. */
const PORTION_RESULTS = 1_000;

type Begin = Database["begin"];

/**
 * Counts complete runs of a project that have not been counted, as many as go into one transaction, in the order in which
 * they were completed; false when none is left. No upload should wait for that: a loop does it, and whoever reads what it
 * makes. When it throws, `blame` has been told which run cannot be counted, if it is one: the others may go on without it.
 */
export async function countSome(
  begin: Begin,
  projectId: string,
  blame: (runId: string) => void = () => {},
): Promise<boolean> {
  for (let most = MAX_RUNS; ;) {
    let taken: readonly string[] = [];
    try {
      return await begin((sql) => countBatch(sql, projectId, most, (ids) => (taken = ids)));
    } catch (error) {
      if (taken.length === 1) blame(taken[0]!);
      if (taken.length <= 1 || (isUnavailable(error) && !isTimeout(error))) throw error;
      // What stands before the culprit is counted, until it stands first, and then alone.
      most = Math.ceil(taken.length / 2);
    }
  }
}

async function countBatch(
  sql: Tx,
  projectId: string,
  most: number,
  take: (ids: readonly string[]) => void,
): Promise<boolean> {
  await lockHealth(sql, projectId);
  const waiting = await selectPendingRuns(sql, projectId, most + 1);
  let results = 0;
  const ids = waiting
    .slice(0, most)
    .filter((run, index) => (results += run.results) <= MAX_RESULTS || index === 0)
    .map(({ id }) => id);
  const runs = ids.length === 0 ? [] : await lockPendingRuns(sql, projectId, ids);
  if (runs.length === 0) return false;
  take(runs.map(({ id }) => id));
  await setKeepsPlans(sql, true);
  await countRuns(sql, projectId, runs);
  return ids.length < waiting.length;
}

/** Counts locked runs as if one were counted after the other. */
async function countRuns(sql: Tx, projectId: string, runs: readonly PendingRun[]): Promise<void> {
  const compared = await selectCompared(sql, projectId, runs);
  const evidence = await collectEvidence(sql, projectId, runs, compared);
  // Whether a run is disturbed depends on the cases that the runs before it have made flaky: those are counted first.
  const starts = [...runs.keys()].filter((index) => index > 0 && isDisturbed(evidence[index]!.flaky, runs[index]!));
  const unsettled = runs.filter(({ disturbed }) => disturbed > DISTURBED).map(({ id }) => id);
  for (const [place, start] of [0, ...starts].entries()) {
    const isFirstDisturbed = await isDisturbedRun(sql, projectId, { ...runs[start]!, ...evidence[start]! });
    const some = runs.slice(start, starts[place]);
    const theirs = some.length === runs.length ? compared : await selectCompared(sql, projectId, some);
    const disturbed = new Set(isFirstDisturbed ? [...unsettled, runs[start]!.id] : unsettled);
    await countInOrder(sql, projectId, some, { disturbed, compared: theirs });
  }
  // Last: the rows of quarantines are locked after the bugs.
  if (runs.some(({ onDefaultBranch, hasFailed }) => onDefaultBranch && hasFailed)) await releaseBroken(sql, projectId);
}

/** Counts locked runs, of which those of the ids in `disturbed` say nothing; each test case is read once and written once. */
async function countInOrder(
  sql: Tx,
  projectId: string,
  runs: readonly PendingRun[],
  { disturbed, compared }: { disturbed: ReadonlySet<string>; compared: ReadonlyMap<string, readonly string[]> },
): Promise<void> {
  const ids = runs.map(({ id }) => id);
  const now = new Date();
  const counting = runs.map((run) => {
    const counted = { ...run, disturbed: disturbed.has(run.id) };
    return { run: counted, at: countedAt(counted, now), turned: [] as TurnedCase[] };
  });
  for await (const portion of portionsOf(sql, projectId, ids)) {
    const contradicted = await selectContradicted(sql, projectId, runs, portion, compared);
    await countPortion(sql, projectId, counting, portion, contradicted);
  }
  await addTaskDurations(sql, projectId, runs);
  const onDefault = runs.filter(({ onDefaultBranch, outage }) => onDefaultBranch && !outage);
  if (onDefault.length > 0) {
    const tasks = [...new Set(onDefault.map(({ taskSlug }) => taskSlug))];
    const removed = await markRemoved(sql, projectId, tasks, ids);
    if (removed.length > 0) await resolveRemoved(sql, projectId, removed);
  }
  for (const { run, turned } of counting)
    if (isRecent(run.completedAt)) await insertTurns(sql, projectId, run.id, turned);
  await markHealthApplied(sql, projectId, ids);
}

type Counting = { run: CountedRun; at: CountedAt; turned: TurnedCase[] };

/** All results of some test cases. */
async function countPortion(
  sql: Tx,
  projectId: string,
  counting: readonly Counting[],
  portion: readonly CountedBlock[],
  contradicted: Contradicted,
): Promise<void> {
  const numbers = new Set<number>();
  for (const { testCases } of portion) for (const number of testCases) numbers.add(number);
  const memory = await recall(sql, projectId, [...numbers]);
  const runs = counting.map(({ run }) => run);
  const durationsOf = await recallDurations(sql, projectId, runs, portion);
  let results = 0;
  for (const block of portion) {
    const { run, at, turned } = counting[block.run]!;
    const { testCases, statuses, durations } = block;
    const others = contradicted.get(block);
    testCases.forEach((testCase, index) => {
      const isContradicted = others?.has(testCase) ?? false;
      const result = { letter: statuses[index]!, durationMs: durations[index] ?? null, contradicted: isContradicted };
      const before = memory.get(testCase);
      const after = countResult(before, run, at, result);
      memory.set(testCase, before, after, turned);
      durationsOf.add(block.run, testCase, result, before, after);
    });
    results += testCases.length;
    if (results >= PORTION_RESULTS) {
      results = 0;
      await letOthersRun();
    }
  }
  await memory.store();
  await durationsOf.store();
}

/** Counts what a further attempt has changed in a run that has been counted; answers the cases that turned. */
export async function countChanges(
  sql: Tx,
  projectId: string,
  run: CountedRun,
  changes: readonly ChangedResult[],
): Promise<TurnedCase[]> {
  const turned: TurnedCase[] = [];
  const at = countedAt(run, new Date());
  for (let start = 0; start < changes.length; start += PORTION_RESULTS) {
    const portion = changes.slice(start, start + PORTION_RESULTS);
    const memory = await recall(
      sql,
      projectId,
      portion.map(({ testCase }) => testCase),
    );
    for (const change of portion) {
      const before = memory.get(change.testCase);
      memory.set(change.testCase, before, countChange(before, run, at, change), turned);
    }
    await memory.store();
  }
  return turned;
}

/** What is remembered of some test cases, until it is stored as it is then. In a transaction that holds `lockHealth`. */
async function recall(sql: Tx, projectId: string, testCases: readonly number[]) {
  const stored = await selectCaseHealth(sql, projectId, testCases);
  const current = new Map(stored);
  return {
    get: (testCase: number): CaseHealth => current.get(testCase) ?? NO_HEALTH,
    set(testCase: number, before: CaseHealth, after: CaseHealth, turned: TurnedCase[]): void {
      current.set(testCase, after);
      const { flaky, flakeRate } = after;
      if (flaky !== before.flaky) turned.push({ testCase, flaky, flakeRate });
    },
    async store(): Promise<void> {
      const rows = Array.from(current, ([testCase, health]) => ({ testCase, before: stored.get(testCase), health }));
      await storeCaseHealth(sql, projectId, rows);
    },
  };
}
