/** Writes `src/server/openapi.json`: the OpenAPI 3.1 document, made from the route table and the schemas that check requests. */

import { toJsonSchema, toJsonSchemaDefs } from "@valibot/to-json-schema";
import { join } from "node:path";
import * as v from "valibot";
import { ROUTES } from "./app.ts";
import { operationIdOf } from "./operation_ids.ts";
import { STATUS } from "../http/problem.ts";
import { TOOLS } from "../mcp/tools.ts";
import { type Route } from "../request/route.ts";
import { csvTableOf, NEXT_CURSOR } from "../request/csv_reply.ts";
import packageJson from "../../package.json" with { type: "json" };
import { requestBody } from "./openapi_bodies.ts";
import { streamEvent, webhooks, webhookSchemas } from "./openapi_events.ts";
import { content, convert, definitions, hoist, type Json, requests, settings } from "./openapi_schemas.ts";

export const OPENAPI_FILE = join(import.meta.dir, "openapi.json");
/** The input schemas of the tools for assistants, as JSON Schema. */
export const INPUT_SCHEMAS_FILE = join(import.meta.dir, "../mcp/input_schemas.json");

/** Families of endpoints, in the order in which users get to know them. */
const TAGS: Record<string, string> = {
  "test-runs": "Test results, one run for each task of an execution. CI uploads its reports here.",
  attachments:
    "Files that explain results: screenshots, videos, traces, logs. They arrive with a report or after it, and join the test cases that name them.",
  executions:
    "An execution runs one or more tasks, such as a build: its result, its new failures, and whether all reports " +
    "have arrived.",
  verdicts: "Whether the failures of an execution are forgiven, so that a build may pass although tests failed.",
  "test-cases": "Every test case that has been reported: its health, history, owner and quarantine.",
  verifications: "A test case that is run many times at one commit, until it is certain how often it fails.",
  "bug-reports":
    "Failures with one cause. Failures of the default branch open bug reports automatically; bug reports are " +
    "triaged, merged, resolved, and reopened if the bug returns.",
  owners: "The CODEOWNERS file that gives test cases, failures and bug reports their owners.",
  trends: "Figures of the project by day.",
  state: "Whether a branch is red or green, since when, and which tasks make it so.",
  events: "Live events of the project or of one execution.",
  uploads: "Uploads that were refused or accepted with warnings, and why.",
  projects: "The project and its settings. Its key is generated in the dashboard or by the administrator.",
  keys: "Named keys of the project, each with a scope: for a CI job that only uploads, an assistant that only reads, a runner.",
  onboarding: "First steps of a new project, snippets for CI systems, sample data.",
  runners:
    "Machines that run the tasks of executions of mode run. A runner synchronises with a single call; a lease is a " +
    "task that it holds. Plans assign the files of a task to jobs.",
  environments: "Environments of the tests, such as staging, with variables for runners. They belong to the team.",
  integrations:
    "External services that receive messages, issues, commit statuses and pipelines. They belong to the team.",
  automations: "Rules with a trigger, conditions and actions. They belong to the team.",
  "infrastructure-rules":
    "Texts of failures that are not the fault of a test, such as an unavailable registry. They belong to the team.",
};
const FAMILIES: Record<string, string> = {
  leases: "runners",
  export: "projects",
  "gate-preview": "projects",
  undefined: "projects",
};

/** Returns the tag by the first part of the path below the project or team; paths below a test run belong to test runs, or to runners. */
function tagOf(path: string): string {
  if (/\/(?:plan|batches|leases)$/.test(path)) return "runners";
  if (path.endsWith("/attachments")) return "attachments";
  if (path.endsWith("/verdict")) return "verdicts";
  if (path.includes("/test-runs")) return "test-runs";
  const family = String(path.split("/")[3]);
  return FAMILIES[family] ?? family;
}

