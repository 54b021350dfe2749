/** The rule for results that took longer than usual reaches its goals; and its score tells a good rule from bad ones. */

import { expect, test } from "bun:test";
import { scoreSlower, SUITE } from "./slower.ts";

/** Other seeds than those that the rule was developed with. */
const SEEDS = [4_001, 4_002];

test("5,000 tests have at most one false alarm a week, and slowdowns by five and ten are found within five builds", () => {
  const scores = SEEDS.map((seed) => scoreSlower(SUITE, seed));
  const alarms = scores.map(({ falseAlarms }) => falseAlarms.main + falseAlarms.pullRequests);
  expect(alarms.reduce((sum, each) => sum + each) / alarms.length).toBeLessThanOrEqual(1);
  for (const { precision, recall } of scores) {
    expect(precision).toBeGreaterThan(0.9);
    expect(recall.main[5].injected).toBe(SUITE.slowdowns);
    expect(recall.main[5].found).toBeGreaterThanOrEqual(SUITE.slowdowns - 1);
    expect(recall.main[10]).toEqual({ injected: SUITE.slowdowns, found: SUITE.slowdowns });
  }
}, 60_000);

const SMALL = { ...SUITE, testCases: 500, weeks: 1, slowdowns: 5 };

test("a rule that finds nothing has no recall", () => {
  const { recall, falseAlarms } = scoreSlower(SMALL, 1, () => undefined);
  expect([recall.main[10].found, falseAlarms]).toEqual([0, { main: 0, pullRequests: 0 }]);
});

test("a rule that takes one long result for a slowdown has false alarms", () => {
  const { falseAlarms, precision } = scoreSlower(SMALL, 1, ({ durationMs, history }) => {
    const longestMs = Math.max(...history);
    return durationMs > longestMs ? { usualMs: 1, longestMs } : undefined;
  });
  expect(falseAlarms.main).toBeGreaterThan(1);
  expect(precision).toBeLessThan(0.9);
});
