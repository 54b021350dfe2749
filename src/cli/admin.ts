/** `assay admin`: teams, projects, keys and accounts, straight in the server's database, whether the server runs or not. */

import * as v from "valibot";
import { readConfig } from "../config.ts";
import { OPERATOR_COMMAND } from "../executable.ts";
import { becomeQuiet, resume } from "../operations/backup/quiet.ts";
import { generateNamedKey, generateProjectKey, generateTeamKey, revokeKeyById } from "../operations/people/keys.ts";
import { deleteProject, deleteTeam } from "../operations/projects/deletion.ts";
import { forgetSecretKey } from "../operations/projects/secret_key.ts";
import { COMMAND_LINE } from "../schema/audit.ts";
import { keyDays, type NamedScope, namedScope } from "../schema/keys.ts";
import { insertAuditEntry } from "../store/audit.ts";
import { selectKeys } from "../store/keys.ts";
import type { Database } from "../database/connect.ts";
import { selectIsShared } from "../database/diagnosis.ts";
import { migrate, requireAnySchema, requireCurrentSchema, schemaVersion } from "../database/migrate.ts";
import { openExistingDatabase } from "../database/open.ts";
import { insertProject, insertTeam, selectProjects, selectTeams } from "../store/projects.ts";
import { selectPlannedDeletions, updatePlannedDeletions } from "../store/retention.ts";
import {
  type AdminCommand,
  id,
  missing,
  option,
  orMissing,
  readName,
  requireTeam,
  type Values,
  type AdminWork,
  toUsage,
  listOfTeam,
} from "./admin_options.ts";
import { ACCOUNT_COMMANDS } from "./admin_accounts.ts";
import { TRUST_COMMANDS } from "./admin_trust.ts";
import { toDatabaseError } from "../database/database_failure.ts";
import type { Invocation } from "./invocation.ts";
import { toJsonLine, toPlainLine } from "./output.ts";
import { parseOptions, require, UsageError } from "./usage.ts";

function generateNamed(project: string, values: Values): AdminWork {
  const name = readName(values);
  const scope = option(namedScope, values, "scope") as NamedScope;
  const days = values["days"] === undefined ? undefined : v.safeParse(keyDays, Number(values["days"]));
  if (days?.success === false) throw new UsageError(`--days: ${days.issues[0].message}`);
  const wanted = { name, scope, expiresInDays: days?.output };
  return async (sql) => (await generateNamedKey(sql, project, wanted, COMMAND_LINE)) ?? missing("project", project);
}

