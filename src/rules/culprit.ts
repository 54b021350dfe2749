/** Finds the commit of a range that broke a test: the probability of each commit, from results that may be flaky (docs/bisect.md). */

/**
 * Index 0 is the last good commit, 1 to n are the commits after it, and n is the first bad commit. Hypothesis i says that the test fails
 * from commit i on. Hypothesis 0 says that the good commit fails as well, and hypothesis n + 1 that no commit fails any more.
 */
export type CommitProbe = {
  index: number;
  result: ProbeResult;
  /** Probes of one round ran at the same time, and a greater round ran later. Undefined: an earlier result, which was no outage. */
  round?: number;
};

export type ProbeResult =
  /** The failure that is searched for. */
  | "failed"
  | "passed"
  /** The test failed in another way. */
  | "other_failure"
  /** The commit cannot be built or tested. */
  | "no_build";

export type CulpritRange = {
  /** Prior weights of the commits 1 to n, relative to each other and greater than zero. */
  weights: readonly number[];
  flakeRate: FlakeRate;
};

/** A beta distribution: what is known about how often the test fails although its code is right. */
type FlakeRate = { failures: number; passes: number };

export type Belief = {
  /** The probability of each hypothesis 0 to n + 1. */
  chances: readonly number[];
  /** For each hypothesis, the expected flake rate. */
  flakeRates: readonly number[];
  /** For each hypothesis, the probability that the last round ran during an outage. */
  outages: readonly number[];
};

/** Prior probabilities that the good commit fails as well, and that the bad commit passes. */
const GOOD_FAILS = 0.05;
const BAD_PASSES = 0.03;

/** Probability that a broken test passes. */
const MISS_RATE = 0.02;
/**
 * Rates at which a test fails in another way, and their probabilities. Such a failure says nothing about the commit, whose fault it may
 * hide.
 */
const OTHER_RATES = [
  { rate: 0.02, chance: 0.9 },
  { rate: 0.2, chance: 0.1 },
];

/** An outage makes every commit fail, for several rounds. */
const OUTAGE_BEGINS = 0.02;
const OUTAGE_LASTS = 0.8;
const IN_OUTAGE: Record<ProbeResult, number> = { failed: 0.5, other_failure: 0.48, passed: 0.02, no_build: 1 };

/** The number of results that a flake rate without history counts as. */
const ASSUMED_RESULTS = 20;
const MIN_FLAKE_RATE = 0.002;
const MAX_FLAKE_RATE = 0.9;
/** Borders of the intervals over which the flake rate is integrated; their middles are the values. */
const FLAKE_BORDERS = [
  0, 0.005, 0.01, 0.02, 0.03, 0.045, 0.06, 0.08, 0.1, 0.13, 0.16, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.75, 0.95,
];

/** Returns the distribution of a flake rate that was assumed rather than measured. */
export function assumeFlakeRate(rate: number): FlakeRate {
  const mean = Math.min(Math.max(rate, MIN_FLAKE_RATE), MAX_FLAKE_RATE);
  return { failures: mean * ASSUMED_RESULTS, passes: (1 - mean) * ASSUMED_RESULTS };
}

/** Returns the distribution of a flake rate after `runs` results of sound code, `failures` of which failed. */
export const measureFlakeRate = (failures: number, runs: number): FlakeRate => ({
  failures: failures + 0.5,
  passes: runs - failures + 4.5,
});

/** test: a commit changes the file of the test, or one that its failure or its command names; owner: only files of its owner. */
export type Overlap = "test" | "owner" | "none";

/** Factors by which a commit is more probable as the culprit. */
const OVERLAP_WEIGHTS: Record<Overlap, number> = { test: 8, owner: 2, none: 1 };

/** Factor by which a commit that broke another test in the same range is more probable. */
const PROVEN_WEIGHT = 8;

/**
 * Returns prior weights; `overlaps` says for each commit what it has in common with the test, and `proven` has the indexes of
 * those that were proven to have broken other tests in the same range.
 */
export const weighCommits = (overlaps: readonly Overlap[], proven: ReadonlySet<number> = new Set()): number[] =>
  overlaps.map((overlap, at) => OVERLAP_WEIGHTS[overlap] * (proven.has(at) ? PROVEN_WEIGHT : 1));

/** Values of the flake rate and their probabilities, which sum to one. */
export function flakeRateGrid({ failures, passes }: FlakeRate): { rate: number; chance: number }[] {
  const grid = FLAKE_BORDERS.slice(1).map((end, at) => {
    const [begin, rate] = [FLAKE_BORDERS[at]!, (FLAKE_BORDERS[at]! + end) / 2];
    const logDensity = (failures - 1) * Math.log(rate) + (passes - 1) * Math.log1p(-rate);
    return { rate, log: logDensity + Math.log(end - begin) };
  });
  const most = Math.max(...grid.map(({ log }) => log));
  const sum = grid.reduce((total, { log }) => total + Math.exp(log - most), 0);
  return grid.map(({ rate, log }) => ({ rate, chance: Math.exp(log - most) / sum }));
}

