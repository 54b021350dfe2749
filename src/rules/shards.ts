/** Determines which announced shards a run has. */

/**
 * Returns shards in ascending order, arrived and missing ones. `named` are the shards that uploads have named, in any order. A complete run
 * misses none, because a report of the whole task replaces them.
 */
export function shardsOf(
  { shards, completedAt }: { shards: number; completedAt: string | null },
  named: readonly number[],
): { arrivedShards: number[]; missingShards: number[] } {
  const all = Array.from({ length: shards }, (_, index) => index + 1);
  const here = new Set(named);
  const hasArrived = (shard: number) => completedAt !== null || here.has(shard);
  return { arrivedShards: all.filter(hasArrived), missingShards: all.filter((shard) => !hasArrived(shard)) };
}

/** Announced and not in; none of a task that is not sharded. */
export const missingShardsOf = (task: {
  shards: number;
  completedAt: string | null;
  namedShards: readonly number[];
}): number[] => (task.shards === 1 ? [] : shardsOf(task, task.namedShards).missingShards);

/** "shard 1", "shards 1, 2 and 3"; of many the first ten. */
export function toShardList(numbers: readonly number[]): string {
  const named = numbers.slice(0, 10);
  const more = numbers.length - named.length;
  const last = more > 0 ? `${more} more` : named.pop();
  const what = numbers.length === 1 ? "shard" : "shards";
  return named.length === 0 ? `${what} ${last}` : `${what} ${named.join(", ")} and ${last}`;
}
