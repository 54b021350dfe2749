/**
 * Jobs by the clock build the default branch every three hours, also without a new commit, and a second CI system builds
 * each commit once more under the same names of tasks. One test in nine is flaky.
 */

import type { Story } from "../builds.ts";
import { createRandom } from "../../../random.ts";
import type { Planned } from "../scene.ts";
import { type Alter, createStory, LOADS, type StoryOptions } from "../story.ts";

/** Of working time. */
const HOURS = 150;
const EVERY = 3;

export const createPeriodic = (options: StoryOptions): Story =>
  createStory(
    { ...LOADS.normal, tasks: 3, casesPerTask: [60, 90], flaky: 25, rates: [0.02, 0.3], pullRequests: 60 },
    options,
    alter,
  );

const alter: Alter = ({ seed }) => {
  const random = createRandom(seed, "periodic");
  const planned = (builds: readonly Planned[]): Planned[] => {
    const main = builds.filter(({ isDefault }) => isDefault).toSorted((a, b) => a.at - b.at);
    const added: Planned[] = [];
    for (let hour = EVERY; hour < HOURS; hour += EVERY) {
      const last = main.findLast(({ at }) => at <= hour);
      if (last) added.push({ ...last, outage: new Set(), at: hour });
    }
    for (const build of builds)
      if (random.chance(0.8)) added.push({ ...build, outage: new Set(), at: build.at + random.between(0.1, 0.5) });
    return added;
  };
  return { planned };
};
