/** Writes `src/server/openapi.json`: the OpenAPI 3.1 document, made from the route table and the schemas that check requests. */

import { toJsonSchema, toJsonSchemaDefs } from "@valibot/to-json-schema";
import { join } from "node:path";
import * as v from "valibot";
import { ROUTES } from "./app.ts";
import { STATUS } from "../http/problem.ts";
import { TOOLS } from "../mcp/tools.ts";
import { emptyBody, type Route } from "../request/route.ts";
import { automationAction, automation, automationRun, conditions, trigger } from "../schema/automations.ts";
import { bugReport, bugReportDetail } from "../schema/bug_reports.ts";
import { caseRef } from "../schema/case_ref.ts";
import { comparison } from "../schema/comparisons.ts";
import { environment, newVariable, variable } from "../schema/environments.ts";
import { execution, plannedTask } from "../schema/executions.ts";
import { executionFailures } from "../schema/failures.ts";
import { delivery, dispatch, integration } from "../schema/integrations.ts";
import { onboarding } from "../schema/onboarding.ts";
import { pagination } from "../schema/page.ts";
import { plan } from "../schema/plans.ts";
import { project } from "../schema/projects.ts";
import { nativeCase, nativeReport } from "../schema/reports.ts";
import { testCase, testCaseResult } from "../schema/test_cases.ts";
import { caseResult, testRun, uploadedRun } from "../schema/test_runs.ts";
import { branchState } from "../schema/state.ts";
import { projectTrends } from "../schema/trends.ts";
import { loggedUpload } from "../schema/uploads.ts";
import packageJson from "../../package.json" with { type: "json" };

export const OPENAPI_FILE = join(import.meta.dir, "openapi.json");
/** What the tools for assistants take, as JSON Schema. */
export const INPUT_SCHEMAS_FILE = join(import.meta.dir, "../mcp/input_schemas.json");

type Json = Record<string, unknown>;

/** Parts of requests that have a name of their own in the document. */
const requests: Record<string, v.GenericSchema> = {
  AutomationAction: automationAction,
  AutomationConditions: conditions,
  AutomationTrigger: trigger,
  Dispatch: dispatch,
  PlannedTask: plannedTask,
  ReportedCase: nativeCase,
};

/** Answers that have a name of their own in the document. */
const definitions: Record<string, v.GenericSchema> = {
  Automation: automation,
  AutomationRun: automationRun,
  BugReport: bugReport,
  BugReportDetail: bugReportDetail,
  CaseRef: caseRef,
  CaseResult: caseResult,
  Comparison: comparison,
  Delivery: delivery,
  Environment: environment,
  Execution: execution,
  ExecutionFailures: executionFailures,
  Integration: integration,
  Onboarding: onboarding,
  Pagination: pagination,
  Plan: plan,
  Project: project,
  TestCase: testCase,
  TestCaseResult: testCaseResult,
  TestRun: testRun,
  Trends: projectTrends,
  BranchState: branchState,
  Upload: loggedUpload,
  UploadedRun: uploadedRun,
  Variable: variable,
};

/** Families of endpoints, in the order in which somebody gets to know them. */
const TAGS: Record<string, string> = {
  "test-runs":
    "What a test tool has reported, one run for each task of an execution. CI uploads its reports here, and lists what has come.",
  executions:
    "One trigger of one or more tasks, such as a build: what came of it, what is new about its failures, and whether all of it is in.",
  "test-cases":
    "Every test case that has ever been reported: how healthy it is, its history, its owner, its quarantine.",
  "bug-reports":
    "Failures that are one bug. The default branch opens them by itself; they are triaged, merged, resolved, and reopened when the bug is back.",
  trends: "How the project has been doing, day by day.",
  state: "Whether a branch is red or green, since when, and which tasks make it so.",
  events: "What happens in the project or in one execution, as it happens.",
  uploads: "Nothing arrives? The uploads that were refused, or accepted with warnings, and why.",
  projects: "The project itself and its settings. Its key is generated in the dashboard, or by the administrator.",
  keys: "Named keys of the project, each with a scope: for a CI job that only uploads, an assistant that only reads, a runner.",
  onboarding: "The way of a new project to its first results: steps, ready snippets for CI systems, sample data.",
  runners:
    "Machines that run the tasks of executions of mode run. A runner makes one call for everything; a task that it is given is a lease. " +
    "And which files of a task each of several jobs runs.",
  environments: "What tests run against, such as staging, with the variables that runners get. Of the whole team.",
  integrations: "Places outside that messages, issues, commit statuses and pipelines go to. Of the whole team.",
  automations: "When something happens or it is time, and the conditions hold, do these things. Of the whole team.",
};
const FAMILIES: Record<string, string> = { leases: "runners", undefined: "projects" };

/** By the first part of the path below the project or team; what is below a test run is of test runs, or of those who run it. */
function tagOf(path: string): string {
  if (/\/(?:plan|batches|leases)$/.test(path)) return "runners";
  if (path.includes("/test-runs")) return "test-runs";
  const family = String(path.split("/")[3]);
  return FAMILIES[family] ?? family;
}