/** The scopes of named keys that may call a route; the keys of runners are not named ones. */
const namedScopesOf = ({ access, scopes }: Route): string[] =>
  access === "team" ? [] : [...scopes].filter((scope) => scope !== "runner").sort();

/** Descriptions of path parameters. */
const PATH_PARAMETERS: Record<string, string> = {
  projectId: "The project of the key",
  teamId: "The team of the key",
  executionId: "The execution",
  taskSlug: "The task of the execution, such as unit",
  attachmentId: "The attachment",
  leaseId: "The lease of the runner",
  keyId: "The named key",
  testCaseId: "The test case",
  bugReportId: "The bug report",
  environmentId: "The environment",
  verificationId: "The verification",
  infrastructureRuleId: "The infrastructure rule",
  variableName: "The name of the variable: letters, digits and _, at most 128, not beginning with a digit",
  integrationId: "The integration",
  deliveryId: "The delivery",
  automationId: "The automation",
};

/** The header with which a client resumes a stream. */
const LAST_EVENT_ID = {
  name: "Last-Event-ID",
  in: "header",
  required: false,
  description: "The id of the last received event; the stream continues after it",
  schema: { type: "string", examples: ["84213.1769860800"] },
};

/** The name and the occasion of the response for each error code. */
const ERRORS: Record<keyof typeof STATUS, [name: string, when: string]> = {
  VALIDATION_ERROR: [
    "Invalid",
    "A parameter or the body is invalid, unknown or too large, or the current state does not allow the request. The " +
      "message names all mistakes, and nothing was changed",
  ],
  UNAUTHORIZED: [
    "Unauthorized",
    "The key is missing, invalid, revoked, or of the wrong kind for the path; with WWW-Authenticate: Bearer",
  ],
  NOT_FOUND: [
    "NotFound",
    "The path, the method (Allow lists the supported ones) or the object does not exist, or the key has no access to " +
      "it",
  ],
  RATE_LIMITED: ["RateLimited", "The rate limit is exceeded; retry after Retry-After seconds"],
  INTERNAL_ERROR: [
    "Internal",
    "The server failed; its log has the error with this X-Request-Id. Retry-After is set if a retry helps, for " +
      "example if the database is unavailable",
  ],
};

const rateHeaders = Object.fromEntries(
  ["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"].map((name) => [
    name,
    { $ref: `#/components/headers/${name}` },
  ]),
);

/** A parameter is sent as text; its schema has the meaning of the text in the metadata. */
function onTheWire(schema: v.GenericSchema): Json {
  const {
    description: _,
    examples: __,
    ...rest
  } = (v.getMetadata(schema)["openapi"] as Json | undefined) ?? convert(schema, "input");
  return rest;
}

function parameters(route: Route): Json[] {
  const path = Object.entries(route.pathParameters.entries).map(([name, schema]) => ({
    name,
    in: "path",
    required: true,
    description: PATH_PARAMETERS[name],
    schema: { ...onTheWire(schema as v.GenericSchema), ...examplesOf(schema as v.GenericSchema) },
  }));
  const query = Object.entries(route.query.entries).map(([name, entry]) => {
    const { type, wrapped, default: fallback } = entry as v.OptionalSchema<v.GenericSchema, unknown>;
    const optional = type === "optional";
    const inner = optional ? wrapped : (entry as v.GenericSchema);
    const description = v.getDescription(entry as v.GenericSchema) ?? v.getDescription(inner);
    const wire = onTheWire(inner);
    const standard = typeof fallback === "string" ? { default: toTyped(fallback, wire) } : {};
    const schema = { ...wire, ...standard, ...examplesOf(entry as v.GenericSchema, inner) };
    const example = route.example.query?.[name];
    return {
      ...{ name, in: "query", required: !optional, description, schema },
      ...(example === undefined ? {} : { example: toTyped(example, wire) }),
    };
  });
  const idempotency = route.method === "POST" ? [{ $ref: "#/components/parameters/IdempotencyKey" }] : [];
  const resumption = route.stream === undefined ? [] : [{ $ref: "#/components/parameters/LastEventId" }];
  return [...path, ...query, ...idempotency, ...resumption];
}

