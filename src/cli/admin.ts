/** `assay admin`: teams, projects, keys and accounts, straight in the server's database, whether the server runs or not. */

import * as v from "valibot";
import { readConfig } from "../config.ts";
import { admitUser, createUser, resetPassword } from "../operations/people/accounts.ts";
import { generateNamedKey, generateProjectKey, generateTeamKey, revokeKeyById } from "../operations/people/keys.ts";
import { deleteProject, deleteTeam } from "../operations/projects/deletion.ts";
import { forgetSecretKey } from "../operations/projects/secret_key.ts";
import { email, newPassword, personName, type Role, role } from "../schema/accounts.ts";
import { COMMAND_LINE } from "../schema/audit.ts";
import { keyDays, type NamedScope, namedScope } from "../schema/keys.ts";
import { createPasswords } from "../secrets/passwords.ts";
import { selectAccountsOfTeam } from "../store/accounts.ts";
import { insertAuditEntry } from "../store/audit.ts";
import type { Tx } from "../database/connect.ts";
import { selectKeys } from "../store/keys.ts";
import { migrate } from "../database/migrate.ts";
import { openExistingDatabase } from "../database/open.ts";
import { insertProject, insertTeam, selectProjects, selectTeamExists, selectTeams } from "../store/projects.ts";
import {
  type Command,
  id,
  missing,
  option,
  orMissing,
  readName,
  type Values,
  type AdminWork,
} from "./admin_options.ts";
import { TRUST_COMMANDS, TRUST_USAGE } from "./admin_trust.ts";
import { askPassword } from "./terminal.ts";
import { toJsonLine, toPlainLine } from "./output.ts";
import { parseOptions, require, UsageError } from "./usage.ts";

export const ADMIN_USAGE = `  admin list-teams
  admin create-team --name NAME
  admin list-projects [--team ID]               list the projects of one team, or all projects
  admin create-project --team ID --name NAME
  admin generate-key --project ID               create a new project key and revoke the previous one at once
  admin generate-key --project ID --name NAME --scope read|upload|run|triage [--days N]
                                                create an additional project key with a scope
  admin generate-key --team ID [--name NAME]    create an additional team key
  admin delete-project --id ID --confirm NAME   delete a project with everything in it; NAME is the name of the project
  admin delete-team --id ID --confirm NAME      delete a team with all its projects; NAME is the name of the team
  admin list-keys --team ID
  admin revoke-key --id ID
${TRUST_USAGE}
  admin list-users --team ID
  admin create-user --email ADDRESS --team ID [--name NAME] [--role owner|member|viewer] [--password TEXT]
                                                create an account and add it to a team (default role: member); prompts for the password
  admin create-user … --no-password             create an account that signs in with OpenID Connect only
  admin add-user --email ADDRESS --team ID [--role ROLE]
                                                add an existing account to another team
  admin reset-password --email ADDRESS [--password TEXT]
                                                set a new password and end all sessions of the account
  admin forget-secret-key                       after the loss of SECRET_KEY, if nothing is encrypted with it and no server
                                                runs: the next server that starts registers its own key

Admin commands take the same DATA_DIR or DATABASE_URL as the server.`;

const roleOf = (values: Values, fallback: Role): Role =>
  values["role"] === undefined ? fallback : (option(role, values, "role") as Role);

/** Returns the hash of --password, or of a password read from the terminal or standard input, which other users cannot see. */
async function passwordHash(values: Values): Promise<string> {
  const given = values["password"] ?? (await askPassword());
  const parsed = v.safeParse(newPassword, given);
  if (!parsed.success) throw new UsageError(`--password: ${parsed.issues[0].message}`);
  return await createPasswords().hash(parsed.output);
}

async function requireTeam(sql: Tx, id: string): Promise<void> {
  if (!(await selectTeamExists(sql, id))) missing("team", id);
}

