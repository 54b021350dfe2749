/** Weighs each explanation of failures that belong together. All weights are logarithms. */

import type { Constants, FailedRun, FailedTestFacts, Inheritance, RateShare } from "./odds_facts.ts";

/** At least this many failures in this many files are judged together if they have one cause, and are no evidence about a test. */
export const MANY_AT_ONCE = { tests: 6, files: 3 };

/** Logarithms of the weights. */
export type Unit = {
  failures: readonly FailedTestFacts[];
  /** Whether it has failures of one cause in many files. */
  isMany: boolean;
  /** Whether it is inherited, and so also fails in a disturbed run. */
  isInherited: boolean;
  change: number;
  /** The weight of the change given that it breaks another test of the file. */
  inFile: number;
  flaky: number;
  inherited: number;
  outside: number;
};

/** Failures of one file with one cause; or of one cause in many files. */
export function toUnits({ failures }: FailedRun): (readonly FailedTestFacts[])[] {
  const keyOf = ({ cause, inheritance }: FailedTestFacts) => `${cause} ${inheritance.last === "this cause"}`;
  return [...Map.groupBy(failures, keyOf).values()].flatMap((same) => {
    const byFile = [...Map.groupBy(same, ({ file }) => file).values()];
    const isInherited = same[0]!.inheritance.last === "this cause";
    return !isInherited && same.length >= MANY_AT_ONCE.tests && byFile.length >= MANY_AT_ONCE.files ? [same] : byFile;
  });
}

/** `k` of `n` results failed by themselves, and those of pull requests that a change breaks with such a chance. */
type PastCount = {
  k: number;
  n: number;
  /** Rows of failures on a line, which one change may have broken. */
  episodes: readonly number[];
  chance: number;
  pullRequests: readonly { count: number; chance: number }[];
};

/** The odds that a test fails by itself `times` more. */
function flakyOdds(past: PastCount, times: number, rates: readonly RateShare[]) {
  const { k, n, episodes, chance, pullRequests } = past;
  const failed = pullRequests.reduce((sum, { count }) => sum + count, 0) + episodes.reduce((sum, one) => sum + one, k);
  const passed = Math.max(0, n - failed);
  let [all, again] = [0, 0];
  for (const { rate, share } of rates) {
    let likelihood = Math.log(share) + k * Math.log(rate) + passed * Math.log1p(-rate);
    for (const length of episodes) likelihood += Math.log(rate ** length + chance);
    for (const { count, chance } of pullRequests) likelihood += count * Math.log(rate + chance);
    all += Math.exp(likelihood);
    again += Math.exp(likelihood) * rate ** times;
  }
  return again / all;
}

const logChoose = (n: number, k: number): number => {
  let sum = 0;
  for (let i = 1; i <= k; i++) sum += Math.log((n - k + i) / i);
  return sum;
};

export function weighUnit(
  run: FailedRun,
  unit: readonly FailedTestFacts[],
  rates: readonly RateShare[],
  c: Constants,
): Unit {
  const n = Math.max(1, run.tests, run.failures.length);
  const inARow = unit.reduce((least, { inARow }) => Math.min(least, inARow), Infinity);
  const again = (inARow - 1) * Math.log(c.streak);
  const size = unit.length;
  const isMany = new Set(unit.map(({ file }) => file)).size > 1;
  // Further tests of a file follow from the first one; of many at once each set is equally likely.
  const spread = isMany ? Math.log(c.many / n) - logChoose(n, size) : Math.log(c.broken / n);
  const isNew = unit.every(({ results, inheritance }) => results === 0 && inheritance.last === "none");
  const hasPassed = unit.some(({ passedAtCommit }) => passedAtCommit) ? Math.log(c.passedAtCommit) : 0;
  const change = (isNew ? Math.log(c.newTest / c.further) : spread) + again + hasPassed;
  let flaky = 0;
  const chance = (c.guilty * c.broken) / n;
  for (const { hasFailed, hasFailedForThis, failures, episodes, pullRequests, results, inARow } of unit) {
    // The more often it has failed, the less does it fail for another cause than ever before.
    const words =
      hasFailed && !hasFailedForThis ? c.otherCause / (1 + failures + episodes.length + pullRequests.other) : 1;
    const bySame = { count: pullRequests.same, chance: c.sameBreak * chance };
    const past = {
      ...{ k: failures, n: results, episodes, chance },
      pullRequests: [bySame, { count: pullRequests.other, chance: c.otherBreak * chance }],
    };
    flaky += Math.log(flakyOdds(past, inARow, rates) * words);
  }
  const inherited = unit.reduce(
    (least, { inheritance }) => Math.min(least, weighInherited(inheritance, spread + again, c)),
    Infinity,
  );
  const outside = isMany ? -Infinity : Math.log(weighOutside(run, unit));
  const inFile = Math.max(Math.log(c.further) + change, Math.log(c.inFile) + again + hasPassed);
  return {
    failures: unit,
    isMany,
    isInherited: inherited > MIN_INHERITED_WEIGHT,
    change,
    inFile,
    flaky,
    inherited,
    outside,
  };
}

/** From this weight on, a unit counts as inherited: it fails in a disturbed run as well. */
const MIN_INHERITED_WEIGHT = Math.log(0.1);

/** Logarithm: the likelihood of the failures of a unit in a run of which its surroundings fail such a share. */
export function weighDisturbed(
  { sightings, tests }: FailedRun,
  { failures, isMany, isInherited, inherited }: Unit,
  share: number,
  strange: number,
  c: Constants,
): number {
  if (isInherited) return inherited;
  const seen = sightings.get(failures[0]!.cause);
  const says = failures[0]!.saysOutside;
  // Reports without files have all tests in one.
  const areMany = isMany || (failures.length >= MANY_AT_ONCE.tests && 2 * failures.length > tests);
  const known = seen?.isSpread ? c.sighted : areMany && says ? c.saysMany : isMany || says ? 1 : strange;
  return failures.length * Math.log(share) + Math.log(known);
}

/** `change` is the logarithm of the odds that a change breaks the test. */
function weighInherited(
  { last, doubt, isNextBroken, isOnOtherLine, siblings }: Inheritance,
  change: number,
  c: Constants,
) {
  if (last === "this cause") return Math.log(c.inheritedLast * (1 - doubt));
  if (last === "other cause") return Math.log(c.inheritedOther * (1 - doubt));
  if (isNextBroken) return Math.log(c.inheritedNext);
  if (isOnOtherLine) return Math.log(c.siblings) + change;
  // A test that passed in other builds on the line is not inherited.
  const { failed, passed } = siblings;
  return last === "none" && failed >= 2 && failed > passed ? Math.log(c.siblings) + change : -Infinity;
}

function weighOutside({ sightings }: FailedRun, unit: readonly FailedTestFacts[]): number {
  const seen = sightings.get(unit[0]!.cause);
  return seen?.isSpread ? seen.hits / seen.results : 0;
}

export const logMinus = (a: number, b: number): number => (a <= b ? -Infinity : a + Math.log1p(-Math.exp(b - a)));

export function logSum(logs: readonly number[]): number {
  // There may be more than a call takes as arguments.
  const most = logs.reduce((most, log) => Math.max(most, log), -Infinity);
  if (most === -Infinity) return most;
  return most + Math.log(logs.reduce((sum, log) => sum + Math.exp(log - most), 0));
}
