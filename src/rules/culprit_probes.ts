/** The next step in the search for a culprit: its end, or the commits whose results are expected to say most. */

import { type Belief, believe, chanceOfFailure, type CommitProbe, type CulpritRange } from "./culprit.ts";
import {
  concludeCulprit,
  CONFIRMED_FROM,
  type CulpritVerdict,
  findSuspects,
  findUntestable,
  missingConfirmations,
} from "./culprit_suspects.ts";

/** Maximum probes of one round: the work doubles with each. */
export const MAX_PROBES_AT_ONCE = 8;

/** Probability that a probe has a result, and the factor next to a commit that has none. */
const HAS_RESULT = 0.95;
const NEIGHBOUR_HAS_NONE = 0.5;

export type SearchStep = { belief: Belief } & ({ verdict: CulpritVerdict } | { verdict?: undefined; next: number[] });

/** Returns the end of the search or the commits to probe at the same time. `left`: how many more probes are allowed. */
export function nextStep(
  range: CulpritRange,
  probes: readonly CommitProbe[],
  { atOnce, left }: { atOnce: number; left: number },
): SearchStep {
  const belief = believe(range, probes);
  const verdict = concludeCulprit(belief, probes, left <= 0 ? "budget" : undefined);
  if (verdict) return { belief, verdict };
  const next = nextProbes(belief, probes, Math.min(atOnce, left));
  if (next.length === 0) return { belief, verdict: concludeCulprit(belief, probes, "no_result")! };
  return { belief, next };
}

/**
 * Returns at most `count` commits to probe at the same time, the same commit possibly more than once. None: no commit that says anything can
 * have a result. Suspects that are probable enough are confirmed first.
 */
export function nextProbes(belief: Belief, probes: readonly CommitProbe[], count: number): number[] {
  const limit = Math.min(count, MAX_PROBES_AT_ONCE);
  const suspects = findSuspects(belief, probes);
  const confirming = suspects.chance >= CONFIRMED_FROM ? missingConfirmations(suspects, probes) : [];
  if (confirming.length > 0) return confirming.slice(0, limit);
  const usable = resultChances(belief.chances.length - 1, probes);
  const rates = failureChances(belief);
  // The probabilities of the hypotheses with each combination of results of the probes that are chosen already.
  let worlds: number[][] = [[...belief.chances]];
  const chosen: number[] = [];
  while (chosen.length < limit) {
    const index = mostInformative(informationOf(worlds, rates, usable));
    if (index === undefined) break;
    chosen.push(index);
    const failing = rates.map(({ broken, sound }, first) => (index >= first ? broken : sound));
    worlds = worlds.flatMap((world) => [
      world.map((mass, first) => mass * failing[first]!),
      world.map((mass, first) => mass * (1 - failing[first]!)),
    ]);
  }
  return chosen;
}

/** The chances that a commit fails, under one hypothesis. */
type FailureChances = { broken: number; sound: number };

/** Minimum expected information, in bits, of a result that is worth a probe. */
const NEGLIGIBLE_BITS = 1e-9;

const failureChances = ({ chances, flakeRates, outages }: Belief): FailureChances[] =>
  chances.map((_, first) => ({
    broken: chanceOfFailure(true, flakeRates[first]!, outages[first]!),
    sound: chanceOfFailure(false, flakeRates[first]!, outages[first]!),
  }));

/** Returns for each commit the expected information of one more probe about the culprit, in bits. */
export const expectedBits = (belief: Belief, probes: readonly CommitProbe[]): Float64Array =>
  informationOf([belief.chances], failureChances(belief), resultChances(belief.chances.length - 1, probes));

/** Returns for each commit the mutual information of its result with the hypothesis, times the chance that there is a result. */
function informationOf(
  worlds: readonly (readonly number[])[],
  rates: readonly FailureChances[],
  usable: readonly number[],
): Float64Array {
  const bits = new Float64Array(usable.length);
  for (const world of worlds) {
    const mass = world.reduce((sum, own) => sum + own, 0);
    if (mass === 0) continue;
    // The probability that the commit fails, and the entropy of its result if the culprit were known.
    let [failing, noise] = [0, 0];
    for (const [first, own] of world.entries()) {
      failing += own * rates[first]!.sound;
      noise += own * entropy(rates[first]!.sound);
    }
    for (const index of usable.keys()) {
      const [own, { broken, sound }] = [world[index]!, rates[index]!];
      failing += own * (broken - sound);
      noise += own * (entropy(broken) - entropy(sound));
      bits[index]! += mass * entropy(failing / mass) - noise;
    }
  }
  return bits.map((own, index) => own * usable[index]!);
}

/** Returns the commit whose result says most; undefined: none says anything. */
function mostInformative(bits: Float64Array): number | undefined {
  let best: number | undefined;
  for (const [index, own] of bits.entries())
    if (own > NEGLIGIBLE_BITS && (best === undefined || own > bits[best]!)) best = index;
  return best;
}

/** The entropy of a result in bits. */
function entropy(chance: number): number {
  if (chance <= 0 || chance >= 1) return 0;
  return -chance * Math.log2(chance) - (1 - chance) * Math.log2(1 - chance);
}

/**
 * Returns for the commits 0 to n the chance that a probe has a result. Commits without one are often next to each other: each that was
 * found halves the chance of its neighbours, and has less effect on those farther away.
 */
export function resultChances(commits: number, probes: readonly CommitProbe[]): number[] {
  const untestable = findUntestable(probes);
  const usable = new Set(
    probes.filter(({ result }) => result === "passed" || result === "failed").map(({ index }) => index),
  );
  const others = Map.groupBy(
    probes.filter(({ result }) => result === "other_failure"),
    ({ index }) => index,
  );
  const chances = Array<number>(commits).fill(HAS_RESULT);
  const spread = (indexes: readonly number[]): void => {
    let penalty = 0;
    for (const index of indexes) {
      if (usable.has(index)) penalty = 0;
      chances[index]! *= 1 - penalty;
      penalty = untestable.has(index) || others.has(index) ? NEIGHBOUR_HAS_NONE : penalty / 2;
    }
  };
  const indexes = [...chances.keys()];
  spread(indexes);
  spread(indexes.reverse());
  return chances.map((chance, index) => {
    if (untestable.has(index)) return 0;
    return (usable.has(index) ? 1 : chance) * (1 - NEIGHBOUR_HAS_NONE) ** (others.get(index)?.length ?? 0);
  });
}
