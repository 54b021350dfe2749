/**
 * Jobs by the clock build the default branch every three hours, also without a new commit, and a second CI system builds
 * most commits once more under the same names of tasks: some tests fail only there for some days. For one hour a service is
 * unavailable to all builds. One test in nine is flaky.
 */

import type { Story, Trouble } from "../builds.ts";
import { createOutside } from "../failures.ts";
import { createRandom } from "../../../random.ts";
import type { Planned } from "../scene.ts";
import { type Alter, createStory, LOADS, type StoryOptions } from "../story.ts";

/** Hours of working time. */
const HOURS = 150;
const HOURS_A_DAY = 10;
const EVERY = 3;

const SECOND_CI = "second-ci";
/** Tests that fail only in the second CI system, and the share of the working time for which they do. */
const DRIFTED = { tests: 3, share: 0.25 };
/** Share of the tests that need the service which is unavailable for an hour. */
const NEEDING = 0.4;

export const createPeriodic = (options: StoryOptions): Story =>
  createStory(
    { ...LOADS.normal, tasks: 3, casesPerTask: [60, 90], flaky: 25, rates: [0.02, 0.3], pullRequests: 60 },
    options,
    alter,
  );

const alter: Alter = (scene) => {
  const random = createRandom(scene.seed, "periodic");
  const planned = (builds: readonly Planned[]): Planned[] => {
    const main = builds.filter(({ isDefault }) => isDefault).toSorted((a, b) => a.at - b.at);
    const added: Planned[] = [];
    for (let hour = EVERY; hour < HOURS; hour += EVERY) {
      const last = main.findLast(({ at }) => at <= hour);
      if (last) added.push({ ...last, outage: new Set(), at: hour });
    }
    for (const build of builds)
      if (random.chance(0.8))
        added.push({
          ...build,
          outage: new Set(),
          at: build.at + random.between(0.1, 0.5),
          environment: SECOND_CI,
        });
    disturb([...builds, ...added], scene);
    return added;
  };
  return { planned };
};

/** Makes a service unavailable for an hour, and makes some tests fail in the second CI system only. */
function disturb(builds: readonly Planned[], { seed, team, taken, causeIn }: Parameters<Alter>[0]): void {
  const random = createRandom(seed, "periodic disturbances");
  const sound = team.cases.filter((one) => !taken.has(one) && !one.added && !one.removed);
  const drifted = new Map(
    random.sample(sound, DRIFTED.tests).map((testCase) => {
      const identity = { id: `second CI ${testCase.task.slug} ${testCase.name}`, kind: "incident" as const };
      return [testCase, causeIn(testCase.task, testCase.area, identity)];
    }),
  );
  const driftsFrom = random.between(0.3, 0.5) * HOURS;
  const driftsUntil = driftsFrom + DRIFTED.share * HOURS;

  const needing = new Set(random.sample(team.cases, Math.floor(team.cases.length * NEEDING)));
  const identity = { id: "an hour's outage", kind: "incident" as const };
  const away = new Map(team.tasks.map((task) => [task, createOutside(task.language, random, identity, "registry")]));
  // Within one day.
  const awayFrom = random.integer(4, 11) * HOURS_A_DAY + random.between(0, HOURS_A_DAY - 1);

  const drift: Trouble = (testCase) => drifted.get(testCase) ?? null;
  const outage: Trouble = (testCase, chance) =>
    needing.has(testCase) && chance.chance(0.97) ? away.get(testCase.task)! : null;
  for (const build of builds) {
    if (build.at >= awayFrom && build.at < awayFrom + 1) build.trouble = outage;
    else if (build.environment === SECOND_CI && build.at >= driftsFrom && build.at < driftsUntil) build.trouble = drift;
  }
}
