/** The API as its OpenAPI document tells it: operations by their tags, fields, examples, and a line for the shell of each. */

import { quoted } from "../../../rules/shell.ts";
import openapi from "../../../server/openapi.json";

/** As much of JSON Schema as the document uses. */
export type Schema = {
  $ref?: string;
  type?: string;
  description?: string;
  examples?: unknown[];
  default?: unknown;
  const?: unknown;
  enum?: unknown[];
  format?: string;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: boolean | Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
};

export type Parameter = {
  name: string;
  in: "path" | "query" | "header";
  required: boolean;
  description: string;
  schema: Schema;
  /** Belongs into a first request. */
  example?: string;
};

type Content = Record<string, { schema: Schema; example?: unknown }>;

export type Answer = { status: number; description: string; content: Content };

export type Operation = {
  /** Its place on the page of its tag. */
  anchor: string;
  method: string;
  path: string;
  summary: string;
  description: string;
  tag: string;
  key: "project" | "team";
  parameters: Parameter[];
  body: { description: string | undefined; required: boolean; content: Content } | undefined;
  /** Those of success. */
  answers: Answer[];
};

type Referred = { $ref: string };
type Responses = Record<string, { description: string; content?: Content } | Referred>;
type Written = Pick<Operation, "summary" | "description"> & {
  tags: [string];
  security: [Record<string, unknown>];
  parameters: (Parameter | Referred)[];
  requestBody?: { description?: string; required: boolean; content: Content };
  responses: Responses;
};

const written = openapi as unknown as {
  tags: { name: string; description: string }[];
  paths: Record<string, Record<string, Written>>;
  components: {
    schemas: Record<string, Schema>;
    parameters: Record<string, Parameter>;
    responses: Record<string, { description: string }>;
    securitySchemes: Record<string, { description: string }>;
  };
};

const nameOf = (ref: string): string => ref.split("/").pop()!;

/** What has a name of its own. */
export const OBJECTS: Readonly<Record<string, Schema>> = written.components.schemas;
/** By the names of the schemes: projectKey, teamKey. */
export const KEYS = written.components.securitySchemes;

const toTitle = (tag: string) => `${tag[0]!.toUpperCase()}${tag.slice(1).replaceAll("-", " ")}`;

export const TAGS: readonly { name: string; title: string; description: string }[] = written.tags.map((tag) => ({
  ...tag,
  title: toTitle(tag.name),
}));

/** `GET /projects/{projectId}/executions/{executionId}` is at `get-executions-executionId`. */
const toAnchor = (method: string, path: string) =>
  [method, ...(path.match(/\w[\w-]*/g) ?? []).slice(2)].join("-") + (path.split("/").length === 3 ? "-project" : "");

function toOperation(method: string, path: string, operation: Written): Operation {
  const { summary, description, tags, security, parameters, requestBody, responses } = operation;
  return {
    anchor: toAnchor(method, path),
    method: method.toUpperCase(),
    ...{ path, summary, description },
    tag: tags[0],
    key: "teamKey" in security[0] ? "team" : "project",
    parameters: parameters.map((one) => ("$ref" in one ? written.components.parameters[nameOf(one.$ref)]! : one)),
    body: requestBody && { description: requestBody.description, ...requestBody },
    answers: Object.entries(responses).flatMap(([status, answer]) =>
      "$ref" in answer
        ? []
        : [{ status: Number(status), description: answer.description, content: answer.content ?? {} }],
    ),
  };
}

export const OPERATIONS: readonly Operation[] = Object.entries(written.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => toOperation(method, path, operation)),
);

/** The codes of errors, as the document tells when they are answered, by status. */
export const ERRORS: readonly { status: number; description: string }[] = Object.entries(
  Object.values(written.paths)[0]!["get"]!.responses,
).flatMap(([status, answer]) =>
  "$ref" in answer
    ? [{ status: Number(status), description: written.components.responses[nameOf(answer.$ref)]!.description }]
    : [],
);

