/** What earlier builds of a team say about the failures of another one: the facts that the account weighs. */

import { onlyInChanges } from "../../../src/rules/blame.ts";
import { disturbedShare } from "../../../src/rules/odds.ts";
import { type Constants, CONSTANTS } from "../../../src/rules/odds_facts.ts";
import type {
  FailedRun,
  RunFacts,
  FailedTestFacts,
  Inheritance,
  Judgement,
  Sightings,
} from "../../../src/rules/odds_facts.ts";
import { fitRates, flakyChance, type Rate, readRates, type TestCount } from "../../../src/rules/flaky_rates.ts";
import type { Failure, RecordedBuild, Run } from "./record.ts";

const HOUR_MS = 3_600_000;
const OUTSIDE_HOURS = 72;
const SIBLING_MS = 5 * 24 * HOUR_MS;
const SIBLINGS = 5;
const BASE_DISTANCE = 20;

/** `mean`: the rate at which the tests of the team were thought to fail by themselves when it was judged. */
type PastFailure = {
  mean: number;
  task: string;
  build: RecordedBuild;
  failure: Failure;
  judgement: Judgement;
  /** Not only changes are known to have failed alike. */
  isOwn: boolean;
  /** Builds of its branch in a row in which it failed. */
  inARow: number;
};
type PastRun = {
  build: RecordedBuild;
  run: Run;
  failed: Map<number, Failure>;
  judged: Map<number, Judgement>;
  disturbed: number;
};