/** Returns the prior probabilities of the hypotheses 0 to n + 1. */
export function priorOf({ weights }: CulpritRange): number[] {
  const share = (1 - GOOD_FAILS - BAD_PASSES) / weights.reduce((sum, weight) => sum + weight, 0);
  return [GOOD_FAILS, ...weights.map((weight) => weight * share), BAD_PASSES];
}

/** How often a test with right code fails in the way that is searched for, and in another way. */
type FailureRates = { flakeRate: number; otherRate: number };

/** Values of both rates and their probabilities, which sum to one. */
export const failureRateGrid = (flakeRate: FlakeRate): (FailureRates & { chance: number })[] =>
  flakeRateGrid(flakeRate).flatMap((flake) =>
    OTHER_RATES.map((other) => ({
      ...{ flakeRate: flake.rate, otherRate: other.rate },
      chance: flake.chance * other.chance,
    })),
  );

/** Returns the probability of a result where there is no outage. */
export function chanceOfResult(result: ProbeResult, isBroken: boolean, { flakeRate, otherRate }: FailureRates): number {
  if (result === "no_build") return 1;
  if (result === "other_failure") return otherRate;
  const failing = isBroken ? 1 - MISS_RATE : flakeRate;
  return (1 - otherRate) * (result === "failed" ? failing : 1 - failing);
}

/** Returns the probability that the next probe fails in the way that is searched for. */
export function chanceOfFailure(isBroken: boolean, flakeRate: number, outage: number): number {
  const next = outage * OUTAGE_LASTS + (1 - outage) * OUTAGE_BEGINS;
  return (1 - next) * (isBroken ? 1 - MISS_RATE : flakeRate) + next * (1 - IN_OUTAGE.passed);
}

/** Computes the probability of each hypothesis after the probes, in any order. */
export function believe(range: CulpritRange, probes: readonly CommitProbe[]): Belief {
  const prior = priorOf(range);
  const grid = failureRateGrid(range.flakeRate);
  const rounds = toRounds(probes);
  // All hypotheses between two probed commits explain the results equally well.
  const probed = new Set(probes.map(({ index }) => index));
  const explained: Explanation[] = [];
  for (const index of prior.keys())
    explained.push(index === 0 || probed.has(index - 1) ? explain(index, rounds, grid) : explained[index - 1]!);
  const most = explained.reduce((most, { logLikelihood }) => Math.max(most, logLikelihood), -Infinity);
  const masses = explained.map(({ logLikelihood }, index) => prior[index]! * Math.exp(logLikelihood - most));
  const sum = masses.reduce((total, mass) => total + mass, 0);
  return {
    chances: masses.map((mass) => mass / sum),
    flakeRates: explained.map(({ flakeRate }) => flakeRate),
    outages: explained.map(({ outage }) => outage),
  };
}

/** Earlier results first, then the rounds in the order of time. */
function toRounds(probes: readonly CommitProbe[]): { isProbed: boolean; probes: CommitProbe[] }[] {
  const results = probes.filter(({ result }) => result !== "no_build");
  const rounds = Map.groupBy(results, ({ round }) => round ?? -Infinity);
  return [...rounds].sort(([a], [b]) => a - b).map(([round, own]) => ({ isProbed: round !== -Infinity, probes: own }));
}

type Explanation = { logLikelihood: number; flakeRate: number; outage: number };

/** The forward algorithm of a hidden Markov model whose two states are "no outage" and "outage", for each value of the flake rate. */
function explain(
  first: number,
  rounds: ReturnType<typeof toRounds>,
  grid: ReturnType<typeof failureRateGrid>,
): Explanation {
  const parts = grid.map((rates) => {
    let [log, outage, last] = [Math.log(rates.chance), OUTAGE_BEGINS, 0];
    for (const { isProbed, probes } of rounds) {
      const normal = probes.reduce((all, { index, result }) => all * chanceOfResult(result, index >= first, rates), 1);
      if (!isProbed) {
        log += Math.log(normal);
        continue;
      }
      const disturbed = probes.reduce((all, { result }) => all * IN_OUTAGE[result], 1);
      const likelihood = (1 - outage) * normal + outage * disturbed;
      log += Math.log(likelihood);
      last = (outage * disturbed) / likelihood;
      outage = last * OUTAGE_LASTS + (1 - last) * OUTAGE_BEGINS;
    }
    return { log, flakeRate: rates.flakeRate, outage: last };
  });
  const most = Math.max(...parts.map(({ log }) => log));
  const shares = parts.map(({ log }) => Math.exp(log - most));
  const sum = shares.reduce((total, share) => total + share, 0);
  const meanOf = (of: "flakeRate" | "outage") =>
    parts.reduce((total, part, at) => total + part[of] * shares[at]!, 0) / sum;
  return { logLikelihood: most + Math.log(sum), flakeRate: meanOf("flakeRate"), outage: meanOf("outage") };
}
