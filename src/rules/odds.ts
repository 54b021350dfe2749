/** Weighs together what explains failures of a build: its change, the tests (flaky), what it is based on, its surroundings (outside). */

/** Fitted to the builds of simulated teams: test/lab/judge. */
export const CONSTANTS = {
  /** Of the builds of pull requests, so many break something. */
  guilty: 0.15,
  /** Of the tests of a run, so many break where something breaks. */
  broken: 0.5,
  minTests: 5,
  /** A change breaks so many tests at once that they are no unit. */
  many: 0.4,
  /** Each further build of the pull request in a row. */
  streak: 0.7,
  /** Each further thing that a change breaks for another reason. */
  further: 0.3,
  /** Of the changes that break something, so many break much: then so many times a single break is expected. */
  wide: 0.01,
  wideBreak: 6,
  /** A change breaks a test that has passed at the commit as well. */
  passedAtCommit: 0.02,
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
  siblingsOne: 0.4,
  /** A run of a disturbed build is, where a machine is bad, and where what all machines need is away. */
  machine: 0.2,
  outage: 0.8,
  /** A machine is as bad as before: (k + a) / (n + b). */
  unrestA: 0.5,
  unrestB: 25,
  /** Of the chance that a change breaks a test: that another one breaks it for the same reason. */
  sameBreak: 0.1,
  longEpisode: 0.5,
  hostA: 0.5,
  hostB: 1,
  /** Failures of a disturbed run that say the same as those of another one. */
  sighted: 300,
  says: 4,
  /** Many tests in several files say that something outside failed. */
  saysMany: 1000,
  /** The surroundings do the same to the next build of the branch, and to no other one. */
  repeated: 0.03,
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
export type FailedTestFacts = {
  test: number;
  cause: string;
  file: string;
  saysOutside: boolean;
  /** Builds of this pull request in a row in which it failed, this one included. */
  inARow: number;
  /** Its results elsewhere: how many, and the weight of the failures among them. */
  results: number;
  failures: number;
  /** Further pull requests in which it failed, by itself or for their changes: with this cause, and with others. */
  pullRequests: { same: number; other: number };
  hasFailed: boolean;
  hasFailedForThis: boolean;
  /** The task has passed it at the same commit. */
  passedAtCommit: boolean;
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
  failures: readonly FailedTestFacts[];
  sightings: ReadonlyMap<string, Sightings>;
  /** Runs of the last three days on the same machine, and how many of them were disturbed. */
  onHost: { runs: number; disturbed: number } | null;
};

export type FailedBuild = {
  /** The share of builds that were disturbed lately. */
  disturbed: number;
  /** How many of the team's tests fail by themselves at which rate. */
  rates: readonly RateShare[];
  runs: readonly FailedRun[];
};

/** The share of tests that fail by themselves at a rate: see flaky_rates.ts. */
type RateShare = { rate: number; share: number };

export type ExplanationKind = "change" | "flaky" | "inherited" | "outside";
export type Judgement = {
  test: number;
  cause: string;
  shares: Record<ExplanationKind, number>;
  /** Of "change". */
  share: number;
  /** The strongest explanation. */
  kind: ExplanationKind;
};

/** The shares of tests that fail in a disturbed run, each as likely as another. */
const DISTURBED = [0.02, 0.06, 0.15, 0.3, 0.6, 0.95];
/** So many failures of one cause in so many files are no unit. */
const MANY = { tests: 6, files: 3 };

/** Logarithms of the weights. */
type Unit = { failures: readonly FailedTestFacts[]; change: number; flaky: number; inherited: number; outside: number };

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
  const good = Math.log(1 - c.guilty);
  const guilts = guiltsOf(c);
  const sums = worlds.map((world) => ({
    world,
    innocent: all(world, (state) => state.innocent),
    broken: guilts.map((_, index) => all(world, (state) => state.broken[index]!)),
  }));
  const total = logSum(
    sums.flatMap(({ world: { odds }, innocent, broken }) => [
      good + odds + innocent,
      ...guilts.map((guilt, index) => guilt.odds + odds + logMinus(broken[index]!, innocent)),
    ]),
  );
  return states.flatMap((state) => {
    /** The odds of the worlds in which this run is calm. */
    const calm = (before: number, own: number, of: (sum: (typeof sums)[number]) => number) =>
      sums.reduce((sum, one) => {
        const { odds, chance } = one.world;
        const others = of(one) - mixed(state, one.world, own);
        return sum + Math.exp(before + odds + others + Math.log(1 - chance(state)) + own - total);
      }, 0);
    const innocent = (before: number) => calm(before, state.innocent, (one) => one.innocent);
    const calmBroken = guilts.map(({ odds }, index) => calm(odds, state.broken[index]!, (one) => one.broken[index]!));
    const calmInnocent = guilts.reduce((sum, { odds }) => sum - innocent(odds), innocent(good));
    return state.units.flatMap((unit) => toShares(state.run, unit, { guilts, calmBroken, calmInnocent }));
  });
}

/** What the surroundings of a build are like; `chance`: that they disturb a run. */
type World = { odds: number; chance: (state: RunState) => number };

/** A build that breaks something; `scale`: how much more than a single thing. Logarithms. */
type Guilt = { odds: number; scale: number };

const guiltsOf = (c: Constants): Guilt[] => [
  { odds: Math.log((c.guilty * (1 - c.wide)) / c.further), scale: Math.log(c.further) },
  { odds: Math.log(c.guilty * c.wide), scale: Math.log(c.wideBreak) },
];

type Calm = { guilts: readonly Guilt[]; calmBroken: readonly number[]; calmInnocent: number };

