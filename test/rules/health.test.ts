import { describe, expect, test } from "bun:test";
import { type CaseHealth, countChange, countedAt, countResult, NO_HEALTH } from "../../src/rules/health.ts";

const START = Date.parse("2026-01-01T00:00:00.000Z");
const HOUR = 3_600_000;
const at = (hours: number) => new Date(START + hours * HOUR).toISOString();
const now = new Date(START + 10_000 * HOUR);

type Extra = { main?: boolean; outage?: boolean; wasOutage?: boolean; hours?: number; contradicted?: boolean };
const toRun = (index: number, { main = true, outage = false, wasOutage = false, hours = index }: Extra = {}) => ({
  ...{ id: `run ${index}`, completedAt: at(hours), outage, wasOutage, onDefaultBranch: main, disturbed: false },
});

/** One run an hour; a letter each, as in rules/merge.ts, `c` a pass and `C` a failure that another run of the commit contradicts. */
function play(letters: string, health: CaseHealth = NO_HEALTH, first = 0, extra: Extra = {}): CaseHealth {
  for (const [index, sign] of [...letters].entries()) {
    const run = toRun(first + index, extra);
    const letter = { c: "p", C: "f" }[sign] ?? sign;
    const result = { letter, durationMs: null, contradicted: sign.toLowerCase() === "c" };
    health = countResult(health, run, countedAt(run, now), result);
  }
  return health;
}

describe("a result", () => {
  test("is counted when it passed or failed, in a run that was no outage", () => {
    expect(play("pfsPFS")).toMatchObject({ runs: 4, failures: 2, lastStatus: "skipped", lastRunId: "run 5" });
    expect(play("f", play("pp"), 2, { outage: true })).toMatchObject({
      ...{ runs: 2, failures: 0, recent: "pp", clean: 2, broken: 0 },
      ...{ lastStatus: "failed", lastRunAt: at(2), lastPassedAt: at(1), lastFailedAt: at(2) },
    });
  });

  test("that passed in a retry has failed as well", () => {
    expect(play("P")).toMatchObject({ failures: 0, lastPassedAt: at(0), lastFailedAt: at(0) });
  });

  test("of the last fifty is looked back at", () => {
    expect(play(`f${"p".repeat(60)}`).recent).toBe("p".repeat(50));
  });
});

describe("flaky", () => {
  test("is what passed in a retry, or had both outcomes on a commit, with the evidence told", () => {
    expect(play("ppP")).toMatchObject({ flaky: true, flakySince: at(2), flakySigns: "r", recent: "ppP" });
    expect(play("ppC")).toMatchObject({ flaky: true, flakySigns: "c", recent: "ppF", failures: 1 });
    expect(play("pPpcP")).toMatchObject({ flakySince: at(1), flakyAt: at(4), flakySigns: "rc", recent: "pPpPP" });
  });

  test("is not what failed three times in a row on the default branch, and then passed on the same commit", () => {
    expect(play("pffc")).toMatchObject({ flaky: true, flakySigns: "c" });
    expect(play("pfffc")).toMatchObject({ flaky: false, episodes: [5], recent: "pfffp" });
    // A retry that passes at once is a sign all the same, and so is any other branch.
    expect(play("pfffP")).toMatchObject({ flaky: true, flakySigns: "r" });
    expect(play("c", play("pfff"), 4, { main: false })).toMatchObject({ flaky: true, flakySigns: "c" });
  });

  test("is not what passed in the retry that ended an outage", () => {
    expect(play("P", play("pp"), 2, { wasOutage: true })).toMatchObject({ flaky: false, recent: "ppp" });
  });

  test("is what failed in three short episodes on the default branch", () => {
    const two = play("pfppffpp");
    expect(two).toMatchObject({ flaky: false, episodes: [3, 7], episodeAt: at(6) });
    expect(play("fp", two, 8)).toMatchObject({
      flaky: true,
      flakySigns: "e",
      recent: "pfppffppfP",
      episodes: [3, 7, 10],
    });
    expect(play("pfppffppfp", NO_HEALTH, 0, { main: false })).toMatchObject({
      flaky: false,
      episodes: [],
      mainRuns: 0,
    });
  });

  test("is so until it has passed as often as its rate asks for, and the rate is that of what is looked back at", () => {
    const flaky = play("P", play("p".repeat(9)), 9);
    expect(flaky).toMatchObject({ flakeRate: Math.fround(0.1), clean: 0 });
    const before = play("p".repeat(flaky.recoversAfter - 1), flaky, 10);
    expect(before).toMatchObject({ flaky: true, clean: flaky.recoversAfter - 1 });
    const { flaky: isFlaky, flakeRate, recent } = play("p", before, 10 + flaky.recoversAfter - 1);
    expect([isFlaky, flakeRate]).toEqual([false, Math.fround(recent.replaceAll("p", "").length / recent.length)]);
  });

  test.each([
    ["P", 20],
    ["pppppppppP", 44],
    [`${"p".repeat(49)}P`, 228],
    [`${"p".repeat(99)}P`, 300],
    ["PPPP", 20],
  ])("recovers, after %s, with %i passes in a row", (letters, passes) => {
    expect(play(letters).recoversAfter).toBe(passes);
  });
});

