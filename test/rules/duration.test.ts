import { describe, expect, test } from "bun:test";
import { startOf, timesOf, type TimedAttempt } from "../../src/rules/duration.ts";

const at = (seconds: number) => new Date(Date.UTC(2026, 0, 31, 12) + seconds * 1_000);
const attempt = (number: number, seconds: number, start: number | null): TimedAttempt => ({
  number,
  durationMs: seconds * 1_000,
  startedAt: start === null ? null : at(start).toISOString(),
});
const NONE = { durationMs: 0, machineTimeMs: 0, testsStartedAt: null };

/** Of attempts that arrive one after the other. */
const after = (...attempts: TimedAttempt[]) =>
  attempts.reduce(
    (before, _, index) => timesOf(attempts.slice(0, index + 1), before),
    NONE as ReturnType<typeof timesOf>,
  );
const seconds = ({ durationMs, machineTimeMs }: ReturnType<typeof timesOf>) => [
  durationMs / 1_000,
  machineTimeMs / 1_000,
];

describe("wall time and machine time, in seconds", () => {
  test.each([
    ["of one report", [attempt(1, 10, 0)], [10, 10]],
    ["of shards side by side", [attempt(1, 10, 0), attempt(1, 10, 0), attempt(1, 10, 1)], [11, 30]],
    ["of shards one after the other", [attempt(1, 10, 0), attempt(1, 10, 10)], [20, 20]],
    ["of shards with a break", [attempt(1, 10, 15), attempt(1, 10, 0)], [25, 20]],
    ["of shards that do not tell", [attempt(1, 10, null), attempt(1, 12, null)], [12, 22]],
    ["of shards of which one does not tell", [attempt(1, 10, 0), attempt(1, 12, null), attempt(1, 2, 12)], [14, 24]],
    ["of a retry an hour later", [attempt(1, 10, 0), attempt(2, 5, 3_600)], [15, 15]],
    ["of a retried shard", [attempt(1, 10, 0), attempt(1, 10, 0), attempt(2, 7, 60)], [17, 27]],
    ["of retries that do not tell", [attempt(1, 10, null), attempt(2, 5, null)], [15, 15]],
    ["of reports without any test", [attempt(1, 0, null)], [0, 0]],
  ])("%s", (_, attempts, expected) => {
    expect(seconds(after(...attempts))).toEqual(expected);
  });

  test("do not depend on the order in which shards arrive", () => {
    const shards = [attempt(1, 10, 3), attempt(1, 4, null), attempt(1, 2, 20)];
    expect(after(...shards.toReversed())).toEqual(after(...shards));
    expect(after(...shards).testsStartedAt).toBe(at(3).toISOString());
  });
});

describe("when tests began", () => {
  const start = (endedAt: number | null, isAtEnd = false) =>
    startOf({ durationMs: 10_000, endedAt: endedAt === null ? null : at(endedAt) }, at(0), isAtEnd);

  test.each([
    ["is before the end that the report names", -30, false, at(-40)],
    ["is known of a clock that is a little fast", 30, false, at(20)],
    ["is unknown where the report names none", null, false, null],
    ["is unknown of a clock in another time zone", -5 * 3_600, false, null],
    ["is unknown of a clock ahead", 3_600, false, null],
    ["is told by the upload where the report's clock is wrong", 3_600, true, at(-10)],
    ["is told by the upload where the report says nothing", null, true, at(-10)],
  ])("%s", (_, endedAt, isAtEnd, expected) => {
    expect(start(endedAt, isAtEnd)).toBe(expected === null ? null : expected.toISOString());
  });

  test("is unknown of tests that claim to have run for centuries", () => {
    expect(startOf({ durationMs: 4e14, endedAt: at(0) }, at(0), true)).toBeNull();
  });
});
