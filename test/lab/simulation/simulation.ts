/**
 * Three simulated weeks of a team's builds against a real server, and how far its verdicts can be trusted:
 * `bun test/lab/simulation/simulation.ts [--seeds 5] [--first-seed 1] [--load small|normal|strong|all] [--retries on|off|both]
 * [--keys build|branch] [--habit NAME|all]`.
 * With a habit of habits.ts the builds are those of another team. Prints a table, what misses a goal in bold, and ends with 1 where one is missed.
 */

import { generateProjectKey } from "../../../src/operations/people/keys.ts";
import { insertProject } from "../../../src/store/projects.ts";
import { startServers } from "../faults/servers.ts";
import { startGate } from "./gate.ts";
import { type Column, missedGoals, toTable } from "./goals.ts";
import type { Story } from "./builds.ts";
import { type Ask, play } from "./play.ts";
import { score } from "./score.ts";
import { KEYS } from "./scene.ts";
import { HABITS, type HabitName } from "./habits.ts";
import { createStory, type LoadName, LOADS, type StoryOptions } from "./story.ts";

const option = (name: string, fallback: string): string => {
  const at = process.argv.indexOf(name);
  return at === -1 ? fallback : (process.argv[at + 1] ?? fallback);
};
const seeds = Number(option("--seeds", "5"));
const firstSeed = Number(option("--first-seed", "1"));
const load = option("--load", "normal");
const loads = (load === "all" ? Object.keys(LOADS) : [load]) as LoadName[];
const retried = { on: [true], off: [false], both: [true, false] }[option("--retries", "both")];
const habit = option("--habit", "");
const habits = (habit === "all" ? Object.keys(HABITS) : habit === "" ? [] : [habit]) as HabitName[];
const keys = KEYS.find((one) => one === option("--keys", "build"));
if (
  !retried ||
  !keys ||
  loads.some((name) => !Object.hasOwn(LOADS, name)) ||
  habits.some((name) => !Object.hasOwn(HABITS, name)) ||
  !(seeds >= 1) ||
  !Number.isInteger(firstSeed)
) {
  console.error(
    "Cannot read the arguments: expected --seeds N, --first-seed N, --load small|normal|strong|all, --retries on|off|both, " +
      `--keys build|branch, --habit ${Object.keys(HABITS).join("|")}|all`,
  );
  process.exit(2);
}

const assay = await startServers();

/** A project of its own for each story. */
async function createProject(defaultBranch: string): Promise<{ project: string; ask: Ask }> {
  const { project, key } = await assay.database.begin(async (sql) => {
    const project = (await insertProject(sql, assay.team, "simulation"))!;
    await sql`update project set default_branch = ${defaultBranch} where id = ${project}`;
    return { project, key: (await generateProjectKey(sql, project))!.key };
  });
  return { project, ask: createAsk(`/projects/${project}`, key) };
}

function createAsk(root: string, key: string): Ask {
  return async (method, path, body) => {
    const headers = { authorization: `Bearer ${key}` };
    const url = `${assay.servers[0]!.url}/api/v1${root}${path}`;
    const response = await fetch(url, { method, headers, ...(body === undefined ? {} : { body }) });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return await response.json();
  };
}

const askTeam = createAsk(`/teams/${assay.team}`, assay.teamKey);

type Team = { name: string; habit?: HabitName; tell: (options: StoryOptions) => Story };
const teams: Team[] =
  habits.length > 0
    ? habits.map((name) => ({ name, habit: name, tell: HABITS[name] }))
    : loads.map((name) => ({ name, tell: (options) => createStory(LOADS[name], options) }));

try {
  let isMissed = false;
  for (const { name, habit, tell } of teams) {
    const columns: Column[] = [];
    for (const retries of retried) {
      const title = `${name}, ${retries ? "with" : "without"} retries`;
      const column: Column = { title, retries, ...(habit ? { habit } : {}), scores: [] };
      columns.push(column);
      for (let seed = firstSeed; seed < firstSeed + seeds; seed++) {
        // The last build ends an hour ago: a server takes nothing from the future.
        const story = tell({ seed, retries, keys, end: Date.now() - 3_600_000 });
        const defaultBranch = story.builds.find(({ isDefault }) => isDefault)!.branch;
        const { project, ask } = await createProject(defaultBranch);
        const gate = habit === "gate" ? await startGate(assay.database, { project, ask, askTeam }) : undefined;
        const result = score(await play(story, ask, gate));
        column.scores.push(result);
        console.error(`${column.title}, seed ${seed}: ${JSON.stringify(result)}`);
      }
    }
    console.log(`\n${toTable(columns)}`);
    const missed = missedGoals(columns);
    console.log(
      missed.length === 0 ? "\nAll goals are reached" : `\nMissed:\n${missed.map((one) => `  ${one}`).join("\n")}`,
    );
    isMissed ||= missed.length > 0;
  }
  process.exitCode = isMissed ? 1 : 0;
} finally {
  await assay.stop();
}
