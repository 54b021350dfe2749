/** The types and fields of the API as tables. */

import type { Html, Piece } from "../../../http/html.ts";
import { Breakable } from "../../components/text.tsx";
import {
  OBJECTS,
  type Parameter,
  type Schema,
  type SchemaField,
  branchesOf,
  groupsOf,
  mayBeNull,
  referenceOf,
} from "./reference.ts";

const link = (name: string): Html =>
  name === "Pagination" ? <a href="/docs#lists">Pagination</a> : <a href={`#${name}`}>{name}</a>;

const FORMATS: Record<string, string> = {
  uuid: "UUID",
  "date-time": "time",
  date: "day",
  uri: "address",
  cron: "cron schedule",
  "iana-time-zone": "IANA time zone",
  dotenv: ".env file",
  codeowners: "CODEOWNERS file",
  binary: "bytes",
};

/** Describes a type: "integer from 1 to 100", "list of Execution", `"a" or "b"`. */
function typeOf(schema: Schema): Piece {
  const name = referenceOf(schema);
  if (name !== undefined) return link(name);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((one) => JSON.stringify(one)).join(", ");
  const branches = branchesOf(schema);
  if (branches.length > 0) {
    const types = branches.map(typeOf).flatMap((type, index): Piece[] => (index === 0 ? [type] : [" or ", type]));
    return mayBeNull(schema) ? [...types, " or null"] : types;
  }
  if (schema.items) return ["list of ", typeOf(schema.items)];
  return plainType(schema);
}

function plainType({ type, format, minimum, maximum, maxLength, additionalProperties }: Schema): string {
  if (format !== undefined && FORMATS[format]) return FORMATS[format];
  if (type === "string") return maxLength === undefined ? "text" : `text, at most ${maxLength.toLocaleString("en-US")}`;
  if (type === "boolean") return "true or false";
  if (type === "object") return additionalProperties ? "object by names" : "object";
  if (type === "integer" && minimum !== undefined && maximum !== undefined && maximum < 1e9)
    return `integer from ${minimum} to ${maximum.toLocaleString("en-US")}`;
  return type ?? "anything";
}

const EMPTY_DEFAULTS = ["null", "{}", "[]", '""'];

/** A default that the description mentions, or an empty one, is not repeated. */
const defaultOf = ({ default: value, description = "" }: Schema): Html | null =>
  value === undefined || description.includes("Default:") || EMPTY_DEFAULTS.includes(JSON.stringify(value)) ? null : (
    <>
      {" "}
      Default: <code>{typeof value === "string" ? value : JSON.stringify(value)}</code>.
    </>
  );

/** Descriptions end with a full stop only if another sentence follows. */
export const sentence = (text: string | undefined): string =>
  text === undefined || /[.:]$/.test(text) ? (text ?? "") : `${text}.`;

/** Splits a description at blank lines. */
export const prose = (text: string): Html[] =>
  text.split("\n\n").map((paragraph) => <p class="prose">{sentence(paragraph)}</p>);

const descriptionOf = (schema: Schema): string | undefined => {
  const name = referenceOf(schema);
  return schema.description ?? (name === undefined ? undefined : OBJECTS[name]!.description);
};

export const row = (
  name: Piece,
  type: Piece,
  isRequired: boolean,
  text: string | undefined,
  schema: Schema,
  more: Piece = null,
) => (
  <tr>
    <th scope="row">
      <code>{name}</code>
      <span>
        {type}
        {isRequired ? ", required" : null}
      </span>
    </th>
    <td>
      {sentence(text)}
      {defaultOf({ ...schema, description: text ?? "" })}
      {more}
    </td>
  </tr>
);

const PARAMETER_LOCATIONS = { path: "in the path", query: "in the query", header: "a header" };

export const parameterRow = ({ name, in: location, required, description, schema }: Parameter): Html => {
  if (location === "header" && name === "Idempotency-Key")
    return row(name, "a header", false, undefined, {}, <a href="/docs#idempotency">Makes retries safe</a>);
  // Examples of ids are not helpful, and values of paths come from responses.
  const [example] = location === "path" || schema.format === "uuid" ? [] : (schema.examples ?? []);
  const type = [typeOf(schema), location === "query" ? null : `, ${PARAMETER_LOCATIONS[location]}`];
  const shown =
    example === undefined ? null : (
      <>
        {" "}
        Example: <code>{String(example)}</code>.
      </>
    );
  return row(name, type, required && location !== "path", description, schema, shown);
};

/** Response fields are always present unless marked; request fields are optional unless marked as required. */
const fieldRow =
  (isAnswer: boolean) =>
  ({ prefix, name, schema, isRequired }: SchemaField): Html => {
    const location = [
      prefix === "" ? null : (
        <span class="soft">
          <Breakable text={prefix} />
        </span>
      ),
      <Breakable text={name} />,
    ];
    const type = [typeOf(schema), isAnswer && !isRequired ? ", optional" : null];
    return row(location, type, isRequired && !isAnswer, descriptionOf(schema), isAnswer ? {} : schema);
  };

export const table = (caption: string, rows: Piece): Html => (
  <div class="card">
    <table class="reference">
      <caption class="visually-hidden">{caption}</caption>
      <colgroup>
        <col class="name" />
        <col />
      </colgroup>
      <thead class="visually-hidden">
        <tr>
          <th scope="col">Name and type</th>
          <th scope="col">Description</th>
        </tr>
      </thead>
      <tbody>{rows}</tbody>
    </table>
  </div>
);

export function fieldTable(caption: string, schema: Schema, isAnswer: boolean): Html {
  const rows = groupsOf(schema).map(({ when, fields }) => [
    when === undefined ? null : (
      <tr>
        <th scope="rowgroup" colspan={2}>
          If <code>{when.name}</code> is <code>{when.value}</code>
          {describedAs(schema, when)}
        </th>
      </tr>
    ),
    fields.map(fieldRow(isAnswer)),
  ]);
  return table(caption, rows);
}

/** Returns the descriptions of the discriminator's values, if they differ. */
function describedAs({ oneOf = [] }: Schema, { name, value }: { name: string; value: string }): string {
  const texts = oneOf.map(({ properties }) => properties![name]!.description);
  const own = oneOf.find(({ properties }) => properties![name]!.const === value)?.properties![name]!.description;
  return own !== undefined && new Set(texts).size > 1 ? `: ${own}` : "";
}

/** Returns the row type of `{ data: list of Row, pagination }`, because the wrapper is the same for all lists. */
export const rowOf = ({ properties: { data, pagination } = {} }: Schema): Schema | undefined =>
  pagination ? data?.items : undefined;

export function shapeOf(schema: Schema): Piece {
  const row = rowOf(schema);
  if (row === undefined) return typeOf(schema);
  return [
    <>
      <a href="/docs#lists">a page</a> of{" "}
    </>,
    referenceOf(row) === undefined ? "these" : typeOf(row),
  ];
}
