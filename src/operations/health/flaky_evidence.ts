/** The signs that runs give of flaky tests, and the runs that are not trusted to give any. */

import { addContradicted, earlierByFar, groupRuns, type RunOnCommit, toCompare } from "../../rules/contradiction.ts";
import { isDisturbed } from "../../rules/health.ts";
import { countKnownFlaky } from "../../store/case_health.ts";
import { type CountedBlock, selectBlocksOfRuns, selectRunBlocks } from "../../store/run_blocks.ts";
import { selectCountedOnCommits, type PendingRun } from "../../store/pending_health.ts";
import type { Tx } from "../../database/connect.ts";

/** Maximum number of results that are counted in one transaction. */
export const MAX_RESULTS = 20_000;
/** Number of blocks of 128 test cases that are in memory at a time, however large a run is. */
const PORTION_BLOCKS = 8;
/** Number of runs whose results are read at once; other requests are served in between. */
const PORTION_RUNS = 100;
/** Number of blocks of earlier runs that are in memory at a time. */
const PORTION_COMPARED = 64;

/** `flaky`: how many cases look flaky; `others`: those of them that did not pass in a retry, as far as they are known. */
type Evidence = { flaky: number; others?: readonly number[] };

/** Which cases of each run look flaky is known only when all of its results are. */
export async function collectEvidence(
  sql: Tx,
  projectId: string,
  runs: readonly PendingRun[],
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

/** Of each run, those that it is to be compared with, by their ids. */
export async function selectCompared(
  sql: Tx,
  projectId: string,
  runs: readonly PendingRun[],
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
export async function* portionsOf(sql: Tx, projectId: string, ids: readonly string[]): AsyncGenerator<CountedBlock[]> {
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

export type Contradicted = ReadonlyMap<CountedBlock, ReadonlySet<number>>;

/** The test cases of a portion that had the other outcome in a run that theirs is compared with. */
export async function selectContradicted(
  sql: Tx,
  projectId: string,
  runs: readonly PendingRun[],
  portion: readonly CountedBlock[],
  compared: ReadonlyMap<string, readonly string[]>,
): Promise<Contradicted> {
  const contradicted = new Map<CountedBlock, Set<number>>();
  const compare = (mine: CountedBlock, theirs: CountedBlock, theirId: string) => {
    const numbers = contradicted.get(mine) ?? new Set();
    addContradicted(numbers, mine, theirs, earlierByFar(runs[mine.run]!.id, theirId));
    if (numbers.size > 0) contradicted.set(mine, numbers);
  };
  const placeOf = (id: string, block: number) => `${id} ${block}`;
  const known = new Map(portion.map((block) => [placeOf(runs[block.run]!.id, block.block), block]));
  const batch = new Set(runs.map(({ id }) => id));
  const wanted = new Map<string, { runId: string; block: number; by: CountedBlock[] }>();
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

/** Lets other requests be served. */
export const letOthersRun = () => new Promise<void>((resolve) => void setImmediate(resolve));
