/** Writes `src/server/openapi.json`: the OpenAPI 3.1 document, made from the route table and the schemas that check requests. */

import { toJsonSchema, toJsonSchemaDefs } from "@valibot/to-json-schema";
import { join } from "node:path";
import * as v from "valibot";
import { ROUTES } from "./app.ts";
import { STATUS } from "../http/problem.ts";
import { TOOLS } from "../mcp/tools.ts";
import { emptyBody, type Route } from "../request/route.ts";
import { attachment, caseAttachment } from "../schema/attachments.ts";
import { automationAction } from "../schema/automation_actions.ts";
import { automation, conditions, trigger } from "../schema/automations.ts";
import { automationRun } from "../schema/automation_runs.ts";
import { bugReport, bugReportDetail } from "../schema/bug_reports.ts";
import { culpritSearch } from "../schema/culprit_searches.ts";
import { caseRef } from "../schema/case_ref.ts";
import { comparison } from "../schema/comparisons.ts";
import { csvTableOf, NEXT_CURSOR } from "../request/csv_reply.ts";
import { environment, newVariable, variable } from "../schema/environments.ts";
import { executionGate, forgivenFailure, uploadGate } from "../schema/gate.ts";
import { execution } from "../schema/executions.ts";
import { plannedTask } from "../schema/planned_tasks.ts";
import { executionFailures, failedCaseRef } from "../schema/failures.ts";
import { delivery } from "../schema/deliveries.ts";
import { dispatch } from "../schema/integration_configs.ts";
import { integration } from "../schema/integrations.ts";
import { onboarding } from "../schema/onboarding.ts";
import { pagination } from "../schema/page.ts";
import { plan } from "../schema/plans.ts";
import { project } from "../schema/projects.ts";
import { nativeCase, nativeReport } from "../schema/reports.ts";
import { testCase, testCaseDetail, testCaseResult } from "../schema/test_cases.ts";
import { caseResult, testRun, uploadedRun } from "../schema/test_runs.ts";
import { branchState } from "../schema/state.ts";
import { projectTrends } from "../schema/trends.ts";
import { loggedUpload } from "../schema/uploads.ts";
import packageJson from "../../package.json" with { type: "json" };

export const OPENAPI_FILE = join(import.meta.dir, "openapi.json");
/** The input schemas of the tools for assistants, as JSON Schema. */
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
  Attachment: attachment,
  CaseAttachment: caseAttachment,
  Automation: automation,
  AutomationRun: automationRun,
  BugReport: bugReport,
  BugReportDetail: bugReportDetail,
  CaseRef: caseRef,
  CulpritSearch: culpritSearch,
  FailedCaseRef: failedCaseRef,
  CaseResult: caseResult,
  Comparison: comparison,
  Delivery: delivery,
  Environment: environment,
  Execution: execution,
  ExecutionGate: executionGate,
  ForgivenFailure: forgivenFailure,
  UploadGate: uploadGate,
  ExecutionFailures: executionFailures,
  Integration: integration,
  Onboarding: onboarding,
  Pagination: pagination,
  Plan: plan,
  Project: project,
  TestCase: testCase,
  TestCaseDetail: testCaseDetail,
  TestCaseResult: testCaseResult,
  TestRun: testRun,
  Trends: projectTrends,
  BranchState: branchState,
  Upload: loggedUpload,
  UploadedRun: uploadedRun,
  Variable: variable,
};

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

const settings = {
  target: "draft-2020-12",
  errorMode: "ignore",
  overrideRef: ({ referenceId }: { referenceId: string }) => `#/components/schemas/${referenceId}`,
  overrideAction: ({ valibotAction, jsonSchema }: { valibotAction: { type: string }; jsonSchema: object }) => {
    if (valibotAction.type !== "metadata") return undefined;
    // Other metadata of a schema is only used internally and for parameters.
    const { openapi: _, secret, ...rest } = jsonSchema as Json;
    return secret === true ? { ...rest, writeOnly: true } : rest;
  },
  /** JSON Schema cannot express these; their error messages state the requirement. */
  ignoreActions: ["transform", "check", "raw_check"],
};

