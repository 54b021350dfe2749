/**
 * Which goals the account reaches, for each team and seed: `bun test/lab/judge/cross.ts [TEAM…] [SEED…]`. Marks a missed
 * goal with "✗". The mean distance counts a goal that is held as 0, and is in hundredths.
 */

import { compare, countHeld, GOAL_NAMES, type GoalName, GOALS, meanDistance, type Outcome } from "./goals.ts";
import { play } from "./judge.ts";
import { record } from "./record.ts";
import { ratio, score, type Share } from "./score.ts";
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
const gate = { guilty: [0, 0], others: [0, 0] };
const count = (sums: number[], { part, whole }: Share) => ((sums[0]! += part), (sums[1]! += whole));
for (const team of teams)
  for (const seed of seeds) {
    const recorded = record(team, TEAMS[team]!(seed));
    const scored = score(recorded, play(recorded));
    const outcomes = compare(scored, GOALS[team]!);
    count(gate.guilty, scored.guiltyPassed);
    count(gate.others, scored.othersPassed);
    all.push(...outcomes);
    const cells = GOAL_NAMES.map((name) => toCell(outcomes.find(({ goal }) => goal === name)));
    console.log(toLine([`${team}, ${seed}`, ...cells, ...toSummary(outcomes)]));
  }
const [held, distance] = toSummary(all);
console.log(`\nGoals held: ${held}, mean distance ${distance}`);
console.log(
  `A gate with the normal share let through ${gate.guilty.join(" of ")} guilty builds, and ${gate.others.join(" of ")} others`,
);
