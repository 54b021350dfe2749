/** Estimates how many tests of a project are flaky, and at which rates: the prior of a test that has never failed. */

/** The share of tests that fail by themselves at a rate. */
export type Rate = { rate: number; share: number };

/** The first one is that of a sound test. */
const RATES = [1e-6, 0.001, 0.003, 0.01, 0.03, 0.08, 0.15, 0.3, 0.5];
/** The prior for a new project: three tests in a thousand are flaky. It weighs as much as PRIOR_TESTS tests. */
const FLAKY_SHARE = 0.003;
const PRIOR_TESTS = 30;
const EM_ROUNDS = 15;

const toRates = (shares: readonly number[]): Rate[] => RATES.map((rate, index) => ({ rate, share: shares[index]! }));
const PRIOR = RATES.map((_, index) => (index === 0 ? 1 - FLAKY_SHARE : FLAKY_SHARE / (RATES.length - 1)));

/** Returns rates with the shares of tests stored for a project; null: the prior of a new project. */
export const readRates = (shares: readonly number[] | null): Rate[] =>
  toRates(shares?.length === RATES.length ? shares : PRIOR);

/** Number of tests that failed without a cause in the code in `failures` of `results` results. `failures` may be a sum of shares. */
export type TestCount = { failures: number; results: number; tests: number };

/** The shares by expectation maximization. */
export function fitRates(counts: readonly TestCount[]): number[] {
  const whole = counts.flatMap(({ failures, results, tests }): TestCount[] => {
    const [below, part] = [Math.floor(failures), failures - Math.floor(failures)];
    return [
      { failures: below, results, tests: tests * (1 - part) },
      { failures: below + 1, results, tests: tests * part },
    ];
  });
  let shares = PRIOR;
  for (let round = 0; round < EM_ROUNDS; round++) {
    const sums = PRIOR.map((share) => share * PRIOR_TESTS);
    for (const { failures, results, tests } of whole) {
      const likelihoods = RATES.map((rate, index) => shares[index]! * likelihoodOf(rate, failures, results));
      const all = likelihoods.reduce((sum, one) => sum + one, 0);
      if (all > 0 && tests > 0) likelihoods.forEach((one, index) => (sums[index]! += (tests * one) / all));
    }
    const sum = sums.reduce((total, one) => total + one, 0);
    shares = sums.map((one) => one / sum);
  }
  return shares;
}

/** The chance that a test fails by itself at some rate, which has done so in `failures` of `results` results. */
export function flakyChance(rates: readonly Rate[], failures: number, results: number): number {
  const weights = rates.map(({ rate, share }) => share * likelihoodOf(rate, failures, results));
  return 1 - weights[0]! / weights.reduce((sum, one) => sum + one, 0);
}

type OwnCount = { failed: number; results: number };

/** The mean rate at which such a test fails by itself. */
export const meanRate = (rates: readonly Rate[], count: OwnCount): number => meanOf(rates, count, ({ rate }) => rate);

/** The chance that a flaky test passes so often in a row. */
export const passesAgain = (rates: readonly Rate[], count: OwnCount, passes: number): number =>
  meanOf(rates.slice(1), count, ({ rate }) => (1 - rate) ** passes);

function meanOf(rates: readonly Rate[], { failed, results }: OwnCount, valueOf: (rate: Rate) => number): number {
  const weights = rates.map(({ rate, share }) => share * likelihoodOf(rate, failed, results));
  const sum = weights.reduce((total, one) => total + one, 0);
  return rates.reduce((mean, rate, index) => mean + valueOf(rate) * (weights[index]! / sum), 0);
}

const likelihoodOf = (rate: number, failures: number, results: number): number =>
  Math.exp(failures * Math.log(rate) + Math.max(0, results - failures) * Math.log1p(-rate));
