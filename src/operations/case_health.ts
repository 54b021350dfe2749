/** Keeps what is remembered of test cases up to date with the runs that have completed. */

import { addContradicted, earlierByFar, groupRuns, type RunOnCommit, toCompare } from "../rules/contradiction.ts";
import {
  type CaseHealth,
  countChange,
  type CountedAt,
  countedAt,
  type CountedRun,
  countResult,
  isDisturbed,
  NO_HEALTH,
} from "../rules/health.ts";
import { isIll, mayBeIll } from "../rules/incident.ts";
import type { ChangedResult } from "../rules/merge.ts";
import { isNews } from "../rules/news.ts";
import type { TurnedCase } from "../schema/events.ts";
import {
  countKnownFlaky,
  lockHealth,
  lockUnrememberedRuns,
  markRemembered,
  type RunBlock,
  selectBlocksOfRuns,
  selectCaseHealth,
  selectCountedOnCommits,
  selectHasUnremembered,
  selectRunBlocks,
  selectUnrememberedRuns,
  storeCaseHealth,
  takeBackFlaky,
  type UnrememberedRun,
} from "../store/case_health.ts";
import {
  type Database,
  isConflict,
  isDiskFull,
  isTimeout,
  isUnavailable,
  setKeepsPlans,
  type Sql,
  type Tx,
} from "../store/connect.ts";
import { insertTurns } from "../store/events.ts";
import { selectMayHaveIllMachine, selectMachineRuns } from "../store/incidents.ts";
import { markRemoved } from "../store/removed_cases.ts";
import { resolveRemoved } from "./bug_reports.ts";

/** In one transaction: a further attempt of one of its runs has to wait for its end. */
const MAX_RUNS = 1_000;
const MAX_RESULTS = 20_000;

/** What is in memory at a time, of a run however large, and goes to the database at once: 1,024 test cases. */
const PORTION_BLOCKS = 8;
/** Requests are answered in between. */
const PORTION_RESULTS = 1_000;
/** Whose results are read at once, for the same reason. */
const PORTION_RUNS = 100;
/** So many blocks of runs that are compared with are in memory at a time. */
const PORTION_COMPARED = 64;

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
  const waiting = await selectUnrememberedRuns(sql, projectId, most + 1);
  let results = 0;
  const ids = waiting
    .slice(0, most)
    .filter((run, index) => (results += run.results) <= MAX_RESULTS || index === 0)
    .map(({ id }) => id);
  const runs = ids.length === 0 ? [] : await lockUnrememberedRuns(sql, projectId, ids);
  if (runs.length === 0) return false;
  take(runs.map(({ id }) => id));
  await setKeepsPlans(sql, true);
  await countRuns(sql, projectId, runs);
  return ids.length < waiting.length;
}

/** Counts locked runs as if one were counted after the other. */
async function countRuns(sql: Tx, projectId: string, runs: readonly UnrememberedRun[]): Promise<void> {
  const compared = await selectCompared(sql, projectId, runs);
  const evidence = await collectEvidence(sql, projectId, runs, compared);
  // Whether a run is disturbed depends on the cases that the runs before it have made flaky: those are counted first.
  const starts = [...runs.keys()].filter((index) => index > 0 && isDisturbed(evidence[index]!.flaky, runs[index]!));
  const ill = await findOnIllMachines(
    sql,
    projectId,
    runs.filter(({ hasFailed }, index) => hasFailed || evidence[index]!.flaky > 0),
  );
  for (const [place, start] of [0, ...starts].entries()) {
    const isFirstDisturbed = await isDisturbedRun(sql, projectId, { ...runs[start]!, ...evidence[start]! });
    const some = runs.slice(start, starts[place]);
    const theirs = some.length === runs.length ? compared : await selectCompared(sql, projectId, some);
    const disturbed = new Set(isFirstDisturbed ? [...ill, runs[start]!.id] : ill);
    await countInOrder(sql, projectId, some, { disturbed, compared: theirs });
  }
}

/** Counts locked runs, of which those of the ids in `disturbed` say nothing; each test case is read once and written once. */
async function countInOrder(
  sql: Tx,
  projectId: string,
  runs: readonly UnrememberedRun[],
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
  const onDefault = runs.filter(({ onDefaultBranch, outage }) => onDefaultBranch && !outage);
  if (onDefault.length > 0) {
    const tasks = [...new Set(onDefault.map(({ taskSlug }) => taskSlug))];
    const removed = await markRemoved(sql, projectId, tasks, ids);
    if (removed.length > 0) await resolveRemoved(sql, projectId, removed);
  }
  for (const { run, turned } of counting)
    if (isNews(run.completedAt)) await insertTurns(sql, projectId, run.id, turned);
  await markRemembered(sql, projectId, ids);
}

