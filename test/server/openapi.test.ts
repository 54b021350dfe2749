import { expect, test } from "bun:test";
import { Validator } from "@seriousme/openapi-schema-validator";
import Ajv2020 from "ajv/dist/2020.js";
import * as v from "valibot";
import { ROUTES } from "../../src/server/app.ts";
import { createInputSchemas, createOpenapi, INPUT_SCHEMAS_FILE, OPENAPI_FILE } from "../../src/server/openapi.ts";
import { check, parseQuery } from "../../src/http/input.ts";
import { EVENT_TYPES } from "../../src/schema/events.ts";

const stored = await Bun.file(OPENAPI_FILE).json();
const toPath = (pattern: string) => pattern.replace(/:(\w+)/g, "{$1}");

test("src/server/openapi.json is what the routes make of it: run `bun run openapi` after changing one", () => {
  expect(stored).toEqual(JSON.parse(JSON.stringify(createOpenapi())));
});

test("src/mcp/input_schemas.json is what the tools for assistants make of it", async () => {
  expect(await Bun.file(INPUT_SCHEMAS_FILE).json()).toEqual(JSON.parse(JSON.stringify(createInputSchemas())));
});

test("the document is valid OpenAPI 3.1", async () => {
  const { valid, errors } = await new Validator().validate(structuredClone(stored));
  expect(errors).toBeUndefined();
  expect(valid).toBe(true);
});

test("every route is in it with its parameters", () => {
  for (const { method, path, pathParameters, query } of ROUTES) {
    const operation = stored.paths[toPath(path)][method.toLowerCase()];
    const names = operation.parameters.flatMap(({ name }: { name?: string }) => name ?? []);
    expect(names).toEqual([...Object.keys(pathParameters.entries), ...Object.keys(query.entries)]);
  }
});

type Json = Record<string, any>;

const resolve = (schema: Json): Json =>
  schema["$ref"] === undefined
    ? schema
    : schema["$ref"]
        .slice(2)
        .split("/")
        .reduce((part: Json, name: string) => part[name.replaceAll("~1", "/").replaceAll("~0", "~")], stored);

/** The fields in a schema that nobody describes; what a reference leads to is looked at by itself. */
function silentFields(schema: Json, place: string): string[] {
  const inner = (name: string, field: Json) => [
    ...((field["description"] ?? resolve(field)["description"]) ? [] : [`${place}.${name}`]),
    ...silentFields(field, `${place}.${name}`),
  ];
  const { properties = {}, items, additionalProperties, anyOf = [], oneOf = [], allOf = [] } = schema;
  return [
    ...Object.entries<Json>(properties).flatMap(([name, field]) => inner(name, field)),
    ...(items ? silentFields(items, `${place}[]`) : []),
    ...(additionalProperties instanceof Object ? silentFields(additionalProperties, `${place}{}`) : []),
    ...[...anyOf, ...oneOf, ...allOf].flatMap((branch: Json, index) => silentFields(branch, `${place}|${index}`)),
  ];
}

const operations = Object.entries<Json>(stored.paths).flatMap(([path, methods]) =>
  Object.entries<Json>(methods).map(([method, operation]) => ({
    name: `${method.toUpperCase()} ${path}`,
    method,
    operation,
  })),
);

test("every operation, parameter, field of a request and field of an answer is described, however deep", () => {
  const silent: string[] = [];
  for (const { name, operation } of operations) {
    if (!operation["summary"] || !operation["description"]) silent.push(name);
    const { parameters, requestBody, responses } = operation;
    for (const parameter of parameters.map(resolve))
      if (!parameter.description) silent.push(`${name} ${parameter.name}`);
    const answers = Object.values<Json>(responses).map(resolve);
    for (const { description } of answers) if (!description) silent.push(`${name}, an answer`);
    for (const [what, { content = {} }] of [
      ["body", requestBody ?? {}] as const,
      ...answers.map((one) => ["answer", one] as const),
    ])
      for (const [type, { schema }] of Object.entries<Json>(content))
        silent.push(...silentFields(schema, `${name} ${what} ${type}`));
  }
  for (const [name, schema] of Object.entries<Json>(stored.components.schemas))
    silent.push(...silentFields(schema, name));
  for (const { name, description } of stored.tags) if (!description) silent.push(name);
  expect([...new Set(silent)]).toEqual([]);
});

test("what is not described is found", () => {
  const schema = {
    properties: {
      a: { items: { properties: { b: {} } } },
      c: { description: "c", anyOf: [{ properties: { d: {} } }] },
    },
  };
  expect(silentFields(schema, "x")).toEqual(["x.a", "x.a[].b", "x.c|0.d"]);
});

