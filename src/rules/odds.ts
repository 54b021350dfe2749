/** Weighs together what explains failures of a build: its change, the tests (flaky), what it is based on, its surroundings (outside). */

/** Fitted to the builds of simulated teams: test/lab/judge. */
export const CONSTANTS = {
  /** Of the builds of pull requests, so many break something. */
  guilty: 0.15,
  /** Of the tests of a run, so many break where something breaks. */
  broken: 0.5,
  /** A change breaks so many tests at once that they are no unit. */
  many: 0.4,
  /** Each further build of the pull request in a row. */
  streak: 0.7,
  /** Of the runs of a build that breaks something, so many lose a share of their tests, for whatever reasons. */
  wide: 0.02,
  /** Each further thing that a change breaks for another reason. */
  further: 0.15,
  /** A change breaks a test that has passed at the commit as well. */
  passedAtCommit: 0.02,
  otherCause: 0.3,
  /** A test that nobody else has: the change adds it. */
  newTest: 0.3,
  inheritedLast: 0.8,
  inheritedOther: 0.15,
  inheritedNext: 0.75,
  siblings: 20,
  /** A run of a disturbed build is, where a machine is bad, and where what all machines need is away. */
  machine: 0.2,
  outage: 0.8,
  /** Disturbed builds are as frequent as before: (k + a) / (n + b). */
  unrestA: 0.2,
  unrestB: 25,
  /** Of the chance that a change breaks a test: that another one breaks it for the same reason. */
  sameBreak: 0.1,
  otherBreak: 3,
  hostWeight: 3,
  /** Failures of a disturbed run that say the same as those of another one. */
  sighted: 300,
  /** Failures of one file that say what was not seen elsewhere, nor that something outside failed. */
  strange: 0.3,
  /** Of disturbed runs, so many show nothing but that. */
  novel: 0.3,
  /** Many tests in several files say that something outside failed. */
  saysMany: 1000,
  /** The surroundings do the same to the next build of the branch, and to no other one. */
  repeated: 0.03,
};
export type Constants = typeof CONSTANTS;

/** What the results of the line say of one failed test, at the place where the build's base is. */
export type Inheritance = {
  /** The last result at or before the base. */
  last: "this cause" | "other cause" | "passed" | "none";
  /** The next result after the base failed with this cause, and nothing later passes. */
  isNextBroken: boolean;
  /** It fails with this cause on another line now, and nobody says which one the build is based on. */
  isOnOtherLine: boolean;
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
  /** The change breaks many tests of the run at once, which says nothing of one of them. */
  isOfMany: boolean;
};

/** The shares of tests that fail in a disturbed run, or by a change that breaks much; each as likely as another. */
const SHARES = [0.02, 0.06, 0.15, 0.3, 0.6, 0.95];
/** So many failures in so many files are no unit, if they are of one cause, and no sign of a test. */
const MANY = { tests: 6, files: 3 };

/** Logarithms of the weights. */
type Unit = { failures: readonly FailedTestFacts[]; change: number; flaky: number; inherited: number; outside: number };

/** Each is judged with the others: whether the build breaks something, and whether its surroundings are disturbed. */
export function weigh({ disturbed, runs, rates }: FailedBuild, c: Constants = CONSTANTS): Judgement[] {
  const states = runs.map((run) => toState(run, rates, c));
  // As often as it was lately, and at first as often as others.
  const onHost = ({ run: { onHost } }: RunState) =>
    onHost ? (onHost.disturbed + c.hostWeight * disturbed * c.machine) / (onHost.runs + c.hostWeight) : 0;
  const worlds: World[] = [
    { odds: Math.log(1 - disturbed), chance: onHost },
    // A machine, or what all of them need.
    { odds: Math.log(disturbed / 2), chance: (state) => Math.max(onHost(state), c.machine) },
    { odds: Math.log(disturbed / 2), chance: () => c.outage },
  ];
  const mixed = (state: RunState, { chance }: World, guilt: Guilt) =>
    logSum([Math.log(1 - chance(state)) + state.calm[guilt], Math.log(chance(state)) + state.disturbed[guilt]]);
  const all = (world: World, guilt: Guilt) => states.reduce((sum, state) => sum + mixed(state, world, guilt), 0);
  const [good, bad] = [Math.log(1 - c.guilty), Math.log(c.guilty / c.further)];
  const sums = worlds.map((world) => ({ world, innocent: all(world, "innocent"), broken: all(world, "broken") }));
  const total = logSum(
    sums.flatMap(({ world: { odds }, innocent, broken }) => [
      good + odds + innocent,
      bad + odds + logMinus(broken, innocent),
    ]),
  );
  return states.flatMap((state) => {
    /** The odds of the worlds in which this run is calm, or is disturbed. */
    const oddsOf = (before: number, surroundings: "calm" | "disturbed", guilt: Guilt) =>
      sums.reduce((sum, one) => {
        const { odds, chance } = one.world;
        const others = one[guilt] - mixed(state, one.world, guilt);
        const own = surroundings === "calm" ? 1 - chance(state) : chance(state);
        return sum + Math.exp(before + odds + others + Math.log(own) + state[surroundings][guilt] - total);
      }, 0);
    const calmBroken = oddsOf(bad, "calm", "broken");
    const worldsOdds = {
      calmBroken,
      calm: calmBroken + oddsOf(good, "calm", "innocent") - oddsOf(bad, "calm", "innocent"),
      disturbedBroken: oddsOf(bad, "disturbed", "broken"),
    };
    return markMany(
      state.units.flatMap((unit, index) => toShares(state, unit, index, worldsOdds)),
      state.run,
    );
  });
}

