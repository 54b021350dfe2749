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

/** The test cases that only stood for exit codes: that is over with the next attempt, which has an exit code of its own. */
const outdatedCases = (attempt: Pick<OwnAttempt, "shard" | "exitCase">, before: readonly Attempt[]): number[] =>
  before
    .filter(({ shard, exitCase }) => exitCase !== null && (attempt.shard === WHOLE || shard === attempt.shard))
    .map(({ exitCase }) => exitCase!)
    .filter((exitCase) => exitCase !== attempt.exitCase);

/** The blocks of a run that an attempt changes. */
export const blocksToMerge = (
  results: readonly Result[],
  attempt: Pick<OwnAttempt, "shard" | "exitCase">,
  before: readonly Attempt[],
): number[] => [
  ...new Set([...results.map(({ testCase }) => blockOf(testCase)), ...outdatedCases(attempt, before).map(blockOf)]),
];

export type MergedResults = {
  /** To be stored. */
  blocks: ResultBlock[];
  /** Of these blocks nothing is left. */
  emptied: number[];
  changes: ChangedResult[];
};

/** `before` are the attempts so far, `stored` the blocks of `blocksToMerge` as they are. */
export function mergeResults(
  results: readonly Result[],
  attempt: OwnAttempt,
  before: readonly Attempt[],
  stored: readonly ResultBlock[],
): MergedResults {
  if (before.length === 0) return { blocks: packResults(results, attempt.number), emptied: [], changes: [] };
  const fresh = Map.groupBy(results, ({ testCase }) => blockOf(testCase));
  const old = new Map(stored.map((block) => [block.block, block]));
  const emptied = new Set<number>();
  for (const testCase of outdatedCases(attempt, before)) {
    const block = blockOf(testCase);
    const rest = old.get(block) && removeFromBlock(old.get(block)!, testCase);
    if (rest) old.set(block, rest);
    else if (old.delete(block)) emptied.add(block);
  }
  const changes: ChangedResult[] = [];
  const blocks = blocksToMerge(results, attempt, before).flatMap((block) => {
    const incoming = fresh.get(block);
    if (!incoming) return old.get(block) ?? [];
    const joined = mergeBlock(block, old.get(block), incoming, attempt.number);
    changes.push(...changesOf(old.get(block), joined));
    return [joined];
  });
  return { blocks, emptied: [...emptied].filter((block) => !fresh.has(block)), changes };
}