/** The object that a schema refers to. */
export const referenceOf = ({ $ref }: Schema): string | undefined => $ref && nameOf($ref);

const isNull = ({ type }: Schema) => type === "null";
/** That a parameter may be empty is not worth a word each time. */
const isEmptyText = (schema: Schema) => schema.const === "";

/** What it may be, but for null. */
export const branchesOf = ({ anyOf, oneOf }: Schema): Schema[] =>
  (anyOf ?? oneOf ?? []).filter((branch) => !isNull(branch) && !isEmptyText(branch));

export const mayBeNull = ({ anyOf = [] }: Schema): boolean => anyOf.some(isNull);

export type SchemaField = { prefix: string; name: string; schema: Schema; isRequired: boolean };
/** Fields that are there where `when` says so; undefined: always. */
export type Group = { when: { name: string; value: string } | undefined; fields: SchemaField[] };

const isObject = (schema: Schema) => schema.properties !== undefined;

/** The fields of a schema and those within them, each after the one that holds it; what is referred to is told elsewhere. */
export function groupsOf(schema: Schema): Group[] {
  const variants = schema.oneOf;
  if (!variants) return [{ when: undefined, fields: fieldsOf(schema, "") }];
  const [first, ...others] = variants.map((variant) => fieldsOf(variant, ""));
  // What holds other fields is the same where it is called the same: they stand by themselves.
  const told = ({ schema: { properties: _, required: __, ...schema }, ...field }: SchemaField) =>
    JSON.stringify({ ...field, schema });
  const isSame = (a: SchemaField) => (b: SchemaField) => told(a) === told(b);
  const shared = first!.filter((field) => others.every((fields) => fields.some(isSame(field))));
  const groups = variants.map((variant): Group => {
    const { name } = tellerOf(variants);
    const fields = fieldsOf(variant, "").filter((field) => field.name !== name && !shared.some(isSame(field)));
    return { when: { name, value: String(variant.properties![name]!.const) }, fields };
  });
  return [{ when: undefined, fields: [tellerOf(variants), ...shared] }, ...groups];
}

/** The field whose value says which of the variants it is. */
function tellerOf(variants: readonly Schema[]): SchemaField {
  const tellers = variants.map(({ properties }) => Object.entries(properties!).find(([, inner]) => "const" in inner)!);
  const [name, { description }] = tellers[0]!;
  const isSame = tellers.every(([, inner]) => inner.description === description);
  const schema = {
    enum: tellers.map(([, inner]) => inner.const),
    description: isSame ? description! : "Which of these it is",
  };
  return { prefix: "", name, schema, isRequired: true };
}

function fieldsOf(schema: Schema, prefix: string): SchemaField[] {
  const { properties = {}, required = [] } = schema;
  return Object.entries(properties).flatMap(([name, inner]) => [
    { prefix, name, schema: inner, isRequired: required.includes(name) },
    ...innerFields(inner, `${prefix}${name}`),
  ]);
}

function innerFields(schema: Schema, place: string): SchemaField[] {
  const { items, additionalProperties } = schema;
  if (isObject(schema)) return fieldsOf(schema, `${place}.`);
  if (items) return innerFields(items, `${place}[]`);
  if (typeof additionalProperties === "object") return innerFields(additionalProperties, `${place}.*`);
  return branchesOf(schema).flatMap((branch) => innerFields(branch, place));
}

/** The names of all objects that these schemas lead to, each once. */
export function objectsOf(schemas: readonly Schema[], found = new Set<string>()): string[] {
  for (const schema of schemas) {
    const name = referenceOf(schema);
    if (name !== undefined && !found.has(name)) {
      found.add(name);
      objectsOf([OBJECTS[name]!], found);
    }
    const { properties = {}, items, additionalProperties, anyOf = [], oneOf = [] } = schema;
    const inner = [...Object.values(properties), ...anyOf, ...oneOf, ...(items ? [items] : [])];
    objectsOf(typeof additionalProperties === "object" ? [...inner, additionalProperties] : inner, found);
  }
  return [...found];
}