/** Options are read before the database is opened: a wrong command line costs nothing. */
const COMMANDS: Record<string, AdminCommand> = {
  "list-teams": {
    usage: [{ synopsis: "" }],
    options: [],
    run: () => async (sql) => ({ data: await selectTeams(sql) }),
  },
  "list-projects": {
    usage: [{ synopsis: "[--team ID]", purpose: "list the projects of one team, or all projects" }],
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
    usage: [{ synopsis: "--name NAME" }],
    options: ["name"],
    next: ({ id }) => `Create a project: ${OPERATOR_COMMAND} admin create-project --team ${String(id)} --name NAME`,
    run: (values) => {
      const name = readName(values);
      return async (sql) => ({ id: await insertTeam(sql, name) });
    },
  },
  "create-project": {
    usage: [{ synopsis: "--team ID --name NAME" }],
    options: ["team", "name"],
    next: ({ id }) => `Create its key: ${OPERATOR_COMMAND} admin generate-key --project ${String(id)}`,
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
    usage: [
      {
        synopsis: "--id ID --confirm NAME",
        purpose: "delete a project and all its data; NAME is the name of the project",
      },
    ],
    options: ["id", "confirm"],
    run: (values) => {
      const deletion = { id: id(values, "id"), confirm: require(values, "confirm") };
      return (sql) => orMissing("project", deletion.id, deleteProject(sql, deletion, COMMAND_LINE));
    },
  },
  "delete-team": {
    usage: [
      {
        synopsis: "--id ID --confirm NAME",
        purpose: "delete a team and all its projects; NAME is the name of the team",
      },
    ],
    options: ["id", "confirm"],
    run: (values) => {
      const deletion = { id: id(values, "id"), confirm: require(values, "confirm") };
      return (sql) => orMissing("team", deletion.id, deleteTeam(sql, deletion, COMMAND_LINE));
    },
  },
  "generate-key": {
    usage: [
      { synopsis: "--project ID", purpose: "create a new project key and revoke the previous one at once" },
      {
        synopsis: "--project ID --name NAME --scope read|upload|run|triage [--days N]",
        purpose: "create an additional project key with a scope; N is the number of days until it expires",
      },
      { synopsis: "--team ID [--name NAME]", purpose: "create an additional team key" },
    ],
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
  "list-keys": listOfTeam(selectKeys),
  "revoke-key": {
    usage: [{ synopsis: "--id ID" }],
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
  ...ACCOUNT_COMMANDS,
  "planned-deletions": {
    usage: [
      {
        synopsis: "[--confirm | --keep] [--project ID]",
        purpose:
          "list the deletions of old data that begin a day after they were announced; --confirm begins them now, --keep keeps\n      the data until --confirm; of one project or of all",
      },
    ],
    options: ["project"],
    flags: ["confirm", "keep"],
    run: (values) => {
      const project = values["project"] === undefined ? undefined : id(values, "project");
      const [isConfirmed, isKept] = [values["confirm"] !== undefined, values["keep"] !== undefined];
      if (isConfirmed && isKept) throw new UsageError("planned-deletions takes either --confirm or --keep");
      return async (sql) => {
        if (isConfirmed || isKept) await updatePlannedDeletions(sql, isConfirmed, project);
        return { data: await selectPlannedDeletions(sql, project) };
      };
    },
  },
  "forget-secret-key": {
    usage: [
      {
        synopsis: "",
        purpose:
          "use this if SECRET_KEY is lost, nothing is encrypted with it and no server runs; the next server that starts\n      registers its own key",
      },
    ],
    options: [],
    needsStop: true,
    run: () => async (sql) => {
      await forgetSecretKey(sql);
      return { forgotten: true };
    },
  },
  quiet: {
    usage: [
      {
        synopsis: "[--revoke-all]",
        purpose:
          "after a restore with a tool of PostgreSQL: nothing is sent, started or deleted until admin resume; --revoke-all\n      revokes all keys, sessions, invitations and shared links",
      },
    ],
    options: [],
    flags: ["revoke-all"],
    upgrades: true,
    run: (values) => async (sql) => {
      const options = { restoredTo: new Date().toISOString(), revokes: values["revoke-all"] !== undefined };
      return { quiet: true, ...(await becomeQuiet(sql, options)) };
    },
  },
  resume: {
    usage: [
      {
        synopsis: "[--discard-pending]",
        purpose:
          "end the quiet time after a restore; --discard-pending gives up what waited to be sent when the backup was taken",
      },
    ],
    options: [],
    flags: ["discard-pending"],
    run: (values) => (sql) => resume(sql, { discards: values["discard-pending"] !== undefined }),
  },
};

/** Formats a result for people: a table for a list, and `name  value` pairs for an object. */
function toText(result: unknown): string {
  const { data } = result as { data?: Record<string, unknown>[] };
  if (data) return toTable(data);
  return Object.entries(result as object)
    .filter(([, field]) => field !== null)
    .map(([name, field]) => (field === true ? name : `${name} ${toCell(field)}`))
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

/** Names are free text: they must neither break the line nor contain terminal sequences. */
const toCell = (value: unknown): string => toPlainLine(String(value ?? "-"));

const STOP_TRIES = 20;
const STOP_PAUSE_MS = 100;

const FOOTER = `  --json   print one line of JSON

Admin commands take the same DATA_DIR or DATABASE_URL as the server.`;

const findCommand = (name: string | undefined): AdminCommand | undefined =>
  name !== undefined && Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;

/** The usage of all commands. */
const ADMIN_USAGE = Object.entries(COMMANDS)
  .map(([name, command]) => toUsage(name, command))
  .join("\n");

/** The help of one command, or of all where there is none of this name. */
export function adminHelp(name: string | undefined): string {
  const command = findCommand(name);
  const usage = command === undefined ? ADMIN_USAGE : toUsage(name!, command);
  return `Usage: assay admin ${command === undefined ? "COMMAND" : name} [options]\n\n${usage}\n\n${FOOTER}`;
}

/** The words that ask for the help of this command: "admin list-keys", or "admin" where there is none of this name. */
export const adminHelpTopic = (name: string | undefined): string => (findCommand(name) ? `admin ${name}` : "admin");

/** A server of another version that is connected would fail from then on. */
async function upgrade(database: Database, { stderr }: Invocation): Promise<void> {
  const applied = await database.begin(requireAnySchema);
  if (applied < (await schemaVersion())) await requireStopped(database);
  await migrate(database, stderr.print);
}

/** A server that is stopping is waited for. */
async function requireStopped({ begin }: Database): Promise<void> {
  for (let tries = 0; await begin(selectIsShared); tries++) {
    if (tries === STOP_TRIES)
      throw new Error("A server or another command of Assay uses the database: stop it, and repeat this command");
    await Bun.sleep(STOP_PAUSE_MS);
  }
}

export async function admin([name, ...args]: string[], invocation: Invocation): Promise<void> {
  const { stdout, stderr } = invocation;
  if (name === undefined) throw new UsageError("Missing command after admin");
  const command = findCommand(name);
  if (!command) throw new UsageError(`Unknown command: admin ${name}`);
  const { values, json } = parseOptions(args, command.options, command.flags);
  const work = await command.run(values, invocation);
  const database = await openExistingDatabase(readConfig(invocation.environment, invocation.directory));
  try {
    if (command.upgrades) await upgrade(database, invocation);
    if (command.needsStop) await requireStopped(database);
    const result = await database.begin(async (sql) => {
      // A server of another version may be running on the database.
      await requireCurrentSchema(sql);
      return await work(sql);
    });
    stdout.print(json ? toJsonLine(result) : toText(result));
    if (command.next && !json) stderr.print(command.next(result as Record<string, unknown>));
  } catch (error) {
    throw toDatabaseError(error);
  } finally {
    await database.close();
  }
}