/** The value that the text of a parameter stands for. */
const toTyped = (text: string, { type }: Json): unknown =>
  type === "integer" || type === "number" || type === "boolean" ? JSON.parse(text) : text;

function examplesOf(...schemas: v.GenericSchema[]): Json {
  const examples = schemas.map((schema) => v.getExamples(schema)).find(({ length }) => length > 0);
  return examples ? { examples } : {};
}

const cursorHeader = {
  [NEXT_CURSOR]: {
    description: "With text/csv: the cursor of the next page; missing on the last one",
    schema: { type: "string" },
  },
};
/** Sentences about answers in other formats than the schema, which clients ask for with Accept. */
const otherFormats = (route: Route): string[] => [
  ...(csvTableOf(route)
    ? [
        "With Accept: text/csv the elements of the page are comma-separated values (RFC 4180), with a line of field names. " +
          "Objects and lists are written as JSON, and a text that a spreadsheet would run as a formula begins with an " +
          `apostrophe; ${NEXT_CURSOR} is pagination.cursor`,
      ]
    : []),
  ...(route.text === undefined ? [] : [`With Accept: text/plain: ${route.text}`]),
];

const statusText = (route: Route, status: number) => {
  if (route.stream !== undefined) return status === 204 ? "The stream has ended" : route.stream;
  if (route.lines !== undefined) return route.lines;
  if (status === 204) return "Done, without content";
  const isEither = route.otherStatus !== undefined;
  return status === 201 ? "Created" : isEither ? "It existed already" : "The answer";
};

function operation(route: Route): Json {
  const answer = route.answer && {
    content: {
      ...content(convert(route.answer, "output")),
    },
  };
  const stream = route.stream !== undefined && {
    content: content({ $ref: "#/components/schemas/StreamEvent" }, "text/event-stream"),
  };
  const file =
    route.file === undefined
      ? undefined
      : { content: content({ type: "string", format: "binary", description: route.file }, "*/*") };
  const lines =
    route.lines === undefined
      ? undefined
      : { content: content({ type: "string", description: "NDJSON" }, "application/x-ndjson") };
  const success = (status: number) => ({
    [status]: {
      ...{
        description: statusText(route, status),
        headers: csvTableOf(route) ? { ...rateHeaders, ...cursorHeader } : rateHeaders,
      },
      ...(stream ? status !== 204 && stream : (file ?? lines ?? answer)),
    },
  });
  return {
    operationId: operationIdOf(route),
    summary: route.summary,
    ...(route.description === undefined
      ? {}
      : { description: [route.description.replace(/\.$/, ""), ...otherFormats(route)].join(". ") }),
    tags: [tagOf(route.path)],
    security: [{ [`${route.access}Key`]: namedScopesOf(route) }],
    parameters: parameters(route),
    ...requestBody(route),
    responses: {
      ...success(route.status),
      ...(route.otherStatus === undefined ? {} : success(route.otherStatus)),
      ...Object.fromEntries(
        Object.entries(ERRORS).map(([code, [name]]) => [
          STATUS[code as keyof typeof STATUS],
          { $ref: `#/components/responses/${name}` },
        ]),
      ),
    },
  };
}

const integerHeader = (description: string) => ({ description, schema: { type: "integer" } });

