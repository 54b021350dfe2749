/** The habits of teams, by what distinguishes their builds. */

import type { Story } from "./builds.ts";
import { createMachines } from "./habits/machines.ts";
import { createMonorepo } from "./habits/monorepo.ts";
import { createNames } from "./habits/names.ts";
import { createNightly } from "./habits/nightly.ts";
import { createReleases } from "./habits/releases.ts";
import { createStory, LOADS, type StoryOptions } from "./story.ts";

export const HABITS = {
  monorepo: createMonorepo,
  nightly: createNightly,
  names: createNames,
  releases: createReleases,
  machines: createMachines,
  /** The usual builds; gates decide about them, and flaky tests are quarantined by automations, see gate.ts. */
  gate: (options) => createStory(LOADS.normal, options),
} satisfies Record<string, (options: StoryOptions) => Story>;

export type HabitName = keyof typeof HABITS;
