/** The words of a digest: differences, periods and times. */

import { expect, test } from "bun:test";
import type { Digest } from "../../src/schema/digest.ts";
import { toDigestNotice } from "../../src/wording/digest.ts";

const UNTIL = Date.parse("2026-01-31T09:00:00.000Z");
const HOUR_MS = 3_600_000;
const none = { count: 0, before: 0 };

const toDigest = (hours: number, more: Partial<Digest>): Digest => ({
  since: new Date(UNTIL - hours * HOUR_MS).toISOString(),
  until: new Date(UNTIL).toISOString(),
  owners: null,
  flaky: { ...none, became: [], becameCount: 0, recovered: [], recoveredCount: 0 },
  bugs: { opened: none, resolved: none, open: 0, oldest: [] },
  slower: [],
  slowest: [],
  builds: null,
  ...more,
});

const linesOf = (hours: number, more: Partial<Digest>) =>
  toDigestNotice({ id: "p", name: "Shop" }, toDigest(hours, more), "https://assay.test").links!.map(({ text }) => text);

test("nothing that is zero is mentioned", () => {
  expect(linesOf(168, {})).toEqual([]);
});

test.each([
  [168, "the week before"],
  [72, "the 3 days before"],
  [24, "the day before"],
  [5, "the 5 hours before"],
  [0.2, "the hour before"],
])("a period of %p hours is compared with %s", (hours, than) => {
  const bugs = { opened: { count: 1, before: 1_236 }, resolved: { count: 2, before: 2 }, open: 0, oldest: [] };
  expect(linesOf(hours, { bugs })).toEqual([`1 bug opened, 1,235 fewer than ${than}; 2 resolved`]);
});

test.each([
  [30_000, "less than a minute"],
  [60_000, "1 minute"],
  [59.9 * 60_000, "59 minutes"],
  [HOUR_MS * 2, "2 hours"],
  [HOUR_MS * 5.23, "5.2 hours"],
])("%p ms in red are %s", (redMs, words) => {
  const builds = {
    branch: "main",
    count: 3,
    before: 0,
    passed: 1,
    passedBefore: 0,
    timesRed: 2,
    redMs,
    redMsBefore: 0,
  };
  expect(linesOf(168, { builds: { ...builds, rescued: none } })).toEqual([
    "main: 1 of 3 builds passed (33 %)",
    `main was red for ${words} and turned red 2 times`,
  ]);
});

test("tests that are not listed are counted", () => {
  const test = {
    testCaseId: "t",
    taskSlug: "unit",
    suite: "cart",
    name: "adds",
    file: null,
    url: "https://assay.test/t",
  };
  const flaky = {
    count: 9,
    before: 2,
    became: [{ ...test, failed: 3, results: 25 }],
    becameCount: 8,
    recovered: [test],
    recoveredCount: 1,
  };
  expect(linesOf(168, { flaky })).toEqual([
    "9 flaky tests, 7 more than the week before",
    "Became flaky: cart > adds (failed 3 of 25)",
    "7 more tests became flaky",
    "Recovered: cart > adds",
  ]);
});
