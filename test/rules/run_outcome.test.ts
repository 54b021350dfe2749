import { describe, expect, test } from "bun:test";
import {
  isComplete,
  latestAttempts,
  nextNumber,
  outcomeOf,
  type RunAttempt,
  type RunSoFar,
  WHOLE,
} from "../../src/rules/run_outcome.ts";

const attempt = (shard: number, number = 1, more: Partial<RunAttempt> = {}): RunAttempt => ({
  shard,
  number,
  partial: false,
  passed: 0,
  failed: 0,
  skipped: 0,
  ...more,
});
const fresh: RunSoFar = { completedAt: null, status: "running", outage: false, wasOutage: false, healthApplied: null };
const complete: RunSoFar = { ...fresh, completedAt: "2026-01-01T00:00:00.000Z", status: "passed", healthApplied: true };
const counts = (passed: number, failed = 0, quarantined = 0) => ({ passed, failed, skipped: 0, quarantined });

test("an attempt comes after those of its shard and after whole ones", () => {
  const before = [attempt(1, 1), attempt(2, 1), attempt(1, 2), attempt(WHOLE, 3)];
  expect([1, 2, 3, WHOLE].map((shard) => nextNumber(before, shard))).toEqual([4, 4, 4, 4]);
  expect([1, 2, 3, WHOLE].map((shard) => nextNumber(before.slice(0, 3), shard))).toEqual([3, 2, 1, 3]);
  expect(nextNumber([], WHOLE)).toBe(1);
});

test("the last attempt of each shard counts", () => {
  const all = [attempt(2, 1), attempt(1, 2), attempt(1, 1)];
  expect(latestAttempts(all)).toEqual([all[1]!, all[0]!]);
});

describe("a run is complete", () => {
  test.each<[string, RunAttempt[], number, boolean]>([
    ["with its only upload", [attempt(WHOLE)], 1, true],
    ["not with one of two shards", [attempt(1)], 2, false],
    ["not with one of two shards twice", [attempt(1), attempt(1, 2)], 2, false],
    ["with all shards, in any order", [attempt(2), attempt(1)], 2, true],
    ["with a whole upload where shards were announced before any came", [attempt(WHOLE)], 2, true],
    ["not with a whole upload among shards that are missing", [attempt(1), attempt(WHOLE, 2)], 3, false],
  ])("%s", (_, attempts, shards, expected) => {
    expect(isComplete(attempts, shards)).toBe(expected);
  });
});

describe("the outcome of a run", () => {
  test.each<[string, RunSoFar, RunAttempt[], number, ReturnType<typeof counts>, Partial<ReturnType<typeof outcomeOf>>]>(
    [
      ["all passed", fresh, [attempt(WHOLE)], 1, counts(3), { verdict: "passed", status: "passed", isIn: true }],
      ["one failed", fresh, [attempt(WHOLE)], 1, counts(3, 1), { verdict: "failed", status: "failed" }],
      ["only quarantined ones failed", fresh, [attempt(WHOLE)], 1, counts(3, 2, 2), { verdict: "passed" }],
      ["a report broke off", fresh, [attempt(WHOLE, 1, { partial: true })], 1, counts(3), { verdict: "failed" }],
      [
        "a broken report was sent again whole",
        fresh,
        [attempt(WHOLE, 1, { partial: true }), attempt(WHOLE, 2)],
        1,
        counts(3),
        { verdict: "passed" },
      ],
      [
        "a shard broke off, and another one that came later is whole",
        fresh,
        [attempt(1, 1, { partial: true }), attempt(2)],
        2,
        counts(3),
        { verdict: "failed", status: "failed" },
      ],
      ["a shard is missing", fresh, [attempt(1)], 2, counts(3), { verdict: "passed", status: "running", isIn: false }],
      [
        "a shard comes late",
        { ...fresh, status: "timed_out" },
        [attempt(1)],
        2,
        counts(3),
        { status: "incomplete", verdict: "failed", isIn: false },
      ],
      [
        "the last missing shard comes late",
        { ...fresh, status: "incomplete" },
        [attempt(1), attempt(2)],
        2,
        counts(3),
        { status: "passed", verdict: "passed", isIn: true },
      ],
      ["nearly all failed", fresh, [attempt(WHOLE)], 1, counts(1, 20), { outage: true, staysApplied: false }],
      ["exactly four in five failed", fresh, [attempt(WHOLE)], 1, counts(3, 12), { outage: false }],
      ["one more than four in five failed", fresh, [attempt(WHOLE)], 1, counts(3, 13), { outage: true }],
      ["few cases, all failed", fresh, [attempt(WHOLE)], 1, counts(0, 9), { outage: false }],
      [
        "a further attempt of what is counted",
        complete,
        [attempt(WHOLE), attempt(WHOLE, 2)],
        1,
        counts(3),
        { staysApplied: true, outage: false },
      ],
      [
        "a further attempt fails as in an outage: what is counted stays what it was",
        complete,
        [attempt(WHOLE), attempt(WHOLE, 2)],
        1,
        counts(1, 20),
        { staysApplied: true, outage: false },
      ],
      [
        "a retry shows that the outage is over: all is counted",
        { ...complete, outage: true },
        [attempt(WHOLE), attempt(WHOLE, 2)],
        1,
        counts(20, 1),
        { staysApplied: false, outage: false },
      ],
    ],
  )("%s", (_, run, attempts, shards, sums, expected) => {
    expect(outcomeOf(run, attempts, shards, sums)).toMatchObject(expected);
  });
});