/** `flaky`: how many cases look flaky; `others`: those of them that did not pass in a retry, as far as they are known. */
type Evidence = { flaky: number; others?: readonly number[] };

/** Which cases of each run look flaky is known only when all of its results are. */
async function collectEvidence(
  sql: Tx,
  projectId: string,
  runs: readonly UnrememberedRun[],
  compared: ReadonlyMap<string, readonly string[]>,
): Promise<Evidence[]> {
  const others = runs.map((): number[] => []);
  // Most runs are the only ones of their commit, or nothing has failed there.
  if (compared.size > 0)
    for await (const portion of portionsOf(
      sql,
      projectId,
      runs.map(({ id }) => id),
    ))
      for (const [block, numbers] of await selectContradicted(sql, projectId, runs, portion, compared))
        for (const [index, testCase] of block.testCases.entries())
          if (numbers.has(testCase) && block.statuses[index] !== "P") others[block.run]!.push(testCase);
  return runs.map(({ flaky }, index) => ({ flaky: flaky + others[index]!.length, others: others[index]! }));
}

/** Tells whether so many cases of a run look flaky at once that its machine is to blame, see `isDisturbed`. */
export async function isDisturbedRun(
  sql: Tx,
  projectId: string,
  { flaky, others = [], ...run }: Evidence & { id: string; passed: number; failed: number },
): Promise<boolean> {
  if (!isDisturbed(flaky, run)) return false;
  return isDisturbed(flaky - (await countKnownFlaky(sql, projectId, run.id, others)), run);
}

/** The ids of the runs whose machine may have been ill at that time: of what it shows, nothing is a sign of a flaky test. */
async function findOnIllMachines(sql: Tx, projectId: string, runs: readonly UnrememberedRun[]): Promise<string[]> {
  const ill: string[] = [];
  const times = runs.map(({ completedAt }) => Date.parse(completedAt));
  if (times.length === 0 || !(await selectMayHaveIllMachine(sql, projectId, times))) return ill;
  for (const run of runs) {
    if (!(await selectMayHaveIllMachine(sql, projectId, [Date.parse(run.completedAt)]))) continue;
    const known = await selectMachineRuns(sql, projectId, run);
    if (!known || !mayBeIll(known.mine, known.others)) continue;
    ill.push(run.id);
    if (!isIll(known.mine, known.others)) continue;
    // It was ill before anybody could know.
    const before = known.others.filter(({ isMine }) => isMine).map(({ id }) => id);
    const taken = await takeBackFlaky(sql, projectId, before);
    if (taken.length > 0 && isNews(run.completedAt))
      await insertTurns(
        sql,
        projectId,
        run.id,
        taken.map((testCase) => ({ testCase, flaky: false, flakeRate: 0 })),
      );
  }
  return ill;
}

/** Of each run, those that it is to be compared with, by their ids. */
async function selectCompared(
  sql: Tx,
  projectId: string,
  runs: readonly UnrememberedRun[],
): Promise<Map<string, string[]>> {
  const onCommits = runs.flatMap(({ id, taskSlug, commit, outage, hasFailed }): RunOnCommit[] =>
    outage || commit === null ? [] : [{ id, taskSlug, commit, hasFailed }],
  );
  return toCompare(onCommits, await selectCountedOnCommits(sql, projectId, groupRuns(onCommits)));
}

/**
 * The results of the runs: all those of some test cases, then those of others; those of one case in the order of the runs.
 * Of several runs all are read before, of a single one, which may be of any size, a portion at a time.
 */
