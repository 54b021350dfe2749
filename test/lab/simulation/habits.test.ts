/** Each team of the simulation has what distinguishes it, and is the same for a seed. */

import { describe, expect, test } from "bun:test";
import type { Build, Story, Upload } from "./builds.ts";
import { HABITS, type HabitName } from "./habits.ts";
import type { TestCase } from "./team.ts";

const END = Date.UTC(2026, 0, 30, 18);
const NAMES = Object.keys(HABITS) as HabitName[];

const createTeam = (habit: HabitName, seed: number) => HABITS[habit]({ seed, retries: false, keys: "build", end: END });

const stories = new Map<string, Story>();
function storyOf(habit: HabitName, seed: number): Story {
  const key = `${habit} ${seed}`;
  if (!stories.has(key)) stories.set(key, createTeam(habit, seed));
  return stories.get(key)!;
}
/** A story of "large" takes seconds. */
const seedsOf = (habit: HabitName): number[] => (habit === "large" ? [1] : [1, 2, 3]);

const shareOf = <T>(all: readonly T[], has: (one: T) => boolean) => all.filter(has).length / all.length;
const isBetween = (value: number, from: number, to: number) => value >= from && value <= to;

/** Several areas fail for one reason. */
const areasOf = (cases: readonly TestCase[]) => new Set(cases.map(({ area }) => area)).size;

function hasHardBreakages({ builds, flaky, regressions, team }: Story): boolean {
  const shaky = new Set(flaky.map(({ testCase }) => testCase));
  const formerly = new Set(regressions.flatMap(({ cases }) => cases));
  const broken = builds.flatMap(({ own }) => own.map(({ cases }) => cases));
  const sizeOf = ({ task }: TestCase) => team.cases.filter((one) => one.task === task && !one.added).length;
  return [
    (cases: TestCase[]) => cases.some((one) => shaky.has(one)),
    (cases: TestCase[]) => cases.some((one) => formerly.has(one)),
    (cases: TestCase[]) => cases.some(({ added }) => added?.at === Infinity),
    (cases: TestCase[]) => isBetween(cases.length, 12, 40) && areasOf(cases) > 3,
    (cases: TestCase[]) => cases.length >= sizeOf(cases[0]!),
  ].every((isOfKind) => broken.some(isOfKind));
}

/** The share of a run's tests that an ill machine lets fail. */
const failingIn = ({ cases, failed }: Upload) =>
  shareOf(cases, (testCase) => failed.get(testCase)?.id.startsWith("forge-4 is ill") ?? false);

function hasIllMachine({ builds, uploads }: Story, { named, failing }: { named: boolean; failing: number[] }): boolean {
  const ill = uploads.filter((upload) => failingIn(upload) > 0.02);
  const struck = new Set(ill.map(({ build }) => build));
  const runs = uploads.filter(({ build }) => struck.has(build));
  const meanOf = ill.reduce((sum, upload) => sum + failingIn(upload), 0) / ill.length;
  return (
    builds.every(({ hostOf }) => (hostOf !== null) === named) &&
    isBetween(struck.size / builds.length, 0.12, 0.4) &&
    // One in five machines.
    isBetween(ill.length / runs.length, 0.15, 0.4) &&
    isBetween(meanOf, failing[0]!, failing[1]!)
  );
}

function hasSecondCi({ builds, uploads }: Story): boolean {
  const commits = [...Map.groupBy(builds, ({ commit }) => commit).values()];
  const isSecond = ({ environment }: Build) => environment === "second-ci";
  const told = uploads.flatMap(({ build, failed }) => [...failed.values()].map(({ id }) => ({ build, id })));
  const drifted = told.filter(({ id }) => id.startsWith("second CI "));
  return (
    shareOf(commits, (same) => same.some(isSecond) && !same.every(isSecond)) > 0.6 &&
    commits.some((same) => same.filter((one) => !isSecond(one)).length > 2) &&
    drifted.length > 20 &&
    drifted.every(({ build }) => isSecond(build))
  );
}

function hasHourOfOutage({ builds, uploads }: Story): boolean {
  const isStruck = ({ failed }: Upload) => [...failed.values()].some(({ id }) => id === "an hour's outage");
  const struck = new Set(uploads.filter(isStruck).map(({ build }) => build));
  const starts = [...struck].map(({ startsAt }) => startsAt);
  const [first, last] = [Math.min(...starts), Math.max(...starts)];
  return (
    struck.size > 1 &&
    last - first < 3_600_000 &&
    // Nothing else is built between them.
    builds.filter(({ startsAt }) => startsAt >= first && startsAt <= last).every((build) => struck.has(build))
  );
}

function hasTestSelection({ builds, uploads }: Story): boolean {
  const sizes = Map.groupBy(uploads, ({ build }) => build);
  const sizeOf = (build: Build) => sizes.get(build)!.reduce((sum, { cases }) => sum + cases.length, 0);
  const mainSize = Math.min(...builds.filter(({ isDefault }) => isDefault).map(sizeOf));
  const others = builds.filter(({ isDefault }) => !isDefault);
  return shareOf(others, (build) => sizeOf(build) < mainSize / 2) > 0.8;
}

