/**
 * The search for a culprit over ranges whose culprit is known, without a server or a repository, beside bisections that believe every
 * result. `bun test/lab/simulation/culprit.ts [--ranges 300] [--first-seed 1] [--at-once 1] [--budget 60] [--uniform]
 * [--proven-right 0.5]` prints the shares of right and wrong ends, and the probes.
 */

import { type CommitProbe, measureFlakeRate, weighCommits } from "../../../src/rules/culprit.ts";
import type { CulpritVerdict } from "../../../src/rules/culprit_suspects.ts";
import { nextStep } from "../../../src/rules/culprit_probes.ts";
import { createRange, FLAKE_RATES, provable, type SimulatedRange } from "./culprit_ranges.ts";

export const DEFAULT_BUDGET = 60;

export type SearchOptions = {
  atOnce: number;
  budget: number;
  useOverlaps: boolean;
  /** How often the commit that another search has proven is the culprit of this one; undefined: there is no other search. */
  provenRight?: number | undefined;
};

/** `undecided`: the search did not claim to know. */
export type Outcome = { end: "right" | "wrong" | "undecided"; probes: number; rounds: number };

export function search(range: SimulatedRange, options: SearchOptions): Outcome {
  const { commits, overlaps, earlier } = range;
  const { provenRight, useOverlaps } = options;
  const weights = weighCommits(
    overlaps.map((isOverlap) => (isOverlap && useOverlaps ? "test" : "none")),
    provenRight === undefined ? undefined : new Set([range.other(provenRight) - 1]),
  );
  const known = { weights, flakeRate: measureFlakeRate(earlier.failures, earlier.runs) };
  const probes: CommitProbe[] = [
    { index: 0, result: "passed" },
    { index: commits, result: "failed" },
  ];
  for (let round = 0, count = 0; ; round++) {
    const step = nextStep(known, probes, { atOnce: options.atOnce, left: options.budget - count });
    if (step.verdict) return { end: judge(step.verdict, range, round - 1), probes: count, rounds: round };
    for (const index of step.next) probes.push({ index, round, result: range.probe(index, round) });
    count += step.next.length;
  }
}

function judge(verdict: CulpritVerdict, range: SimulatedRange, lastRound: number): Outcome["end"] {
  const { commits, culprit } = range;
  const group = provable(range);
  if (verdict.kind === "culprit") return verdict.index === culprit && group.length === 1 ? "right" : "wrong";
  if (verdict.kind === "environment") {
    if (verdict.reason === "outage" || range.isOutage(lastRound))
      return range.isOutage(lastRound) ? "undecided" : "wrong";
    return culprit === (verdict.reason === "good_fails" ? 0 : commits + 1) ? "right" : "wrong";
  }
  if (verdict.reason === "budget") return "undecided";
  if (verdict.candidates.join() === group.filter((index) => index >= 1 && index <= commits).join()) return "right";
  return verdict.candidates.includes(culprit) ? "undecided" : "wrong";
}

/** A bisection that believes its results: a commit is bad if it fails in each of `runs` runs. */
export function bisect(range: SimulatedRange, runs: number): Outcome {
  const { commits, culprit } = range;
  let [good, bad, probes] = [0, commits, 0];
  const unbuilt = new Set<number>();
  for (;;) {
    const middle = (good + bad) / 2;
    const [index] = Array.from({ length: bad - good - 1 }, (_, at) => good + 1 + at)
      .filter((index) => !unbuilt.has(index))
      .sort((a, b) => Math.abs(a - middle) - Math.abs(b - middle));
    if (index === undefined) break;
    const results = Array.from({ length: range.doesBuild[index] ? runs : 1 }, () => range.probe(index, probes++));
    if (results[0] === "no_build") unbuilt.add(index);
    else if (results.includes("passed")) good = index;
    else bad = index;
  }
  return { end: good < culprit && culprit <= bad ? "right" : "wrong", probes, rounds: probes };
}

export type CulpritScore = { right: number; wrong: number; probes: number; rounds: number };

export function scoreOutcomes(outcomes: readonly Outcome[]): CulpritScore {
  const share = (end: Outcome["end"]) => outcomes.filter((outcome) => outcome.end === end).length / outcomes.length;
  const mean = (of: "probes" | "rounds") => outcomes.reduce((sum, outcome) => sum + outcome[of], 0) / outcomes.length;
  return { right: share("right"), wrong: share("wrong"), probes: mean("probes"), rounds: mean("rounds") };
}

/** The scores of the search and of both bisections over the same ranges. */
export function scoreCulprits(flakeRate: number, seeds: readonly number[], options: SearchOptions) {
  const play = (search: (range: SimulatedRange) => Outcome) =>
    scoreOutcomes(seeds.map((seed) => search(createRange(seed, flakeRate))));
  return {
    search: play((range) => search(range, options)),
    plain: play((range) => bisect(range, 1)),
    thrice: play((range) => bisect(range, 3)),
  };
}

if (import.meta.main) {
  const option = (name: string, value: number) =>
    Number(process.argv[process.argv.indexOf(name) + 1 || Infinity] ?? value);
  const [ranges, first] = [option("--ranges", 300), option("--first-seed", 1)];
  const useOverlaps = !process.argv.includes("--uniform");
  const provenRight = process.argv.includes("--proven-right") ? option("--proven-right", 0.5) : undefined;
  const options = {
    provenRight,
    atOnce: option("--at-once", 1),
    budget: option("--budget", DEFAULT_BUDGET),
    useOverlaps,
  };
  const seeds = Array.from({ length: ranges }, (_, at) => first + at);
  const percent = (share: number) => `${(100 * share).toFixed(1)} %`.padStart(8);
  const shown = ({ right, wrong, probes, rounds }: CulpritScore) =>
    `${percent(right)} right ${percent(wrong)} wrong ${probes.toFixed(1).padStart(6)} probes ${rounds.toFixed(1).padStart(5)} rounds`;
  for (const flakeRate of FLAKE_RATES) {
    const { search, plain, thrice } = scoreCulprits(flakeRate, seeds, options);
    console.log(`flake rate ${flakeRate}, ${ranges} ranges`);
    console.log(
      `  search                       ${shown(search)}, ${(search.probes / thrice.probes).toFixed(2)} of three runs`,
    );
    console.log(`  bisection                    ${shown(plain)}`);
    console.log(`  bisection, three runs each   ${shown(thrice)}`);
  }
}