const STANDARD: Record<string, unknown> = { boolean: false, integer: 0, number: 0, object: {}, string: "…" };

/** A value that the schema allows, from its examples and those of its parts. */
export function exampleOf(schema: Schema): unknown {
  const name = referenceOf(schema);
  if (name !== undefined) return exampleOf(OBJECTS[name]!);
  if (schema.examples) return schema.examples[0];
  if ("const" in schema) return schema.const;
  if (schema.enum) return schema.enum[0];
  if (schema.properties) return exampleOfObject(schema);
  if (schema.items) return [exampleOf(schema.items)];
  const [branch] = branchesOf(schema);
  if (branch) return exampleOf(branch);
  return "default" in schema ? schema.default : STANDARD[schema.type ?? "string"];
}

const exampleOfObject = ({ properties = {}, required = [] }: Schema) =>
  Object.fromEntries(
    Object.entries(properties)
      // What is only there sometimes, and shows nothing.
      .filter(([name, inner]) => required.includes(name) || inner.examples !== undefined || isObject(inner))
      .map(([name, inner]) => [name, exampleOf(inner)]),
  );

const OWN_VARIABLES: Record<string, string> = { projectId: "ASSAY_PROJECT", teamId: "ASSAY_TEAM" };
/** `executionId` → `EXECUTION_ID`. */
export const variableOf = (name: string): string =>
  OWN_VARIABLES[name] ?? name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase();

/** Neither the shell nor a path makes anything of it. */
const encode = (value: string) =>
  encodeURIComponent(value).replace(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16)}`);

const UUID = /"([a-z]\w*)":(\[?)"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"/gi;

/** Ids in it are variables of the shell: those of an example are nobody's. */
const toShellJson = (body: unknown): string =>
  quoted(JSON.stringify(body)).replace(UUID, (_, name: string, list: string) => {
    return `"${name}":${list}"'"$${variableOf(name.replace(/Ids$/, "Id"))}"'"`;
  });

function bodyOption({ body }: Operation): string[] {
  if (!body) return [];
  const { "application/json": json, "text/plain": text } = body.content;
  if (text) return ['-H "Content-Type: text/plain" --data-binary @.env'];
  if (body.content["*/*"]) return ["--data-binary @report.xml"];
  return json?.example === undefined ? [] : [`-d ${toShellJson(json.example)}`];
}

/**
 * A request that works, in the key's environment variable. `api` is the address of the API; `ids` are those to fill in by
 * their names in paths; others are left as variables of the shell.
 */
export function toCurl(operation: Operation, api: string, ids: Readonly<Record<string, string>>): string {
  const { method, path, parameters, key, answers } = operation;
  const place = path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const id = ids[name];
    return id === undefined ? `$${variableOf(name)}` : encode(id);
  });
  const query = parameters
    .filter(({ in: where, example }) => where === "query" && example !== undefined)
    .map(
      ({ name, example }) => `${name}=${encodeURIComponent(example!).replaceAll("%2C", ",").replaceAll("%2F", "/")}`,
    );
  const body = bodyOption(operation);
  // -d makes a POST of it.
  const isImplied = method === "GET" || (method === "POST" && body.length > 0);
  const isStream = answers.some(({ content }) => "text/event-stream" in content);
  const head = ["curl", ...(isStream ? ["-N"] : []), ...(isImplied ? [] : [`-X ${method}`])].join(" ");
  const authorization = `-H "Authorization: Bearer $${key === "team" ? "ASSAY_TEAM_KEY" : "ASSAY_KEY"}"`;
  const address = `"${api}${place}${query.length === 0 ? "" : `?${query.join("&")}`}"`;
  return [`${head} ${authorization}`, address, ...body].join(" \\\n  ");
}
