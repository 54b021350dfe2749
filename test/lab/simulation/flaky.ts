/**
 * The rule for flaky tests alone, without a server: histories of single test cases, whose truth is known, go through a
 * function that judges them. `bun test/lab/simulation/flaky.ts [--seeds 20] [--histories 300] [--judge FILE]` compares the
 * rules of `JUDGES`, or judges by the default export of FILE, in seconds.
 */

import { resolve } from "node:path";
import { createRandom, type Random } from "../../random.ts";

/** One result of one test case, in the order in which the runs completed. */
export type Result = {
  /** Milliseconds since 1970. */
  at: number;
  /** The default branch is "main". */
  branch: string;
  commit: string;
  /** Of the last attempt. */
  outcome: "p" | "f";
  /** It failed, and passed in a further attempt of the same build. */
  retriedPassed: boolean;
};

export type Verdict = "flaky" | "broken" | "healthy";

/** What the case is called after each result of its history. */
export type Judge = (history: readonly Result[]) => Verdict[];

/** So many failures in a row on the default branch, and a case is broken. */
const BROKEN = 5;
const DAY_MS = 86_400_000;

/** A failure that passed in a further attempt within 50 results or 14 days, until 20 passed in a row: no more than that. */
function retriesOnly(history: readonly Result[]): Verdict[] {
  let [evidenceAt, evidencePlace, clean, broken] = [-Infinity, -Infinity, 0, 0];
  const outcomes = new Map<string, string>();
  return history.map(({ at, branch, commit, outcome, retriedPassed }, place) => {
    const contradicts = (outcomes.get(commit) ?? outcome) !== outcome;
    outcomes.set(commit, outcome);
    const evidence = retriedPassed || contradicts;
    if (evidence) [evidenceAt, evidencePlace] = [at, place];
    clean = evidence || outcome === "f" ? 0 : clean + 1;
    if (branch === "main") broken = outcome === "f" ? broken + 1 : 0;
    if (broken >= BROKEN) return "broken";
    return clean < 20 && (place - evidencePlace < 50 || at - evidenceAt < 14 * DAY_MS) ? "flaky" : "healthy";
  });
}

/**
 * Besides, three separate short episodes of failure on the default branch within 14 days; over when so many passes in a
 * row have odds below 1 % at the rate seen so far.
 */
function episodes(history: readonly Result[]): Verdict[] {
  const EPISODES = 3;
  const SHORT = 2;
  const ends: number[] = [];
  let [inARow, clean, isFlaky, failures, results] = [0, 0, false, 0, 0];
  const outcomes = new Map<string, string>();
  return history.map(({ at, branch, commit, outcome, retriedPassed }) => {
    const contradicts = (outcomes.get(commit) ?? outcome) !== outcome;
    outcomes.set(commit, outcome);
    const evidence = retriedPassed || contradicts;
    if (evidence) isFlaky = true;
    if (branch === "main") {
      results++;
      if (outcome === "f" || retriedPassed) failures++;
      if (outcome === "p" && inARow > 0 && inARow <= SHORT) ends.push(at);
      inARow = outcome === "f" ? inARow + 1 : 0;
      while (ends.length > 0 && at - ends[0]! > 14 * DAY_MS) ends.shift();
      if (ends.length >= EPISODES) isFlaky = true;
    }
    clean = evidence || outcome === "f" ? 0 : clean + 1;
    if (isFlaky && clean >= 20) {
      const rate = Math.max(0.01, (failures + 1) / (results + 2));
      if ((1 - rate) ** clean < 0.01) {
        isFlaky = false;
        ends.length = failures = results = 0;
      }
    }
    if (inARow >= BROKEN) return "broken";
    return isFlaky ? "flaky" : "healthy";
  });
}

export const JUDGES: Record<string, Judge> = { retriesOnly, episodes };

/** A sound test: what breaks it on the default branch, by the number of builds until it is mended. */
type Sound = { kind: string; regressions: number[] };
type Truth = { rate: number } | Sound;

const isFlaky = (truth: Truth): truth is { rate: number } => "rate" in truth;

export type HistoryLoad = { mainBuildsPerDay: number; retries: boolean };

const WORKING_DAYS = 15;
/** Builds of pull requests for each of the default branch. */
const PULL_REQUEST_BUILDS = 1.5;
/** How often a pull request breaks a given test. */
const BREAKS = 0.003;
const START = Date.UTC(2026, 0, 5, 8);

