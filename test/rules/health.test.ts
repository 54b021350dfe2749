import { describe, expect, test } from "bun:test";
import { type CaseHealth, countChange, countedAt, countResult, NO_HEALTH } from "../../src/rules/health.ts";

const START = Date.parse("2026-01-01T00:00:00.000Z");
const HOUR = 3_600_000;
const at = (hours: number) => new Date(START + hours * HOUR).toISOString();
const now = new Date(START + 10_000 * HOUR);

type Extra = { main?: boolean; outage?: boolean; hours?: number };
const toRun = (index: number, { main = true, outage = false, hours = index }: Extra = {}) => ({
  ...{ id: `run ${index}`, completedAt: at(hours), outage, onDefaultBranch: main },
});

/** One run an hour; a letter each, as in rules/merge.ts, and those of rules/health.ts. */
function play(letters: string, health: CaseHealth = NO_HEALTH, first = 0, extra: Extra = {}): CaseHealth {
  for (const [index, letter] of [...letters].entries()) {
    const run = toRun(first + index, extra);
    health = countResult(health, run, countedAt(run, now), { letter, durationMs: null });
  }
  return health;
}

describe("a result", () => {
  test("is counted when it passed or failed, in a run that was no outage", () => {
    expect(play("pfsPFS")).toMatchObject({ runs: 4, failures: 2, lastStatus: "skipped", lastRunId: "run 5" });
    expect(play("f", play("pp"), 2, { outage: true })).toMatchObject({
      ...{ runs: 2, failures: 0, clean: 2, failing: 0 },
      ...{ lastStatus: "failed", lastRunAt: at(2), lastPassedAt: at(1), lastFailedAt: at(2) },
    });
  });

  test("that passed in a retry has failed as well", () => {
    expect(play("ppP")).toMatchObject({ failures: 0, clean: 0, lastPassedAt: at(2), lastFailedAt: at(2) });
  });

  test("of an incident says nothing", () => {
    expect(play("ppi")).toMatchObject({ runs: 2, failures: 0, clean: 2, failing: 0, lastStatus: "failed" });
  });
});

describe("broken", () => {
  test("is what fails on the default branch, until it passes there", () => {
    expect(play("pff")).toMatchObject({ failing: 2, broken: true });
    expect(play("p", play("f"), 1, { main: false })).toMatchObject({ failing: 1, broken: true });
    expect(play("pffp")).toMatchObject({ failing: 0, broken: false });
    expect(play("pf", NO_HEALTH, 0, { main: false })).toMatchObject({ failing: 0, broken: false, mainRuns: 0 });
  });

  test("is not what fails by itself there", () => {
    expect(play("px")).toMatchObject({ failing: 1, broken: false, failures: 1 });
    expect(play("pxxf")).toMatchObject({ failing: 3, broken: true });
  });
});

describe("a further attempt", () => {
  const change = (health: CaseHealth, index: number, before: string | null, letter: string) => {
    const run = toRun(index);
    return countChange(health, run, countedAt(run, now), { before, letter, durationMs: 5 });
  };

  test("takes the place of the result before it, and a failure that it undid is none", () => {
    expect(change(play("ppf"), 2, "f", "P")).toMatchObject({
      ...{ runs: 3, failures: 0, clean: 0, failing: 0, broken: false, timed: 0 },
    });
    expect(change(play("pp"), 1, "p", "f")).toMatchObject({ runs: 2, failures: 1, failing: 1, broken: true, clean: 0 });
  });

  test("of an older run changes the sums alone", () => {
    const health = play("pfp");
    expect(change(health, 1, "f", "s")).toEqual({ ...health, runs: 2, failures: 0, mainRuns: 2 });
  });

  test("adds a case that was not in the run before", () => {
    expect(change(NO_HEALTH, 0, null, "p")).toMatchObject({
      runs: 1,
      timed: 1,
      totalMs: 5,
      lastRunId: "run 0",
    });
  });
});

describe("a result that comes late", () => {
  test("by more than ten minutes adds to the sums, and decides nothing", () => {
    const health = play("pppp");
    const late = play("P", health, 99, { hours: 2.5 });
    expect(late).toEqual({ ...health, runs: 5, lastFailedAt: at(2.5) });
  });

  test("by less counts in full, and the later one stays the last", () => {
    const health = play("P", play("pppp"), 99, { hours: 2.9 });
    expect(health).toMatchObject({ runs: 5, lastStatus: "passed", lastRunAt: at(3), lastPassedAt: at(3) });
  });

  test("is none where the clock of what came before was ahead", () => {
    const ahead = play("p", NO_HEALTH, 0, { hours: 20_000 });
    const run = { ...toRun(1), completedAt: now.toISOString() };
    const result = { letter: "f", durationMs: null };
    expect(countResult(ahead, run, countedAt(run, now), result)).toMatchObject({
      ...{ lastStatus: "failed", lastRunAt: now.toISOString(), failing: 1 },
    });
  });
});

test("of durations the slowest of less than twenty is told, then the second slowest of the last twenty", () => {
  let health = NO_HEALTH;
  const p95s = Array.from({ length: 40 }, (_, index) => {
    const run = toRun(index);
    const durationMs = index === 3 ? 1_000 : index === 5 ? 500 : 100 + index;
    health = countResult(health, run, countedAt(run, now), { letter: "p", durationMs });
    return health.p95Ms;
  });
  // Looked at where it can have grown, and every ten results.
  expect([p95s[2], p95s[3], p95s[18], p95s[19], p95s[28], p95s[29], p95s[39]]).toEqual([
    102, 1000, 1000, 500, 500, 128, 138,
  ]);
  expect(health).toMatchObject({ timed: 40, recentMs: Array.from({ length: 20 }, (_, index) => 120 + index) });
});