/** Moves the description of a nullable value to the field. */
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

/** The header with which a client resumes a stream. */
const LAST_EVENT_ID = {
  name: "Last-Event-ID",
  in: "header",
  required: false,
  description: "The id of the last received event; the stream continues after it",
  schema: { type: "string", examples: ["84213.1769860800"] },
};

const content = (schema: Json, type = "application/json") => ({ [type]: { schema } });

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
  if (route.body === "text" && typeof route.example.body === "string") {
    const text = { schema: { type: "string", format: "codeowners" }, example: route.example.body };
    return { requestBody: { required: true, description: "The text of the file", content: { "text/plain": text } } };
  }
  if (route.body === "text")
    return {
      requestBody: {
        required: true,
        description:
          "A JSON object that maps names to a value or to { value, secret }, or with text/plain the text of a .env file, " +
          "whose values are all secret. {} removes all variables; an empty body is answered 400",
        content: {
          "application/json": {
            schema: {
              type: "object",
              additionalProperties: {
                anyOf: [{ type: "string" }, convert(newVariable, "input")],
                description: "A value, which is then secret, or an object with value and secret",
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
  if (route.body === "files")
    return {
      requestBody: {
        required: true,
        content: {
          "multipart/form-data": {
            schema: {
              type: "object",
              required: ["attachment"],
              properties: {
                attachment: {
                  type: "array",
                  items: { type: "string", format: "binary" },
                  description: "The files; the file name of a part is the path under which the report names it",
                },
              },
            },
          },
        },
      },
    };
  if (route.body === "file")
    return {
      requestBody: {
        required: true,
        description: "The content of the file. Content-Encoding gzip and zstd are taken, and undone",
        content: { "*/*": { schema: { type: "string", format: "binary" } } },
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
    description: "A report in the JSON format of Assay",
    anyOf: [{ required: ["cases"] }, { required: ["passed", "failed", "skipped"] }],
  };
  return {
    requestBody: {
      required: true,
      description:
        "The report as the body, with any content type: the format is recognised from the content. Alternatively " +
        "multipart/form-data with one or more files, which are merged into one run; every query parameter may be a form " +
        "field instead. Parts named attachment are files that explain results. Content-Encoding gzip and zstd are accepted, and so are compressed files",
      content: {
        "application/json": {
          schema: native,
          example: { taskSlug: "unit", passed: 3, failed: 0, skipped: 1 },
        },
        "application/xml": {
          schema: {
            type: "string",
            description: "A report in XML, such as JUnit, TRX, NUnit, xUnit, TestNG, CTest or Robot Framework",
          },
        },
        "multipart/form-data": { schema: form },
        "*/*": { schema: { type: "string", format: "binary", description: "Any of the formats" } },
      },
    },
  };
}

const cursorHeader = {
  [NEXT_CURSOR]: {
    description: "With text/csv: the cursor of the next page; missing on the last one",
    schema: { type: "string" },
  },
};
const TOLD_CSV =
  "The elements of the page as comma-separated values (RFC 4180), with a line of field names. Objects and lists are written as " +
  `JSON, and a text that a spreadsheet would run as a formula begins with an apostrophe. ${NEXT_CURSOR} is pagination.cursor`;

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
      ...(route.text === undefined ? {} : { "text/plain": { schema: { type: "string", description: route.text } } }),
      ...(csvTableOf(route) ? { "text/csv": { schema: { type: "string", description: TOLD_CSV } } } : {}),
    },
  };
  const stream = route.stream !== undefined && {
    content: content(
      { type: "string", format: "event-stream", description: "Server-Sent Events" },
      "text/event-stream",
    ),
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
    operationId: `${route.method.toLowerCase()}${route.path.replace(/[^A-Za-z]+([A-Za-z])/g, (_, letter: string) => letter.toUpperCase())}`,
    summary: route.summary,
    ...(route.description === undefined ? {} : { description: route.description }),
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
    },
    servers: [{ url: "/api/v1" }],
    tags,
    paths,
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