test("every operation has a tag of the list and the key of its path", () => {
  const tags = stored.tags.map(({ name }: Json) => name);
  const scopes = (name: string): string[] =>
    name.startsWith("GET ") ? ["read", "run", "triage", "upload"] : (expect.any(Array) as never);
  for (const { name, operation } of operations) {
    expect(tags).toContain(operation["tags"][0]);
    const key = name.includes("/teams/") ? { teamKey: [] } : { projectKey: scopes(name) };
    expect([name, operation["security"]]).toEqual([name, [key]]);
  }
  const of = (operationName: string) => operations.find(({ name }) => name === operationName)!.operation["security"];
  const test = "/projects/{projectId}/test-cases/{testCaseId}";
  expect(of(`PATCH ${test}`)).toEqual([{ projectKey: ["triage"] }]);
  expect(of("POST /projects/{projectId}/test-runs")).toEqual([{ projectKey: ["run", "upload"] }]);
  expect(of("POST /projects/{projectId}/keys")).toEqual([{ projectKey: [] }]);
});

test("examples of requests are requests that are taken", () => {
  for (const { method, path, query, body, example } of ROUTES) {
    const given = new URLSearchParams(example.query).toString();
    expect(() => check(query, parseQuery(given))).not.toThrow();
    if (example.body !== undefined && body !== "text") v.parse(body as v.GenericSchema, example.body);
    const { parameters, requestBody } = stored.paths[toPath(path)][method.toLowerCase()];
    // One who pastes it must not be refused for what it leaves out.
    if (requestBody?.content["application/json"] && requestBody.required)
      expect([path, requestBody.content["application/json"].example !== undefined]).toEqual([path, true]);
    for (const { name, example, schema } of parameters)
      if (example !== undefined) expect([name, schema.description]).toEqual([name, undefined]);
  }
});

test("the formats are those that uploads are read as", async () => {
  const { readReport } = await import("../../src/reports/read.ts");
  const read = () => readReport([{ name: "x", bytes: new Uint8Array() }], { format: "nope", maxInflatedBytes: 1 });
  expect(read).toThrow(/"junit"/);
  const names = [...(await catchMessage(read)).matchAll(/"(\w+)"/g)].map(([, name]) => name!);
  const known = names.filter((name) => name !== "format" && name !== "nope");
  const { parameters } = stored.paths["/projects/{projectId}/test-runs"].post;
  const { description } = parameters.find(({ name }: Json) => name === "format");
  expect(known.filter((name) => !new RegExp(`\\b${name}\\b`).test(description))).toEqual([]);
});

async function catchMessage(work: () => unknown): Promise<string> {
  try {
    work();
  } catch (error) {
    return (error as Error).message;
  }
  return "";
}

/** Schemas by the place that they are found at, with the values that they give as examples. */
function* exampleSchemas(part: unknown, pointer = ""): Generator<{ pointer: string; values: unknown[] }> {
  if (typeof part !== "object" || part === null) return;
  const { schema, example, examples, default: standard, ...others } = part as Json;
  const isSchema = /^\/(?!.*\/(?:properties|parameters|paths|content|headers|schemas)$)/.test(pointer);
  if (isSchema && schema !== undefined && example !== undefined)
    yield { pointer: `${pointer}/schema`, values: [example] };
  const own = [...(Array.isArray(examples) ? examples : []), ...(standard === undefined ? [] : [standard])];
  if (isSchema && own.length > 0) yield { pointer, values: own };
  for (const [name, inner] of Object.entries({
    ...others,
    schema,
    ...(isSchema ? {} : { example, examples, default: standard }),
  }))
    yield* exampleSchemas(inner, `${pointer}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`);
}

test("every example and default of the document is a value of its schema", () => {
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  ajv.addSchema(stored, "document");
  const wrong: unknown[] = [];
  const seen = new Set<string>();
  let count = 0;
  for (const { pointer, values } of exampleSchemas(stored)) {
    const schema = resolve({ $ref: `#${pointer}` });
    const text = JSON.stringify(schema);
    count += values.length;
    // Operations share most of their parameters.
    const known = `${text} ${JSON.stringify(values)}`;
    if (seen.has(known)) continue;
    seen.add(known);
    const isWhole = !text.includes("$ref");
    const validate = ajv.compile(isWhole ? schema : { $ref: `document#${encodeURI(pointer)}` });
    for (const value of values) if (!validate(value)) wrong.push([pointer, value, ajv.errorsText(validate.errors)]);
  }
  expect(wrong).toEqual([]);
  expect(count).toBeGreaterThan(1_000);
});

test("operations have short names of their own, and every event has a webhook", () => {
  const ids = operations.map(({ operation }) => operation["operationId"]);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids.filter((id) => !/^[a-z]+[A-Za-z]{0,30}$/.test(id))).toEqual([]);
  for (const id of [
    "listTestRuns",
    "uploadReport",
    "getExecution",
    "cancelExecution",
    "listTestCaseResults",
    "deleteEnvironmentVariable",
  ])
    expect(ids).toContain(id);
  expect(Object.keys(stored.webhooks)).toEqual([...EVENT_TYPES, "schedule", "test"]);
});
