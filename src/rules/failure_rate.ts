/** Computes how often a test fails as an exact confidence interval (Clopper and Pearson, 1934), from the binomial distribution alone. */

export const CONFIDENCE = 0.95;

/** Rates from 0 to 1. If no run, or every run, failed, one bound is certain and the other has the whole error probability. */
type RateInterval = { lower: number; upper: number };

/** Halvings of an interval of length 1, so that the bounds are as exact as a double can be. */
const BISECTIONS = 60;

/** `runs` is at least 1. */
export function failureInterval(failed: number, runs: number): RateInterval {
  const isOneSided = failed === 0 || failed === runs;
  const tail = (1 - CONFIDENCE) / (isOneSided ? 1 : 2);
  return {
    lower: failed === 0 ? 0 : solve((rate) => tail - chanceOfAtLeast(failed, runs, rate)),
    upper: failed === runs ? 1 : solve((rate) => 1 - chanceOfAtLeast(failed + 1, runs, rate) - tail),
  };
}

/** Returns where a decreasing function from 0 to 1 is zero. */
function solve(decreasing: (rate: number) => number): number {
  let [low, high] = [0, 1];
  for (let step = 0; step < BISECTIONS; step++) {
    const middle = (low + high) / 2;
    if (decreasing(middle) > 0) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

/** Returns the probability that at least `failed` of the runs fail. */
function chanceOfAtLeast(failed: number, runs: number, rate: number): number {
  if (failed <= 0 || rate >= 1) return 1;
  if (rate <= 0) return 0;
  // In logarithms, because the first terms of many runs are smaller than any double.
  const odds = Math.log(rate) - Math.log1p(-rate);
  let term = runs * Math.log1p(-rate);
  let sum = 0;
  for (let count = 0; count <= runs; count++) {
    if (count >= failed) sum += Math.exp(term);
    term += odds + Math.log((runs - count) / (count + 1));
  }
  return Math.min(1, sum);
}