export function createHistory(c: Constants = CONSTANTS) {
  const failuresOf = new Map<number, PastFailure[]>();
  const runsOf = new Map<string, PastRun[]>();
  const builds: { build: RecordedBuild; disturbed: number }[] = [];

  const fitted = { at: -1, rates: readRates(null) };

  const isOther = (one: RecordedBuild, build: RecordedBuild) =>
    build.pullRequest === null
      ? one.pullRequest !== null || one.line !== build.line
      : one.pullRequest !== build.pullRequest;

  /** How many tests fail by themselves at which rate, from how often each has. */
  function flakyRates(): Rate[] {
    if (fitted.at >= 0 && fitted.at + 10 > builds.length) return fitted.rates;
    const counts: TestCount[] = [];
    // What was put down to changes looks otherwise once it is known how many tests fail by themselves.
    const mean = meanOf(fitted.rates);
    const again = ({ judgement: { shares }, mean: before }: PastFailure) =>
      (shares.flaky * mean) / (shares.flaky * mean + (1 - shares.flaky) * before);
    for (const [task, past] of runsOf) {
      const n = past.length;
      let all = 0;
      for (const { run } of past.slice(-1)) all = run.tests.size;
      let failing = 0;
      for (const [, failures] of failuresOf) {
        const own = failures.filter((one) => one.task === task);
        if (own.length === 0) continue;
        failing++;
        counts.push({ failures: own.reduce((sum, one) => sum + again(one), 0), results: n, tests: 1 });
      }
      counts.push({ failures: 0, results: n, tests: Math.max(0, all - failing) });
    }
    fitted.at = builds.length;
    return (fitted.rates = readRates(fitRates(counts)));
  }

  /** The last result of the test in the pull requests that this one is or was based on. */
  function ofParents(build: RecordedBuild, run: Run, failure: Failure): boolean {
    const runs = runsOf.get(run.task) ?? [];
    const parents = new Set<number>();
    const add = (parent: number | null) => {
      if (parent === null || parents.has(parent)) return;
      parents.add(parent);
      for (const { build: one } of builds) if (one.pullRequest === parent) add(one.parent);
    };
    add(build.parent);
    for (const { build: one } of builds) if (one.pullRequest === build.pullRequest) add(one.parent);
    return [...parents].some((parent) =>
      runs.some((one) => one.build.pullRequest === parent && one.failed.get(failure.test)?.cause === failure.cause),
    );
  }

  function inheritance(build: RecordedBuild, run: Run, failure: Failure): Inheritance {
    const own = (runsOf.get(run.task) ?? []).filter(
      (one) => one.build.line === build.line && one.build.pullRequest === null && one.run.tests.has(failure.test),
    );
    // The last of the results of one commit.
    const byPosition = new Map<number, PastRun>();
    for (const one of own)
      if (!one.build.isOld || !byPosition.has(one.build.position)) byPosition.set(one.build.position, one);
    const line = [...byPosition.values()].sort((a, b) => a.build.position - b.build.position);
    const base = build.pullRequest === null && !build.isOld ? build.position - 1 : build.position;
    const at = line.findLastIndex(({ build: { position } }) => position <= base);
    const stateOf = (one: PastRun | undefined) => {
      if (!one) return "none" as const;
      const found = one.failed.get(failure.test);
      if (!found || found.isRetried) return "passed" as const;
      if (one.judged.get(failure.test)?.kind === "outside") return "none" as const;
      if (found.cause === failure.cause) return "this cause" as const;
      return one.judged.get(failure.test)?.kind === "flaky" ? ("passed" as const) : ("other cause" as const);
    };
    const found = line[at];
    const isNear = found !== undefined && base - found.build.position <= BASE_DISTANCE;
    const last = isNear ? stateOf(found) : "none";
    const next = line[at + 1];
    const isNextBroken =
      last === "passed" &&
      stateOf(next) === "this cause" &&
      !line.slice(at + 2).some((one) => stateOf(one) === "passed");
    const since = build.endedAt - SIBLING_MS;
    const siblings = { failed: 0, passed: 0 };
    const seen = new Set<number | string>();
    for (const one of (runsOf.get(run.task) ?? []).toReversed()) {
      if (seen.size >= SIBLINGS || one.build.endedAt < since) break;
      if (!isOther(one.build, build) || one.build.line !== build.line || !one.run.tests.has(failure.test)) continue;
      const key = one.build.pullRequest ?? one.build.line;
      if (seen.has(key)) continue;
      seen.add(key);
      const state = stateOf(one);
      if (state === "this cause") siblings.failed++;
      if (state === "passed") siblings.passed++;
    }
    if (ofParents(build, run, failure))
      return { last: "this cause", doubt: 0, isNextBroken: false, isOnOtherLine: false, siblings };
    return {
      last,
      doubt: (isNear && found.judged.get(failure.test)?.shares.flaky) || 0,
      isNextBroken,
      isOnOtherLine: false,
      siblings,
    };
  }

  function inARow(build: RecordedBuild, run: Run, { test, cause }: Failure): number {
    let count = 1;
    for (const one of (runsOf.get(run.task) ?? []).toReversed()) {
      const isMine =
        build.pullRequest === null
          ? one.build.pullRequest === null && one.build.line === build.line
          : one.build.pullRequest === build.pullRequest;
      if (!isMine || !one.run.tests.has(test)) continue;
      const found = one.failed.get(test);
      if (!found || found.isRetried) break;
      if (one.judged.get(test)?.kind === "outside" && found.cause !== cause) break;
      count++;
    }
    return count;
  }

  /** Returns the repeated failures of pull requests that a merge may have brought to this failure of a line: shortly before it, with its cause. */
  const carriersOf = ({ build, failure }: PastFailure): PastFailure[] =>
    (failuresOf.get(failure.test) ?? []).filter(
      (one) =>
        one.build.pullRequest !== null &&
        one.inARow > 1 &&
        one.failure.cause === failure.cause &&
        one.build.endedAt < build.endedAt &&
        one.build.endedAt >= build.endedAt - SIBLING_MS &&
        ["change", "flaky"].includes(one.judgement.kind) &&
        !one.judgement.isOfMany,
    );

  /** Failures of a test in other builds, by their weight. */
  function own(build: RecordedBuild, failure: Failure) {
    const past = (failuresOf.get(failure.test) ?? []).filter(
      (one) =>
        isOther(one.build, build) &&
        !["outside", "inherited"].includes(one.judgement.kind) &&
        !one.judgement.isOfMany &&
        // What failed in a pull request may have come to the line with it.
        (build.pullRequest !== null ||
          one.failure.isRetried ||
          one.build.pullRequest === null ||
          one.failure.cause !== failure.cause),
    );
    let weight = 0;
    const rows: number[] = [];
    const pullRequests = { same: 0, other: 0 };
    let isOpenForThis = false;
    const byPlace = Map.groupBy(past, (one) =>
      one.build.pullRequest === null ? `line ${one.build.line}` : String(one.build.pullRequest),
    );
    const brought = new Set<string>();
    for (const [place, failures] of byPlace) {
      if (!place.startsWith("line")) continue;
      const last = (runsOf.get(failures[0]!.task) ?? []).findLast(
        (one) =>
          `line ${one.build.line}` === place && one.build.pullRequest === null && one.run.tests.has(failure.test),
      );
      const lastFailed = last?.failed.get(failure.test);
      const isOpen = lastFailed !== undefined && !lastFailed.isRetried;
      // Episodes on a line; the last one may be a change that is not mended yet.
      const rest: PastFailure[] = (failuresOf.get(failure.test) ?? []).filter(
        (one) =>
          one.build.pullRequest === null && `line ${one.build.line}` === place && one.judgement.kind === "inherited",
      );
      const episodes: PastFailure[][] = [];
      for (const one of [...failures, ...rest].toSorted((a, b) => a.build.position - b.build.position)) {
        if (one.failure.isRetried) weight++;
        else if (episodes.length > 0 && one.build.position <= episodes.at(-1)!.at(-1)!.build.position + 1)
          episodes.at(-1)!.push(one);
        else episodes.push([one]);
      }
      const open = isOpen ? episodes.pop() : undefined;
      if (open?.at(-1)?.failure.cause === failure.cause) isOpenForThis = true;
      if (open) pullRequests[open.some((one) => one.failure.cause === failure.cause) ? "same" : "other"]++;
      for (const row of episodes) {
        const carriers = carriersOf(row[0]!);
        for (const { build } of carriers) brought.add(String(build.pullRequest));
        const length = row.length + Math.max(0, ...carriers.map(({ inARow }) => inARow));
        if (length === 1) weight++;
        else rows.push(length);
      }
    }
    for (const [place, failures] of byPlace) {
      if (place.startsWith("line") || brought.has(place)) continue;
      if (failures.some(({ failure }) => failure.isRetried)) weight++;
      else pullRequests[failures.some((one) => one.failure.cause === failure.cause) ? "same" : "other"]++;
    }
    return {
      failures: weight,
      episodes: rows,
      pullRequests,
      isOpen: isOpenForThis,
      hasFailed: past.length > 0,
      hasFailedForThis: past.some((one) => one.failure.cause === failure.cause),
    };
  }

  const results = (build: RecordedBuild, run: Run, test: number) =>
    (runsOf.get(run.task) ?? []).filter((one) => isOther(one.build, build) && one.run.tests.has(test)).length;

  function sightings(build: RecordedBuild, run: Run, cause: string): Sightings {
    const since = build.endedAt - OUTSIDE_HOURS * HOUR_MS;
    let [hits, all, three, six] = [0, 0, 0, 0];
    for (const one of runsOf.get(run.task) ?? []) {
      if (one.build.endedAt < since || !isOther(one.build, build)) continue;
      all += one.run.tests.size;
      // What was a change's there says nothing of the surroundings; of many at once nobody knows whose they were.
      const says = ({ kind, isOfMany }: Judgement) => isOfMany || (kind !== "change" && kind !== "inherited");
      const count = one.run.failures.filter(
        (failure) => failure.cause === cause && says(one.judged.get(failure.test) ?? RETRIED(failure)),
      ).length;
      hits += count;
      if (count >= 3) three++;
      if (count >= 6) six++;
    }
    return {
      hits,
      results: all,
      isSpread: three >= 2 || six >= 1,
    };
  }

  /** Runs of the last three days on the same machine. */
  function onHost(build: RecordedBuild, { host }: Run) {
    if (host === null) return null;
    const since = build.endedAt - OUTSIDE_HOURS * HOUR_MS;
    const last = [...runsOf.values()].flat().filter((one) => one.run.host === host && one.build.endedAt >= since);
    return { runs: last.length, disturbed: last.reduce((sum, one) => sum + one.disturbed, 0) };
  }

  /** The share of builds of the last three days that were disturbed. */
  function disturbed(build: RecordedBuild): number {
    const since = build.endedAt - OUTSIDE_HOURS * HOUR_MS;
    const last = builds.filter((one) => one.build.endedAt >= since);
    return (last.reduce((sum, one) => sum + one.disturbed, 0) + c.unrestA) / (last.length + c.unrestB);
  }

  return {
    factsOf(build: RecordedBuild): Omit<RunFacts, "run"> & { runs: FailedRun[] } {
      const runs = build.runs.flatMap((run): FailedRun[] => {
        const failed = run.failures.filter(({ isRetried }) => !isRetried);
        if (failed.length === 0) return [];
        const causes = [...new Set(run.failures.map(({ cause }) => cause))];
        const failures = failed.map((failure): FailedTestFacts => {
          const { cause, test, file, saysOutside } = failure;
          return {
            ...{ test, cause, file, saysOutside, inARow: inARow(build, run, failure) },
            results: results(build, run, test),
            failed: 0,
            isOnLine: build.pullRequest === null,
            ...own(build, failure),
            passedAtCommit: false,
            inheritance: inheritance(build, run, failure),
          };
        });
        const seen = causes.map((cause) => [cause, sightings(build, run, cause)] as const);
        return [{ tests: run.tests.size, failures, sightings: new Map(seen), onHost: onHost(build, run) }];
      });
      return { disturbed: disturbed(build), rates: flakyRates(), runs };
    },

    /** The chance that a test fails by itself, with all that has been judged. */
    flakiness(test: number): number {
      const failures = failuresOf.get(test) ?? [];
      if (failures.length === 0) return 0;
      const places = Map.groupBy(failures, ({ build }) => build.pullRequest ?? `line ${build.number}`);
      const k = [...places.values()].reduce(
        (sum, own) => sum + Math.max(...own.map((one) => (one.isOwn ? one.judgement.shares.flaky : 0))),
        0,
      );
      const n = (runsOf.get(failures[0]!.task) ?? []).length;
      return flakyChance(flakyRates(), k, n);
    },

    add(build: RecordedBuild, judgements: readonly Judgement[], runs: readonly FailedRun[]): void {
      const own = new Set(
        runs.flatMap(({ failures }) => failures.flatMap((one) => (onlyInChanges(one) ? [] : one.test))),
      );
      const streaks = new Map(runs.flatMap(({ failures }) => failures.map(({ test, inARow }) => [test, inARow])));
      const judged = new Map(judgements.map((one) => [one.test, one]));
      for (const run of build.runs) {
        const failed = new Map(run.failures.map((failure) => [failure.test, failure]));
        if (!runsOf.has(run.task)) runsOf.set(run.task, []);
        runsOf.get(run.task)!.push({ build, run, failed, judged, disturbed: disturbedOf(run, judged) });
        for (const failure of run.failures) {
          const judgement = judged.get(failure.test) ?? RETRIED(failure);
          if (!failuresOf.has(failure.test)) failuresOf.set(failure.test, []);
          const isOwn = failure.isRetried || own.has(failure.test);
          const inARow = streaks.get(failure.test) ?? 1;
          const past = { mean: meanOf(fitted.rates), task: run.task, build, failure, judgement, isOwn, inARow };
          failuresOf.get(failure.test)!.push(past);
        }
      }
      const unrest = build.runs.map((run) => disturbedOf(run, judged));
      builds.push({
        build,
        disturbed: Math.max(0, ...unrest),
      });
    },
  };
}

const disturbedOf = ({ failures }: Run, judged: ReadonlyMap<number, Judgement>) =>
  disturbedShare(failures.flatMap(({ test }) => judged.get(test) ?? []));

const meanOf = (rates: readonly Rate[]): number => rates.reduce((sum, { rate, share }) => sum + rate * share, 0);

const RETRIED = ({ test }: Failure): Judgement => ({
  test,
  shares: { change: 0, flaky: 1, inherited: 0, outside: 0 },
  kind: "flaky",
  isOfMany: false,
  disturbed: 0,
});
