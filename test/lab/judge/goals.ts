/** The goals of each simulated team, and how far a score is from them. */

import type { Score, Share } from "./score.ts";

/** In the order of the columns of a table. */
export const GOAL_NAMES = [
  "flakyPrecision",
  "flakyRecall",
  "sound",
  "blamePrecision",
  "blameRecall",
  "missed",
  "blamed",
] as const;
export type GoalName = (typeof GOAL_NAMES)[number];

/** Precisions and recalls are at least this, all others at most. */
export type Goals = Record<GoalName, number>;

const goals = (
  [flakyPrecision, flakyRecall]: [number, number],
  [blamePrecision, blameRecall]: [number, number],
  { missed, blamed }: { missed: number; blamed: number },
): Goals => ({ flakyPrecision, flakyRecall, sound: 0, blamePrecision, blameRecall, missed, blamed });

const USUAL = goals([0.95, 0.9], [0.85, 0.98], { missed: 0, blamed: 0.05 });
const BAD_MACHINE = goals([0.95, 0.8], [0.7, 0.95], { missed: 0.04, blamed: 0.05 });

export const GOALS: Readonly<Record<string, Goals>> = {
  usual: USUAL,
  "usual, no retries": USUAL,
  monorepo: goals([0.95, 0.9], [0.85, 0.98], { missed: 0, blamed: 0.03 }),
  names: goals([0.95, 0.85], [0.85, 0.97], { missed: 0.03, blamed: 0.04 }),
  releases: goals([0.95, 0.85], [0.85, 0.95], { missed: 0.04, blamed: 0.05 }),
  nameless: BAD_MACHINE,
  large: goals([0.95, 0.6], [0.5, 0.97], { missed: 0.06, blamed: 0.25 }),
  trunk: goals([0.95, 0.9], [0.8, 0.95], { missed: 0.04, blamed: 0.04 }),
  devices: goals([0.95, 0.8], [0.6, 0.95], { missed: 0.04, blamed: 0.15 }),
  periodic: goals([0.95, 0.95], [0.85, 0.98], { missed: 0, blamed: 0.1 }),
  // These have no goals of their own: those of the team whose habits are the most similar apply.
  breakers: USUAL,
  machines: BAD_MACHINE,
  nightly: USUAL,
  young: USUAL,
};

export type Outcome = {
  goal: GoalName;
  value: Share;
  /** How far the value is on the wrong side of the goal, from 0 to 1; 0: the goal is held. */
  distance: number;
};

/** Leaves out what the team has nothing of, such as pull requests. */
export function compare(score: Score, goals: Goals): Outcome[] {
  return GOAL_NAMES.flatMap((goal): Outcome[] => {
    const value = score[goal];
    if (value.whole === 0) return [];
    const share = value.part / value.whole;
    const isLeast = goal.endsWith("Precision") || goal.endsWith("Recall");
    const distance = isLeast ? goals[goal] - share : share - goals[goal];
    return [{ goal, value, distance: Math.min(1, Math.max(0, distance)) }];
  });
}

export const meanDistance = (outcomes: readonly Outcome[]): number =>
  outcomes.length === 0 ? 0 : outcomes.reduce((sum, { distance }) => sum + distance, 0) / outcomes.length;

export const countHeld = (outcomes: readonly Outcome[]): number =>
  outcomes.filter(({ distance }) => distance === 0).length;
