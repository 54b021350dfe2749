/** Environments of a team and their variables: values go in sealed, and secret ones never come out again. */

import { absent } from "../http/problem.ts";
import {
  changeEnvironment,
  createEnvironment,
  readVariables,
  removeEnvironment,
  removeVariable,
  replaceVariables,
  setVariable,
  toVariable,
} from "../operations/projects/environments.ts";
import { toPage } from "../request/page.ts";
import { json, noContent } from "../request/reply.ts";
import { route, type Route } from "../request/route.ts";
import {
  environment,
  environmentFilter,
  environmentPage,
  environmentPatch,
  newEnvironment,
  newVariable,
  replacedVariables,
  variable,
  variableFilter,
  variablePage,
} from "../schema/environments.ts";
import { selectEnvironment, selectEnvironments, selectVariables } from "../store/environments.ts";

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
      const { sql, params, query, page } = context;
      const rows = await selectEnvironments(sql, params.teamId, query.limit, page.after?.[0]);
      return toPage(context, rows, ({ slug }) => [slug]);
    },
  ),

  route(
    "POST /teams/:teamId/environments",
    {
      summary: "Create an environment",
      record: "environment.created",
      description: "The slug is unique in the team; a slug that exists already is answered 400.",
      example: { body: { slug: "staging", baseUrl: "https://staging.shop.example" } },
      body: newEnvironment,
      answer: environment,
      status: 201,
    },
    async ({ params, body, conclude }) => await conclude((sql) => createEnvironment(sql, params.teamId, body)),
  ),

  route(
    "GET /teams/:teamId/environments/:environmentId",
    {
      summary: "One environment",
      description: "Its names, address and number of variables.",
      answer: environment,
    },
    async ({ fast, params }) => (await selectEnvironment(fast, params.teamId, params.environmentId)) ?? absent(),
  ),

  route(
    "PATCH /teams/:teamId/environments/:environmentId",
    {
      summary: "Change an environment",
      description: "Changes the given fields and keeps the others; a slug that exists already is answered 400.",
      record: "environment.changed",
      example: { body: { description: "Reset every night" } },
      body: environmentPatch,
      answer: environment,
    },
    async ({ params, body, transact }) => await transact((sql) => changeEnvironment(sql, params, body)),
  ),

  route(
    "DELETE /teams/:teamId/environments/:environmentId",
    {
      summary: "Delete an environment with its variables",
      description:
        "Its variables are deleted permanently, and new executions of mode run that name it are refused. Existing " +
        "executions keep its name.",
      record: "environment.deleted",
      answer: null,
    },
    async ({ params, transact }) => {
      await transact((sql) => removeEnvironment(sql, params));
      return noContent();
    },
  ),

  route(
    "GET /teams/:teamId/environments/:environmentId/variables",
    {
      summary: "List variables by name, without the values of secret ones",
      description: "The values of secret variables are always null.",
      query: variableFilter,
      answer: variablePage,
    },
    async (context) => {
      const { sql, fast, params, query, page } = context;
      if (!(await selectEnvironment(fast, params.teamId, params.environmentId))) absent();
      const rows = await selectVariables(sql, params.teamId, params.environmentId, query.limit, page.after?.[0]);
      return toPage(
        context,
        rows,
        ({ name }) => [name],
        (row) => toVariable(context.services.seal, params, row),
      );
    },
  ),

  route(
    "PUT /teams/:teamId/environments/:environmentId/variables",
    {
      summary: "Replace all variables",
      record: "variables.replaced",
      description:
        "The body is a JSON object, or the text of a .env file, whose values are all secret. Either all variables are " +
        "replaced or none; variables that are not named are deleted. At most 1,000 variables. In a .env file comments, " +
        "export and quotes are supported, nothing is expanded, and the last value of a name counts.",
      body: "text",
      isSecret: true,
      answer: replacedVariables,
    },
    async ({ params, body, transact, services }) => {
      const variables = readVariables(body.text, body.contentType);
      await transact((sql) => replaceVariables(sql, services.seal, params, variables));
      return { variableCount: variables.size };
    },
  ),

  route(
    "PUT /teams/:teamId/environments/:environmentId/variables/:variableName",
    {
      summary: "Set a variable",
      record: "variable.changed",
      description:
        "The value is encrypted before it is stored. Answered 201 if the variable is new. A secret variable can be " +
        "replaced but never read.",
      example: { body: { value: "https://staging.shop.example", secret: false } },
      body: newVariable,
      isSecret: true,
      answer: variable,
      otherStatus: 201,
    },
    async ({ params, body, transact, services: { seal } }) => {
      const given = { name: params.variableName, ...body };
      const row = await transact((sql) => setVariable(sql, seal, params, given));
      return json(row.added ? 201 : 200, toVariable(seal, params, row));
    },
  ),

  route(
    "DELETE /teams/:teamId/environments/:environmentId/variables/:variableName",
    {
      summary: "Delete a variable",
      description: "Leases that were handed out before keep the value.",
      record: "variable.deleted",
      answer: null,
    },
    async ({ params, transact }) => {
      await transact((sql) => removeVariable(sql, params, params.variableName));
      return noContent();
    },
  ),
];
