/** Keeps the records of test cases up to date with the runs that have completed. */

import { type CountedAt, countedAt, type CountedRun, countResult, isDisturbed } from "../../rules/health.ts";
import { isOutsideOfTests } from "../../rules/outside_of_tests.ts";
import { isRecent } from "../../rules/recency.ts";
import {
  lockHealth,
  lockPendingRuns,
  markHealthApplied,
  selectPendingRuns,
  type PendingRun,
} from "../../store/pending_health.ts";
import { type CountedBlock, selectRunBlocks } from "../../store/run_blocks.ts";
import { type Database, isTimeout, isUnavailable, setKeepsPlans, type Tx } from "../../database/connect.ts";
import { markRemoved, selectVanished } from "../../store/removed_cases.ts";
import { letOthersRun } from "../../turns.ts";
import { PORTION_RESULTS, recall } from "./case_records.ts";
import { addTaskDurations, recallDurations } from "./durations.ts";
import { discardDisturbedFlakes, refreshFlakiness } from "./flakiness.ts";
import { releaseBroken } from "../automation/automatic_quarantine.ts";
import { resolveBugsOf, resolveRemoved } from "../bugs/bug_reports.ts";
import { judgeEarlierRuns } from "../ingest/judge_again.ts";

/** Maximum number of results that are counted in one transaction. */
const MAX_RESULTS = 20_000;
/** Maximum number of runs that are counted in one transaction: a further attempt of one of them waits for its end. */
const MAX_RUNS = 1_000;
/** Number of blocks of 128 test cases that are in memory at a time, however large a run is. */
const PORTION_BLOCKS = 8;
/** Number of runs whose results are read at once; other requests are served in between. */
const PORTION_RUNS = 100;

type Begin = Database["begin"];

/**
 * Counts pending complete runs of a project in the order of completion, as many as fit into one transaction; returns false if none is left.
 * Uploads do not wait for this: a loop does it, or a reader of the health. If it throws because of one run, `blame` was called with it, so
 * that the others can be counted without it.
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
      // Halves the batch. Items before the failing one are counted, until it comes first and fails alone.
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
  // Whether a run is disturbed depends on the test cases that the runs before it have made flaky: those are counted first.
  const next = runs.findIndex((run, index) => index > 0 && isDisturbed(run.flaky, run));
  await countRuns(sql, projectId, next === -1 ? runs : runs.slice(0, next));
  return next !== -1 || ids.length < waiting.length;
}

/** Counts locked runs as if one were counted after the other; each test case is read once and written once. */
async function countRuns(sql: Tx, projectId: string, runs: readonly PendingRun[]): Promise<void> {
  const ids = runs.map(({ id }) => id);
  const now = new Date();
  const counting = runs.map((run) => ({ run, at: countedAt(run, now) }));
  await discardDisturbedFlakes(sql, projectId, runs);
  for await (const portion of portionsOf(sql, projectId, ids)) await countPortion(sql, projectId, counting, portion);
  await addTaskDurations(sql, projectId, runs);
  const onDefault = runs.filter(({ onDefaultBranch, outage }) => onDefaultBranch && !outage);
  if (onDefault.length > 0) {
    const tasks = [...new Set(onDefault.map(({ taskSlug }) => taskSlug))];
    const removed = await markRemoved(sql, projectId, tasks, ids);
    if (removed.length > 0) await resolveRemoved(sql, projectId, removed);
    const ended = (await selectVanished(sql, projectId, tasks, onDefault.length)).filter(isOutsideOfTests);
    if (ended.length > 0)
      await resolveBugsOf(
        sql,
        projectId,
        ended.map(({ number }) => number),
      );
  }
  await markHealthApplied(sql, projectId, ids);
  const recent = runs.filter(({ completedAt }) => isRecent(completedAt));
  await refreshFlakiness(sql, projectId, ids, new Set(recent.map(({ id }) => id)));
  if (runs.some(({ hasFailed }) => hasFailed)) await judgeEarlierRuns(sql, projectId, ids);
  // Last: the rows of quarantines are locked after the bugs.
  if (runs.some(({ onDefaultBranch, hasFailed }) => onDefaultBranch && hasFailed)) await releaseBroken(sql, projectId);
}

/**
 * Yields the results of the runs: all those of some test cases, then those of others; those of one case in the order of the runs. Several
 * runs are read completely in advance. A single run may be of any size, so it is read in portions.
 */
async function* portionsOf(sql: Tx, projectId: string, ids: readonly string[]): AsyncGenerator<CountedBlock[]> {
  if (ids.length === 1) {
    for (let after = -1; ;) {
      const portion = await selectRunBlocks(sql, projectId, ids, after, PORTION_BLOCKS);
      if (portion.length === 0) return;
      yield portion;
      after = Math.max(...portion.map(({ block }) => block));
    }
  }
  const blocks: CountedBlock[] = [];
  for (let start = 0; start < ids.length; start += PORTION_RUNS) {
    const some = await selectRunBlocks(sql, projectId, ids.slice(start, start + PORTION_RUNS), -1, MAX_RESULTS);
    for (const block of some) blocks.push({ ...block, run: start + block.run });
  }
  const byBlock = Map.groupBy(blocks, ({ block }) => block);
  const numbers = [...byBlock.keys()].sort((a, b) => a - b);
  for (let start = 0; start < numbers.length; start += PORTION_BLOCKS)
    yield numbers
      .slice(start, start + PORTION_BLOCKS)
      .flatMap((number) => byBlock.get(number)!.toSorted((a, b) => a.run - b.run));
}

type Counting = { run: CountedRun; at: CountedAt };

/** All results of some test cases. */
async function countPortion(
  sql: Tx,
  projectId: string,
  counting: readonly Counting[],
  portion: readonly CountedBlock[],
): Promise<void> {
  const numbers = new Set<number>();
  for (const { testCases } of portion) for (const number of testCases) numbers.add(number);
  const memory = await recall(sql, projectId, [...numbers]);
  const runs = counting.map(({ run }) => run);
  const durationsOf = await recallDurations(sql, projectId, runs, portion);
  let results = 0;
  for (const block of portion) {
    const { run, at } = counting[block.run]!;
    const { testCases, statuses, durations } = block;
    testCases.forEach((testCase, index) => {
      const result = { letter: statuses[index]!, durationMs: durations[index] ?? null };
      const before = memory.get(testCase);
      const after = countResult(before, run, at, result);
      memory.set(testCase, after);
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
