/** `assay admin`: teams, projects and keys, straight in the server's database, whether the server runs or not. */

import * as v from "valibot";
import { readConfig } from "../config.ts";
import { text, uuid } from "../schema/fields.ts";
import type { Tx } from "../store/connect.ts";
import { generateProjectKey, generateTeamKey } from "../operations/keys.ts";
import { revokeKey, selectKeys } from "../store/keys.ts";
import { migrate } from "../store/migrate.ts";
import { openExistingDatabase } from "../store/open.ts";
import { insertProject, insertTeam, selectProjects, selectTeamExists, selectTeams } from "../store/projects.ts";
import { parseOptions, require, UsageError } from "./usage.ts";

export const ADMIN_USAGE = `  admin list-teams
  admin create-team --name NAME
  admin list-projects [--team ID]               of one team, or of all
  admin create-project --team ID --name NAME
  admin generate-key --project ID               a new key for the project; the one before is revoked at once
  admin generate-key --team ID [--name NAME]    one more key for the team
  admin list-keys --team ID
  admin revoke-key --id ID

Admin commands take the same DATA_DIR or DATABASE_URL as the server.`;

type Values = Record<string, string>;
type Command = { options: string[]; run: (values: Values) => (sql: Tx) => Promise<unknown> };

function id(values: Values, name: string): string {
  const parsed = v.safeParse(uuid, require(values, name));
  if (!parsed.success) throw new UsageError(`--${name}: expected a UUID, got "${values[name]}"`);
  return parsed.output;
}

function named(values: Values): string {
  const parsed = v.safeParse(text(200), require(values, "name"));
  if (!parsed.success) throw new UsageError(`--name: ${parsed.issues[0].message}`);
  return parsed.output;
}

function missing(what: "team" | "project" | "key", id: string): never {
  throw new Error(`No such ${what}: "${id}"`);
}

async function requireTeam(sql: Tx, id: string): Promise<void> {
  if (!(await selectTeamExists(sql, id))) missing("team", id);
}

/** Options are read before the database is opened: a wrong command line costs nothing. */
const COMMANDS: Record<string, Command> = {
  "list-teams": {
    options: [],
    run: () => async (sql) => ({ data: await selectTeams(sql) }),
  },
  "list-projects": {
    options: ["team"],
    run: (values) => {
      const team = values["team"] === undefined ? undefined : id(values, "team");
      return async (sql) => {
        if (team !== undefined) await requireTeam(sql, team);
        return { data: await selectProjects(sql, team) };
      };
    },
  },
  "create-team": {
    options: ["name"],
    run: (values) => {
      const name = named(values);
      return async (sql) => ({ id: await insertTeam(sql, name) });
    },
  },
  "create-project": {
    options: ["team", "name"],
    run: (values) => {
      const [team, name] = [id(values, "team"), named(values)];
      return async (sql) => ({ id: (await insertProject(sql, team, name)) ?? missing("team", team) });
    },
  },
  "generate-key": {
    options: ["project", "team", "name"],
    run: (values) => {
      if ((values["project"] === undefined) === (values["team"] === undefined))
        throw new UsageError("generate-key takes either --project or --team");
      if (values["project"] !== undefined) {
        const project = id(values, "project");
        return async (sql) => (await generateProjectKey(sql, project)) ?? missing("project", project);
      }
      const [team, name] = [id(values, "team"), values["name"] === undefined ? null : named(values)];
      return async (sql) => (await generateTeamKey(sql, team, name)) ?? missing("team", team);
    },
  },
  "list-keys": {
    options: ["team"],
    run: (values) => {
      const team = id(values, "team");
      return async (sql) => {
        await requireTeam(sql, team);
        return { data: await selectKeys(sql, team) };
      };
    },
  },
  "revoke-key": {
    options: ["id"],
    run: (values) => {
      const key = id(values, "id");
      return async (sql) => ({ id: key, revokedAt: (await revokeKey(sql, key)) ?? missing("key", key) });
    },
  },
};

/** For people: a table of a list, and `name  value` pairs of one thing. */
function toText(result: unknown): string {
  const { data } = result as { data?: Record<string, unknown>[] };
  if (data) return toTable(data);
  return Object.entries(result as object)
    .filter(([, field]) => field !== null)
    .map(([name, field]) => `${name} ${toCell(field)}`)
    .join("  ");
}

function toTable(rows: Record<string, unknown>[]): string {
  const names = Object.keys(rows[0] ?? {});
  if (names.length === 0) return "None";
  const lines = [names, ...rows.map((row) => names.map((name) => toCell(row[name])))];
  const widths = names.map((_, column) => Math.max(...lines.map((cells) => Bun.stringWidth(cells[column]!))));
  const pad = (cell: string, column: number) => cell + " ".repeat(widths[column]! - Bun.stringWidth(cell));
  return lines.map((cells) => cells.map(pad).join("  ").trimEnd()).join("\n");
}

/** Names are free text: they must not break the line, nor tell the terminal anything. */
const toCell = (value: unknown): string => String(value ?? "-").replace(/\p{C}+/gu, " ");

export async function admin([name, ...args]: string[]): Promise<void> {
  if (name === undefined) throw new UsageError("A command is missing after admin");
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (!command) throw new UsageError(`No such command: admin ${name}`);
  const { values, json } = parseOptions(args, command.options);
  const work = command.run(values);
  const database = await openExistingDatabase(readConfig(process.env));
  try {
    await migrate(database);
    const result = await database.begin(work);
    console.log(json ? JSON.stringify(result) : toText(result));
  } finally {
    await database.close();
  }
}
