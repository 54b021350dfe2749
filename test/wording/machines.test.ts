import { expect, test } from "bun:test";
import { failingHostOf, failingHostWords, ranOnWords } from "../../src/wording/machines.ts";

const shard = (host: string | null, failed = 0) => ({ host, failed });

test("one machine has all failures only if each is known, another one has none, and the numbers agree", () => {
  expect(failingHostOf([shard("b"), shard("bad", 2), shard("a"), shard("bad", 1)], 3)).toEqual({
    host: "bad",
    others: ["a", "b"],
  });
  expect(failingHostOf([shard("bad", 2), shard("a")], 3)).toBeUndefined();
  expect(failingHostOf([shard("bad", 2), shard(null)], 2)).toBeUndefined();
  expect(failingHostOf([shard("bad", 2), shard("a", 1), shard("b")], 3)).toBeUndefined();
  expect(failingHostOf([shard("bad", 2), shard("bad")], 2)).toBeUndefined();
  expect(failingHostOf([shard("bad", 1), shard("a")], 1)).toBeUndefined();
});

test("machines in words", () => {
  expect(failingHostWords({ host: "bad", others: ["a", "b", "c"] }, 28)).toBe(
    "All 28 failures are on bad, none on a, b and c",
  );
  expect(failingHostWords({ host: "bad", others: [..."abcdef"] }, 2)).toEndWith("none on a, b, c, d and 2 more");
  expect([[], ["a"], ["a", "b"]].map(ranOnWords)).toEqual(["", " on a", ", which ran on a and b"]);
});