function toShares(run: FailedRun, unit: Unit, { guilts, calmBroken, calmInnocent }: Calm): Judgement[] {
  const others = logSum([unit.flaky, unit.inherited, unit.outside]);
  const parts = guilts.map(({ scale }, index) => {
    const change = scale + unit.change;
    return calmBroken[index]! * Math.exp(change - logSum([others, change]));
  });
  const sumOf = (numbers: readonly number[]) => numbers.reduce((sum, one) => sum + one, 0);
  const ofChange = Math.min(1, sumOf(parts));
  const rest = Math.max(0, sumOf(calmBroken) + calmInnocent - ofChange);
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

function toJudgement({ test, cause }: FailedTestFacts, shares: Record<ExplanationKind, number>): Judgement {
  const others = (["flaky", "inherited", "outside"] as const).toSorted((a, b) => shares[b] - shares[a]);
  return { test, cause, shares, share: shares.change, kind: shares.change >= 0.5 ? "change" : others[0]! };
}

/** Failures of one file with one cause; or of one cause in many files. */
function toUnits({ failures }: FailedRun): (readonly FailedTestFacts[])[] {
  const keyOf = ({ cause, inheritance }: FailedTestFacts) => `${cause} ${inheritance.last === "this cause"}`;
  return [...Map.groupBy(failures, keyOf).values()].flatMap((same) => {
    const byFile = [...Map.groupBy(same, ({ file }) => file).values()];
    const isInherited = same[0]!.inheritance.last === "this cause";
    return !isInherited && same.length >= MANY.tests && byFile.length >= MANY.files ? [same] : byFile;
  });
}

/** `k` of `n` results failed by themselves, and those of pull requests that a change breaks with such a chance. */
type PastCount = { k: number; n: number; pullRequests: readonly { count: number; chance: number }[] };

/** The odds that a test fails by itself `times` more. */
function flakyOdds({ k, n, pullRequests }: PastCount, times: number, rates: readonly RateShare[]): number {
  const passed = Math.max(0, n - k - pullRequests.reduce((sum, { count }) => sum + count, 0));
  let [all, again] = [0, 0];
  for (const { rate, share } of rates) {
    let likelihood = Math.log(share) + k * Math.log(rate) + passed * Math.log1p(-rate);
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

const isMany = (unit: readonly FailedTestFacts[]) => new Set(unit.map(({ file }) => file)).size > 1;

function weighUnit(run: FailedRun, unit: readonly FailedTestFacts[], rates: readonly RateShare[], c: Constants): Unit {
  const n = Math.max(c.minTests, run.tests);
  const inARow = Math.min(...unit.map(({ inARow }) => inARow));
  const again = (inARow - 1) * Math.log(c.streak);
  const size = unit.length;
  // The tests of a file follow from the first one; of many at once each set is as likely as another.
  const spread = isMany(unit) ? Math.log(c.many / n) - logChoose(n, size) : Math.log(c.broken / n);
  const isNew = unit.every(({ results, inheritance }) => results === 0 && inheritance.last === "none");
  const hasPassed = unit.some(({ passedAtCommit }) => passedAtCommit) ? Math.log(c.passedAtCommit) : 0;
  const change = (isNew ? Math.log(c.newTest) : spread) + again + hasPassed;
  let flaky = 0;
  const chance = (c.guilty * c.broken) / n;
  for (const { hasFailed, hasFailedForThis, failures, pullRequests, results, inARow } of unit) {
    // The more often it has failed, the less does it fail for another cause than ever before.
    const words = hasFailed && !hasFailedForThis ? c.otherCause / (1 + failures + pullRequests.other) : 1;
    const bySame = { count: pullRequests.same, chance: c.sameBreak * chance };
    const past = { k: failures, n: results, pullRequests: [bySame, { count: pullRequests.other, chance }] };
    flaky += Math.log(flakyOdds(past, inARow, rates) * words);
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
  /** As each guilt has it. */
  broken: number[];
  disturbed: number;
};

function toState(run: FailedRun, rates: readonly RateShare[], c: Constants): RunState {
  const units = toUnits(run).map((unit) => weighUnit(run, unit, rates, c));
  const broken = guiltsOf(c).map(() => 0);
  let innocent = 0;
  for (const { change, flaky, inherited, outside } of units) {
    const others = logSum([flaky, inherited, outside]);
    innocent += others;
    for (const [index, { scale }] of guiltsOf(c).entries()) broken[index]! += logSum([others, scale + change]);
  }
  const count = units.reduce((sum, { failures, inherited }) => sum + (inherited > LIKELY ? 0 : failures.length), 0);
  const disturbed = DISTURBED.map((share) => {
    let likelihood = -Math.log(DISTURBED.length) + Math.log1p(-share) * (Math.max(run.tests, 50, count) - count);
    for (const { failures, inherited } of units) {
      const seen = run.sightings.get(failures[0]!.cause);
      const says = isMany(failures) ? c.saysMany : c.says;
      const known = seen?.isSpread ? c.sighted : failures[0]!.saysOutside ? says : 1;
      const again = seen?.isSpread ? 0 : Math.min(...failures.map(({ inARow }) => inARow)) - 1;
      const odds = failures.length * Math.log(share) + Math.log(known) + again * Math.log(c.repeated);
      likelihood += inherited > LIKELY ? inherited : odds;
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
  if (failed === 1 && passed <= 1) return Math.log(c.siblingsOne) + change;
  return -Infinity;
}

function weighOutside({ sightings }: FailedRun, unit: readonly FailedTestFacts[], c: Constants): number {
  const seen = sightings.get(unit[0]!.cause);
  if (!seen?.isSpread) return 0;
  return (seen.hits / (seen.results + c.outsidePrior)) * (seen.shareOfUsual < 0.25 ? c.outsideFew : 1);
}
