import { expect, test } from "bun:test";
import { shardsOf, toShardList } from "../../src/rules/shards.ts";

test("shards that are announced have arrived or are missing, and none is missing of a run that is in", () => {
  const shards = (shards: number, named: number[], completedAt: string | null = null) => {
    const { arrivedShards, missingShards } = shardsOf({ shards, completedAt }, named);
    return [arrivedShards, missingShards];
  };
  const time = "2026-01-01T00:00:00.000Z";
  expect(shards(3, [])).toEqual([[], [1, 2, 3]]);
  expect(shards(3, [3, 1])).toEqual([[1, 3], [2]]);
  expect(shards(3, [2, 3, 1], time)).toEqual([[1, 2, 3], []]);
  // Not sharded, or a report of the whole before the shards of a retry.
  expect(shards(1, [], time)).toEqual([[1], []]);
  expect(shards(2, [1], time)).toEqual([[1, 2], []]);
});

test("shards are named, of many the first ten", () => {
  expect(toShardList([2])).toBe("shard 2");
  expect(toShardList([1, 2])).toBe("shards 1 and 2");
  expect(toShardList([1, 3, 4])).toBe("shards 1, 3 and 4");
  expect(toShardList(Array.from({ length: 12 }, (_, index) => index + 1))).toBe(
    "shards 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more",
  );
});
