/** What a search for a culprit probes next, and how it ends. */

import { describe, expect, test } from "bun:test";
import {
  assumeFlakeRate,
  believe,
  type CommitProbe,
  type CulpritRange,
  type ProbeResult,
} from "../../src/rules/culprit.ts";
import { MAX_PROBES_AT_ONCE, nextProbes, nextStep, resultChances } from "../../src/rules/culprit_probes.ts";
import {
  concludeCulprit,
  findSuspects,
  findUntestable,
  missingConfirmations,
} from "../../src/rules/culprit_suspects.ts";
import { isFull } from "../depth.ts";

const rangeOf = (commits: number, flakeRate = 0): CulpritRange => ({
  weights: Array<number>(commits).fill(1),
  flakeRate: assumeFlakeRate(flakeRate),
});

/** Searches with a fixed result for each commit. */
function search(commits: number, resultOf: (index: number) => ProbeResult, { atOnce = 1, budget = 60 } = {}) {
  const probes: CommitProbe[] = [];
  for (let round = 0; ; round++) {
    const step = nextStep(rangeOf(commits), probes, { atOnce, left: budget - probes.length });
    if (step.verdict) return { verdict: step.verdict, probes, rounds: round };
    expect(step.next.length).toBeLessThanOrEqual(atOnce);
    for (const index of step.next) probes.push({ index, round, result: resultOf(index) });
  }
}

const breaksAt = (culprit: number) => (index: number) => (index >= culprit ? "failed" : "passed");

describe("nextProbes", () => {
  test("begins in the middle, and divides the range evenly between runners", () => {
    const belief = believe(rangeOf(63), []);
    expect(nextProbes(belief, [], 1)[0]!).toBeWithin(28, 35);
    const three = nextProbes(belief, [], 3).sort((a, b) => a - b);
    expect(three[0]!).toBeWithin(8, 24);
    expect(three[1]!).toBeWithin(24, 40);
    expect(three[2]!).toBeWithin(40, 56);
    expect(nextProbes(belief, [], 100).length).toBe(MAX_PROBES_AT_ONCE);
  });

  test("begins at the commit that changes what the test uses", () => {
    const range = { weights: [1, 1, 1, 1, 1, 1, 1, 100, 1, 1, 1], flakeRate: assumeFlakeRate(0) };
    expect([7, 8]).toContain(nextProbes(believe(range, []), [], 1)[0]!);
  });

  test("does not probe a commit that does not build, and avoids its neighbours", () => {
    const probes: CommitProbe[] = [{ index: 4, result: "no_build", round: 0 }];
    const chances = resultChances(9, probes);
    expect(chances[4]).toBe(0);
    expect(chances[3]!).toBeLessThan(chances[2]!);
    expect(chances[5]).toBe(chances[3]!);
    expect(nextProbes(believe(rangeOf(8), probes), probes, 1)).not.toContain(4);
  });
});

