/** The weeks of a branch: which day belongs to which, and how long the branch was red in each. */

import { expect, test } from "bun:test";
import { toWeeks } from "../../src/rules/weeks.ts";

const now = new Date("2026-03-20T12:00:00Z");
const HOUR = 3_600_000;
/** A day on which the only execution ended at noon. */
const day = (day: string, more: Partial<Parameters<typeof toWeeks>[0][number]> = {}) => ({
  ...{ day, executions: 1, passed: 1, flaky: 0, lastPassed: true, redMs: 0, p50Ms: 1_000 },
  ...{ firstEndedAt: `${day}T12:00:00.000Z`, lastEndedAt: `${day}T12:00:00.000Z` },
  ...more,
});

test("the last week ends today, and the first one has the first day with executions", () => {
  expect(toWeeks([], now)).toEqual([]);
  expect(
    toWeeks([day("2026-03-13"), day("2026-03-14"), day("2026-03-20", { flaky: 1, passed: 0 })], now),
  ).toMatchObject([
    { from: "2026-03-07", to: "2026-03-13", executions: 1, passed: 1 },
    { from: "2026-03-14", to: "2026-03-20", executions: 2, passed: 1, flaky: 1 },
  ]);
});

test("the branch is red from an execution that did not pass to the next one that did, over nights and weeks, or until now", () => {
  const red = { passed: 0, lastPassed: false };
  const hours = (...days: Parameters<typeof toWeeks>[0]) => toWeeks(days, now).map(({ redMs }) => redMs / HOUR);
  expect(hours(day("2026-03-14"), day("2026-03-15"))).toEqual([0]);
  expect(hours(day("2026-03-15", { redMs: 2 * HOUR }), day("2026-03-16", red), day("2026-03-17"))).toEqual([26]);
  // Midnight after the 13th ends the first week.
  expect(hours(day("2026-03-13", red), day("2026-03-14"))).toEqual([12, 12]);
  expect(hours(day("2026-03-19", red))).toEqual([24]);
  expect(hours(day("2026-02-28", red))).toEqual([156, 168, 156]);
});

test("the duration is the median of the days that have one", () => {
  const of = (...medians: (number | null)[]) =>
    toWeeks(
      medians.map((p50Ms, index) => day(`2026-03-${14 + index}`, { p50Ms })),
      now,
    ).at(-1)!.p50Ms;
  expect(of(null)).toBeNull();
  expect(of(30, null, 10, 20)).toBe(20);
});
