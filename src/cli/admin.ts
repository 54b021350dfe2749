/** `assay admin`: teams, projects and keys, straight in the database, whether the server runs or not. */

import * as v from "valibot";
import { readConfig } from "../config.ts";
import { text, uuid } from "../schema/fields.ts";
import type { Tx } from "../store/connect.ts";
import { generateProjectKey, generateTeamKey } from "../operations/keys.ts";
import { revokeKey, selectKeys } from "../store/keys.ts";
import { migrate } from "../store/migrate.ts";
import { openDatabase } from "../store/open.ts";
import { insertProject, insertTeam } from "../store/projects.ts";
import { parseOptions, require, UsageError } from "./usage.ts";

export const ADMIN_USAGE = `  admin create-team --name NAME
  admin create-project --team ID --name NAME
  admin generate-key --project ID               a new key for the project; the one before is revoked at once
  admin generate-key --team ID [--name NAME]    one more key for the team
  admin list-keys --team ID
  admin revoke-key --id ID`;

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

function missing(what: string): never {
  throw new Error(`No such ${what}`);
}

/** Options are read before the database is opened: a wrong command line costs nothing. */
const COMMANDS: Record<string, Command> = {
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
      return async (sql) => ({ id: (await insertProject(sql, team, name)) ?? missing("team") });
    },
  },
  "generate-key": {
    options: ["project", "team", "name"],
    run: (values) => {
      if ((values["project"] === undefined) === (values["team"] === undefined))
        throw new UsageError("generate-key takes either --project or --team");
      if (values["project"] !== undefined) {
        const project = id(values, "project");
        return async (sql) => (await generateProjectKey(sql, project)) ?? missing("project");
      }
      const [team, name] = [id(values, "team"), values["name"] === undefined ? null : named(values)];
      return async (sql) => (await generateTeamKey(sql, team, name)) ?? missing("team");
    },
  },
  "list-keys": {
    options: ["team"],
    run: (values) => {
      const team = id(values, "team");
      return async (sql) => ({ data: await selectKeys(sql, team) });
    },
  },
  "revoke-key": {
    options: ["id"],
    run: (values) => {
      const key = id(values, "id");
      return async (sql) => ({ id: key, revokedAt: (await revokeKey(sql, key)) ?? missing("key") });
    },
  },
};

/** `name  value` lines; a list as one line per element. */
function toText(result: unknown): string {
  const line = (value: object) =>
    Object.entries(value)
      .filter(([, field]) => field !== null)
      .map(([name, field]) => `${name} ${field}`)
      .join("  ");
  const { data } = result as { data?: object[] };
  return data ? data.map(line).join("\n") : line(result as object);
}

export async function admin([name, ...args]: string[]): Promise<void> {
  const command = COMMANDS[name ?? ""];
  if (!command || !Object.hasOwn(COMMANDS, name ?? "")) throw new UsageError(`No such command: admin ${name ?? ""}`);
  const { values, json } = parseOptions(args, command.options);
  const work = command.run(values);
  const database = await openDatabase(readConfig(process.env), () => {});
  try {
    await migrate(database);
    const result = await database.begin(work);
    console.log(json ? JSON.stringify(result) : toText(result));
  } finally {
    await database.close();
  }
}
