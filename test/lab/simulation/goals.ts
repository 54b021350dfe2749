/** What the verdicts have to reach, over several seeds, and the table that tells how far they do. */

import type { HabitName } from "./habits.ts";
import type { Score } from "./score.ts";

/** `habit`: of a team with a habit, which has goals of its own. */
export type Column = { title: string; retries: boolean; habit?: HabitName; scores: Score[] };

type Goal = { least: (retries: boolean) => number } | { most: number };

type Row = {
  what: string;
  of: (score: Score) => number;
  show?: (value: number) => string;
  /** At least or at most this; the worst of the seeds has to reach it where it must never be missed, else the median. */
  goal?: Goal;
  never?: true;
  /** The goals of teams with habits. */
  habits?: Partial<Record<HabitName, Goal>>;
  /** Which one is worse, where there is no goal. */
  worst?: typeof Math.min;
};

const least = (figure: number): Goal => ({ least: () => figure });
const NONE: Goal = { most: 0 };

const ROWS: Row[] = [
  { what: "executions", of: ({ executions }) => executions, show: String },
  {
    what: "flaky tests: precision",
    of: ({ flakyPrecision }) => flakyPrecision,
    goal: { least: () => 0.95 },
    habits: { nightly: least(1) },
  },
  {
    what: "flaky tests: recall (rate ≥ 5 %)",
    of: ({ flakyRecall }) => flakyRecall,
    goal: { least: (retries) => (retries ? 0.9 : 0.75) },
  },
  { what: "flaky tests: became so or recovered", of: ({ flakyTurns }) => flakyTurns, show: String },
  {
    what: "sound tests ever called flaky",
    of: ({ soundCalledFlaky }) => soundCalledFlaky,
    show: String,
    habits: { machines: NONE },
  },
  {
    what: "new failures: precision",
    of: ({ newPrecision }) => newPrecision,
    goal: { least: () => 0.85 },
    habits: { monorepo: least(0.95), names: least(0.85) },
  },
  {
    what: "new failures: precision at the end",
    of: ({ newPrecisionAtEnd }) => newPrecisionAtEnd,
    worst: Math.min,
    habits: { machines: least(0.85) },
  },
  {
    what: "new failures: recall",
    of: ({ newRecall }) => newRecall,
    goal: { least: () => 0.95 },
    habits: { releases: least(0.98) },
  },
  {
    what: "builds of main that tell an incident as new",
    of: ({ falseAlarms }) => falseAlarms,
    show: String,
    habits: { nightly: NONE },
  },
  {
    what: "wrong alerts a week",
    of: ({ wrongAlertsAWeek }) => wrongAlertsAWeek,
    show: (value) => value.toFixed(1),
    habits: { machines: { most: 2 } },
  },
  { what: "flaky failures told as such", of: ({ flakyTold }) => flakyTold, worst: Math.min },
  { what: "failures of main told as such", of: ({ mainTold }) => mainTold, worst: Math.min },
  { what: "bug reports opened", of: ({ bugs }) => bugs, show: String },
  { what: "bug reports for each cause", of: ({ bugs, trueBugs }) => bugs / trueBugs, goal: { most: 2 } },
  {
    what: "bug reports of several causes",
    of: ({ wrongBugs }) => wrongBugs,
    show: String,
    goal: { most: 0 },
    never: true,
    habits: { monorepo: NONE },
  },
  {
    what: "bugs reopened by old builds",
    of: ({ wronglyReopened }) => wronglyReopened,
    show: String,
    habits: { releases: NONE },
  },
  {
    what: "comparisons whose baseline moved",
    of: ({ movedComparisons }) => movedComparisons,
    ...{ show: String, goal: { most: 0 }, never: true },
  },
  { what: "broken: share right", of: ({ brokenRight }) => brokenRight, goal: { least: () => 1 }, never: true },
  {
    what: "broken: precision",
    of: ({ brokenPrecision }) => brokenPrecision,
    worst: Math.min,
    habits: { names: least(0.95) },
  },
  {
    what: "broken: recall",
    of: ({ brokenRecall }) => brokenRecall,
    worst: Math.min,
    habits: { releases: least(0.95) },
  },
  {
    what: "sound tests called broken",
    of: ({ wronglyBroken }) => wronglyBroken,
    show: String,
    goal: { most: 0 },
    never: true,
  },
  {
    what: "build that tells of a regression",
    of: ({ toldInBuild }) => toldInBuild,
    ...{ show: String, goal: { most: 1 }, never: true },
  },
  { what: "entries too many of moved tests", of: ({ duplicates }) => duplicates, show: String },
  { what: "green without a gate", of: ({ greenWithoutGate }) => greenWithoutGate, worst: Math.min },
  { what: "green through the gate", of: ({ green }) => green, worst: Math.min, habits: { gate: least(0.95) } },
  { what: "green through the gate, last week", of: ({ greenInLastWeek }) => greenInLastWeek, worst: Math.min },
  {
    what: "broken and green because of the gate",
    of: ({ wronglyGreen }) => wronglyGreen,
    ...{ show: String, never: true, habits: { gate: NONE } },
  },
  {
    what: "quarantined at most, percent",
    of: ({ quarantined }) => quarantined,
    ...{ never: true, habits: { gate: { most: 1 } } },
  },
  { what: "seconds", of: ({ seconds }) => seconds, show: (value) => value.toFixed(0) },
];

