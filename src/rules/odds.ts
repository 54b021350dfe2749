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
  wide: 0.05,
  /** Each further thing that a change breaks for another reason. */
  further: 0.15,
  /** A change breaks a test that has passed at the commit as well. */
  passedAtCommit: 0.001,
  /** A change that breaks a test breaks another one of its file, for another reason. */
  inFile: 0.03,
  otherCause: 0.3,
  /** A test that nobody else has: the change adds it, and as many as it likes. */
  newTest: 0.3,
  inheritedLast: 0.8,
  inheritedOther: 0.15,
  inheritedNext: 0.75,
  siblings: 20,
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
  /** How far that result was put down to the test itself. */
  doubt: number;
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
  /** Its results elsewhere. */
  results: number;
  /** Single ones on the line, and those that passed on retry or again at the same commit. */
  failures: number;
  /** The lengths of rows of failures on the line: two or more. */
  episodes: readonly number[];
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

/** What a run is judged by. */
export type RunFacts = {
  /** The share of builds that were disturbed lately. */
  disturbed: number;
  /** How many of the team's tests fail by themselves at which rate. */
  rates: readonly RateShare[];
  run: FailedRun;
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
  /** How far it shows that the run is disturbed: many at once are suspect at first, the next ones on the machine tell. */
  disturbed: number;
};

/** The shares of tests that fail in a disturbed run, or by a change that breaks much; each as likely as another. */
const SHARES = [0.02, 0.06, 0.15, 0.3, 0.6, 0.95];
/** So many failures in so many files are no unit, if they are of one cause, and no sign of a test. */
const MANY = { tests: 6, files: 3 };

/** Logarithms of the weights. */
type Unit = {
  failures: readonly FailedTestFacts[];
  change: number;
  /** What the change is if it breaks another test of the file. */
  inFile: number;
  flaky: number;
  inherited: number;
  outside: number;
};

/** Each is judged with the others of the run: whether the build breaks something, and whether its surroundings are disturbed. */
export function weigh({ disturbed, run, rates }: RunFacts, c: Constants = CONSTANTS): Judgement[] {
  const state = toState(run, rates, c);
  const { onHost } = run;
  // A machine is disturbed as often as it was lately, and at first as often as others.
  const chance = onHost ? (onHost.disturbed + c.hostWeight * disturbed) / (onHost.runs + c.hostWeight) : disturbed;
  const [good, bad] = [Math.log(1 - c.guilty), Math.log(c.guilty / c.further)];
  const odds = (surroundings: "calm" | "disturbed", guilt: Guilt) =>
    Math.log(surroundings === "calm" ? 1 - chance : chance) + state[surroundings][guilt];
  const all = (guilt: Guilt) => logSum([odds("calm", guilt), odds("disturbed", guilt)]);
  const total = logSum([good + all("innocent"), bad + logMinus(all("broken"), all("innocent"))]);
  const calmBroken = Math.exp(bad + odds("calm", "broken") - total);
  const calmInnocent = (before: number) => Math.exp(before + odds("calm", "innocent") - total);
  const chances = {
    calmBroken,
    calm: calmBroken + calmInnocent(good) - calmInnocent(bad),
    disturbedBroken: Math.exp(bad + odds("disturbed", "broken") - total),
  };
  return markMany(
    state.units.flatMap((unit, index) => toShares(state, unit, index, chances)),
    run,
  );
}

/** Whether the build breaks nothing, or may break each test that failed. */
type Guilt = "innocent" | "broken";

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
  return { test, cause, shares, share: shares.change, kind, isOfMany: false, disturbed: shares.outside };
}

/** How far a run was disturbed. */
export const disturbedShare = (judgements: readonly Judgement[]): number =>
  judgements.reduce((most, { disturbed }) => Math.max(most, disturbed), 0);