describe("the end of a search", () => {
  test("names every culprit of a range, after two failures of it and two passes of its parent", () => {
    for (let culprit = 1; culprit <= 40; culprit++) {
      const { verdict, probes } = search(40, breaksAt(culprit));
      expect(verdict).toMatchObject({ kind: "culprit", index: culprit });
      const count = (index: number) => probes.filter((probe) => probe.index === index).length;
      expect(count(culprit)).toBeWithin(2, 4);
      expect(count(culprit - 1)).toBeWithin(2, 4);
      expect(probes.length).toBeLessThanOrEqual(12);
    }
  });

  test("confirms the only commit of a range", () => {
    const { verdict, probes } = search(1, breaksAt(1));
    expect(verdict).toMatchObject({ kind: "culprit", index: 1 });
    expect(probes.length).toBe(4);
  });

  test("takes fewer rounds with more runners", () => {
    const [one, four] = [1, 4].map((atOnce) => search(200, breaksAt(77), { atOnce }));
    expect(four!.verdict).toMatchObject({ kind: "culprit", index: 77 });
    expect(four!.rounds).toBeLessThan(one!.rounds / 1.7);
  });

  test("blames the environment if the good commit fails too, or the bad one passes", () => {
    expect(search(20, breaksAt(0)).verdict).toMatchObject({ kind: "environment", reason: "good_fails" });
    expect(search(20, breaksAt(21)).verdict).toMatchObject({ kind: "environment", reason: "bad_passes" });
  });

  test("blames the environment if everything fails since some probe", () => {
    let count = 0;
    const { verdict } = search(20, (index) => (++count > 4 ? "other_failure" : breaksAt(9)(index)), { budget: 24 });
    expect(verdict).toMatchObject({ kind: "environment", reason: "outage" });
  });

  test("names no commit if commits before it do not build, and says which are left", () => {
    const resultOf = (index: number) => ([11, 12].includes(index) ? "no_build" : breaksAt(13)(index));
    expect(search(20, resultOf).verdict).toMatchObject({
      ...{ kind: "undecided", reason: "no_result", candidates: [11, 12, 13] },
    });
    const none = search(6, () => "no_build");
    expect(none.verdict).toMatchObject({ kind: "undecided", candidates: [1, 2, 3, 4, 5, 6] });
    expect(none.probes.length).toBe(7);
    expect(none.verdict).toMatchObject({ reason: "no_result" });
  });

  test("stops early if no probe has a result", () => {
    const { verdict, probes } = search(500, () => "no_build");
    expect(verdict).toMatchObject({ kind: "undecided", reason: "no_result" });
    expect(probes.length).toBe(10);
  });

  test("searches long ranges", () => {
    const { verdict, probes } = search(isFull ? 100_000 : 10_000, breaksAt(4_321), { atOnce: 4 });
    expect(verdict).toMatchObject({ kind: "culprit", index: 4_321 });
    expect(probes.length).toBeLessThan(60);
  });

  test("names no commit if commits before it fail in another way", () => {
    const resultOf = (index: number) => (index >= 6 && index < 9 ? "other_failure" : breaksAt(9)(index));
    expect(search(20, resultOf).verdict).toMatchObject({
      ...{ kind: "undecided", reason: "no_result", candidates: [6, 7, 8, 9] },
    });
  });

  test("never spends more than the budget, and says which commits are left", () => {
    const { verdict, probes } = search(200, breaksAt(77), { budget: 5, atOnce: 2 });
    expect(probes.length).toBe(5);
    expect(verdict).toMatchObject({ kind: "undecided", reason: "budget" });
    expect(verdict.kind === "undecided" && verdict.candidates).toContain(77);
    expect(verdict.kind === "undecided" && verdict.candidates.length).toBeLessThan(30);
  });

  test("results from before the search do not confirm a commit", () => {
    const probes: CommitProbe[] = [1, 1, 2, 2].map((index) => ({ index, result: index === 2 ? "failed" : "passed" }));
    const suspects = findSuspects(believe(rangeOf(2), probes), probes);
    expect(suspects).toMatchObject({ first: 2, last: 2 });
    expect(missingConfirmations(suspects, probes)).toEqual([2, 2, 1, 1]);
    expect(concludeCulprit(believe(rangeOf(2), probes), probes)).toBeUndefined();
  });
});

describe("findUntestable", () => {
  const other = (index: number, round: number): CommitProbe => ({ index, round, result: "other_failure" });

  test("does not blame a commit for an outage", () => {
    expect([...findUntestable([other(3, 1), other(3, 2), other(5, 2)])]).toEqual([]);
    expect([...findUntestable([other(3, 1), { index: 0, round: 2, result: "passed" }])]).toEqual([]);
  });

  test("does not blame a commit for a test that fails in other ways everywhere", () => {
    const probes = [other(3, 1), other(3, 3), ...[0, 8, 9].map((index) => other(index, 2))];
    const passed = [0, 1, 8, 9].map((index): CommitProbe => ({ index, round: 2, result: "passed" }));
    expect([...findUntestable([...probes, ...passed])]).toEqual([]);
  });

  test("finds the part of a range that fails in another way while other commits do not", () => {
    const passed = (round: number): CommitProbe => ({ index: 0, round, result: "passed" });
    const probes = [other(3, 1), passed(2), other(6, 3), passed(4), other(6, 5), passed(6), passed(7)];
    expect([...findUntestable(probes.slice(0, 4))]).toEqual([]);
    expect([...findUntestable(probes)]).toEqual([3, 4, 5, 6]);
    expect([...findUntestable([...probes, { index: 6, round: 8, result: "failed" }])]).toEqual([]);
  });
});