describe("broken", () => {
  test("is what fails on the default branch, five times in a row, until it passes", () => {
    expect(play("pffff").broken).toBe(4);
    const broken = play("pfffff");
    expect(broken).toMatchObject({ broken: 5, flaky: false });
    expect(play("f", broken, 6, { main: false })).toMatchObject({ broken: 5, failures: 6 });
    expect(play("p", broken, 6)).toMatchObject({ broken: 0, episodes: [], longEpisodeEnd: 7 });
  });
});

describe("a further attempt", () => {
  const change = (health: CaseHealth, index: number, before: string | null, letter: string) => {
    const run = toRun(index);
    return countChange(health, run, countedAt(run, now), { before, letter, durationMs: 5 });
  };

  test("takes the place of the result before it, and a failure that it undid is no episode", () => {
    expect(change(play("ppf"), 2, "f", "P")).toMatchObject({
      ...{ runs: 3, failures: 0, recent: "ppP", flaky: true, flakySigns: "r", broken: 0, episodes: [], timed: 0 },
    });
    expect(change(play("pp"), 1, "p", "f")).toMatchObject({ runs: 2, failures: 1, recent: "pf", broken: 1, clean: 0 });
  });

  test("of an older run changes the sums alone", () => {
    const health = play("pfp");
    expect(change(health, 1, "f", "s")).toEqual({ ...health, runs: 2, failures: 0, mainRuns: 2 });
  });

  test("adds a case that was not in the run before", () => {
    expect(change(NO_HEALTH, 0, null, "p")).toMatchObject({
      runs: 1,
      recent: "p",
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
    expect(late).toEqual({ ...health, runs: 5, flakyAt: at(2.5), lastFailedAt: at(2.5) });
  });

  test("by less counts in full, and the later one stays the last", () => {
    const health = play("P", play("pppp"), 99, { hours: 2.9 });
    expect(health).toMatchObject({ flaky: true, runs: 5, recent: "pppp", lastRunAt: at(3), lastPassedAt: at(3) });
  });

  test("is none where the clock of what came before was ahead", () => {
    const ahead = play("p", NO_HEALTH, 0, { hours: 20_000 });
    const run = { ...toRun(1), completedAt: now.toISOString() };
    const result = { letter: "f", durationMs: null, contradicted: false };
    expect(countResult(ahead, run, countedAt(run, now), result)).toMatchObject({
      ...{ lastStatus: "failed", lastRunAt: now.toISOString(), recent: "pf" },
    });
  });
});

test("of durations the slowest of less than twenty is told, then the second slowest of the last twenty", () => {
  let health = NO_HEALTH;
  const p95s = Array.from({ length: 40 }, (_, index) => {
    const run = toRun(index);
    const durationMs = index === 3 ? 1_000 : index === 5 ? 500 : 100 + index;
    health = countResult(health, run, countedAt(run, now), { letter: "p", durationMs, contradicted: false });
    return health.p95Ms;
  });
  // Looked at where it can have grown, and every ten results.
  expect([p95s[2], p95s[3], p95s[18], p95s[19], p95s[28], p95s[29], p95s[39]]).toEqual([
    102, 1000, 1000, 500, 500, 128, 138,
  ]);
  expect(health).toMatchObject({ timed: 40, recentMs: Array.from({ length: 20 }, (_, index) => 120 + index) });
});