/** Some pull requests are based on others, and fail for what these break. */
function hasStacks({ builds, uploads }: Story): boolean {
  const inherits = uploads.some(
    ({ build: { parent, own }, failed }) =>
      parent?.breaks && own.length === 0 && [...failed.values()].includes(parent.breaks.cause),
  );
  return shareOf(builds, ({ parent }) => parent !== null) > 0.1 && inherits;
}

/** Main fails for a change until it is reverted, and the change fails again in a pull request of its own. */
function hasRelands({ builds, regressions, uploads }: Story): boolean {
  const reverted = regressions.filter(({ from, until, cause }) => {
    const isBroken = ({ build, failed }: Upload) => build.isDefault && [...failed.values()].includes(cause);
    const broken = new Set(uploads.filter(isBroken).map(({ build }) => build.version));
    return broken.has(from) && broken.has(until - 1) && !broken.has(until);
  });
  const causes = new Set(reverted.map(({ cause }) => cause));
  const relands = builds.filter(({ branch }) => branch.startsWith("user/reland-"));
  return (
    builds.some(({ branch }) => branch.startsWith("user/revert-")) &&
    relands.some(({ own }) => own.some(({ cause }) => causes.has(cause))) &&
    relands.some(({ own }) => own.length === 0)
  );
}

const isUsual = ({ flaky, regressions, builds }: Story) =>
  flaky.length === 14 && regressions.length === 2 && builds.every(({ trouble, isLost }) => !trouble && !isLost);

const traits: Record<HabitName, (story: Story) => boolean> = {
  usual: isUsual,
  gate: isUsual,
  monorepo: ({ builds, team }) =>
    builds.some(({ branch }) => branch.startsWith("gh-readonly-queue/")) &&
    builds.filter(({ tasks }) => tasks.length < team.tasks.length).length > builds.length / 2,
  nightly: ({ builds }) => builds.some(({ commit }, index) => builds[index + 1]?.commit === commit),
  names: ({ team }) => team.cases.some(({ shownAs }) => shownAs) && team.cases.some(({ away }) => away),
  releases: ({ builds }) =>
    builds.some(({ branch, isDefault }) => branch === "develop" && isDefault) && builds.some(({ isOld }) => isOld),
  breakers: hasHardBreakages,
  machines: (story) => hasIllMachine(story, { named: true, failing: [0.04, 0.2] }),
  nameless: (story) => hasIllMachine(story, { named: false, failing: [0.25, 0.35] }),
  large: ({ team, flaky }) =>
    isBetween(team.cases.length, 20_000, 20_200) &&
    flaky.length === 400 &&
    flaky.every(({ rate }) => isBetween(rate, 0.001, 0.02)),
  devices: ({ uploads, team }) => {
    const most = new Map(team.tasks.map((task) => [task, team.cases.filter((one) => one.task === task).length]));
    const crashed = uploads.some(({ failed }) => [...failed.values()].some(({ id }) => id === "crash"));
    const bad = shareOf(uploads, ({ failed }) => [...failed.values()].some(({ id }) => id === "bad device"));
    const cut = shareOf(uploads, ({ task, cases }) => cases.length < 0.85 * most.get(task)!);
    return crashed && isBetween(bad, 0.1, 0.3) && isBetween(cut, 0.08, 0.25);
  },
  periodic: (story) =>
    hasSecondCi(story) && hasHourOfOutage(story) && isBetween(story.flaky.length / story.team.cases.length, 0.08, 0.14),
  young: ({ team, builds }) => isBetween(team.cases.length, 10, 60) && builds.length < 150,
  trunk: (story) => hasTestSelection(story) && hasStacks(story) && hasRelands(story),
};

describe("the story of a team with a habit", () => {
  test.each(NAMES)("%s is the same for a seed, and over at its end", (habit) => {
    const times = (story: Story) => story.uploads.map(({ at, failed }) => [at, failed.size]);
    expect(times(createTeam(habit, 1))).toEqual(times(storyOf(habit, 1)));
    for (const seed of [...seedsOf(habit), ...(habit === "large" ? [] : [3001])]) {
      const { uploads, builds } = storyOf(habit, seed);
      // A build may take half an hour after its begin.
      expect(uploads.at(-1)!.at).toBeLessThan(END + 30 * 60_000);
      const ended = uploads.filter(({ isLastOfBuild }) => isLastOfBuild).map(({ build }) => build.number);
      expect(ended.sort()).toEqual(builds.map(({ number }) => number));
      expect(uploads.every(({ cases }) => cases.length > 0)).toBeTrue();
    }
  });

  test.each(NAMES)("%s has what distinguishes it", (habit) => {
    for (const seed of seedsOf(habit)) expect(traits[habit](storyOf(habit, seed)), `seed ${seed}`).toBeTrue();
  });

  test("no other team has the traits of trunk, breakers, periodic and devices", () => {
    for (const habit of NAMES.filter((name) => name !== "large")) {
      const story = storyOf(habit, 1);
      expect([habit, hasTestSelection(story), hasStacks(story), hasRelands(story)]).toEqual([
        habit,
        ...(habit === "trunk" ? [true, true, true] : [false, false, false]),
      ]);
      expect(hasHardBreakages(story)).toBe(habit === "breakers");
      expect(hasSecondCi(story)).toBe(habit === "periodic");
      expect(hasHourOfOutage(story)).toBe(habit === "periodic");
      expect(traits.devices(story)).toBe(habit === "devices");
    }
  });
});
