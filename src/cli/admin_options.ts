/** Code that the commands of `assay admin` share: how they are declared, and how they read their options. */

import * as v from "valibot";
import type { Tx } from "../database/connect.ts";
import { text, uuid } from "../schema/fields.ts";
import { Refusal } from "../schema/refusal.ts";
import { selectTeamExists } from "../store/projects.ts";
import type { Invocation } from "./invocation.ts";
import { require, UsageError } from "./usage.ts";

export type Values = Record<string, string>;
export type AdminWork = (sql: Tx) => Promise<unknown>;
export type AdminCommand = {
  /** The ways to call the command: its options, and what it does where the name does not say it. */
  usage: { synopsis: string; purpose?: string }[];
  options: string[];
  flags?: string[];
  /**
   * Whether it runs before the first server of this version, and upgrades the database. Other commands refuse a database of another schema.
   */
  upgrades?: true;
  /** It is refused while a server is connected to the database. */
  needsStop?: true;
  /** Returns a line that names the usual next command. It is printed on standard error, unless `--json` is given. */
  next?: (result: Record<string, unknown>) => string;
  run: (values: Values, invocation: Invocation) => AdminWork | Promise<AdminWork>;
};

/** The lines of a command for a help text. */
export const toUsage = (name: string, { usage }: AdminCommand): string =>
  usage
    .map(({ synopsis, purpose }) => {
      const call = `  admin ${name} ${synopsis}`.trimEnd();
      return purpose === undefined ? call : `${call}\n      ${purpose}`;
    })
    .join("\n");

export function id(values: Values, name: string): string {
  const parsed = v.safeParse(uuid, require(values, name));
  if (!parsed.success) throw new UsageError(`--${name}: expected a UUID, got "${values[name]}"`);
  return parsed.output;
}

export function readName(values: Values): string {
  const parsed = v.safeParse(text(200), require(values, "name"));
  if (!parsed.success) throw new UsageError(`--name: ${parsed.issues[0].message}`);
  return parsed.output;
}

/** Throws UsageError. */
export function option<Schema extends v.GenericSchema<string, string>>(schema: Schema, values: Values, name: string) {
  const parsed = v.safeParse(schema, require(values, name));
  if (!parsed.success) throw new UsageError(`--${name}: ${parsed.issues[0].message}`);
  return parsed.output as v.InferOutput<Schema>;
}

export function missing(what: "team" | "project" | "key" | "account" | "trust rule", id: string): never {
  throw new Error(`No such ${what}: "${id}"`);
}

/** Returns the option for a field: `--repository-id` for `repositoryId`. */
export const toOption = (field: string): string =>
  `--${field.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

/** Says which one is missing where an operation refuses it as absent, and which option where it refuses a field. */
export const orMissing = <T>(what: "team" | "project", id: string, work: Promise<T>): Promise<T> =>
  work.catch((error) => {
    if (!(error instanceof Refusal)) throw error;
    if (error.kind === "absent") missing(what, id);
    throw new Error(error.message.replace(/^Cannot read "(\w+)"/, (_, field: string) => toOption(field)));
  });

/** Throws if there is no such team. */
export async function requireTeam(sql: Tx, id: string): Promise<void> {
  if (!(await selectTeamExists(sql, id))) missing("team", id);
}

/** Declares a command that lists what `select` returns for a team. */
export const listOfTeam = (select: (sql: Tx, team: string) => PromiseLike<unknown>): AdminCommand => ({
  usage: [{ synopsis: "--team ID" }],
  options: ["team"],
  run: (values) => {
    const team = id(values, "team");
    return async (sql) => {
      await requireTeam(sql, team);
      return { data: await select(sql, team) };
    };
  },
});