/** Whether the build breaks nothing, or may break each test that failed. */
type Guilt = "innocent" | "broken";

/** What the surroundings of a build are like; `chance`: that they disturb a run. */
type World = { odds: number; chance: (state: RunState) => number };

function toShares(
  { run, changeIn }: RunState,
  unit: Unit,
  index: number,
  { calmBroken, calm, disturbedBroken }: { calmBroken: number; calm: number; disturbedBroken: number },
): Judgement[] {
  const others = logSum([unit.flaky, unit.inherited, unit.outside]);
  const inCalm = calmBroken * changeIn.calm[index]!;
  const ofChange = Math.min(1, inCalm + disturbedBroken * changeIn.disturbed[index]!);
  const rest = Math.max(0, Math.min(1 - ofChange, calm - inCalm));
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
  const kind = shares.change >= 0.5 ? "change" : others[0]!;
  return { test, cause, shares, share: shares.change, kind, isOfMany: false };
}

/** How far a run was disturbed. Many failures at once are suspect whatever they are put down to: the next ones on the machine tell. */
export const disturbedShare = (judgements: readonly Judgement[]): number =>
  Math.max(0, ...judgements.map(({ shares, isOfMany }) => Math.max(shares.outside, isOfMany ? 0.5 : 0)));

function markMany(judgements: readonly Judgement[], { failures }: FailedRun): Judgement[] {
  const fileOf = new Map(failures.map(({ test, file }) => [test, file]));
  const ofChange = judgements.filter(({ kind }) => kind === "change");
  const files = new Set(ofChange.map(({ test }) => fileOf.get(test)));
  const isMany = ofChange.length >= MANY.tests && files.size >= MANY.files;
  return judgements.map((one) => ({ ...one, isOfMany: isMany && one.kind === "change" }));
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
  const n = Math.max(1, run.tests, run.failures.length);
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
    const past = {
      k: failures,
      n: results,
      pullRequests: [bySame, { count: pullRequests.other, chance: c.otherBreak * chance }],
    };
    flaky += Math.log(flakyOdds(past, inARow, rates) * words);
  }
  const inherited = Math.min(
    ...unit.map(({ inheritance }) => weighInherited(inheritance, Math.log(0.3) + spread + again, c)),
  );
  const outside = isMany(unit) ? -Infinity : Math.log(weighOutside(run, unit));
  return { failures: unit, change, flaky, inherited, outside };
}

/** What is inherited with such odds fails in a disturbed run as well. */
const LIKELY = Math.log(0.1);

/** Logarithms of the likelihood of all failures of a run, by its surroundings and by the guilt of the build. */
type RunState = {
  run: FailedRun;
  units: readonly Unit[];
  calm: Record<Guilt, number>;
  disturbed: Record<Guilt, number>;
  /** Of each unit, where the build breaks something: the chance that it is the change's. */
  changeIn: Record<"calm" | "disturbed", readonly number[]>;
};

