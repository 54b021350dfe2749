/** A project that has just begun: ten to forty tests and some weeks of builds, by which nobody knows yet what is flaky. */

import type { Story } from "../builds.ts";
import { createStory, type Load, type StoryOptions } from "../story.ts";

const LOAD: Load = {
  ...{ tasks: 1, casesPerTask: [10, 40], flaky: 1, rates: [0.05, 0.2] },
  ...{ pullRequests: 22, breaking: 0.3, directCommits: 15 },
  regressions: [[3, 6]],
};

export const createYoung = (options: StoryOptions): Story => createStory(LOAD, options);
