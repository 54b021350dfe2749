/** One account of why tests failed in a build: explanations are weighed against each other. Pure. */

/** What the account rests on; each number is fitted over teams, see judge.ts. */
export const CONSTANTS = {
  /** Of the builds of pull requests, so many break something. */
  guilty: 0.05,
  /** Of the tests of a run, so many break where something breaks. */
  broken: 0.5,
  minTests: 50,
  /** A change breaks so many tests at once that they are no unit. */
  many: 0.4,
  /** Each further build of the pull request in a row. */
  streak: 0.7,
  /** Each further thing that a change breaks for another reason. */
  further: 0.3,
  otherCause: 0.3,
  /** A test that nobody else has: the change adds it. */
  newTest: 0.3,
  inherited: 50,
  inheritedLast: 0.8,
  inheritedTwice: 0.98,
  inheritedOther: 0.15,
  inheritedOtherTwice: 0.7,
  inheritedNext: 0.75,
  siblingsMost: 20,
  siblingsMany: 1,
  siblingsOne: 2,
  siblingsBoth: 0.4,
  /** A run of a disturbed build is, where a machine is bad, and where what all machines need is away. */
  machine: 0.2,
  outage: 0.8,
  /** A machine is as bad as before: (k + a) / (n + b). */
  unrestA: 0.5,
  unrestB: 25,
  putDown: 0.6,
  longEpisode: 0.5,
  hostA: 0.5,
  hostB: 1,
  /** Failures of a disturbed run that say the same as those of another one. */
  sighted: 300,
  says: 4,
  outsidePrior: 200,
  outsideFew: 0.03,
};
export type Constants = typeof CONSTANTS;

/** What the results of the line say of one failed test, at the place where the build's base is. */
export type Inheritance = {
  /** The last result at or before the base. */
  last: "this cause" | "other cause" | "passed" | "none";
  /** The result before or after it failed too. */
  isTwice: boolean;
  /** The next result after the base failed with this cause, and nothing later passes. */
  isNextBroken: boolean;
  /** The last results of up to five other builds on the line within five days: failed with this cause, and passed. */
  siblings: { failed: number; passed: number };
};

/** What is known of one failed test of a build. */
export type FailedTest = {
  test: number;
  cause: string;
  file: string;
  saysOutside: boolean;
  /** Builds of this pull request in a row in which it failed, this one included. */
  inARow: number;
  /** Its results elsewhere: how many, and the weight of the failures among them. */
  results: number;
  failures: number;
  hasFailed: boolean;
  hasFailedForThis: boolean;
  inheritance: Inheritance;
};

/** How often a cause was seen in other builds' runs of the task within 72 hours. */
export type Sightings = {
  hits: number;
  results: number;
  /** It hit three tests in two of them, or six in one. */
  isSpread: boolean;
  /** Hits in this run, of those that its results would have at the rate. */
  shareOfUsual: number;
};

/** The failures of one run, or of one shard of it. */
export type FailedRun = {
  tests: number;
  failures: readonly FailedTest[];
  sightings: ReadonlyMap<string, Sightings>;
  /** Runs of the last three days on the same machine, and how many of them were disturbed. */
  onHost: { runs: number; disturbed: number } | null;
};

export type FailedBuild = {
  /** The share of builds that were disturbed lately. */
  disturbed: number;
  /** How many of the team's tests fail by themselves at which rate. */
  rates: readonly Rate[];
  runs: readonly FailedRun[];
};

/** The share of tests that fail by themselves at a rate. */
export type Rate = { rate: number; share: number };

export type Kind = "change" | "flaky" | "inherited" | "outside";
export type Judgement = {
  test: number;
  cause: string;
  shares: Record<Kind, number>;
  /** Of "change". */
  share: number;
  /** The strongest explanation. */
  kind: Kind;
};

/** The shares of tests that fail in a disturbed run, each as likely as another. */
const DISTURBED = [0.02, 0.06, 0.15, 0.3, 0.6, 0.95];
/** So many failures of one cause in so many files are no unit. */
const MANY = { tests: 6, files: 3 };

/** Logarithms of the weights. */
type Unit = { failures: readonly FailedTest[]; change: number; flaky: number; inherited: number; outside: number };

