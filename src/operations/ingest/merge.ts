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
import { deleteBlock, selectBlocks } from "../../store/case_results.ts";
import type { Tx } from "../../database/connect.ts";
import type { Attempt } from "../../store/test_runs.ts";

/**
 * In a transaction that holds the execution's lock. `before` are the attempts so far. Answers the blocks that are to be
 * stored, and what has changed.
 */
export async function mergeResults(
  sql: Tx,
  projectId: string,
  runId: string,
  results: readonly Result[],
  attempt: Attempt,
  before: readonly Attempt[],
): Promise<{ blocks: ResultBlock[]; changes: ChangedResult[] }> {
  if (before.length === 0) return { blocks: packResults(results, attempt.number), changes: [] };
  const fresh = Map.groupBy(results, ({ testCase }) => blockOf(testCase));
  // A failure that only stood for an exit code is over with the next attempt, which has an exit code of its own.
  const outdated = before
    .filter(({ shard, exitCase }) => exitCase !== null && (attempt.shard === WHOLE || shard === attempt.shard))
    .map(({ exitCase }) => exitCase!)
    .filter((exitCase) => exitCase !== attempt.exitCase);
  const touched = [...new Set([...fresh.keys(), ...outdated.map(blockOf)])];
  const stored = await selectBlocks(sql, projectId, runId, touched);
  const old = new Map(stored.map((block) => [block.block, block]));
  const changes: ChangedResult[] = [];
  for (const testCase of outdated) {
    const block = blockOf(testCase);
    const rest = old.get(block) && removeFromBlock(old.get(block)!, testCase);
    if (rest) old.set(block, rest);
    else if (old.delete(block)) await deleteBlock(sql, projectId, runId, block);
  }
  const blocks = touched.flatMap((block) => {
    const incoming = fresh.get(block);
    if (!incoming) return old.get(block) ?? [];
    const joined = mergeBlock(block, old.get(block), incoming, attempt.number);
    changes.push(...changesOf(old.get(block), joined));
    return [joined];
  });
  return { blocks, changes };
}
