/** The bench knows all teams and their goals, records what distinguishes them, and measures distances correctly. */

import { describe, expect, test } from "bun:test";
import { HABITS } from "../simulation/habits.ts";
import { CONSTANTS, type Constants } from "../../../src/rules/odds_facts.ts";
import { compare, countHeld, GOALS, meanDistance } from "./goals.ts";
import { play } from "./judge.ts";
import { NEUTRAL } from "./leave_one_out.ts";
import { record } from "./record.ts";
import { type Score, score } from "./score.ts";
import { parseArguments, TEAMS } from "./teams.ts";

const recordTeam = (team: string, seed = 1) => record(team, TEAMS[team]!(seed));

describe("teams", () => {
  test("are the habits of the simulation, each with goals", () => {
    const habits = Object.keys(HABITS).filter((name) => name !== "gate");
    expect(Object.keys(TEAMS).toSorted()).toEqual([...habits, "usual, no retries"].toSorted());
    expect(Object.keys(GOALS).toSorted()).toEqual(Object.keys(TEAMS).toSorted());
  });

  test("and seeds are read from arguments in any order", () => {
    const all = Object.keys(TEAMS);
    expect(parseArguments([])).toEqual({ teams: all, seeds: [11, 23] });
    expect(parseArguments(["usual, no retries;trunk", "7"])).toEqual({
      teams: ["usual, no retries", "trunk"],
      seeds: [7],
    });
    expect(parseArguments(["31", "names", "32"])).toEqual({ teams: ["names"], seeds: [31, 32] });
    expect(() => parseArguments(["truck"])).toThrow('Cannot find team "truck"');
  });
});

describe("the record", () => {
  test("of trunk has the parents of stacked pull requests, and runs of a few tests", () => {
    const { builds, tests } = recordTeam("trunk");
    const numbers = new Set(builds.map(({ pullRequest }) => pullRequest));
    const stacked = builds.filter(({ parent }) => parent !== null);
    expect(stacked.length).toBeGreaterThan(20);
    for (const { parent, pullRequest, line } of stacked) {
      expect(numbers.has(parent)).toBeTrue();
      expect(parent).not.toBe(pullRequest);
      expect(line).toBe("main");
    }
    const sizes = (isMain: boolean) =>
      builds
        .filter(({ pullRequest }) => (pullRequest === null) === isMain)
        .map(({ runs }) => runs.reduce((sum, run) => sum + run.tests.size, 0));
    expect(Math.min(...sizes(true))).toBeGreaterThan(0.9 * tests);
    expect(Math.min(...sizes(false))).toBeLessThan(0.1 * tests);
  });

  test("of periodic names the CI system of each build", () => {
    const { builds } = recordTeam("periodic");
    expect(new Set(builds.map(({ environment }) => environment))).toEqual(new Set([null, "second-ci"]));
  });
});

describe("goals", () => {
  const share = (part: number, whole = 100) => ({ part, whole });
  const perfect: Score = {
    ...{ flakyPrecision: share(100), flakyRecall: share(100), sound: share(0, 14) },
    ...{ blamePrecision: share(100), blameRecall: share(100), missed: share(0), blamed: share(0) },
    ...{ guiltyPassed: share(0), othersPassed: share(100), loss: 0, tenths: [] },
  };

  test("are held by a perfect score, and at the limit", () => {
    for (const goals of Object.values(GOALS)) {
      const outcomes = compare(perfect, goals);
      expect([countHeld(outcomes), meanDistance(outcomes)]).toEqual([7, 0]);
    }
    const atLimit = { ...perfect, flakyPrecision: share(95), missed: share(4), blamed: share(4) };
    expect(countHeld(compare(atLimit, GOALS["trunk"]!))).toBe(7);
  });

  test("are missed by the difference, on the wrong side only", () => {
    const outcomes = compare(
      { ...perfect, blameRecall: share(75), blamed: share(14), sound: share(7, 14) },
      GOALS["trunk"]!,
    );
    const distances = Object.fromEntries(outcomes.map(({ goal, distance }) => [goal, Number(distance.toFixed(3))]));
    expect(distances).toEqual({
      ...{ flakyPrecision: 0, flakyRecall: 0, sound: 0.5 },
      ...{ blamePrecision: 0, blameRecall: 0.2, missed: 0, blamed: 0.1 },
    });
    expect(countHeld(outcomes)).toBe(4);
    expect(meanDistance(outcomes)).toBeCloseTo(0.8 / 7);
  });

  test("are none where a team has nothing to count", () => {
    const { builds, ...recorded } = recordTeam("nightly");
    const result = score({ builds, ...recorded }, play({ builds, ...recorded }));
    expect(compare(result, GOALS["nightly"]!).map(({ goal }) => goal)).toEqual([
      "flakyPrecision",
      "flakyRecall",
      "sound",
    ]);
    expect(result.loss).toBe(0);
  });
});

test("each constant has another value that is neutral, with which all shares remain numbers", () => {
  const recorded = [recordTeam("monorepo"), recordTeam("periodic")].map(({ builds, ...rest }) => {
    return { ...rest, builds: builds.slice(0, 120) };
  });
  for (const name of Object.keys(CONSTANTS) as (keyof Constants)[]) {
    expect(NEUTRAL[name], name).not.toBe(CONSTANTS[name]);
    const constants = { ...CONSTANTS, [name]: NEUTRAL[name] };
    const judgements = recorded.flatMap((one) => play(one, constants).flatMap((build) => build.judgements));
    const sums = judgements.map(({ shares }) => Object.values(shares).reduce((sum, share) => sum + share, 0));
    expect(sums.length).toBeGreaterThan(100);
    expect(
      sums.filter((sum) => !(Math.abs(sum - 1) < 0.001)),
      name,
    ).toEqual([]);
  }
});
