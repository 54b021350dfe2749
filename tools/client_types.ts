/** Writes JSON Schema as types of TypeScript. */

export type Schema = { [name: string]: any };

const quoteName = (name: string): string => (/^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name));

/** A comment before a declaration, or nothing. */
export const toComment = (text: string | undefined, indent: string): string =>
  text ? `${indent}/** ${text.replaceAll("*/", "*\\/").replaceAll("\n", " ")} */\n` : "";

const union = (types: readonly string[]): string => [...new Set(types)].join(" | ") || "never";

function toObject({ properties = {}, required = [], additionalProperties }: Schema, indent: string): string {
  const inner = `${indent}  `;
  const lines = Object.entries<Schema>(properties).map(
    ([name, schema]) =>
      `${toComment(schema["description"], inner)}${inner}${quoteName(name)}${required.includes(name) ? "" : "?"}: ${toType(schema, inner)};\n`,
  );
  const isOpen = typeof additionalProperties === "object";
  if (lines.length === 0) return `Record<string, ${isOpen ? toType(additionalProperties, indent) : "unknown"}>`;
  return `{\n${lines.join("")}${isOpen ? `${inner}[name: string]: unknown;\n` : ""}${indent}}`;
}

/** Throws for a schema that it cannot express. */
export function toType(schema: Schema, indent = ""): string {
  const { $ref, type, items, anyOf, oneOf } = schema;
  if ($ref !== undefined) return $ref.slice($ref.lastIndexOf("/") + 1);
  if ("const" in schema) return JSON.stringify(schema["const"]);
  if (schema["enum"]) return union(schema["enum"].map((value: unknown) => JSON.stringify(value)));
  const branches: Schema[] | undefined = oneOf ?? (type === undefined ? anyOf : undefined);
  if (branches) return union(branches.map((branch) => toType(branch, indent)));
  if (Array.isArray(type)) return union(type.map((one) => toType({ ...schema, type: one }, indent)));
  if (type === "array") return `Array<${items ? toType(items, indent) : "unknown"}>`;
  if (type === "object") return toObject(schema, indent);
  if (type === "integer") return "number";
  if (["string", "number", "boolean", "null"].includes(type)) return type;
  if (type === undefined && Object.keys(schema).every((name) => ["description", "examples"].includes(name)))
    return "unknown";
  throw new Error(`Cannot express as a type: ${JSON.stringify(schema).slice(0, 200)}`);
}
