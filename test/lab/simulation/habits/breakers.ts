/** The usual builds, whose changes break what is hard to judge: flaky, formerly broken, new and many tests, the same test again and again, or the build of a task. */

import type { Breakage, Regression, Story } from "../builds.ts";
import { createRandom } from "../../../random.ts";
import { type Alter, createStory, LOADS, type StoryOptions } from "../story.ts";
import type { Task, TestCase } from "../team.ts";

/** Tests that fail because a change breaks an interface. */
const MANY = [12, 40] as const;

export const createBreakers = (options: StoryOptions): Story =>
  createStory({ ...LOADS.normal, breaking: 0.35 }, options, alter);

const alter: Alter = ({ seed, team, flaky, taken, pullRequests, regressionsAt, versions }) => {
  const random = createRandom(seed, "breakers");
  const formerly = new Set<TestCase>();
  const guards = new Map<Task, Breakage>();
  for (let version = 0; version < versions; version++)
    for (const { cases, until } of regressionsAt(version) as Regression[])
      if (until < 0.7 * versions) for (const testCase of cases) formerly.add(testCase);
  for (const pullRequest of pullRequests) {
    const { breaks } = pullRequest;
    if (!breaks) continue;
    const { task, area } = breaks.cases[0]!;
    const own = team.cases.filter((one) => one.task === task && !taken.has(one) && !one.added && !one.removed);
    const kind = random.pick(["flaky", "formerly", "new", "many", "build", "guard", "usual", "usual"] as const);
    if (kind === "flaky") {
      const found = flaky.filter(({ testCase }) => testCase.task === task);
      if (found.length > 0) breaks.cases = [random.pick(found).testCase];
    }
    if (kind === "formerly") {
      const found = [...formerly].filter((one) => one.task === task);
      if (found.length > 0) breaks.cases = random.sample(found, random.integer(1, 3));
    }
    if (kind === "new")
      breaks.cases = Array.from({ length: random.integer(1, 3) }, () => {
        const testCase = { ...team.create(task, area), added: { at: Infinity, pullRequest: pullRequest.number } };
        team.cases.push(testCase);
        return testCase;
      });
    // Such as a test that a generated file is up to date: each change that forgets it breaks the same test in the same words.
    if (kind === "guard") {
      if (!guards.has(task)) guards.set(task, { cause: breaks.cause, cases: [random.pick(own)] });
      Object.assign(breaks, guards.get(task));
    }
    if (kind === "build") breaks.cases = team.cases.filter((one) => one.task === task);
    if (kind === "many") breaks.cases = random.sample(own, random.integer(...MANY));
  }
  return {};
};