/** Three weeks of one test case: builds of main and of pull requests on working days from 8 to 18 o'clock. */
export function createHistory(truth: Truth, { mainBuildsPerDay, retries }: HistoryLoad, random: Random): Result[] {
  const mainBuilds = mainBuildsPerDay * WORKING_DAYS;
  const broken = new Set<number>();
  for (const length of isFlaky(truth) ? [] : truth.regressions) {
    const first = random.integer(0, mainBuilds - 1);
    for (let build = first; build < first + length; build++) broken.add(build);
  }
  const history: Result[] = [];
  const run = (at: number, branch: string, fails: boolean) => {
    const commit = `${branch} ${at}`;
    const attempt = () => fails || (isFlaky(truth) && random.chance(truth.rate));
    const first = attempt();
    let last = first;
    // Failed tests are repeated once or twice.
    for (let again = random.integer(1, 2); retries && last && again > 0; again--) last = attempt();
    history.push({ at, branch, commit, outcome: last ? "f" : "p", retriedPassed: first && !last });
  };
  type PullRequest = { branch: string; left: number; fails: boolean; base: number };
  const open: PullRequest[] = [];
  let made = 0;
  for (let build = 0; build < mainBuilds; build++) {
    const day = Math.floor(build / mainBuildsPerDay);
    const [calendarDay, hour] = [day + 2 * Math.floor(day / 5), ((build % mainBuildsPerDay) / mainBuildsPerDay) * 10];
    const at = START + calendarDay * DAY_MS + hour * 3_600_000;
    run(at, "main", broken.has(build));
    for (let left = PULL_REQUEST_BUILDS + random.next(); left >= 1; left--) {
      if (open.length < 6 || random.chance(0.3)) {
        const fails = !isFlaky(truth) && random.chance(BREAKS);
        open.push({ branch: `feature/${++made}`, left: random.integer(1, 5), fails, base: build });
      }
      const one = random.pick(open);
      // Two in three builds are of the merge with main.
      if (random.chance(0.67)) one.base = build;
      run(at + Math.round(random.between(1, 50) * 60_000), one.branch, one.fails || broken.has(one.base));
      if (--one.left === 0) open.splice(open.indexOf(one), 1);
      else if (random.chance(0.3)) one.fails = false;
    }
  }
  return history.sort((a, b) => a.at - b.at);
}

const short = (random: Random) => random.integer(1, 3);
const long = (random: Random) => random.integer(4, 40);

/** Sound tests of a project of a thousand: most never fail on main, some break once, few more often. */
const SOUND: [kind: string, count: number, regressions: (random: Random) => number[]][] = [
  ["never broken on main", 60, () => []],
  ["1 long regression", 12, (random) => [long(random)]],
  ["1 short regression", 6, (random) => [short(random)]],
  ["1 long, 1 short", 2, (random) => [long(random), short(random)]],
  ["2 short regressions", 1, (random) => [short(random), short(random)]],
  ["3 short regressions", 0, (random) => [short(random), short(random), short(random)]],
];

const RATES = [0.02, 0.03, 0.05, 0.08, 0.12, 0.18, 0.25, 0.35];
/** From this rate on a flaky test has to be found. */
const COUNTED_RATE = 0.05;

const FLAKY = 20;
const turnsOf = (verdicts: readonly Verdict[]): number => {
  // What is broken for a while may still be told as flaky before and after.
  const told = verdicts.filter((verdict) => verdict !== "broken").map((verdict) => verdict === "flaky");
  return told.filter((flaky, index) => flaky !== (told[index - 1] ?? false)).length;
};

export type FlakyScore = {
  precision: number;
  /** Of tests with a rate of 5 % and more. */
  recall: number;
  /** Times that a flaky test became flaky or recovered, on average of those with a rate of 5 % and more. */
  turns: number;
};

