/** The simulated teams that the bench plays: the habits of the simulation, without retries, and the usual team also with them. */

import type { Story } from "../simulation/builds.ts";
import { HABITS } from "../simulation/habits.ts";

const END = Date.UTC(2026, 0, 30, 18);

type CreateTeam = (seed: number) => Story;

const { usual, gate: _, ...others } = HABITS;

const create =
  (habit: (typeof HABITS)[keyof typeof HABITS], retries: boolean): CreateTeam =>
  (seed) =>
    habit({ seed, retries, end: END, keys: "build" });

/** Without "gate", whose builds are the usual ones. */
export const TEAMS: Readonly<Record<string, CreateTeam>> = {
  usual: create(usual, true),
  "usual, no retries": create(usual, false),
  ...Object.fromEntries(Object.entries(others).map(([name, habit]) => [name, create(habit, false)])),
};

/** Reads the arguments of a program: numbers are seeds, everything else is the name of a team; several are separated by ";". */
export function parseArguments(values: readonly string[]): { teams: string[]; seeds: number[] } {
  const words = values.flatMap((value) => value.split(";"));
  const seeds = words.filter((word) => /^\d+$/.test(word)).map(Number);
  const teams = words.filter((word) => !/^\d+$/.test(word));
  for (const name of teams)
    if (!Object.hasOwn(TEAMS, name))
      throw new Error(`Cannot find team "${name}": expected one of ${Object.keys(TEAMS).join("; ")}`);
  return {
    teams: teams.length > 0 ? teams : Object.keys(TEAMS),
    seeds: seeds.length > 0 ? seeds : [11, 23],
  };
}
