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
 * The failures that are over with the next attempt: those that only stood for exit codes, because it has an exit code of its own, and those
 * outside of tests that it shows to be over.
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

/** The blocks of a run that an attempt changes. */
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
  /** To be stored. */
  blocks: ResultBlock[];
  /** Of these blocks nothing is left. */
  emptied: number[];
  /** Failures that are over, and no results of the run any more. */
  removed: number[];
  changes: ChangedResult[];
};

/**
 * `before` are the attempts so far, `stored` the blocks of `blocksToMerge` as they are. `replaced` are failures outside of tests that the
 * attempt shows to be over.
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
  // They count as what passes on a retry.
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