function markMany(judgements: readonly Judgement[], { failures }: FailedRun): Judgement[] {
  const fileOf = new Map(failures.map(({ test, file }) => [test, file]));
  const ofChange = judgements.filter(({ kind }) => kind === "change");
  const files = new Set(ofChange.map(({ test }) => fileOf.get(test)));
  const isMany = ofChange.length >= MANY.tests && files.size >= MANY.files;
  const isFirst = failures.some(({ inARow }) => inARow === 1);
  return judgements.map((one) => {
    const isOfMany = isMany && one.kind === "change";
    return { ...one, isOfMany, disturbed: isOfMany && isFirst ? Math.max(0.5, one.disturbed) : one.disturbed };
  });
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

const isMany = (unit: readonly FailedTestFacts[]) => new Set(unit.map(({ file }) => file)).size > 1;

function weighUnit(run: FailedRun, unit: readonly FailedTestFacts[], rates: readonly RateShare[], c: Constants): Unit {
  const n = Math.max(1, run.tests, run.failures.length);
  const inARow = unit.reduce((least, { inARow }) => Math.min(least, inARow), Infinity);
  const again = (inARow - 1) * Math.log(c.streak);
  const size = unit.length;
  // The tests of a file follow from the first one; of many at once each set is as likely as another.
  const spread = isMany(unit) ? Math.log(c.many / n) - logChoose(n, size) : Math.log(c.broken / n);
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
    (least, { inheritance }) => Math.min(least, weighInherited(inheritance, Math.log(0.3) + spread + again, c)),
    Infinity,
  );
  const outside = isMany(unit) ? -Infinity : Math.log(weighOutside(run, unit));
  const inFile = Math.max(Math.log(c.further) + change, Math.log(c.inFile) + again + hasPassed);
  return { failures: unit, change, inFile, flaky, inherited, outside };
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
  // The surroundings seldom do the same to the next build of a branch, unless others show it as well.
  const strange = run.failures.filter(({ cause }) => !run.sightings.get(cause)?.isSpread);
  const again = strange.reduce((sum, { inARow }) => sum + inARow - 1, 0) / Math.max(1, strange.length);
  const repeated = (strange.length / run.failures.length) * again * Math.log(c.repeated);
  const before = (share: number) => Math.log1p(-share) * passed - Math.log(SHARES.length);
  const innocent = others.reduce((sum, one) => sum + one, 0);
  const calm = toBroken(
    [
      { before: 0, others, changes, isByFile: true },
      ...SHARES.map((share) => {
        const wide = units.map(({ failures, inherited }) =>
          inherited > LIKELY ? -Infinity : failures.length * Math.log(share),
        );
        return { before: Math.log(c.wide * c.further) + before(share), others, changes: wide, isByFile: false };
      }),
    ],
    units,
  );
  // What disturbs it has been seen before, or says something else in each file.
  const disturbed = [1 - c.novel, c.novel].flatMap((kind, isNovel) =>
    SHARES.map((share) => ({
      before: before(share) + Math.log(kind) + repeated,
      others: units.map((unit) => weighDisturbed(run, unit, share, isNovel ? 1 : c.strange, c)),
      changes,
      isByFile: true,
    })),
  );
  const { broken, ofChange } = toBroken(disturbed, units);
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

/** A way in which the units of a run may have failed. Logarithms: what comes before, what each unit is without the change, and by it. */
type Way = {
  before: number;
  others: readonly number[];
  changes: readonly number[];
  /** Whether the units of a file are broken together. */
  isByFile: boolean;
};

/** Of several ways: how likely all units are, and the chance of each that it is the change's. */
function toBroken(ways: readonly Way[], units: readonly Unit[]) {
  const placeOf = (index: number) => {
    const { failures, inherited } = units[index]!;
    return isMany(failures) || inherited > LIKELY ? index : failures[0]!.file;
  };
  const byFile = [...Map.groupBy(units.keys(), placeOf).values()];
  const weighed = ways.map((way) => {
    const ofChange = units.map(() => 0);
    const all = byFile.reduce((sum, indexes) => sum + weighFile(way, units, indexes, ofChange), way.before);
    return { all, ofChange };
  });
  const broken = logSum(weighed.map(({ all }) => all));
  const ofChange = units.map((_, index) =>
    weighed.reduce((sum, one) => sum + Math.exp(one.all - broken) * one.ofChange[index]!, 0),
  );
  return { broken, ofChange };
}

/** The likelihood of the units of one file; sets the chance of each that it is the change's. */
function weighFile(
  { others, changes, isByFile }: Way,
  units: readonly Unit[],
  indexes: readonly number[],
  ofChange: number[],
): number {
  if (!isByFile || indexes.length === 1) {
    const both = indexes.map((index) => logSum([others[index]!, changes[index]!]));
    for (const [at, index] of indexes.entries()) ofChange[index] = Math.exp(changes[index]! - both[at]!);
    return both.reduce((sum, one) => sum + one, 0);
  }
  // Nothing is broken, or one is, and each other one may be.
  const none = indexes.reduce((sum, index) => sum + others[index]!, 0);
  const further = indexes.map((index) => units[index]!.inFile);
  const either = indexes.map((index, at) => logSum([others[index]!, further[at]!]));
  const rest = either.reduce((sum, one) => sum + one, 0);
  const first = indexes.map((index, at) => changes[index]! + rest - either[at]!);
  const broken = logSum(first);
  const all = logSum([none, broken]);
  for (const [at, index] of indexes.entries()) {
    const asFurther = logMinus(broken, first[at]!) + further[at]! - either[at]!;
    ofChange[index] = Math.exp(logSum([first[at]!, asFurther]) - all);
  }
  return all;
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
  return failures.length * Math.log(share) + Math.log(known);
}

const logMinus = (a: number, b: number): number => (a <= b ? -Infinity : a + Math.log1p(-Math.exp(b - a)));

function logSum(logs: readonly number[]): number {
  // There may be more than a call takes as arguments.
  const most = logs.reduce((most, log) => Math.max(most, log), -Infinity);
  if (most === -Infinity) return most;
  return most + Math.log(logs.reduce((sum, log) => sum + Math.exp(log - most), 0));
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
  // What passed there is not inherited.
  const { failed, passed } = siblings;
  return last === "none" && failed >= 2 && failed > passed ? Math.log(c.siblings) + change : -Infinity;
}

function weighOutside({ sightings }: FailedRun, unit: readonly FailedTestFacts[]): number {
  const seen = sightings.get(unit[0]!.cause);
  return seen?.isSpread ? seen.hits / seen.results : 0;
}