/** A project: 20 flaky tests of 2 to 25 %, and the sound ones of `SOUND`. */
export function scoreJudge(judge: Judge, load: HistoryLoad, seed: number): FlakyScore {
  const random = createRandom(seed, `project ${JSON.stringify(load)}`);
  let [right, wrong, found, counted, turns] = [0, 0, 0, 0, 0];
  for (let index = 0; index < FLAKY; index++) {
    const truth = { rate: random.logBetween(0.02, 0.25) };
    const verdicts = judge(createHistory(truth, load, random));
    const isFound = verdicts.at(-1) === "flaky";
    right += Number(isFound);
    if (truth.rate < COUNTED_RATE) continue;
    counted++;
    found += Number(isFound);
    turns += turnsOf(verdicts);
  }
  for (const [kind, count, regressions] of SOUND)
    for (let index = 0; index < count; index++) {
      const history = createHistory({ kind, regressions: regressions(random) }, load, random);
      wrong += Number(judge(history).at(-1) === "flaky");
    }
  const share = (part: number, whole: number) => (whole === 0 ? Number.NaN : part / whole);
  return { precision: share(right, right + wrong), recall: share(found, counted), turns: share(turns, counted) };
}

/** Of so many histories of one truth: the share called flaky at the end and at any time, and the turns of each. */
export function scoreTruth(judge: Judge, load: HistoryLoad, create: (random: Random) => Truth, count: number) {
  const random = createRandom(1, JSON.stringify(load));
  let [atEnd, ever, turns] = [0, 0, 0];
  for (let index = 0; index < count; index++) {
    const verdicts = judge(createHistory(create(random), load, random));
    atEnd += Number(verdicts.at(-1) === "flaky");
    ever += Number(verdicts.includes("flaky"));
    turns += turnsOf(verdicts);
  }
  return { atEnd: atEnd / count, ever: ever / count, turns: turns / count };
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;
const percent = (value: number): string => `${(value * 100).toFixed(1).padStart(5)} %`;
const figure = (value: number): string => (Number.isNaN(value) ? "  – " : value.toFixed(2));

function compare(name: string, judge: Judge, { seeds, histories }: { seeds: number; histories: number }): void {
  console.log(`\n${name}`);
  console.log(
    "  main builds a day, retries | precision (worst) | recall ≥ 5 % (worst) | turns of a flaky test (worst)",
  );
  for (const retries of [true, false])
    for (const mainBuildsPerDay of [5, 10, 20, 30]) {
      const load = { mainBuildsPerDay, retries };
      const scores = Array.from({ length: seeds }, (_, seed) => scoreJudge(judge, load, seed + 1));
      const cell = (of: keyof FlakyScore, worst: typeof Math.min) => {
        const values = scores.map((score) => score[of]).filter((value) => !Number.isNaN(value));
        return values.length === 0 ? "–" : `${figure(median(values))} (${figure(worst(...values))})`;
      };
      const what = `${String(mainBuildsPerDay).padStart(2)}, ${retries ? "with" : "without"}`;
      const cells = [cell("precision", Math.min), cell("recall", Math.min), cell("turns", Math.max)];
      console.log(`  ${what.padEnd(26)} | ${cells.join(" | ")}`);
    }
  console.log("  flaky tests: called so at the end, at any time, turns | 10 main builds a day with retries | without");
  const truths: [string, (random: Random) => Truth][] = [
    ...RATES.map((rate): [string, () => Truth] => [`rate ${percent(rate)}`, () => ({ rate })]),
    ...SOUND.map(([kind, , of]): [string, (random: Random) => Truth] => [
      `sound, ${kind}`,
      (random) => ({ kind, regressions: of(random) }),
    ]),
  ];
  for (const [what, create] of truths) {
    const cells = [true, false].map((retries) => {
      const { atEnd, ever, turns } = scoreTruth(judge, { mainBuildsPerDay: 10, retries }, create, histories);
      return `${percent(atEnd)}, ${percent(ever)}, ${turns.toFixed(2)}`;
    });
    console.log(`  ${what.padEnd(30)} | ${cells.join(" | ")}`);
  }
}

if (import.meta.main) {
  const option = (name: string) => process.argv[process.argv.indexOf(name) + 1 || Infinity];
  const seeds = Number(option("--seeds") ?? 20);
  const histories = Number(option("--histories") ?? 300);
  const file = option("--judge");
  const judges = file ? { [file]: (await import(resolve(file))).default as Judge } : JUDGES;
  const began = performance.now();
  for (const [name, judge] of Object.entries(judges)) compare(name, judge, { seeds, histories });
  console.log(`\n${seeds} seeds in ${((performance.now() - began) / 1000).toFixed(1)} s`);
}