/** The whole document; deterministic. */
export function createOpenapi(): Json {
  const paths: Record<string, Json> = {};
  for (const route of ROUTES) {
    const path = route.path.replace(/:(\w+)/g, "{$1}");
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation(route) };
  }
  const used = new Set(ROUTES.map(({ path }) => tagOf(path)));
  const tags = Object.entries(TAGS).flatMap(([name, description]) => (used.has(name) ? [{ name, description }] : []));
  return {
    openapi: "3.1.0",
    info: {
      title: "Assay",
      version: packageJson.version,
      description:
        "Test execution and bug reporting. Bodies are JSON in camelCase, query parameters snake_case, ids UUIDs, times ISO 8601 in " +
        "UTC with milliseconds, durations integers of milliseconds. Unknown parameters and fields are refused. Every answer has the rate limit headers; a limit of 2147483647 means that there is no limit. " +
        "Assistants use the Model Context Protocol at POST /mcp, outside of /api/v1, with the same keys.",
      contact: { name: "The administrator of this server" },
      license: { name: "The owner of Assay has not chosen one yet" },
    },
    servers: [{ url: "/api/v1" }],
    tags,
    paths,
    webhooks: webhooks(),
    components: {
      securitySchemes: {
        projectKey: {
          type: "http",
          scheme: "bearer",
          description: "The key of a project (svc_proj_…), for everything below the path of the project",
        },
        teamKey: {
          type: "http",
          scheme: "bearer",
          description:
            "A key of a team (svc_team_…), for environments, integrations and automations, but not for projects",
        },
      },
      schemas: {
        ...(hoist(toJsonSchemaDefs(definitions, { ...settings, typeMode: "output" } as never)) as Json),
        ...(hoist(toJsonSchemaDefs(requests, { ...settings, typeMode: "input" } as never)) as Json),
        ...webhookSchemas(),
        StreamEvent: streamEvent(),
        Error: {
          type: "object",
          required: ["error"],
          additionalProperties: false,
          properties: {
            error: {
              type: "object",
              description: "The error",
              required: ["code", "message"],
              additionalProperties: false,
              properties: {
                code: {
                  enum: Object.keys(STATUS),
                  description: "One of five error codes",
                  examples: ["VALIDATION_ERROR"],
                },
                message: {
                  type: "string",
                  description: "A message for people that names all mistakes",
                  examples: ['Cannot read "limit": expected an integer from 1 to 100, got "abc"'],
                },
              },
            },
          },
        },
      },
      responses: Object.fromEntries(
        Object.values(ERRORS).map(([name, description]) => [
          name,
          { description, headers: rateHeaders, content: content({ $ref: "#/components/schemas/Error" }) },
        ]),
      ),
      headers: {
        "X-RateLimit-Limit": integerHeader("The maximum number of requests in any 60 seconds; 2147483647: no limit"),
        "X-RateLimit-Remaining": integerHeader("The number of remaining requests"),
        "X-RateLimit-Reset": integerHeader(
          "Unix seconds, rounded up, at which the oldest counted request leaves the window",
        ),
      },
      parameters: {
        LastEventId: LAST_EVENT_ID,
        IdempotencyKey: {
          name: "Idempotency-Key",
          in: "header",
          required: false,
          description:
            "A text of 1 to 255 printable characters that you choose. Repeating a request with the same key within 24 hours " +
            "has no further effect and returns the stored answer, with Idempotent-Replayed: true. With another body it is " +
            "answered 400",
          schema: { type: "string", pattern: "^[\\x21-\\x7e]{1,255}$", examples: ["build-4711-unit"] },
        },
      },
    },
  };
}

/** The arguments of each tool for assistants; deterministic. */
export const createInputSchemas = (): Json =>
  Object.fromEntries(
    TOOLS.map(({ name, input }) => {
      const { $schema: _, ...schema } = toJsonSchema(input, { ...settings, typeMode: "input" } as never) as Json;
      return [name, hoist(schema)];
    }),
  );

if (import.meta.main) {
  await Bun.write(OPENAPI_FILE, `${JSON.stringify(createOpenapi(), null, 2)}\n`);
  await Bun.write(INPUT_SCHEMAS_FILE, `${JSON.stringify(createInputSchemas(), null, 2)}\n`);
}
