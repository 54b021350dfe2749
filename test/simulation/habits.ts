/** The habits of teams, by what distinguishes their builds. */

import type { Story } from "./builds.ts";
import { createMachines } from "./habits/machines.ts";
import { createMonorepo } from "./habits/monorepo.ts";
import { createNames } from "./habits/names.ts";
import { createNightly } from "./habits/nightly.ts";
import { createReleases } from "./habits/releases.ts";
import type { StoryOptions } from "./story.ts";

export const HABITS = {
  monorepo: createMonorepo,
  nightly: createNightly,
  names: createNames,
  releases: createReleases,
  machines: createMachines,
} satisfies Record<string, (options: StoryOptions) => Story>;

export type HabitName = keyof typeof HABITS;
