/** Environments of a team and their variables: values go in sealed, and secret ones never come out again. */

import * as v from "valibot";
import { absent, fail } from "../http/problem.ts";
import { toPage } from "../request/page.ts";
import { json, noContent } from "../request/reply.ts";
import { type Context, route, type Route } from "../request/route.ts";
import { variablePlace } from "../secrets/places.ts";
import { parseDotenv } from "../rules/dotenv.ts";
import {
  environment,
  environmentFilter,
  environmentPage,
  environmentPatch,
  MAX_VARIABLES,
  newEnvironment,
  newVariable,
  replacedVariables,
  type Variable,
  variable,
  variableFilter,
  variableName,
  variableOrValue,
  variablePage,
} from "../schema/environments.ts";
import {
  deleteEnvironment,
  deleteVariable,
  deleteVariablesExcept,
  insertEnvironment,
  lockEnvironment,
  selectEnvironment,
  selectEnvironments,
  selectVariables,
  updateEnvironment,
  upsertVariables,
  type VariableRow,
} from "../store/environments.ts";

type Params = { teamId: string; environmentId: string };
type Sealing = Pick<Context<Params>, "services" | "params">;

const placeOf = ({ teamId, environmentId }: Params, name: string) => variablePlace(teamId, environmentId, name);

const toSealed = (
  { services, params }: Sealing,
  name: string,
  { value, secret }: { value: string; secret: boolean },
) => ({
  name,
  secret,
  sealed: services.seal.seal(placeOf(params, name), value),
});

const toVariable = ({ services, params }: Sealing, { name, secret, sealed, updatedAt }: VariableRow): Variable => ({
  name,
  secret,
  value: secret ? null : services.seal.open(placeOf(params, name), sealed),
  updatedAt,
});

const taken = (slug: string | undefined) =>
  fail("VALIDATION_ERROR", `Cannot read "slug": there is an environment "${slug}" already`);

/** A JSON object of names, or the text of a .env file. */
function readVariables(text: string, contentType: string): Map<string, { value: string; secret: boolean }> {
  // Secrets cannot be read back: a request that has lost its body must not delete them.
  if (text.trim() === "") fail("VALIDATION_ERROR", `Cannot read the body: it is empty; {} removes all variables`);
  const isJson = /^application\/json\b/i.test(contentType) || (!/^text\//i.test(contentType) && /^\s*\{/.test(text));
  const given = isJson ? readJson(text) : readDotenv(text);
  if (given.length > MAX_VARIABLES)
    fail("VALIDATION_ERROR", `Cannot read the body: expected at most ${MAX_VARIABLES} variables, got ${given.length}`);
  // One by one, because a record of valibot leaves out names such as "constructor".
  const results = given.map(
    ([name, value]) => [v.safeParse(variableName, name), v.safeParse(variableOrValue, value), name] as const,
  );
  const problems = results.flatMap(([key, value, name]) =>
    [...(key.issues ?? []), ...(value.issues ?? [])].map(
      ({ message }) => `Cannot read ${JSON.stringify(name.slice(0, 200).toWellFormed())}: ${message}`,
    ),
  );
  if (problems.length > 0) fail("VALIDATION_ERROR", [...new Set(problems)].slice(0, 20).join("; "));
  return new Map(
    results.map(([key, value]) => [key.output as string, value.output as { value: string; secret: boolean }]),
  );
}

function readJson(text: string): [name: string, value: unknown][] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The engine's words would quote the text, which holds secrets.
    fail("VALIDATION_ERROR", "Cannot read the body: not valid JSON");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    fail("VALIDATION_ERROR", "Cannot read the body: expected a JSON object");
  return Object.entries(value);
}

function readDotenv(text: string): [name: string, value: unknown][] {
  const { variables, problems } = parseDotenv(text);
  if (problems.length > 0) fail("VALIDATION_ERROR", `Cannot read the body: ${problems.join("; ")}`);
  // The last one wins, as it does where such a file is used.
  return [...new Map(variables.map(({ name, value }) => [name, value]))];
}