async function* portionsOf(sql: Tx, projectId: string, ids: readonly string[]): AsyncGenerator<RunBlock[]> {
  if (ids.length === 1) {
    for (let after = -1; ;) {
      const portion = await selectRunBlocks(sql, projectId, ids, after, PORTION_BLOCKS);
      if (portion.length === 0) return;
      yield portion;
      after = Math.max(...portion.map(({ block }) => block));
    }
  }
  const blocks: RunBlock[] = [];
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

type Contradicted = ReadonlyMap<RunBlock, ReadonlySet<number>>;

/** The test cases of a portion that had the other outcome in a run that theirs is compared with. */
async function selectContradicted(
  sql: Tx,
  projectId: string,
  runs: readonly UnrememberedRun[],
  portion: readonly RunBlock[],
  compared: ReadonlyMap<string, readonly string[]>,
): Promise<Contradicted> {
  const contradicted = new Map<RunBlock, Set<number>>();
  const compare = (mine: RunBlock, theirs: RunBlock, theirId: string) => {
    const numbers = contradicted.get(mine) ?? new Set();
    addContradicted(numbers, mine, theirs, earlierByFar(runs[mine.run]!.id, theirId));
    if (numbers.size > 0) contradicted.set(mine, numbers);
  };
  const placeOf = (id: string, block: number) => `${id} ${block}`;
  const known = new Map(portion.map((block) => [placeOf(runs[block.run]!.id, block.block), block]));
  const batch = new Set(runs.map(({ id }) => id));
  const wanted = new Map<string, { runId: string; block: number; by: RunBlock[] }>();
  for (const mine of portion)
    for (const runId of compared.get(runs[mine.run]!.id) ?? []) {
      const place = placeOf(runId, mine.block);
      const theirs = known.get(place);
      if (theirs) compare(mine, theirs, runId);
      else if (!batch.has(runId)) {
        const one = wanted.get(place) ?? { runId, block: mine.block, by: [] };
        wanted.set(place, one);
        one.by.push(mine);
      }
    }
  // Some at a time, and forgotten then: there may be twenty for each run of the batch.
  const all = [...wanted.values()];
  for (let start = 0; start < all.length; start += PORTION_COMPARED) {
    const some = all.slice(start, start + PORTION_COMPARED);
    for (const theirs of await selectBlocksOfRuns(sql, projectId, some))
      for (const mine of some[theirs.run]!.by) compare(mine, theirs, some[theirs.run]!.runId);
    if (start > 0) await letOthersRun();
  }
  return contradicted;
}

type Counting = { run: CountedRun; at: CountedAt; turned: TurnedCase[] };

/** All results of some test cases. */
async function countPortion(
  sql: Tx,
  projectId: string,
  counting: readonly Counting[],
  portion: readonly RunBlock[],
  contradicted: Contradicted,
): Promise<void> {
  const numbers = new Set<number>();
  for (const { testCases } of portion) for (const number of testCases) numbers.add(number);
  const memory = await recall(sql, projectId, [...numbers]);
  let results = 0;
  for (const block of portion) {
    const { run, at, turned } = counting[block.run]!;
    const { testCases, statuses, durations } = block;
    const others = contradicted.get(block);
    testCases.forEach((testCase, index) => {
      const isContradicted = others?.has(testCase) ?? false;
      const result = { letter: statuses[index]!, durationMs: durations[index] ?? null, contradicted: isContradicted };
      const before = memory.get(testCase);
      memory.set(testCase, before, countResult(before, run, at, result), turned);
    });
    results += testCases.length;
    if (results >= PORTION_RESULTS) {
      results = 0;
      await letOthersRun();
    }
  }
  await memory.store();
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

const letOthersRun = () => new Promise<void>((resolve) => void setImmediate(resolve));

/** A flood of uploads may leave more than this: then it is better to answer with what is counted so far. */
const PATIENCE_MS = 5_000;

/** Before reading what is remembered of a project's test cases. What cannot be counted keeps nobody from the rest. */
export async function catchUp(sql: Sql, begin: Begin, projectId: string, patienceMs = PATIENCE_MS): Promise<void> {
  if (!(await selectHasUnremembered(sql, projectId))) return;
  const until = performance.now() + patienceMs;
  try {
    while (performance.now() < until && (await countSome(begin, projectId)));
  } catch (error) {
    // The loop meets it as well: it puts off the run and logs why. Whoever only reads gets through to a full disk.
    if (isUnavailable(error) && !isConflict(error) && !isDiskFull(error)) throw error;
  }
}

/** Of each project: whoever waits for the lock of counting holds a connection, and one is enough. */
const catchingUp = new Map<string, Promise<void>>();

/**
 * The same for whoever goes on with what is known by then: a run of 100,000 cases that is being counted, here or by
 * another server, takes longer than its caller should wait, and is counted on without him.
 */
export async function catchUpWithin(sql: Sql, begin: Begin, projectId: string, patienceMs: number): Promise<void> {
  if (!(await selectHasUnremembered(sql, projectId))) return;
  const { promise: isOver, resolve } = Promise.withResolvers<"over">();
  const timer = setTimeout(() => resolve("over"), patienceMs);
  try {
    const before = catchingUp.get(projectId);
    if (before && (await Promise.race([isOver, before.catch(() => {})])) === "over") return;
    const mine = catchUp(sql, begin, projectId, patienceMs).finally(
      () => void (catchingUp.get(projectId) === mine && catchingUp.delete(projectId)),
    );
    catchingUp.set(projectId, mine);
    // Who does not wait for it any more is not told either: the loop meets the same, and logs it.
    mine.catch(() => {});
    await Promise.race([isOver, mine]);
  } finally {
    clearTimeout(timer);
  }
}