function toState(run: FailedRun, rates: readonly RateShare[], c: Constants): RunState {
  const units = toUnits(run).map((unit) => weighUnit(run, unit, rates, c));
  const others = units.map(({ flaky, inherited, outside }) => logSum([flaky, inherited, outside]));
  const changes = units.map(({ change }) => Math.log(c.further) + change);
  const count = units.reduce((sum, { failures, inherited }) => sum + (inherited > LIKELY ? 0 : failures.length), 0);
  const passed = Math.max(run.tests, 50, count) - count;
  const before = (share: number) => Math.log1p(-share) * passed - Math.log(SHARES.length);
  const innocent = others.reduce((sum, one) => sum + one, 0);
  const calm = toBroken([
    { before: 0, others, changes },
    ...SHARES.map((share) => {
      const wide = units.map(({ failures, inherited }) =>
        inherited > LIKELY ? -Infinity : failures.length * Math.log(share),
      );
      return { before: Math.log(c.wide) + before(share), others, changes: wide };
    }),
  ]);
  // What disturbs it has been seen before, or says something else in each file.
  const disturbed = [1 - c.novel, c.novel].flatMap((kind, isNovel) =>
    SHARES.map((share) => ({
      before: before(share) + Math.log(kind),
      others: units.map((unit) => weighDisturbed(run, unit, share, isNovel ? 1 : c.strange, c)),
      changes,
    })),
  );
  const { broken, ofChange } = toBroken(disturbed);
  return {
    ...{ run, units },
    calm: { innocent, broken: calm.broken },
    disturbed: {
      innocent: logSum(disturbed.map(({ before, others }) => others.reduce((sum, one) => sum + one, before))),
      broken,
    },
    changeIn: { calm: calm.ofChange, disturbed: ofChange },
  };
}

/** Of several ways in which the units of a run may have failed: how likely all are, and the chance of each unit that it is the change's. */
function toBroken(ways: readonly { before: number; others: readonly number[]; changes: readonly number[] }[]) {
  const weighed = ways.map(({ before, others, changes }) => {
    const both = others.map((one, index) => logSum([one, changes[index]!]));
    return {
      all: both.reduce((sum, one) => sum + one, before),
      ofChange: both.map((one, index) => Math.exp(changes[index]! - one)),
    };
  });
  const broken = logSum(weighed.map(({ all }) => all));
  const ofChange = weighed[0]!.ofChange.map((_, index) =>
    weighed.reduce((sum, one) => sum + Math.exp(one.all - broken) * one.ofChange[index]!, 0),
  );
  return { broken, ofChange };
}

/** Logarithm: the likelihood of the failures of a unit in a run of which its surroundings fail such a share. */
function weighDisturbed(
  { sightings }: FailedRun,
  { failures, inherited }: Unit,
  share: number,
  strange: number,
  c: Constants,
): number {
  if (inherited > LIKELY) return inherited;
  const seen = sightings.get(failures[0]!.cause);
  const says = failures[0]!.saysOutside;
  const known = seen?.isSpread ? c.sighted : isMany(failures) ? (says ? c.saysMany : 1) : says ? 1 : strange;
  const again = seen?.isSpread ? 0 : Math.min(...failures.map(({ inARow }) => inARow)) - 1;
  return failures.length * Math.log(share) + Math.log(known) + again * Math.log(c.repeated);
}

const logMinus = (a: number, b: number): number => (a <= b ? -Infinity : a + Math.log1p(-Math.exp(b - a)));

function logSum(logs: readonly number[]): number {
  const most = Math.max(...logs);
  if (most === -Infinity) return most;
  return most + Math.log(logs.reduce((sum, log) => sum + Math.exp(log - most), 0));
}

/** `change` is the logarithm of the odds that a change breaks the test. */
function weighInherited({ last, isNextBroken, isOnOtherLine, siblings }: Inheritance, change: number, c: Constants) {
  if (last === "this cause") return Math.log(c.inheritedLast);
  if (last === "other cause") return Math.log(c.inheritedOther);
  if (isNextBroken) return Math.log(c.inheritedNext);
  if (isOnOtherLine) return Math.log(c.siblings) + change;
  // What passed there is not inherited.
  const { failed, passed } = siblings;
  return last === "none" && failed >= 2 && failed > passed ? Math.log(c.siblings) + change : -Infinity;
}

function weighOutside({ sightings }: FailedRun, unit: readonly FailedTestFacts[]): number {
  const seen = sightings.get(unit[0]!.cause);
  return seen?.isSpread ? seen.hits / seen.results : 0;
}
