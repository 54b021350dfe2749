/**
 * The search for a culprit over ranges whose culprit is known, without a server or a repository, beside bisections that believe every
 * result. `bun test/simulation/culprit.ts [--ranges 300] [--first-seed 1] [--at-once 1] [--budget 60]` prints a table.
 */

import {
  believe,
  type CommitProbe,
  measureFlakeRate,
  weighCommits,
} from "../../src/rules/culprit.ts";
import { concludeCulprit, type CulpritVerdict } from "../../src/rules/culprit_suspects.ts";
import { nextProbes } from "../../src/rules/culprit_probes.ts";
import { createRange, FLAKE_RATES, provable, type SimulatedRange } from "./culprit_ranges.ts";

export type SearchOptions = { atOnce: number; budget: number; useOverlaps: boolean };

/** `undecided`: the search did not claim to know. */
export type Outcome = { end: "right" | "wrong" | "undecided"; probes: number; rounds: number };

export function search(range: SimulatedRange, options: SearchOptions): Outcome {
  const { commits, overlaps, earlier } = range;
  const weights = options.useOverlaps ? weighCommits(overlaps) : Array<number>(commits).fill(1);
  const known = { weights, flakeRate: measureFlakeRate(earlier.failures, earlier.runs) };
  const probes: CommitProbe[] = [
    { index: 0, result: "passed" },
    { index: commits, result: "failed" },
  ];
  for (let round = 0, count = 0; ; round++) {
    const belief = believe(known, probes);
    const left = options.budget - count;
    const verdict = concludeCulprit(belief, probes, left <= 0);
    const next = verdict ? [] : nextProbes(belief, probes, Math.min(options.atOnce, left));
    const conclusion = verdict ?? (next.length === 0 ? concludeCulprit(belief, probes, true) : undefined);
    if (conclusion) return { end: judge(conclusion, range, round - 1), probes: count, rounds: round };
    for (const index of next) probes.push({ index, round, result: range.probe(index, round) });
    count += next.length;
  }
}

function judge(verdict: CulpritVerdict, range: SimulatedRange, lastRound: number): Outcome["end"] {
  const { commits, culprit } = range;
  const group = provable(range);
  if (verdict.kind === "culprit") return verdict.index === culprit && group.length === 1 ? "right" : "wrong";
  if (verdict.kind === "environment") {
    if (verdict.reason === "outage" || range.isOutage(lastRound)) return range.isOutage(lastRound) ? "undecided" : "wrong";
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
  const option = (name: string, value: number) => Number(process.argv[process.argv.indexOf(name) + 1 || Infinity] ?? value);
  const [ranges, first] = [option("--ranges", 300), option("--first-seed", 1)];
  const options = { atOnce: option("--at-once", 1), budget: option("--budget", 60), useOverlaps: !process.argv.includes("--uniform") };
  const seeds = Array.from({ length: ranges }, (_, at) => first + at);
  const percent = (share: number) => `${(100 * share).toFixed(1)} %`.padStart(8);
  console.log("flake rate   right    wrong   probes  rounds   plain: right    wrong   probes   three runs: right    wrong   probes");
  for (const flakeRate of FLAKE_RATES) {
    const { search, plain, thrice } = scoreCulprits(flakeRate, seeds, options);
    const shown = ({ right, wrong, probes }: CulpritScore) => `${percent(right)} ${percent(wrong)} ${probes.toFixed(1).padStart(8)}`;
    console.log(
      `${percent(flakeRate)} ${shown(search)} ${search.rounds.toFixed(1).padStart(7)}       ${shown(plain)}           ${shown(thrice)}` +
        `   ratio ${(search.probes / thrice.probes).toFixed(2)}`,
    );
  }
}