/** What stands in paths. */
const PATH_PARAMETERS: Record<string, string> = {
  projectId: "The project that the key is of",
  teamId: "The team that the key is of",
  executionId: "The execution",
  taskSlug: "Which task of the execution, such as unit",
  leaseId: "The lease, as the runner was given it",
  keyId: "The named key",
  testCaseId: "The test case",
  bugReportId: "The bug report",
  environmentId: "The environment",
  variableName: "The name of the variable: letters, digits and _, at most 128, not beginning with a digit",
  integrationId: "The integration",
  deliveryId: "The delivery",
  automationId: "The automation",
};

const settings = {
  target: "draft-2020-12",
  errorMode: "ignore",
  overrideRef: ({ referenceId }: { referenceId: string }) => `#/components/schemas/${referenceId}`,
  overrideAction: ({ valibotAction, jsonSchema }: { valibotAction: { type: string }; jsonSchema: object }) => {
    if (valibotAction.type !== "metadata") return undefined;
    // What else is said of a schema is for parameters, and for us.
    const { openapi: _, secret, ...rest } = jsonSchema as Json;
    return secret === true ? { ...rest, writeOnly: true } : rest;
  },
  /** JSON Schema has no words for these; what they demand is in their error messages. */
  ignoreActions: ["transform", "check", "raw_check"],
};

/** What is said of a value that may be null is said of the field. */
function hoist(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(hoist);
  if (typeof value !== "object" || value === null) return value;
  const schema = Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, hoist(inner)])) as Json;
  const [first, second, ...others] = (Array.isArray(schema["anyOf"]) ? schema["anyOf"] : []) as Json[];
  if (!first || second?.["type"] !== "null" || others.length > 0) return schema;
  const { description, examples, ...inner } = first;
  return {
    ...(description ? { description } : {}),
    ...(examples ? { examples } : {}),
    ...schema,
    anyOf: [inner, second],
  };
}

function convert(schema: v.GenericSchema, typeMode: "input" | "output"): Json {
  const {
    $schema: _,
    $defs: __,
    ...rest
  } = toJsonSchema(schema, {
    ...settings,
    typeMode,
    definitions: typeMode === "output" ? definitions : requests,
  } as never) as Json;
  return hoist(rest) as Json;
}

/** Who comes back says how far he has come. */
const LAST_EVENT_ID = {
  name: "Last-Event-ID",
  in: "header",
  required: false,
  description: "The id of the last event that was received: the stream goes on after it",
  schema: { type: "string", examples: ["84213.1769860800"] },
};

const content = (schema: Json, type = "application/json") => ({ [type]: { schema } });

/** By the codes of errors: which response it is, and when it is answered. */
const ERRORS: Record<keyof typeof STATUS, [name: string, when: string]> = {
  VALIDATION_ERROR: [
    "Invalid",
    "A parameter or the body is wrong or unknown, too large, of the wrong type, or the state of things does not allow it: the " +
      "message names all mistakes at once, and nothing was done",
  ],
  UNAUTHORIZED: [
    "Unauthorized",
    "There is no key, or it is wrong, revoked, or of the wrong kind for the path; with WWW-Authenticate: Bearer",
  ],
  NOT_FOUND: [
    "NotFound",
    "There is no such path, no such method on it (Allow names those), no such thing, or it is not the key's to see",
  ],
  RATE_LIMITED: [
    "RateLimited",
    "The limit of requests in 60 seconds is reached; after Retry-After seconds there is room again",
  ],
  INTERNAL_ERROR: [
    "Internal",
    "Something went wrong on the server, which has it in its log by X-Request-Id; with Retry-After where trying again helps, as " +
      "when the database is away",
  ],
};

const rateHeaders = Object.fromEntries(
  ["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"].map((name) => [
    name,
    { $ref: `#/components/headers/${name}` },
  ]),
);

/** A parameter is a text on the wire; its schema says in the metadata what the text stands for. */
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
    const standard = typeof fallback === "string" ? { default: JSON.parse(fallback) } : {};
    const schema = { ...onTheWire(inner), ...standard, ...examplesOf(entry as v.GenericSchema, inner) };
    const example = route.example.query?.[name];
    return {
      ...{ name, in: "query", required: !optional, description, schema },
      ...(example === undefined ? {} : { example }),
    };
  });
  const idempotency = route.method === "POST" ? [{ $ref: "#/components/parameters/IdempotencyKey" }] : [];
  const resumption = route.stream === undefined ? [] : [{ $ref: "#/components/parameters/LastEventId" }];
  return [...path, ...query, ...idempotency, ...resumption];
}

function examplesOf(...schemas: v.GenericSchema[]): Json {
  const examples = schemas.map((schema) => v.getExamples(schema)).find(({ length }) => length > 0);
  return examples ? { examples } : {};
}

