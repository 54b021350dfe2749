import { expect, test } from "bun:test";
import { createHarness } from "../harness.ts";
import { isSameCommit } from "../../src/rules/commit.ts";

const { database } = await createHarness();
const hash = "0123456789abcdef0123456789abcdef01234567";
const PAIRS: [string, string, boolean][] = [
  [hash, hash, true],
  [hash, hash.toUpperCase(), true],
  [hash, hash.slice(0, 7), true],
  [hash.slice(0, 9), hash.toUpperCase(), true],
  [hash, hash.slice(0, 6), false],
  [hash.slice(0, 7), hash.slice(1, 8), false],
  ["r1234", "r1234", true],
  ["r1234", "r12345", false],
  ["1234", "12345678", false],
  ["release-1234567", "release-12345678", false],
];

test.each(PAIRS)("%s and %s: %p, here and in the database", async (one, other, same) => {
  const [row] =
    await database.pool`select is_same_commit(${one}, ${other}) as same, is_same_commit(${other}, ${one}) as back`;
  expect([isSameCommit(one, other), isSameCommit(other, one), row!.same, row!.back]).toEqual([same, same, same, same]);
});
