/** The habits of teams, by what distinguishes their builds. The bench for judges plays the same list. */

import type { Story } from "./builds.ts";
import { createBreakers } from "./habits/breakers.ts";
import { createDevices } from "./habits/devices.ts";
import { createLarge } from "./habits/large.ts";
import { createMachines, createNamelessMachines } from "./habits/machines.ts";
import { createMonorepo } from "./habits/monorepo.ts";
import { createNames } from "./habits/names.ts";
import { createNightly } from "./habits/nightly.ts";
import { createPeriodic } from "./habits/periodic.ts";
import { createReleases } from "./habits/releases.ts";
import { createTrunk } from "./habits/trunk.ts";
import { createYoung } from "./habits/young.ts";
import { createStory, LOADS, type StoryOptions } from "./story.ts";

const createUsual = (options: StoryOptions): Story => createStory(LOADS.normal, options);

export const HABITS = {
  usual: createUsual,
  monorepo: createMonorepo,
  names: createNames,
  releases: createReleases,
  breakers: createBreakers,
  nameless: createNamelessMachines,
  large: createLarge,
  trunk: createTrunk,
  devices: createDevices,
  periodic: createPeriodic,
  machines: createMachines,
  nightly: createNightly,
  young: createYoung,
  /** The usual builds; gates decide about them, and flaky tests are quarantined by automations, see gate.ts. */
  gate: createUsual,
} satisfies Record<string, (options: StoryOptions) => Story>;

export type HabitName = keyof typeof HABITS;
