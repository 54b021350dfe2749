/** Environments of a team and their variables: values go in sealed, and secret ones come out only with a lease. */

import * as v from "valibot";
import { parseDotenv } from "../../rules/dotenv.ts";
import {
  type Environment,
  type EnvironmentPatch,
  MAX_VARIABLES,
  type NewEnvironment,
  type Variable,
  variableName,
  variableOrValue,
} from "../../schema/environments.ts";
import { refuse, refuseAbsent } from "../../schema/refusal.ts";
import { variablePlace } from "../../secrets/places.ts";
import type { Seal } from "../../secrets/seal.ts";
import type { Tx } from "../../database/connect.ts";
import {
  deleteEnvironment,
  deleteVariable,
  deleteVariablesExcept,
  insertEnvironment,
  lockEnvironment,
  selectEnvironment,
  updateEnvironment,
  upsertVariables,
  type VariableRow,
} from "../../store/environments.ts";

/** Which environment, of which team. */
export type EnvironmentKey = { teamId: string; environmentId: string };
type GivenVariable = { value: string; secret: boolean };

const taken = (slug: string | undefined) => refuse(`Cannot read "slug": there is an environment "${slug}" already`);

export const createEnvironment = async (sql: Tx, teamId: string, given: NewEnvironment): Promise<Environment> =>
  (await insertEnvironment(sql, teamId, given)) ?? taken(given.slug);

export async function changeEnvironment(
  sql: Tx,
  { teamId, environmentId }: EnvironmentKey,
  patch: EnvironmentPatch,
): Promise<Environment> {
  if (!(await lockEnvironment(sql, teamId, environmentId))) refuseAbsent();
  return (await updateEnvironment(sql, teamId, environmentId, patch)) ?? taken(patch.slug);
}

/** Deletes an environment with its variables. Returns the slug that it had. */
export const removeEnvironment = async (sql: Tx, { teamId, environmentId }: EnvironmentKey): Promise<string> =>
  (await deleteEnvironment(sql, teamId, environmentId)) ?? refuseAbsent();

const placeOf = ({ teamId, environmentId }: EnvironmentKey, name: string) => variablePlace(teamId, environmentId, name);

/** Returns the variable as answers show it. */
export const toVariable = (
  seal: Seal,
  place: EnvironmentKey,
  { name, secret, sealed, updatedAt }: VariableRow,
): Variable => ({ name, secret, value: secret ? null : seal.open(placeOf(place, name), sealed), updatedAt });

const toSealed = (seal: Seal, place: EnvironmentKey, name: string, { value, secret }: GivenVariable) => ({
  name,
  secret,
  sealed: seal.seal(placeOf(place, name), value),
});

/** Sets a variable; returns the row and whether it is new. */
export async function setVariable(
  sql: Tx,
  seal: Seal,
  place: EnvironmentKey,
  { name, ...given }: GivenVariable & { name: string },
): Promise<VariableRow & { added: boolean }> {
  if (!(await lockEnvironment(sql, place.teamId, place.environmentId))) refuseAbsent();
  const [row] = await upsertVariables(sql, place.teamId, place.environmentId, [toSealed(seal, place, name, given)]);
  return row!;
}

/** Replaces all variables by these. */
export async function replaceVariables(
  sql: Tx,
  seal: Seal,
  place: EnvironmentKey,
  variables: ReadonlyMap<string, GivenVariable>,
): Promise<void> {
  if (!(await lockEnvironment(sql, place.teamId, place.environmentId))) refuseAbsent();
  await deleteVariablesExcept(sql, place.teamId, place.environmentId, [...variables.keys()]);
  await storeVariables(sql, seal, place, variables);
}

/** Sets these variables and keeps the others. */
export async function addVariables(
  sql: Tx,
  seal: Seal,
  place: EnvironmentKey,
  variables: ReadonlyMap<string, GivenVariable>,
): Promise<void> {
  if (!(await lockEnvironment(sql, place.teamId, place.environmentId))) refuseAbsent();
  await storeVariables(sql, seal, place, variables);
  const { variableCount } = (await selectEnvironment(sql, place.teamId, place.environmentId))!;
  if (variableCount > MAX_VARIABLES)
    refuse(`Cannot add the variables: expected at most ${MAX_VARIABLES} variables, got ${variableCount}`);
}

const storeVariables = (sql: Tx, seal: Seal, place: EnvironmentKey, variables: ReadonlyMap<string, GivenVariable>) => {
  const sealed = [...variables].map(([name, given]) => toSealed(seal, place, name, given));
  return upsertVariables(sql, place.teamId, place.environmentId, sealed);
};

export async function removeVariable(sql: Tx, { teamId, environmentId }: EnvironmentKey, name: string): Promise<void> {
  if (!(await deleteVariable(sql, teamId, environmentId, name))) refuseAbsent();
}

/** Reads a JSON object of names, or the text of a .env file, whose values are all secret. Refuses invalid input without quoting it. */
export function readVariables(text: string, contentType: string): Map<string, GivenVariable> {
  // Secrets cannot be read back: a request that has lost its body must not delete them.
  if (text.trim() === "") refuse(`Cannot read the body: it is empty; {} removes all variables`);
  const isJson = /^application\/json\b/i.test(contentType) || (!/^text\//i.test(contentType) && /^\s*\{/.test(text));
  const given = isJson ? readJson(text) : readDotenv(text);
  if (given.length > MAX_VARIABLES)
    refuse(`Cannot read the body: expected at most ${MAX_VARIABLES} variables, got ${given.length}`);
  // One by one, because a record of valibot leaves out names such as "constructor".
  const results = given.map(
    ([name, value]) => [v.safeParse(variableName, name), v.safeParse(variableOrValue, value), name] as const,
  );
  const problems = results.flatMap(([key, value, name]) =>
    [...(key.issues ?? []), ...(value.issues ?? [])].map(
      ({ message }) => `Cannot read ${JSON.stringify(name.slice(0, 200).toWellFormed())}: ${message}`,
    ),
  );
  if (problems.length > 0) refuse([...new Set(problems)].slice(0, 20).join("; "));
  return new Map(results.map(([key, value]) => [key.output as string, value.output as GivenVariable]));
}

function readJson(text: string): [name: string, value: unknown][] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The engine's words would quote the text, which holds secrets.
    refuse("Cannot read the body: not valid JSON");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    refuse("Cannot read the body: expected a JSON object");
  return Object.entries(value);
}

function readDotenv(text: string): [name: string, value: unknown][] {
  const { variables, problems } = parseDotenv(text);
  if (problems.length > 0) refuse(`Cannot read the body: ${problems.join("; ")}`);
  // The last one wins, as in other readers of such files.
  return [...new Map(variables.map(({ name, value }) => [name, value]))];
}