function requestBody(route: Route): Json {
  if (route.body === undefined || route.body === emptyBody) return {};
  if (route.body === "text")
    return {
      requestBody: {
        required: true,
        description:
          "A JSON object of names, each with a value or with { value, secret }; or as text/plain the text of a .env file, whose " +
          "values are all secret. {} removes all of them, and an empty body is a 400",
        content: {
          "application/json": {
            schema: {
              type: "object",
              additionalProperties: {
                anyOf: [{ type: "string" }, convert(newVariable, "input")],
                description: "A value, which is secret then, or a value with its kind",
              },
            },
            example: { BASE_URL: { value: "https://staging.shop.example", secret: false }, API_TOKEN: "s3cret" },
          },
          "text/plain": {
            schema: { type: "string", format: "dotenv" },
            example: 'BASE_URL=https://staging.shop.example\nAPI_TOKEN="s3cret"\n',
          },
        },
      },
    };
  if (route.body !== "upload") {
    // No body is an empty one.
    const required = !v.safeParse(route.body, {}).success;
    const schema = convert(route.body, "input");
    const { body: example } = route.example;
    const json = { schema, ...(example === undefined ? {} : { example }) };
    return { requestBody: { required, content: { "application/json": json } } };
  }
  const form = {
    type: "object",
    description: "One or more files, merged into one run; every query parameter may be a form field instead",
    additionalProperties: true,
  };
  const native = {
    ...convert(nativeReport, "input"),
    description: "A report of your own, where no tool writes one; the other formats are theirs",
  };
  return {
    requestBody: {
      required: true,
      description:
        "The report itself as the body, whatever its content type says: the format is recognised from the content. Or " +
        "multipart/form-data with one or more files, which are merged into one run; every query parameter may be a field of the " +
        "form instead. Content-Encoding gzip and zstd are taken, and files that are packed so",
      content: {
        "application/json": {
          schema: native,
          example: { taskSlug: "unit", passed: 3, failed: 0, skipped: 1 },
        },
        "application/xml": {
          schema: { type: "string", description: "JUnit, TRX, NUnit, xUnit, Robot Framework or doctest XML" },
        },
        "multipart/form-data": { schema: form },
        "*/*": { schema: { type: "string", format: "binary", description: "Any of the formats" } },
      },
    },
  };
}

const statusText = (route: Route, status: number) => {
  if (route.stream !== undefined) return status === 204 ? "Nothing more will come" : route.stream;
  if (status === 204) return "Done; there is nothing to say";
  const isEither = route.otherStatus !== undefined;
  return status === 201 ? "It was made" : isEither ? "It was there already" : "The answer";
};

function operation(route: Route): Json {
  const answer = route.answer && {
    content: {
      ...content(convert(route.answer, "output")),
      ...(route.text === undefined ? {} : { "text/plain": { schema: { type: "string", description: route.text } } }),
    },
  };
  const stream = route.stream !== undefined && {
    content: content(
      { type: "string", format: "event-stream", description: "Server-Sent Events" },
      "text/event-stream",
    ),
  };
  const success = (status: number) => ({
    [status]: {
      ...{ description: statusText(route, status), headers: rateHeaders },
      ...(stream ? status !== 204 && stream : answer),
    },
  });
  return {
    operationId: `${route.method.toLowerCase()}${route.path.replace(/[^A-Za-z]+([A-Za-z])/g, (_, letter: string) => letter.toUpperCase())}`,
    summary: route.summary,
    ...(route.description === undefined ? {} : { description: route.description }),
    tags: [tagOf(route.path)],
    security: [{ [`${route.access}Key`]: [] }],
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
        "UTC with milliseconds, durations integers of milliseconds. Unknown parameters and fields are refused. Every answer " +
        "carries the rate limit headers; a limit of 2147483647 means none. Assistants speak the Model Context Protocol at POST /mcp, " +
        "outside of /api/v1, with the same keys.",
    },
    servers: [{ url: "/api/v1" }],
    tags,
    paths,
    components: {
      securitySchemes: {
        projectKey: {
          type: "http",
          scheme: "bearer",
          description: "The key of the project (svc_proj_…): everything below its path, and nothing else",
        },
        teamKey: {
          type: "http",
          scheme: "bearer",
          description: "A key of the team (svc_team_…): environments, integrations and automations, and no project",
        },
      },
      schemas: {
        ...(hoist(toJsonSchemaDefs(definitions, { ...settings, typeMode: "output" } as never)) as Json),
        ...(hoist(toJsonSchemaDefs(requests, { ...settings, typeMode: "input" } as never)) as Json),
        Error: {
          type: "object",
          required: ["error"],
          additionalProperties: false,
          properties: {
            error: {
              type: "object",
              description: "What was wrong",
              required: ["code", "message"],
              additionalProperties: false,
              properties: {
                code: {
                  enum: Object.keys(STATUS),
                  description: "Which kind of error, one of five",
                  examples: ["VALIDATION_ERROR"],
                },
                message: {
                  type: "string",
                  description: "In words, for people; it names what is wrong, all of it at once",
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
        "X-RateLimit-Limit": integerHeader(
          "How many requests are taken in any 60 seconds; 2147483647: there is no limit",
        ),
        "X-RateLimit-Remaining": integerHeader("How many of them are left now"),
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
            "Any text of yours of 1 to 255 printable characters: the same key and request within 24 hours has one effect, and the " +
            "stored answer is given again, with Idempotent-Replayed: true. With another body it is a 400",
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
