/** Reads the OpenAPI document: operations by tag, fields, examples, and an example for the shell of each operation. */

import { quoted } from "../../../rules/shell.ts";
import openapi from "../../../server/openapi.json";

/** The subset of JSON Schema that the document uses. */
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
  /** The value in the example request; undefined: the example does not use the parameter. */
  example?: string;
};

type Content = Record<string, { schema: Schema; example?: unknown }>;

export type Answer = { status: number; description: string; content: Content };

export type Operation = {
  /** The anchor on the page of its tag. */
  anchor: string;
  method: string;
  path: string;
  summary: string;
  description: string;
  tag: string;
  key: "project" | "team";
  /** The scopes of named keys that may call it. */
  scopes: string[];
  parameters: Parameter[];
  body: { description: string | undefined; required: boolean; content: Content } | undefined;
  /** The responses of success. */
  answers: Answer[];
};

type Reference = { $ref: string };
type Responses = Record<string, { description: string; content?: Content } | Reference>;
type Written = Pick<Operation, "summary" | "description"> & {
  tags: [string];
  security: [Record<string, string[]>];
  parameters: (Parameter | Reference)[];
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

/** The named objects of the document. */
export const OBJECTS: Readonly<Record<string, Schema>> = written.components.schemas;
/** The descriptions of the keys, by the names of the security schemes: projectKey, teamKey. */
export const KEYS = written.components.securitySchemes;

const toTitle = (tag: string) => `${tag[0]!.toUpperCase()}${tag.slice(1).replaceAll("-", " ")}`;

export const TAGS: readonly { name: string; title: string; description: string }[] = written.tags.map((tag) => ({
  ...tag,
  title: toTitle(tag.name),
}));

/** Returns an anchor: `GET /projects/{projectId}/executions/{executionId}` becomes `get-executions-executionId`. */
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
    scopes: Object.values(security[0]).flat(),
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

/** The error codes with their descriptions, by status. */
export const ERRORS: readonly { status: number; description: string }[] = Object.entries(
  Object.values(written.paths)[0]!["get"]!.responses,
).flatMap(([status, answer]) =>
  "$ref" in answer
    ? [{ status: Number(status), description: written.components.responses[nameOf(answer.$ref)]!.description }]
    : [],
);

/** Resolves a reference to an object. */
export const referenceOf = ({ $ref }: Schema): string | undefined => $ref && nameOf($ref);

const isNull = ({ type }: Schema) => type === "null";
/** The documentation does not mention that a parameter may be empty. */
const isEmptyText = (schema: Schema) => schema.const === "";

/** Returns the variants of a schema without null. */
export const branchesOf = ({ anyOf, oneOf }: Schema): Schema[] =>
  (anyOf ?? oneOf ?? []).filter((branch) => !isNull(branch) && !isEmptyText(branch));

export const mayBeNull = ({ anyOf = [] }: Schema): boolean => anyOf.some(isNull);

export type SchemaField = { prefix: string; name: string; schema: Schema; isRequired: boolean };
/** `when` is the condition under which the fields are present; undefined: always. */
type Group = { when: { name: string; value: string } | undefined; fields: SchemaField[] };

const isObject = (schema: Schema) => schema.properties !== undefined;

/** Lists the fields of a schema and nested fields, each after its parent. Referenced objects are documented separately. */
export function groupsOf(schema: Schema): Group[] {
  const variants = schema.oneOf;
  if (!variants) return [{ when: undefined, fields: fieldsOf(schema, "") }];
  const [first, ...others] = variants.map((variant) => fieldsOf(variant, ""));
  // Nested fields are compared separately, because `fieldsOf` lists them too.
  const comparable = ({ schema: { properties: _, required: __, ...schema }, ...field }: SchemaField) =>
    JSON.stringify({ ...field, schema });
  const isSame = (a: SchemaField) => (b: SchemaField) => comparable(a) === comparable(b);
  const shared = first!.filter((field) => others.every((fields) => fields.some(isSame(field))));
  const groups = variants.map((variant): Group => {
    const { name } = discriminatorOf(variants);
    const fields = fieldsOf(variant, "").filter((field) => field.name !== name && !shared.some(isSame(field)));
    return { when: { name, value: String(variant.properties![name]!.const) }, fields };
  });
  return [{ when: undefined, fields: [discriminatorOf(variants), ...shared] }, ...groups];
}

/** Returns the discriminator of the variants. */
function discriminatorOf(variants: readonly Schema[]): SchemaField {
  const discriminators = variants.map(({ properties }) =>
    Object.entries(properties!).find(([, inner]) => "const" in inner)!,
  );
  const [name, { description }] = discriminators[0]!;
  const isSame = discriminators.every(([, inner]) => inner.description === description);
  const schema = {
    enum: discriminators.map(([, inner]) => inner.const),
    description: isSame ? description! : "The kind of the object",
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

function innerFields(schema: Schema, path: string): SchemaField[] {
  const { items, additionalProperties } = schema;
  if (isObject(schema)) return fieldsOf(schema, `${path}.`);
  if (items) return innerFields(items, `${path}[]`);
  if (typeof additionalProperties === "object") return innerFields(additionalProperties, `${path}.*`);
  return branchesOf(schema).flatMap((branch) => innerFields(branch, path));
}

/** Returns the names of all objects that these schemas reference, each once. */
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

const EXAMPLES_BY_TYPE: Record<string, unknown> = { boolean: false, integer: 0, number: 0, object: {}, string: "…" };

/** Returns a value that the schema allows, from its examples and those of its parts. */
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
  return "default" in schema ? schema.default : EXAMPLES_BY_TYPE[schema.type ?? "string"];
}

const exampleOfObject = ({ properties = {}, required = [] }: Schema) =>
  Object.fromEntries(
    Object.entries(properties)
      // Optional fields without an example are left out.
      .filter(([name, inner]) => required.includes(name) || inner.examples !== undefined || isObject(inner))
      .map(([name, inner]) => [name, exampleOf(inner)]),
  );

const OWN_VARIABLES: Record<string, string> = { projectId: "ASSAY_PROJECT", teamId: "ASSAY_TEAM" };
/** Converts `executionId` to `EXECUTION_ID`. */
export const variableOf = (name: string): string =>
  OWN_VARIABLES[name] ?? name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase();

/** Encodes a segment of a path so that the shell does not interpret it. */
const encode = (value: string) =>
  encodeURIComponent(value).replace(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16)}`);

const UUID = /"([a-z]\w*)":(\[?)"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"/gi;

/** Replaces ids in an example by shell variables, because the ids of an example do not exist. */
const toShellJson = (body: unknown): string =>
  quoted(JSON.stringify(body)).replace(UUID, (_, name: string, list: string) => {
    return `"${name}":${list}"'"$${variableOf(name.replace(/Ids$/, "Id"))}"'"`;
  });

/** The file that an example sends, by the format of the text. */
const FILES_OF_TEXTS: Record<string, string> = { dotenv: ".env", codeowners: "CODEOWNERS" };

function bodyOption({ body }: Operation): string[] {
  if (!body) return [];
  const { "application/json": json, "text/plain": text } = body.content;
  if (text) return [`-H "Content-Type: text/plain" --data-binary @${FILES_OF_TEXTS[text.schema.format!]}`];
  if (body.content["multipart/form-data"] && !body.content["*/*"]) return ["-F attachment=@cart-actual.png"];
  if (body.content["*/*"]) return [`--data-binary @${json ? "report.xml" : "cart-actual.png"}`];
  return json?.example === undefined ? [] : [`-d ${toShellJson(json.example)}`];
}

/**
 * Returns a working curl command that reads the key from the environment. `api` is the base URL; `ids` are inserted by
 * their names in the path; the others remain shell variables.
 */
export function toCurl(operation: Operation, api: string, ids: Readonly<Record<string, string>>): string {
  const { method, path, parameters, key, answers } = operation;
  const filledPath = path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const id = ids[name];
    return id === undefined ? `$${variableOf(name)}` : encode(id);
  });
  const query = parameters
    .filter(({ in: where, example }) => where === "query" && example !== undefined)
    .map(
      ({ name, example }) => `${name}=${encodeURIComponent(example!).replaceAll("%2C", ",").replaceAll("%2F", "/")}`,
    );
  const body = bodyOption(operation);
  // curl sends a POST if there is -d.
  const isImplied = method === "GET" || (method === "POST" && body.length > 0);
  const isStream = answers.some(({ content }) => "text/event-stream" in content);
  const head = ["curl", ...(isStream ? ["-N"] : []), ...(isImplied ? [] : [`-X ${method}`])].join(" ");
  const authorization = `-H "Authorization: Bearer $${key === "team" ? "ASSAY_TEAM_KEY" : "ASSAY_KEY"}"`;
  const address = `"${api}${filledPath}${query.length === 0 ? "" : `?${query.join("&")}`}"`;
  return [`${head} ${authorization}`, address, ...body].join(" \\\n  ");
}
