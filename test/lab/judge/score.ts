/** Compares what an account says about the builds of a team with the truth. */

import { isClear, onlyInChanges } from "../../../src/rules/blame.ts";
import { GATE_SHARES } from "../../../src/schema/gate.ts";
import type { FailedRun, Judgement } from "../../../src/rules/odds_facts.ts";
import type { createHistory } from "./history.ts";
import type { Recorded, RecordedBuild } from "./record.ts";

export type PlayedBuild = {
  build: RecordedBuild;
  judgements: readonly Judgement[];
  facts: { runs: readonly FailedRun[] };
  /** The tests that failed in the build and are called flaky after it. */
  flaky: readonly number[];
  flakiness: ReturnType<typeof createHistory>["flakiness"];
};

/** From this chance on a test is called flaky. */
export const FLAKY = 0.95;
/** Flaky tests with this rate or a higher one must be found. */
const COUNTED = 0.05;

export type Share = { part: number; whole: number };

export type Score = {
  flakyPrecision: Share;
  flakyRecall: Share;
  /** Sound tests that were called flaky at any time, against the number of flaky tests. */
  sound: Share;
  blamePrecision: Share;
  blameRecall: Share;
  /** Guilty builds of pull requests in which nothing is blamed. */
  missed: Share;
  /** Innocent builds of pull requests in which something is blamed. */
  blamed: Share;
  /** Guilty builds of pull requests, and other ones with failures, that a gate with the normal share lets through. */
  guiltyPassed: Share;
  othersPassed: Share;
  /** Logarithmic loss of the largest share of "change" in a build, in hundredths. */
  loss: number;
  /** Failures by the tenth of their share of "change", and how many of them a change caused. */
  tenths: { count: number; change: number }[];
};

function scoreFlaky({ flaky, tests }: Recorded, played: readonly PlayedBuild[]) {
  const sound = new Set(played.flatMap(({ flaky: called }) => called.filter((test) => !flaky.has(test))));
  const { flakiness } = played.at(-1)!;
  const called = Array.from({ length: tests }, (_, test) => test).filter((test) => flakiness(test) > FLAKY);
  const counted = [...flaky].filter(([, rate]) => rate >= Math.min(COUNTED, Math.max(...flaky.values()) / 2));
  const right = called.filter((test) => flaky.has(test)).length;
  const found = counted.filter(([test]) => called.includes(test)).length;
  return {
    flakyPrecision: { part: right, whole: called.length },
    flakyRecall: { part: found, whole: counted.length },
    sound: { part: sound.size, whole: flaky.size },
  };
}

export function score(recorded: Recorded, played: readonly PlayedBuild[]): Score {
  let [told, right, own, guilty, missed, innocent, blamed] = [0, 0, 0, 0, 0, 0, 0];
  let [loss, builds, guiltyPassed, others, othersPassed] = [0, 0, 0, 0, 0];
  const tenths = Array.from({ length: 10 }, () => ({ count: 0, change: 0 }));
  for (const { build, judgements, facts } of played) {
    if (build.pullRequest === null) continue;
    const isOwn = ownIn(build);
    const passes = judgements.every(isForgiven(facts.runs));
    const asChange = judgements.filter(({ shares }) => isClear(shares.change));
    told += asChange.length;
    right += asChange.filter(isOwn).length;
    own += judgements.filter(isOwn).length;
    const isGuilty = judgements.some(isOwn);
    if (isGuilty) {
      guilty++;
      if (asChange.length === 0) missed++;
      if (passes) guiltyPassed++;
    } else {
      if (judgements.length > 0) others++;
      if (judgements.length > 0 && passes) othersPassed++;
      innocent++;
      if (asChange.length > 0) blamed++;
    }
    const most = Math.max(0, ...judgements.filter((one) => isGuilty === isOwn(one)).map(({ shares }) => shares.change));
    loss -= Math.log(Math.max(0.001, isGuilty ? most : 1 - most));
    builds++;
    for (const one of judgements) {
      const tenth = tenths[Math.min(9, Math.floor(one.shares.change * 10))]!;
      tenth.count++;
      if (isOwn(one)) tenth.change++;
    }
  }
  return {
    ...scoreFlaky(recorded, played),
    blamePrecision: { part: right, whole: told },
    blameRecall: { part: right, whole: own },
    missed: { part: missed, whole: guilty },
    blamed: { part: blamed, whole: innocent },
    guiltyPassed: { part: guiltyPassed, whole: guilty },
    othersPassed: { part: othersPassed, whole: others },
    loss: builds === 0 ? 0 : (100 * loss) / builds,
    tenths,
  };
}

/** Whether a gate forgives a failure: see `explainedBlame`, and rules/gate.ts. */
function isForgiven(runs: readonly FailedRun[]): (judgement: Judgement) => boolean {
  const factsOf = new Map(runs.flatMap(({ failures }) => failures.map((one) => [one.test, one])));
  return ({ test, kind, shares }) =>
    shares.change <= GATE_SHARES.normal &&
    kind !== "outside" &&
    !(kind === "flaky" && onlyInChanges(factsOf.get(test)!) !== null);
}

/** Whether the change of a build caused a failure that is judged in it. */
export function ownIn(build: RecordedBuild): (judgement: Judgement) => boolean {
  const truth = new Map(build.runs.flatMap(({ failures }) => failures.map((one) => [one.test, one.truth])));
  return ({ test }) => build.own.has(truth.get(test)!.id);
}

export const ratio = ({ part, whole }: Share) => (whole === 0 ? "–" : (part / whole).toFixed(2));

export const toRow = (score: Score) => ({
  flaky: `${ratio(score.flakyPrecision)} / ${ratio(score.flakyRecall)}, ${score.sound.part} sound`,
  blame: `${ratio(score.blamePrecision)} / ${ratio(score.blameRecall)}`,
  missed: `${score.missed.part} of ${score.missed.whole}`,
  blamed: `${score.blamed.part} of ${score.blamed.whole}`,
  passed: `${score.guiltyPassed.part} of ${score.guiltyPassed.whole} guilty, ${score.othersPassed.part} of ${score.othersPassed.whole} others`,
});
