/** Merges the results of an attempt into those of its run, case by case. */

import {
  blockOf,
  type ChangedResult,
  changesOf,
  mergeBlock,
  packResults,
  removeFromBlock,
  type Result,
  type ResultBlock,
} from "../../rules/merge.ts";
import { WHOLE } from "../../rules/run_outcome.ts";
import type { Attempt } from "../../store/test_runs.ts";

type OwnAttempt = Pick<Attempt, "shard" | "number" | "exitCase">;

/**
 * Returns the test cases whose failures are over with the next attempt: those that stand for the exit codes of earlier attempts, because
 * the next one has its own exit code, and the failures outside of tests in `replaced`.
 */
const outdatedCases = (
  attempt: Pick<OwnAttempt, "shard" | "exitCase">,
  before: readonly Attempt[],
  replaced: readonly number[],
): number[] => [
  ...replaced,
  ...before
    .filter(({ shard, exitCase }) => exitCase !== null && (attempt.shard === WHOLE || shard === attempt.shard))
    .map(({ exitCase }) => exitCase!)
    .filter((exitCase) => exitCase !== attempt.exitCase),
];

/** Returns the numbers of the result blocks that an attempt changes. */
export const blocksToMerge = (
  results: readonly Result[],
  attempt: Pick<OwnAttempt, "shard" | "exitCase">,
  before: readonly Attempt[],
  replaced: readonly number[],
): number[] => [
  ...new Set([
    ...results.map(({ testCase }) => blockOf(testCase)),
    ...outdatedCases(attempt, before, replaced).map(blockOf),
  ]),
];

export type MergedResults = {
  /** The blocks to store. */
  blocks: ResultBlock[];
  /** Numbers of the blocks that have no results left. */
  emptied: number[];
  /** Test cases whose failures are over; they no longer have a result in the run. */
  removed: number[];
  changes: ChangedResult[];
};

/**
 * Merges an attempt into the run. `before` are the earlier attempts, `stored` the stored blocks that `blocksToMerge` names. `replaced` are
 * test cases for failures outside of tests that the attempt shows to be over.
 */
export function mergeResults(
  results: readonly Result[],
  attempt: OwnAttempt,
  before: readonly Attempt[],
  stored: readonly ResultBlock[],
  replaced: readonly number[],
): MergedResults {
  if (before.length === 0)
    return { blocks: packResults(results, attempt.number), emptied: [], removed: [], changes: [] };
  const fresh = Map.groupBy(results, ({ testCase }) => blockOf(testCase));
  const old = new Map(stored.map((block) => [block.block, block]));
  const emptied = new Set<number>();
  const removed = outdatedCases(attempt, before, replaced);
  for (const testCase of removed) {
    const block = blockOf(testCase);
    const rest = old.get(block) && removeFromBlock(old.get(block)!, testCase);
    if (rest) old.set(block, rest);
    else if (old.delete(block)) emptied.add(block);
  }
  // A replaced failure counts as a pass on retry.
  const changes = replaced.map((testCase): ChangedResult => ({ testCase, before: "f", letter: "P", durationMs: null }));
  const blocks = blocksToMerge(results, attempt, before, replaced).flatMap((block) => {
    const incoming = fresh.get(block);
    if (!incoming) return old.get(block) ?? [];
    const joined = mergeBlock(block, old.get(block), incoming, attempt.number);
    changes.push(...changesOf(old.get(block), joined));
    return [joined];
  });
  return { blocks, emptied: [...emptied].filter((block) => !fresh.has(block)), removed, changes };
}