/** Each is judged with the others: whether the build breaks something, and whether its surroundings are disturbed. */
export function weigh({ disturbed, runs, rates }: FailedBuild, c: Constants = CONSTANTS): Judgement[] {
  const states = runs.map((run) => toState(run, rates, c));
  const chanceOf = ({ run: { onHost } }: RunState, usual: number) =>
    onHost ? (onHost.disturbed + c.hostA) / (onHost.runs + c.hostA + c.hostB) : usual;
  const worlds: World[] = [
    { odds: Math.log(1 - disturbed), chance: () => 0 },
    // A machine, or what all of them need.
    { odds: Math.log(disturbed / 2), chance: (state) => chanceOf(state, c.machine) },
    { odds: Math.log(disturbed / 2), chance: () => c.outage },
  ];
  const mixed = (state: RunState, { chance }: World, calm: number) =>
    logSum([Math.log(1 - chance(state)) + calm, Math.log(chance(state)) + state.disturbed]);
  const all = (world: World, calm: (state: RunState) => number) =>
    states.reduce((sum, state) => sum + mixed(state, world, calm(state)), 0);
  const [good, bad] = [Math.log(1 - c.guilty), Math.log(c.guilty / c.further)];
  const sums = worlds.map((world) => {
    const innocent = all(world, (state) => state.innocent);
    return { world, innocent, broken: all(world, (state) => state.broken) };
  });
  const total = logSum(
    sums.flatMap(({ world: { odds }, innocent, broken }) => [
      good + odds + innocent,
      bad + odds + logMinus(broken, innocent),
    ]),
  );
  return states.flatMap((state) => {
    /** The odds of the worlds in which this run is calm. */
    const calm = (before: number, of: "innocent" | "broken", own: number) =>
      sums.reduce((sum, one) => {
        const { odds, chance } = one.world;
        const others = one[of] - mixed(state, one.world, state[of]);
        return sum + Math.exp(before + odds + others + Math.log(1 - chance(state)) + own - total);
      }, 0);
    const calmBroken = calm(bad, "broken", state.broken);
    const calmInnocent = calm(good, "innocent", state.innocent) - calm(bad, "innocent", state.innocent);
    return state.units.flatMap((unit) => toShares(state.run, unit, { calmBroken, calmInnocent }, c));
  });
}

/** What the surroundings of a build are like; `chance`: that they disturb a run. */
type World = { odds: number; chance: (state: RunState) => number };

function toShares(
  run: FailedRun,
  unit: Unit,
  { calmBroken, calmInnocent }: { calmBroken: number; calmInnocent: number },
  c: Constants,
): Judgement[] {
  const others = logSum([unit.flaky, unit.inherited, unit.outside]);
  const change = Math.log(c.further) + unit.change;
  const ofChange = Math.min(1, calmBroken * Math.exp(change - logSum([others, change])));
  const rest = Math.max(0, calmBroken + calmInnocent - ofChange);
  const unsettled = Math.max(0, 1 - ofChange - rest);
  const hidden = 1 / (1 + Math.exp(Math.log(disturbedRate(run)) - unit.inherited));
  const shares = {
    change: ofChange,
    flaky: rest * Math.exp(unit.flaky - others),
    inherited: rest * Math.exp(unit.inherited - others) + unsettled * hidden,
    outside: rest * Math.exp(unit.outside - others) + unsettled * (1 - hidden),
  };
  return unit.failures.map((failure) => toJudgement(failure, shares));
}

const disturbedRate = ({ failures, tests }: FailedRun) => Math.max(0.02, failures.length / tests);

function toJudgement({ test, cause }: FailedTest, shares: Record<Kind, number>): Judgement {
  const others = (["flaky", "inherited", "outside"] as const).toSorted((a, b) => shares[b] - shares[a]);
  return { test, cause, shares, share: shares.change, kind: shares.change >= 0.5 ? "change" : others[0]! };
}

/** Failures of one file with one cause; or of one cause in many files. */
function toUnits({ failures }: FailedRun): (readonly FailedTest[])[] {
  const keyOf = ({ cause, inheritance }: FailedTest) => `${cause} ${inheritance.last === "this cause"}`;
  return [...Map.groupBy(failures, keyOf).values()].flatMap((same) => {
    const byFile = [...Map.groupBy(same, ({ file }) => file).values()];
    const isInherited = same[0]!.inheritance.last === "this cause";
    return !isInherited && same.length >= MANY.tests && byFile.length >= MANY.files ? [same] : byFile;
  });
}

/** The weights of the rates for a test that has failed by itself in `k` of `n` results. */
export const weighRates = (k: number, n: number, rates: readonly Rate[]): number[] =>
  rates.map(({ rate, share }) => share * Math.exp(k * Math.log(rate) + Math.max(0, n - k) * Math.log1p(-rate)));

/** The odds that a test that has failed by itself in `k` of `n` results does so `times` more. */
function flakyOdds(k: number, n: number, times: number, rates: readonly Rate[]): number {
  const weights = weighRates(k, n, rates);
  const again = rates.reduce((sum, { rate }, index) => sum + weights[index]! * rate ** times, 0);
  return again / weights.reduce((sum, weight) => sum + weight, 0);
}

