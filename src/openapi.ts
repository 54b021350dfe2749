/** Writes `src/openapi.json`: the OpenAPI 3.1 document, made from the route table and the schemas that check requests. */

import { toJsonSchema, toJsonSchemaDefs } from "@valibot/to-json-schema";
import { join } from "node:path";
import * as v from "valibot";
import { ROUTES } from "./app.ts";
import { STATUS } from "./http/problem.ts";
import { emptyBody, type Route } from "./request/route.ts";
import { automation, automationRun } from "./schema/automations.ts";
import { bugReport, bugReportDetail } from "./schema/bug_reports.ts";
import { comparison } from "./schema/comparisons.ts";
import { environment, variable } from "./schema/environments.ts";
import { execution } from "./schema/executions.ts";
import { executionFailures } from "./schema/failures.ts";
import { delivery, integration } from "./schema/integrations.ts";
import { onboarding } from "./schema/onboarding.ts";
import { plan } from "./schema/plans.ts";
import { project } from "./schema/projects.ts";
import { nativeReport } from "./schema/reports.ts";
import { testCase, testCaseResult } from "./schema/test_cases.ts";
import { caseResult, testRun, uploadedRun } from "./schema/test_runs.ts";
import { trends } from "./schema/trends.ts";
import { upload } from "./schema/uploads.ts";
import packageJson from "../package.json" with { type: "json" };

export const OPENAPI_FILE = join(import.meta.dir, "openapi.json");

type Json = Record<string, unknown>;

/** Answers that have a name of their own in the document. */
const definitions: Record<string, v.GenericSchema> = {
  Automation: automation,
  AutomationRun: automationRun,
  BugReport: bugReport,
  BugReportDetail: bugReportDetail,
  CaseResult: caseResult,
  Comparison: comparison,
  Delivery: delivery,
  Environment: environment,
  Execution: execution,
  ExecutionFailures: executionFailures,
  Integration: integration,
  Onboarding: onboarding,
  Plan: plan,
  Project: project,
  TestCase: testCase,
  TestCaseResult: testCaseResult,
  TestRun: testRun,
  Trends: trends,
  Upload: upload,
  UploadedRun: uploadedRun,
  Variable: variable,
};

const settings = {
  target: "draft-2020-12",
  errorMode: "ignore",
  overrideRef: ({ referenceId }: { referenceId: string }) => `#/components/schemas/${referenceId}`,
} as const;
/** JSON Schema has no words for these; what they demand is in their error messages. */
const ignoreActions = ["transform", "check", "raw_check", "metadata"];

function convert(schema: v.GenericSchema, typeMode: "input" | "output"): Json {
  const {
    $schema: _,
    $defs: __,
    ...rest
  } = toJsonSchema(schema, {
    ...settings,
    ignoreActions,
    typeMode,
    ...(typeMode === "output" ? { definitions } : {}),
  }) as Json;
  return rest;
}

/** Who comes back says how far he has come. */
const LAST_EVENT_ID = {
  name: "Last-Event-ID",
  in: "header",
  required: false,
  description: "The id of the last event that was received: the stream goes on after it",
  schema: { type: "string" },
};

const content = (schema: Json, type = "application/json") => ({ [type]: { schema } });
const error = (description: string) => ({ description, content: content({ $ref: "#/components/schemas/Error" }) });

const rateHeaders = Object.fromEntries(
  ["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"].map((name) => [
    name,
    { $ref: `#/components/headers/${name}` },
  ]),
);

/** A parameter is a text on the wire; its schema says in the metadata what the text stands for. */
const onTheWire = (schema: v.GenericSchema): Json =>
  (v.getMetadata(schema)["openapi"] as Json | undefined) ?? convert(schema, "input");

function parameters(route: Route): Json[] {
  const path = Object.entries(route.pathParameters.entries).map(([name, schema]) => ({
    name,
    in: "path",
    required: true,
    schema: onTheWire(schema as v.GenericSchema),
  }));
  const query = Object.entries(route.query.entries).map(([name, entry]) => {
    const { type, wrapped, default: fallback } = entry as v.OptionalSchema<v.GenericSchema, unknown>;
    const optional = type === "optional";
    const schema = onTheWire(optional ? wrapped : (entry as v.GenericSchema));
    const standard = typeof fallback === "string" ? { default: JSON.parse(fallback) } : {};
    return { name, in: "query", required: !optional, schema: { ...schema, ...standard } };
  });
  const idempotency = route.method === "POST" ? [{ $ref: "#/components/parameters/IdempotencyKey" }] : [];
  const resumption = route.stream === undefined ? [] : [{ $ref: "#/components/parameters/LastEventId" }];
  return [...path, ...query, ...idempotency, ...resumption];
}

