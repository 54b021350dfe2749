/**
 * Which goals the account reaches, for each team and seed: `bun test/lab/judge/cross.ts [TEAM…] [SEED…]`. Marks a missed
 * goal with "✗". The mean distance counts a goal that is held as 0, and is in hundredths.
 */

import { compare, countHeld, GOAL_NAMES, type GoalName, GOALS, meanDistance, type Outcome } from "./goals.ts";
import { play } from "./judge.ts";
import { record } from "./record.ts";
import { ratio, score } from "./score.ts";
import { parseArguments, TEAMS } from "./teams.ts";

const TITLES: Record<GoalName, string> = {
  flakyPrecision: "flaky P",
  flakyRecall: "flaky R",
  sound: "sound",
  blamePrecision: "blame P",
  blameRecall: "blame R",
  missed: "missed",
  blamed: "blamed",
};
const COUNTED: readonly GoalName[] = ["sound", "missed", "blamed"];

function toCell(outcome: Outcome | undefined): string {
  if (!outcome) return "–";
  const { goal, value, distance } = outcome;
  const shown =
    goal === "sound" ? `${value.part}` : COUNTED.includes(goal) ? `${value.part}/${value.whole}` : ratio(value);
  return `${shown}${distance > 0 ? " ✗" : ""}`;
}

const toLine = ([team = "", ...cells]: string[]) =>
  [team.padEnd(22), ...cells.map((cell) => cell.padStart(9))].join(" ");
const toSummary = (outcomes: readonly Outcome[]) => [
  `${countHeld(outcomes)} of ${outcomes.length}`,
  (100 * meanDistance(outcomes)).toFixed(1),
];

const { teams, seeds } = parseArguments(process.argv.slice(2));
console.log(toLine(["team, seed", ...GOAL_NAMES.map((goal) => TITLES[goal]), "held", "distance"]));
const all: Outcome[] = [];
for (const team of teams)
  for (const seed of seeds) {
    const recorded = record(team, TEAMS[team]!(seed));
    const outcomes = compare(score(recorded, play(recorded)), GOALS[team]!);
    all.push(...outcomes);
    const cells = GOAL_NAMES.map((name) => toCell(outcomes.find(({ goal }) => goal === name)));
    console.log(toLine([`${team}, ${seed}`, ...cells, ...toSummary(outcomes)]));
  }
const [held, distance] = toSummary(all);
console.log(`\nGoals held: ${held}, mean distance ${distance}`);
