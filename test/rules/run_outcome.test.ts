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
  failedCases: 0,
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
  const once = [attempt(WHOLE)];
  const twice = [attempt(WHOLE), attempt(WHOLE, 2)];
  const brokeOff = attempt(WHOLE, 1, { partial: true });

  test.each<[string, RunAttempt[], ReturnType<typeof counts>, Partial<ReturnType<typeof outcomeOf>>]>([
    ["all passed", once, counts(3), { verdict: "passed", status: "passed", isIn: true }],
    ["one failed", once, counts(3, 1), { verdict: "failed", status: "failed" }],
    ["only quarantined ones failed", once, counts(3, 2, 2), { verdict: "passed" }],
    ["a report broke off", [brokeOff], counts(3), { verdict: "failed" }],
    ["a broken report was sent again whole", [brokeOff, attempt(WHOLE, 2)], counts(3), { verdict: "passed" }],
    ["nearly all failed", once, counts(1, 20), { outage: true, staysApplied: false }],
    ["exactly four in five failed", once, counts(3, 12), { outage: false }],
    ["one more than four in five failed", once, counts(3, 13), { outage: true }],
    ["few cases, all failed", once, counts(0, 9), { outage: false }],
  ])("%s", (_, attempts, sums, expected) => {
    expect(outcomeOf(fresh, attempts, 1, sums)).toMatchObject(expected);
  });

  test.each<[string, RunSoFar["status"], RunAttempt[], Partial<ReturnType<typeof outcomeOf>>]>([
    [
      "one broke off, and another one that came later is whole",
      "running",
      [attempt(1, 1, { partial: true }), attempt(2)],
      { verdict: "failed", status: "failed" },
    ],
    ["one is missing", "running", [attempt(1)], { verdict: "passed", status: "running", isIn: false }],
    ["one comes late", "timed_out", [attempt(1)], { status: "incomplete", verdict: "failed", isIn: false }],
    [
      "the last comes late",
      "incomplete",
      [attempt(1), attempt(2)],
      { status: "passed", verdict: "passed", isIn: true },
    ],
  ])("of two shards: %s", (_, status, attempts, expected) => {
    expect(outcomeOf({ ...fresh, status }, attempts, 2, counts(3))).toMatchObject(expected);
  });

  test.each<[string, RunSoFar, ReturnType<typeof counts>, Partial<ReturnType<typeof outcomeOf>>]>([
    ["of what is counted", complete, counts(3), { staysApplied: true, outage: false }],
    [
      "that fails as in an outage leaves what is counted",
      complete,
      counts(1, 20),
      { staysApplied: true, outage: false },
    ],
    [
      "shows that an outage is over",
      { ...complete, outage: true },
      counts(20, 1),
      { staysApplied: false, outage: false },
    ],
  ])("a further attempt %s", (_, run, sums, expected) => {
    expect(outcomeOf(run, twice, 1, sums)).toMatchObject(expected);
  });
});
