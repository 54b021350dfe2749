/** Derives suspects, their confirmation and the end of a search for a culprit from its results. */

import type { Belief, CommitProbe, ProbeResult } from "./culprit.ts";

/** The probability from which a commit is confirmed. */
export const CONFIRMED_FROM = 0.95;
/** The probability from which a confirmed commit is named. */
export const NAMED_FROM = 0.99;
/** Number of failures of the culprit, and of passes of its parent, that confirm it. */
const CONFIRMATIONS = 2;

const isUsable = ({ result }: CommitProbe): boolean => result === "passed" || result === "failed";

/** Probability that a testable commit is taken for an untestable one. */
const WRONGLY_UNTESTABLE = 0.02;

/**
 * Returns the commits that can have no result: they do not build, or they lie in a part of the range that fails in another way. That is no
 * outage if other commits had results in the meantime, and no flakiness if it happened more often to one of its commits than to those
 * outside of it.
 */
export function findUntestable(probes: readonly CommitProbe[]): Set<number> {
  const untestable = new Set(probes.filter(({ result }) => result === "no_build").map(({ index }) => index));
  const usable = probes.filter(isUsable).sort((a, b) => a.index - b.index);
  const others = probes.filter(({ result }) => result === "other_failure").sort((a, b) => a.index - b.index);
  const testable = new Set(usable.map(({ index }) => index));
  // The commits between two that have results are a part.
  const parts = Map.groupBy(
    others.filter(({ index }) => !testable.has(index)),
    ({ index }) => usable.findLastIndex((probe) => probe.index < index),
  );
  for (const part of parts.values()) {
    const rounds = part.map(({ round = -1 }) => round);
    const [from, to] = [Math.min(...rounds), Math.max(...rounds)];
    if (from === to || !usable.some(({ round = -1 }) => round >= from && round <= to)) continue;
    const outside = others.length - part.length;
    const rate = (outside + 0.5) / (usable.length + outside + 2);
    const most = Math.max(
      ...Map.groupBy(part, ({ index }) => index)
        .values()
        .map(({ length }) => length),
    );
    if (most < Math.max(2, Math.log(WRONGLY_UNTESTABLE) / Math.log(rate))) continue;
    for (let index = part[0]!.index; index <= part.at(-1)!.index; index++) untestable.add(index);
  }
  return untestable;
}

/** Hypotheses that no probe can distinguish, because the commits between them have no result. */
export type Suspects = {
  /** The hypotheses `first` to `last`. */
  first: number;
  last: number;
  chance: number;
  /** The commit that fails if it is one of these, and the one before them that passes; undefined: there is none with a result. */
  failing: number | undefined;
  passing: number | undefined;
};

/** Returns the most probable suspects. */
export function findSuspects({ chances }: Belief, probes: readonly CommitProbe[]): Suspects {
  const untestable = findUntestable(probes);
  const end = chances.length - 1;
  let best: Suspects | undefined;
  let [first, chance, passing]: [number, number, number | undefined] = [0, 0, undefined];
  for (const [index, own] of chances.entries()) {
    chance += own;
    if (untestable.has(index)) continue;
    const failing = index === end ? undefined : index;
    if (!best || chance > best.chance) best = { first, last: index, chance, failing, passing };
    [first, chance, passing] = [index + 1, 0, index];
  }
  return best!;
}

/** Returns the commits that have to be probed once more to confirm the suspects: one entry for each missing probe. */
export function missingConfirmations({ failing, passing }: Suspects, probes: readonly CommitProbe[]): number[] {
  const missing = (index: number | undefined, result: ProbeResult): number[] => {
    if (index === undefined) return [];
    const found = probes.filter(
      (probe) => probe.index === index && probe.result === result && probe.round !== undefined,
    );
    return Array<number>(Math.max(0, CONFIRMATIONS - found.length)).fill(index);
  };
  // The pass comes last: it shows that the failures before it were no outage.
  return [...missing(failing, "failed"), ...missing(passing, "passed")];
}

export type CulpritVerdict =
  | { kind: "culprit"; index: number; chance: number }
  /** The code of the range is not the cause: the good commit fails too, the bad commit passes, or all commits fail since some round. */
  | { kind: "environment"; reason: "good_fails" | "bad_passes" | "outage"; chance: number }
  /** `candidates`: the commits that may be the culprit. `no_result`: no probe can distinguish them. */
  | { kind: "undecided"; reason: "no_result" | "budget"; candidates: number[]; chance: number };

/** If none of this number of probes had a result, the command or the machine is the cause, and further probes would not have one either. */
const MAX_WITHOUT_RESULT = 10;

/** Concludes the search if the probes suffice, or for the reason `end` why there are no more; otherwise returns undefined. */
export function concludeCulprit(
  belief: Belief,
  probes: readonly CommitProbe[],
  end?: "no_result" | "budget",
): CulpritVerdict | undefined {
  const suspects = findSuspects(belief, probes);
  const { first, last, chance } = suspects;
  const none = belief.chances.length - 1;
  if (chance >= NAMED_FROM && missingConfirmations(suspects, probes).length === 0) {
    if (last === 0) return { kind: "environment", reason: "good_fails", chance };
    if (first === none) return { kind: "environment", reason: "bad_passes", chance };
    if (first === last) return { kind: "culprit", index: first, chance };
    const candidates = [...belief.chances.keys()].slice(Math.max(1, first), Math.min(last + 1, none));
    return { kind: "undecided", reason: "no_result", candidates, chance };
  }
  const isHopeless = probes.length >= MAX_WITHOUT_RESULT && !probes.some(isUsable);
  const reason = isHopeless ? "no_result" : end;
  if (reason === undefined) return undefined;
  const outage = belief.chances.reduce((sum, own, index) => sum + own * belief.outages[index]!, 0);
  if (outage >= CONFIRMED_FROM) return { kind: "environment", reason: "outage", chance: outage };
  return { kind: "undecided", reason, ...findLikely(belief) };
}

/** Returns the fewest commits whose probabilities sum to 0.95, or all. */
export function findLikely({ chances }: Belief): { candidates: number[]; chance: number } {
  const commits = [...chances.keys()].slice(1, -1).sort((a, b) => chances[b]! - chances[a]!);
  let chance = 0;
  const candidates: number[] = [];
  for (const index of commits) {
    if (chance >= CONFIRMED_FROM) break;
    chance += chances[index]!;
    candidates.push(index);
  }
  return { candidates: candidates.sort((a, b) => a - b), chance };
}