const logChoose = (n: number, k: number): number => {
  let sum = 0;
  for (let i = 1; i <= k; i++) sum += Math.log((n - k + i) / i);
  return sum;
};

const isMany = (unit: readonly FailedTest[]) => new Set(unit.map(({ file }) => file)).size > 1;

function weighUnit(run: FailedRun, unit: readonly FailedTest[], rates: readonly Rate[], c: Constants): Unit {
  const n = Math.max(c.minTests, run.tests);
  const inARow = Math.min(...unit.map(({ inARow }) => inARow));
  const again = (inARow - 1) * Math.log(c.streak);
  const size = unit.length;
  // The tests of a file follow from the first one; of many at once each set is as likely as another.
  const spread = isMany(unit) ? Math.log(c.many / n) - logChoose(n, size) : Math.log(c.broken / n);
  const isNew = unit.every(({ results, inheritance }) => results === 0 && inheritance.last === "none");
  const change = (isNew ? Math.log(c.newTest) : spread) + again;
  let flaky = 0;
  for (const { hasFailed, hasFailedForThis, failures, results, inARow } of unit) {
    // The more often it has failed, the less does it fail for another cause than ever before.
    const words = hasFailed && !hasFailedForThis ? c.otherCause / (1 + failures) : 1;
    flaky += Math.log(flakyOdds(failures, results, inARow, rates) * words);
  }
  const inherited = Math.min(
    ...unit.map(({ inheritance }) => weighInherited(inheritance, Math.log(0.3) + spread + again, c)),
  );
  const outside = isMany(unit) ? -Infinity : Math.log(weighOutside(run, unit, c));
  return { failures: unit, change, flaky, inherited, outside };
}

/** What is inherited with such odds fails in a disturbed run as well. */
const LIKELY = Math.log(0.1);

/** Logarithms: the likelihood of all failures of a run where the build breaks nothing, may break each, and where it is disturbed. */
type RunState = {
  run: FailedRun;
  units: readonly Unit[];
  innocent: number;
  broken: number;
  disturbed: number;
};

function toState(run: FailedRun, rates: readonly Rate[], c: Constants): RunState {
  const units = toUnits(run).map((unit) => weighUnit(run, unit, rates, c));
  let [innocent, broken] = [0, 0];
  for (const { change, flaky, inherited, outside } of units) {
    const others = logSum([flaky, inherited, outside]);
    innocent += others;
    broken += logSum([others, Math.log(c.further) + change]);
  }
  const count = units.reduce((sum, { failures, inherited }) => sum + (inherited > LIKELY ? 0 : failures.length), 0);
  const disturbed = DISTURBED.map((share) => {
    let likelihood = -Math.log(DISTURBED.length) + Math.log1p(-share) * (Math.max(run.tests, count) - count);
    for (const { failures, inherited } of units) {
      const seen = run.sightings.get(failures[0]!.cause);
      const known = seen?.isSpread ? c.sighted : failures[0]!.saysOutside ? c.says : 1;
      likelihood += inherited > LIKELY ? inherited : failures.length * Math.log(share) + Math.log(known);
    }
    return likelihood;
  });
  return { run, units, innocent, broken, disturbed: logSum(disturbed) };
}

const logMinus = (a: number, b: number): number => (a <= b ? -Infinity : a + Math.log1p(-Math.exp(b - a)));

function logSum(logs: readonly number[]): number {
  const most = Math.max(...logs);
  if (most === -Infinity) return most;
  return most + Math.log(logs.reduce((sum, log) => sum + Math.exp(log - most), 0));
}

/** `change` is the logarithm of the odds that a change breaks the test. */
function weighInherited({ last, isTwice, isNextBroken, siblings }: Inheritance, change: number, c: Constants): number {
  const base = Math.log(c.inherited) + change;
  if (last === "this cause") return logSum([base, Math.log(isTwice ? c.inheritedTwice : c.inheritedLast)]);
  if (last === "other cause") return logSum([base, Math.log(isTwice ? c.inheritedOtherTwice : c.inheritedOther)]);
  if (isNextBroken) return logSum([base, Math.log(c.inheritedNext)]);
  const { failed, passed } = siblings;
  if (failed >= 2) return Math.log(failed > passed ? c.siblingsMost : c.siblingsMany) + change;
  if (failed === 1) return Math.log(passed === 0 ? c.siblingsOne : passed === 1 ? c.siblingsBoth : 0) + change;
  return -Infinity;
}

function weighOutside({ sightings }: FailedRun, unit: readonly FailedTest[], c: Constants): number {
  const seen = sightings.get(unit[0]!.cause);
  if (!seen?.isSpread) return 0;
  return (seen.hits / (seen.results + c.outsidePrior)) * (seen.shareOfUsual < 0.25 ? c.outsideFew : 1);
}