export const environments: Route[] = [
  route(
    "GET /teams/:teamId/environments",
    {
      summary: "List environments, by slug",
      description: "All environments of the team.",
      query: environmentFilter,
      answer: environmentPage,
    },
    async (context) => {
      const { sql, params, query, after } = context;
      const rows = await selectEnvironments(sql, params.teamId, query.limit, after?.[0]);
      return toPage(context, rows, ({ slug }) => [slug]);
    },
  ),

  route(
    "POST /teams/:teamId/environments",
    {
      summary: "Create an environment",
      description: "One slug names one environment of the team; one that is taken is a 400.",
      example: { body: { slug: "staging", baseUrl: "https://staging.shop.example" } },
      body: newEnvironment,
      answer: environment,
      status: 201,
    },
    async ({ params, body, conclude }) =>
      await conclude(async (sql) => (await insertEnvironment(sql, params.teamId, body)) ?? taken(body.slug)),
  ),

  route(
    "GET /teams/:teamId/environments/:environmentId",
    {
      summary: "One environment",
      description: "What it is called, and how many variables it has.",
      answer: environment,
    },
    async ({ fast, params }) => (await selectEnvironment(fast, params.teamId, params.environmentId)) ?? absent(),
  ),

  route(
    "PATCH /teams/:teamId/environments/:environmentId",
    {
      summary: "Change an environment",
      description: "Changes what is given and leaves the rest; a slug that is taken is a 400.",
      example: { body: { description: "Reset every night" } },
      body: environmentPatch,
      answer: environment,
    },
    async ({ params, body, transact }) =>
      await transact(async (sql) => {
        if (!(await lockEnvironment(sql, params.teamId, params.environmentId))) absent();
        return (await updateEnvironment(sql, params.teamId, params.environmentId, body)) ?? taken(body.slug);
      }),
  ),

  route(
    "DELETE /teams/:teamId/environments/:environmentId",
    {
      summary: "Delete an environment with its variables",
      description:
        "Its variables are gone for good, and executions of mode run that name it are refused. Those that there are keep its name.",
      answer: null,
    },
    async ({ params, transact }) =>
      (await transact((sql) => deleteEnvironment(sql, params.teamId, params.environmentId))) ? noContent() : absent(),
  ),

  route(
    "GET /teams/:teamId/environments/:environmentId/variables",
    {
      summary: "List variables, by name; secret ones without their values",
      description: "The values of secret ones are null, for ever and for everybody.",
      query: variableFilter,
      answer: variablePage,
    },
    async (context) => {
      const { sql, fast, params, query, after } = context;
      if (!(await selectEnvironment(fast, params.teamId, params.environmentId))) absent();
      const rows = await selectVariables(sql, params.teamId, params.environmentId, query.limit, after?.[0]);
      return toPage(
        context,
        rows,
        ({ name }) => [name],
        (row) => toVariable(context, row),
      );
    },
  ),

  route(
    "PUT /teams/:teamId/environments/:environmentId/variables",
    {
      summary: "Replace all variables: a JSON object, or the text of a .env file whose values are all secret",
      description:
        "All at once, or none: variables that are not named are deleted. At most 1,000. Of a .env file comments, " +
        "export and quotes are understood, nothing is expanded, and the last of several of one name wins.",
      body: "text",
      isSecret: true,
      answer: replacedVariables,
    },
    async (context) => {
      const { params, body, transact } = context;
      const variables = readVariables(body.text, body.contentType);
      const sealed = [...variables].map(([name, value]) => toSealed(context, name, value));
      return await transact(async (sql) => {
        if (!(await lockEnvironment(sql, params.teamId, params.environmentId))) absent();
        await deleteVariablesExcept(sql, params.teamId, params.environmentId, [...variables.keys()]);
        await upsertVariables(sql, params.teamId, params.environmentId, sealed);
        return { variableCount: sealed.length };
      });
    },
  ),

  route(
    "PUT /teams/:teamId/environments/:environmentId/variables/:variableName",
    {
      summary: "Set a variable",
      description: "Sealed before it is stored. 201 where it is new. A secret one can be replaced, and never be read.",
      example: { body: { value: "https://staging.shop.example", secret: false } },
      body: newVariable,
      isSecret: true,
      answer: variable,
      otherStatus: 201,
    },
    async (context) => {
      const { params, body, transact } = context;
      const sealed = toSealed(context, params.variableName, body);
      return await transact(async (sql) => {
        if (!(await lockEnvironment(sql, params.teamId, params.environmentId))) absent();
        const [row] = await upsertVariables(sql, params.teamId, params.environmentId, [sealed]);
        return json(row!.added ? 201 : 200, toVariable(context, row!));
      });
    },
  ),

  route(
    "DELETE /teams/:teamId/environments/:environmentId/variables/:variableName",
    { summary: "Delete a variable", description: "Leases that were handed out before keep its value.", answer: null },
    async ({ params, transact }) =>
      (await transact((sql) => deleteVariable(sql, params.teamId, params.environmentId, params.variableName)))
        ? noContent()
        : absent(),
  ),
];