function requestBody(route: Route): Json {
  if (route.body === undefined || route.body === emptyBody) return {};
  if (route.body === "text")
    return {
      requestBody: {
        required: true,
        content: {
          ...content({ type: "object", additionalProperties: true }),
          "text/plain": { schema: { type: "string" } },
        },
      },
    };
  if (route.body !== "upload") {
    // No body is an empty one.
    const required = !v.safeParse(route.body, {}).success;
    return { requestBody: { required, content: content(convert(route.body, "input")) } };
  }
  const form = {
    type: "object",
    description: "One or more files, merged into one run; every query parameter may be a form field instead",
    additionalProperties: true,
  };
  return {
    requestBody: {
      required: true,
      description: "The report itself, of any content type, gzip or zstd allowed; or a form with files",
      content: {
        ...content(convert(nativeReport, "input")),
        "application/xml": { schema: { type: "string" } },
        "multipart/form-data": { schema: form },
        "*/*": { schema: { type: "string", format: "binary" } },
      },
    },
  };
}

function operation(route: Route): Json {
  const success = {
    description: route.stream ?? (route.answer === null ? "Done" : "The answer"),
    headers: rateHeaders,
    ...(route.answer === null ? {} : { content: content(convert(route.answer, "output")) }),
    ...(route.stream === undefined ? {} : { content: content({ type: "string" }, "text/event-stream") }),
  };
  const other = route.stream === undefined ? success : { description: "Nothing more will come", headers: rateHeaders };
  return {
    operationId: `${route.method.toLowerCase()}${route.path.replace(/[^A-Za-z]+([A-Za-z])/g, (_, letter: string) => letter.toUpperCase())}`,
    summary: route.summary,
    tags: [/^\/\w+\/:\w+(?:\/([\w-]+))?/.exec(route.path)?.[1] ?? "projects"],
    parameters: parameters(route),
    ...requestBody(route),
    responses: {
      [route.status]: success,
      ...(route.otherStatus === undefined ? {} : { [route.otherStatus]: other }),
      400: error("Invalid parameters or body, or a state that does not allow it"),
      401: error("Missing or invalid API key"),
      404: error("Not found, or the key has no access to it"),
      429: error("Rate limit exceeded"),
      500: error("Internal error; with Retry-After when the database is not available"),
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
  return {
    openapi: "3.1.0",
    info: {
      title: "Assay",
      version: packageJson.version,
      description:
        "Test execution and bug reporting. Every answer carries the rate limit headers; a limit of 2147483647 means none.",
    },
    servers: [{ url: "/api/v1" }],
    security: [{ apiKey: [] }],
    paths,
    components: {
      securitySchemes: {
        apiKey: {
          type: "http",
          scheme: "bearer",
          description: "A project key (svc_proj_…) or a team key (svc_team_…)",
        },
      },
      schemas: {
        ...toJsonSchemaDefs(definitions, {
          ...settings,
          ignoreActions,
          typeMode: "output",
        }),
        Error: {
          type: "object",
          required: ["error"],
          additionalProperties: false,
          properties: {
            error: {
              type: "object",
              required: ["code", "message"],
              additionalProperties: false,
              properties: { code: { enum: Object.keys(STATUS) }, message: { type: "string" } },
            },
          },
        },
      },
      headers: {
        "X-RateLimit-Limit": integerHeader("Maximum requests per window of 60 seconds"),
        "X-RateLimit-Remaining": integerHeader("Requests left in the current window"),
        "X-RateLimit-Reset": integerHeader("Unix seconds at which the oldest counted request leaves the window"),
      },
      parameters: {
        LastEventId: LAST_EVENT_ID,
        IdempotencyKey: {
          name: "Idempotency-Key",
          in: "header",
          required: false,
          description: "The same key and request within 24 hours has one effect; the stored answer is given again",
          schema: { type: "string", pattern: "^[\\x21-\\x7e]{1,255}$" },
        },
      },
    },
  };
}

if (import.meta.main) await Bun.write(OPENAPI_FILE, `${JSON.stringify(createOpenapi(), null, 2)}\n`);
