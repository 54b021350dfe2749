/** Weighs the explanations of failures of a run: the change, flaky tests, inherited failures, and the environment (outside). */

import {
  CONSTANTS,
  type Constants,
  type ExplanationKind,
  type FailedRun,
  type FailedTestFacts,
  type Judgement,
  type RateShare,
  type RunFacts,
} from "./odds_facts.ts";
import { logMinus, logSum, MANY_AT_ONCE, toUnits, type Unit, weighDisturbed, weighUnit } from "./odds_units.ts";

/** Shares of tests that fail in a disturbed run, or by a change that breaks much; all equally likely. */
const SHARES = [0.02, 0.06, 0.15, 0.3, 0.6, 0.95];
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

function toJudgement({ test }: FailedTestFacts, shares: Record<ExplanationKind, number>): Judgement {
  const others = (["flaky", "inherited", "outside"] as const).toSorted((a, b) => shares[b] - shares[a]);
  const kind = shares.change >= 0.5 ? "change" : others[0]!;
  return { test, shares, kind, isOfMany: false, disturbed: shares.outside };
}

/** Returns how likely it is that the run was disturbed. */
export const disturbedShare = (judgements: readonly Judgement[]): number =>
  judgements.reduce((most, { disturbed }) => Math.max(most, disturbed), 0);

function markMany(judgements: readonly Judgement[], { failures }: FailedRun): Judgement[] {
  const fileOf = new Map(failures.map(({ test, file }) => [test, file]));
  const ofChange = judgements.filter(({ kind }) => kind === "change");
  const files = new Set(ofChange.map(({ test }) => fileOf.get(test)));
  const isMany = ofChange.length >= MANY_AT_ONCE.tests && files.size >= MANY_AT_ONCE.files;
  const isFirst = failures.some(({ inARow }) => inARow === 1);
  return judgements.map((one) => {
    const isOfMany = isMany && one.kind === "change";
    return { ...one, isOfMany, disturbed: isOfMany && isFirst ? Math.max(0.5, one.disturbed) : one.disturbed };
  });
}

/** Logarithms of the likelihood of all failures of a run, by its surroundings and by the guilt of the build. */
type RunState = {
  run: FailedRun;
  units: readonly Unit[];
  calm: Record<Guilt, number>;
  disturbed: Record<Guilt, number>;
  /** For each unit, the probability that the change explains it, given that the build breaks something. */
  changeIn: Record<"calm" | "disturbed", readonly number[]>;
};

function toState(run: FailedRun, rates: readonly RateShare[], c: Constants): RunState {
  const units = toUnits(run).map((unit) => weighUnit(run, unit, rates, c));
  const placeOf = (index: number) => {
    const { failures, isMany, isInherited } = units[index]!;
    return isMany || isInherited ? index : failures[0]!.file;
  };
  const byFile = [...Map.groupBy(units.keys(), placeOf).values()];
  const others = units.map(({ flaky, inherited, outside }) => logSum([flaky, inherited, outside]));
  const changes = units.map(({ change }) => Math.log(c.further) + change);
  const count = units.reduce((sum, { failures, isInherited }) => sum + (isInherited ? 0 : failures.length), 0);
  // In a smaller run, a change may well fail all tests at once.
  const passed = Math.max(run.tests, MANY_AT_ONCE.tests, count) - count;
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
        const wide = units.map(({ failures, isInherited }) =>
          isInherited ? -Infinity : failures.length * Math.log(share),
        );
        return { before: Math.log(c.wide * c.further) + before(share), others, changes: wide, isByFile: false };
      }),
    ],
    units,
    byFile,
  );
  // The cause of the disturbance has been seen before, or is novel and has another message in each file.
  const disturbed = [1 - c.novel, c.novel].flatMap((kind, isNovel) =>
    SHARES.map((share) => ({
      before: before(share) + Math.log(kind) + repeated,
      others: units.map((unit) => weighDisturbed(run, unit, share, isNovel ? 1 : c.strange, c)),
      changes,
      isByFile: true,
    })),
  );
  const { broken, ofChange } = toBroken(disturbed, units, byFile);
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

/** A way in which the units of a run may have failed, as logarithms: a prior, each unit without the change, and each unit by the change. */
type Way = {
  before: number;
  others: readonly number[];
  changes: readonly number[];
  /** Whether the units of a file are broken together. */
  isByFile: boolean;
};

/** Returns the likelihood of all units over several ways, and the probability of each unit that the change explains it. */
function toBroken(ways: readonly Way[], units: readonly Unit[], byFile: readonly (readonly number[])[]) {
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
