/** Twenty thousand tests, of which 400 are flaky and fail once in 50 to 1,000 results. */

import type { Story } from "../builds.ts";
import { createStory, LOADS, type StoryOptions } from "../story.ts";

export const createLarge = (options: StoryOptions): Story =>
  createStory({ ...LOADS.normal, casesPerTask: [4_000, 4_000], flaky: 400, rates: [0.001, 0.02] }, options);
