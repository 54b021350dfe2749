/**
 * Measures what each constant of the account is worth: plays all teams with one constant at a time made neutral, and prints
 * the change of missed guilty builds, of blamed innocent builds, of sound tests called flaky, of the mean distance to the
 * goals and of the mean loss: `bun test/lab/judge/leave_one_out.ts [TEAM…] [SEED…]`. A positive change means that the account
 * needs the constant.
 */

import { CONSTANTS, type Constants } from "../../../src/rules/odds_facts.ts";
import { compare, GOALS } from "./goals.ts";
import { play } from "./judge.ts";
import { record, type Recorded } from "./record.ts";
import { score } from "./score.ts";
import { parseArguments, TEAMS } from "./teams.ts";

const WORKERS = 2;

/** The value with which a constant has no effect: 1 for a factor, or the one that switches its term off. */
export const NEUTRAL: Constants = {
  // Even odds.
  guilty: 0.5,
  broken: 1,
  many: 1,
  streak: 1,
  wide: 1e-9,
  further: 1,
  passedAtCommit: 1,
  inFile: 1e-9,
  otherCause: 1,
  // As any other test.
  newTest: CONSTANTS.broken / 100,
  inheritedLast: 0,
  inheritedOther: 0,
  inheritedNext: 0,
  siblings: 0,
  unrestA: 0,
  unrestB: 1,
  sameBreak: 1,
  otherBreak: 1,
  hostWeight: 1e-6,
  sighted: 1,
  strange: 1,
  novel: 1,
  saysMany: 1,
  repeated: 1,
};

/** Over teams and seeds; `distance` and `loss` are sums of `goals` distances and of `stories` losses. */
type Sums = Record<"missed" | "blamed" | "sound" | "distance" | "goals" | "loss" | "stories", number>;
type Job = { team: string; seed: number };
type Message = { index: number; sums: Sums };

const NOTHING: Sums = { missed: 0, blamed: 0, sound: 0, distance: 0, goals: 0, loss: 0, stories: 0 };
const plus = (a: Sums, b: Sums): Sums => ({
  missed: a.missed + b.missed,
  blamed: a.blamed + b.blamed,
  sound: a.sound + b.sound,
  distance: a.distance + b.distance,
  goals: a.goals + b.goals,
  loss: a.loss + b.loss,
  stories: a.stories + b.stories,
});

/** The first one is the account as it is. */
const VARIANTS = [null, ...(Object.keys(NEUTRAL) as (keyof Constants)[])];

function sumOf(recorded: Recorded, constants: Constants): Sums {
  const result = score(recorded, play(recorded, constants));
  const { missed, blamed, sound, loss } = result;
  const outcomes = compare(result, GOALS[recorded.team]!);
  return {
    ...{ missed: missed.part, blamed: blamed.part, sound: sound.part, loss, stories: 1 },
    distance: outcomes.reduce((sum, { distance }) => sum + distance, 0),
    goals: outcomes.length,
  };
}

function work(jobs: readonly Job[], report: (message: Message) => void): void {
  const recorded = jobs.map(({ team, seed }) => record(team, TEAMS[team]!(seed)));
  for (const [index, name] of VARIANTS.entries()) {
    const constants = name === null ? CONSTANTS : { ...CONSTANTS, [name]: NEUTRAL[name] };
    report({ index, sums: recorded.map((one) => sumOf(one, constants)).reduce(plus) });
  }
}

const COLUMNS = [
  ["missed", 0, ({ missed }: Sums) => missed],
  ["blamed", 0, ({ blamed }: Sums) => blamed],
  ["sound", 0, ({ sound }: Sums) => sound],
  ["distance", 2, ({ distance, goals }: Sums) => (100 * distance) / goals],
  ["loss", 2, ({ loss, stories }: Sums) => loss / stories],
] as const;

const toLine = ([first = "", ...cells]: readonly string[]) =>
  [first.padEnd(20), ...cells.map((cell) => cell.padStart(9))].join(" ");

/** Prints a row as soon as all workers have played it: they play the rows in the same order. */
function createTable(workers: number): (message: Message) => void {
  const rows = VARIANTS.map(() => ({ left: workers, sums: NOTHING }));
  console.log(toLine(["constant", "value", "neutral", ...COLUMNS.map(([title]) => title)]));
  return ({ index, sums }) => {
    const row = rows[index]!;
    row.sums = plus(row.sums, sums);
    if (--row.left > 0) return;
    const name = VARIANTS[index] ?? null;
    const cells = COLUMNS.map(([, digits, of]) => {
      const change = of(row.sums) - (name === null ? 0 : of(rows[0]!.sums));
      // Without the sign of a change that is rounded to zero.
      const rounded = Number(change.toFixed(digits)) || 0;
      return `${name !== null && rounded > 0 ? "+" : ""}${rounded.toFixed(digits)}`;
    });
    const values = name === null ? ["", ""] : [CONSTANTS[name], NEUTRAL[name]].map(String);
    console.log(toLine([name ?? "none", ...values, ...cells]));
  };
}

const send = process.send?.bind(process);
if (import.meta.main && send) {
  process.once("message", (jobs: Job[]) => {
    work(jobs, (message) => send(message));
    process.disconnect!();
  });
} else if (import.meta.main) {
  const { teams, seeds } = parseArguments(process.argv.slice(2));
  const jobs = teams.flatMap((team) => seeds.map((seed): Job => ({ team, seed })));
  const workers = Math.min(WORKERS, jobs.length);
  const add = createTable(workers);
  const processes = Array.from({ length: workers }, (_, worker) => {
    const child = Bun.spawn([process.execPath, import.meta.path], {
      stdio: ["ignore", "inherit", "inherit"],
      ipc: add,
    });
    child.send(jobs.filter((_, index) => index % workers === worker));
    return child;
  });
  const codes = await Promise.all(processes.map(({ exited }) => exited));
  process.exitCode = codes.some((code) => code !== 0) ? 1 : 0;
}
