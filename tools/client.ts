/** Writes the npm package assay-client from the OpenAPI document: its operations, and their types. */

import { cpSync } from "node:fs";
import { join, resolve } from "node:path";
import packageJson from "../package.json" with { type: "json" };
import openapi from "../src/server/openapi.json" with { type: "json" };
import { type Schema, toComment, toType } from "./client_types.ts";

const ROOT = resolve(import.meta.dir, "..");
const document: Schema = openapi;

type Operation = { name: string; method: string; path: string; operation: Schema };

const OPERATIONS: Operation[] = Object.entries<Schema>(document["paths"]).flatMap(([path, methods]) =>
  Object.entries<Schema>(methods).map(([method, operation]) => ({
    ...{ name: operation["operationId"], method: method.toUpperCase(), path, operation },
  })),
);

const parametersOf = ({ operation }: Operation, place: string): Schema[] =>
  operation["parameters"].filter((parameter: Schema) => parameter["in"] === place);

/** The content of the answer, by its type. */
const answerOf = ({ operation }: Operation): Record<string, { schema: Schema }> =>
  Object.entries<Schema>(operation["responses"]).find(([status]) => status.startsWith("2"))![1]["content"] ?? {};

function kindOf(operation: Operation): "json" | "events" | "file" {
  const types = Object.keys(answerOf(operation));
  if (types.includes("text/event-stream")) return "events";
  return types.length === 0 || types.includes("application/json") ? "json" : "file";
}

/** The type of a body that is text or bytes; undefined: the server recognises it. */
function contentTypeOf({ operation }: Operation): string | undefined {
  const types = Object.keys(operation["requestBody"]?.content ?? {});
  return types.includes("text/plain") ? "text/plain" : undefined;
}

function bodyTypeOf({ operation }: Operation): string {
  const content: Record<string, { schema: Schema }> = operation["requestBody"].content;
  const types = Object.entries(content).flatMap(([type, { schema }]) => {
    if (type === "application/json") return [toType(schema, "    ")];
    if (type === "multipart/form-data") return ["FormData"];
    return type === "*/*" ? ["string", "Blob", "ArrayBuffer", "Uint8Array", "ReadableStream<Uint8Array>"] : ["string"];
  });
  return [...new Set(types)].join(" | ");
}

function answerTypeOf(operation: Operation): string {
  const kind = kindOf(operation);
  if (kind === "events") return "AsyncGenerator<StreamEvent, void>";
  if (kind === "file") return "Response";
  const answer = answerOf(operation)["application/json"];
  return answer ? toType(answer.schema, "  ") : "undefined";
}

/** The project and the team are those of the client by default. */
const isOptional = ({ name, required }: Schema): boolean => !required || name === "projectId" || name === "teamId";

function toSignature(operation: Operation): string {
  const parameters = [...parametersOf(operation, "path"), ...parametersOf(operation, "query")];
  const line = (name: string, type: string, optional: boolean, description?: string) =>
    `${toComment(description, "    ")}    ${name}${optional ? "?" : ""}: ${type};\n`;
  const { requestBody } = operation.operation;
  const fields = [
    ...parameters.map((one) =>
      line(
        one["name"],
        `${toType(one["schema"])}${isOptional(one) ? " | undefined" : ""}`,
        isOptional(one),
        one["description"],
      ),
    ),
    ...(requestBody ? [line("body", bodyTypeOf(operation), !requestBody.required, requestBody.description)] : []),
    ...(operation.method === "POST"
      ? [
          line(
            "idempotencyKey",
            "string | undefined",
            true,
            "Repeating a request with the same key has no further effect",
          ),
        ]
      : []),
    ...(kindOf(operation) === "events"
      ? [line("lastEventId", "string | undefined", true, "The stream continues after this event")]
      : []),
  ];
  const needsNothing = parameters.every(isOptional) && !requestBody?.required;
  const { summary, description } = operation.operation;
  return `${toComment([summary, description].filter(Boolean).join(". "), "  ")}  ${operation.name}(parameters${needsNothing ? "?" : ""}: {\n${fields.join("")}  }, options?: CallOptions): Promise<${answerTypeOf(operation)}>;\n`;
}

function toTypes(): string {
  const schemas = Object.entries<Schema>(document["components"].schemas).map(
    ([name, schema]) =>
      `${toComment(schema["description"], "")}export type ${name === "Error" ? "ErrorAnswer" : name} = ${toType(schema)};\n`,
  );
  const webhooks = Object.values<Schema>(document["webhooks"]).map(({ post }) =>
    toType(post.requestBody.content["application/json"].schema),
  );
  return `/** The API of Assay ${packageJson.version}. Generated from its OpenAPI document. */

${schemas.join("\n")}
/** The body of any webhook; \`type\` says which. */
export type WebhookBody = ${webhooks.join(" | ")};

export type ClientOptions = {
  /** The address of the server, such as https://assay.example.com. */
  url: string;
  /** A key of the project or the team. */
  key: string;
  /** The project of operations that do not name one. */
  projectId?: string | undefined;
  /** The team of operations that do not name one. */
  teamId?: string | undefined;
  /** Default: the global fetch. */
  fetch?: typeof globalThis.fetch;
};

export type CallOptions = { signal?: AbortSignal | undefined };

/** An answer with an error, or an answer that is not of Assay. */
export class AssayError extends Error {
  status: number;
  code: ErrorAnswer["error"]["code"] | undefined;
  requestId: string | undefined;
  retryAfterSeconds: number | undefined;
}

export type Client = {
${OPERATIONS.map(toSignature).join("\n")}};

/** Returns an object with a function for each operation. */
export function createClient(options: ClientOptions): Client;

/** Yields the elements of all pages of a list. */
export function listAll<Parameters extends object | undefined, Element>(
  list: (
    parameters: Parameters,
    options?: CallOptions,
  ) => Promise<{ data: Element[]; pagination: Pagination }>,
  parameters: Parameters,
  options?: CallOptions,
): AsyncGenerator<Element, void>;
`;
}

const toOperations = (): string => {
  const operations = OPERATIONS.map((one) => [
    one.name,
    {
      ...{ method: one.method, path: one.path, query: parametersOf(one, "query").map(({ name }) => name) },
      ...{ kind: kindOf(one), contentType: contentTypeOf(one) },
    },
  ]);
  return `export const OPERATIONS = ${JSON.stringify(Object.fromEntries(operations), null, 2)};\n`;
};

/** Writes all files of the package into `folder`. */
export async function writeClient(folder: string): Promise<void> {
  const manifest = {
    name: "assay-client",
    version: packageJson.version,
    description: "Client of the API of Assay, with types",
    type: "module",
    exports: { ".": { types: "./client.d.ts", default: "./client.js" } },
    types: "./client.d.ts",
    sideEffects: false,
    engines: { node: ">=20" },
  };
  await Bun.write(join(folder, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  await Bun.write(join(folder, "operations.js"), toOperations());
  await Bun.write(join(folder, "client.d.ts"), toTypes());
  for (const name of ["client.js", "README.md"]) cpSync(join(ROOT, "tools/npm/assay-client", name), join(folder, name));
}
