/** Decides whether a test is flaky, and how often: from what explains its failures (odds.ts) and the project's rates (flaky_rates.ts). */

import { flakyChance, meanRate, passesAgain, type Rate } from "./flaky_rates.ts";

/** Number of the last counted results that a rate is of. */
export const RATE_RESULTS = 200;
/** The chance that a test fails by itself, from which on it is called flaky. */
const FLAKY_CHANCE = 0.95;
/** A flaky test has recovered when it would pass so often in a row with a lower chance than this. */
const RECOVERY_CHANCE = 0.01;
const MIN_PASSES = 20;

/** retry: it passed on retry within the run; same_commit: a later run passed it on the same commit; unexplained: neither. */
export type OwnSign = "retry" | "same_commit" | "unexplained";

/** A failure of a test that no outside cause and no earlier failure explains. */
export type OwnFailure = {
  sign: OwnSign;
  /** The run on the default branch and on long-lived ones, otherwise the pull request or the branch. */
  place: string;
  /** The share of "flaky" among its explanations. */
  share: number;
  isExplainedAsFlaky: boolean;
  /** The results elsewhere that it was judged by. */
  known: { failed: number; results: number };
  /** ISO 8601. */
  at: string;
};

export type Flakiness = {
  flaky: boolean;
  /** The failures that were the test's own, each with its sign. */
  own: readonly Pick<OwnFailure, "sign" | "at">[];
  /** Passes in a row after which it has recovered. */
  recoversAfter: number;
};

/** `failures` of the last `results` results; `clean` of them, the last ones, passed. */
export function judgeFlakiness(
  rates: readonly Rate[],
  failures: readonly OwnFailure[],
  { results, clean }: { results: number; clean: number },
): Flakiness {
  const places = [...Map.groupBy(failures, ({ place }) => place).values()];
  const weight = places.reduce((sum, some) => sum + Math.max(...some.map(({ share }) => share)), 0);
  const isLikely = weight > 0 && flakyChance(rates, weight, results) >= FLAKY_CHANCE;
  const recoversAfter = isLikely ? passesToRecover(rates, weight, results - clean) : 0;
  const sure = places.flatMap((some) => ownOf(some, ({ isExplainedAsFlaky }) => isExplainedAsFlaky));
  if (!isLikely) return { flaky: false, own: sure, recoversAfter };
  // Failures that were explained by changes before the test was known to be flaky.
  const isOwn = (failure: OwnFailure) =>
    failure.isExplainedAsFlaky || shareNow(rates, failure, { failed: sure.length, results }) >= 0.5;
  const own = places.flatMap((some) => ownOf(some, isOwn)).toSorted((a, b) => (a.at < b.at ? -1 : 1));
  return { flaky: own.length > 0 && clean < recoversAfter, own, recoversAfter };
}

/** Failures at one place are the test's own once, unless it passed again without a change each time. */
function ownOf(some: readonly OwnFailure[], isOwn: (failure: OwnFailure) => boolean): readonly OwnFailure[] {
  const certain = some.filter(({ sign }) => sign !== "unexplained");
  return certain.length > 0 ? certain : some.filter(isOwn).slice(0, 1);
}

function shareNow(
  rates: readonly Rate[],
  { share, known }: OwnFailure,
  others: { failed: number; results: number },
): number {
  const odds = share * (meanRate(rates, others) / meanRate(rates, known));
  return odds / (odds + 1 - share);
}

/** Returns the number of passes after which it is no longer likely that the test is flaky, because it would have failed again. */
function passesToRecover(rates: readonly Rate[], failures: number, before: number): number {
  for (let passes = 1; passes < RATE_RESULTS; passes++) {
    const results = Math.min(RATE_RESULTS, before + passes);
    if (flakyChance(rates, failures, results) < FLAKY_CHANCE) return passes;
    const isPassing = passesAgain(rates, { failed: failures, results: before }, passes) < RECOVERY_CHANCE;
    if (isPassing && passes >= MIN_PASSES) return passes;
  }
  return RATE_RESULTS;
}