const median = (values: readonly number[]): number => {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  return (sorted[Math.ceil(middle) - 1]! + sorted[Math.floor(middle)]!) / 2;
};

/** NaN is what nothing was told of: it reaches no goal. */
function judge({ of, never, worst, ...row }: Row, { scores, retries, habit }: Column) {
  const goal = habit ? row.habits?.[habit] : row.goal;
  const values = scores.map(of);
  const known = values.filter((value) => !Number.isNaN(value));
  const pickWorst = row.goal && "least" in row.goal ? Math.min : (worst ?? Math.max);
  const figures = {
    median: known.length === 0 ? Number.NaN : median(known),
    worst: known.length === 0 ? Number.NaN : pickWorst(...known),
  };
  if (!goal) return { ...figures, isReached: true };
  const held = never ? figures.worst : figures.median;
  const isReached = "least" in goal ? held >= goal.least(retries) : held <= goal.most;
  return { ...figures, isReached: isReached && (known.length === values.length || !never || habit !== undefined) };
}

/** The goals that the columns miss. */
export const missedGoals = (columns: readonly Column[]): string[] =>
  columns.flatMap((column) =>
    ROWS.filter((row) => !judge(row, column).isReached).map(({ what }) => `${column.title}: ${what}`),
  );

/** Of columns with the same goals. A row for each figure: the median of the seeds, with the worst in brackets where there are several. */
export function toTable(columns: readonly Column[]): string {
  const showGoal = (goal: Goal) =>
    "least" in goal ? `≥ ${[...new Set([goal.least(true), goal.least(false)])].join(" / ")}` : `≤ ${goal.most}`;
  const lines = [
    ["", ...columns.map(({ title }) => title), "goal"],
    ["---", ...columns.map(() => "---"), "---"],
  ];
  for (const row of ROWS) {
    const show = (value: number) => (Number.isNaN(value) ? "–" : (row.show ?? ((one) => one.toFixed(2)))(value));
    const cells = columns.map((column) => {
      const { median, worst, isReached } = judge(row, column);
      const text = column.scores.length === 1 ? show(median) : `${show(median)} (${show(worst)})`;
      return isReached ? text : `**${text}**`;
    });
    const { habit } = columns[0]!;
    const goal = habit ? row.habits?.[habit] : row.goal;
    const wanted = goal && `${showGoal(goal)}${row.never && !habit ? ", always" : ""}`;
    lines.push([row.what, ...cells, wanted ?? ""]);
  }
  return lines.map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}