function generateNamed(project: string, values: Values): AdminWork {
  const name = readName(values);
  const scope = option(namedScope, values, "scope") as NamedScope;
  const days = values["days"] === undefined ? undefined : v.safeParse(keyDays, Number(values["days"]));
  if (days?.success === false) throw new UsageError(`--days: ${days.issues[0].message}`);
  const wanted = { name, scope, expiresInDays: days?.output };
  return async (sql) => (await generateNamedKey(sql, project, wanted, COMMAND_LINE)) ?? missing("project", project);
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
      const name = readName(values);
      return async (sql) => ({ id: await insertTeam(sql, name) });
    },
  },
  "create-project": {
    options: ["team", "name"],
    run: (values) => {
      const [team, name] = [id(values, "team"), readName(values)];
      return async (sql) => {
        const project = (await insertProject(sql, team, name)) ?? missing("team", team);
        const entry = { action: "project.created", subject: name, details: { projectId: project } } as const;
        await insertAuditEntry(sql, team, COMMAND_LINE, entry);
        return { id: project };
      };
    },
  },
  "delete-project": {
    options: ["id", "confirm"],
    run: (values) => {
      const deletion = { id: id(values, "id"), confirm: require(values, "confirm") };
      return (sql) => orMissing("project", deletion.id, deleteProject(sql, deletion, COMMAND_LINE));
    },
  },
  "delete-team": {
    options: ["id", "confirm"],
    run: (values) => {
      const deletion = { id: id(values, "id"), confirm: require(values, "confirm") };
      return (sql) => orMissing("team", deletion.id, deleteTeam(sql, deletion, COMMAND_LINE));
    },
  },
  "generate-key": {
    options: ["project", "team", "name", "scope", "days"],
    run: (values) => {
      if ((values["project"] === undefined) === (values["team"] === undefined))
        throw new UsageError("generate-key takes either --project or --team");
      if (values["project"] !== undefined) {
        const project = id(values, "project");
        if (values["scope"] !== undefined) return generateNamed(project, values);
        if (values["name"] !== undefined || values["days"] !== undefined)
          throw new UsageError("--scope: a named key needs one of read, upload, run, triage");
        return async (sql) => (await generateProjectKey(sql, project, COMMAND_LINE)) ?? missing("project", project);
      }
      const [team, name] = [id(values, "team"), values["name"] === undefined ? null : readName(values)];
      return async (sql) => (await generateTeamKey(sql, team, name, COMMAND_LINE)) ?? missing("team", team);
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
      return async (sql) => ({
        id: key,
        revokedAt: (await revokeKeyById(sql, key, COMMAND_LINE)) ?? missing("key", key),
      });
    },
  },
  ...TRUST_COMMANDS,
  "list-users": {
    options: ["team"],
    run: (values) => {
      const team = id(values, "team");
      return async (sql) => {
        await requireTeam(sql, team);
        return { data: await selectAccountsOfTeam(sql, team) };
      };
    },
  },
  "create-user": {
    options: ["email", "team", "name", "role", "password"],
    flags: ["no-password"],
    run: async (values) => {
      const [address, teamId] = [option(email, values, "email"), id(values, "team")];
      const name = values["name"] === undefined ? address.split("@")[0]! : option(personName, values, "name");
      const role = roleOf(values, "member");
      if (values["no-password"] !== undefined && values["password"] !== undefined)
        throw new UsageError("create-user takes either --password or --no-password");
      const hash = values["no-password"] === undefined ? await passwordHash(values) : null;
      return async (sql) => {
        const created = await createUser(sql, { email: address, name, role, teamId, passwordHash: hash });
        if (created === "no team") missing("team", teamId);
        if (created === "taken")
          throw new Error(`An account "${address}" already exists: add it to a team with admin add-user`);
        return { id: created.id, email: address, role };
      };
    },
  },
  "add-user": {
    options: ["email", "team", "role"],
    run: (values) => {
      const [address, teamId, role] = [option(email, values, "email"), id(values, "team"), roleOf(values, "member")];
      return async (sql) => {
        const admitted = await admitUser(sql, { email: address, teamId, role });
        if (admitted === "no team") missing("team", teamId);
        if (admitted === "no account") missing("account", address);
        if (admitted === "member") throw new Error(`"${address}" is already a member of this team`);
        return { id: admitted.id, email: address, role };
      };
    },
  },
  "forget-secret-key": {
    options: [],
    run: () => async (sql) => {
      await forgetSecretKey(sql);
      return { forgotten: true };
    },
  },
  "reset-password": {
    options: ["email", "password"],
    run: async (values) => {
      const address = option(email, values, "email");
      const hash = await passwordHash(values);
      return async (sql) => ({ id: (await resetPassword(sql, address, hash)) ?? missing("account", address) });
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
const toCell = (value: unknown): string => toPlainLine(String(value ?? "-"));

export async function admin([name, ...args]: string[]): Promise<void> {
  if (name === undefined) throw new UsageError("Missing command after admin");
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (!command) throw new UsageError(`Unknown command: admin ${name}`);
  const { values, json } = parseOptions(args, command.options, command.flags);
  const work = await command.run(values);
  const database = await openExistingDatabase(readConfig(process.env));
  try {
    await migrate(database);
    const result = await database.begin(work);
    console.log(json ? toJsonLine(result) : toText(result));
  } finally {
    await database.close();
  }
}
