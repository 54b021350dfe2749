/** Turns query strings, path parameters and JSON bodies into checked values, and every bad field into one message. */

import * as v from "valibot";
import { fail } from "./problem.ts";

const MAX_QUOTED = 60;

/** The value for an error message: short, on one line, whatever it is. */
function quote(value: unknown): string {
  if (value === undefined) return "nothing";
  if (Array.isArray(value)) return value.length > 0 ? `an array of ${value.length}` : "an array";
  if (typeof value === "object" && value !== null)
    return Object.keys(value).length > 0 ? "an object" : "an empty object";
  const text = String(value);
  const short = (text.length > MAX_QUOTED ? `${text.slice(0, MAX_QUOTED)}…` : text).toWellFormed();
  return typeof value === "string" ? JSON.stringify(short) : short;
}

/** Quotes a field name of at most 200 characters. */
const nameOf = (path: string) => JSON.stringify(path.slice(0, 200).toWellFormed());

/** Returns the value as it was sent: the issue itself may contain the transformed value. */
function givenAt(input: unknown, { path, input: made }: v.BaseIssue<unknown>): unknown {
  let value = input;
  for (const { key } of path ?? []) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key as string)) return made;
    value = (value as Record<string, unknown>)[key as string];
  }
  return value;
}

function describe(issue: v.BaseIssue<unknown>, input: unknown, quotes: boolean, at: string): string {
  const path = [...(at === "" ? [] : [at]), ...(issue.path?.map((item) => String(item.key)) ?? [])].join(".");
  const missing = issue.kind === "schema" && issue.type === "strict_object" && issue.expected !== "Object";
  if (missing && issue.expected === "never") return `Unknown field ${nameOf(path)}`;
  if (missing) return `Missing field ${nameOf(path)}`;
  const expected = issue.message.startsWith("expected") ? issue.message : `expected ${issue.expected ?? issue.message}`;
  const what = path === "" ? "the body" : nameOf(path);
  return `Cannot read ${what}: ${expected}${quotes ? `, got ${quote(givenAt(input, issue))}` : ""}`;
}

const HIDDEN = ["__proto__", "constructor", "prototype"];
/** A message names at most this many bad fields. */
const MAX_NAMED = 20;
/** Maximum objects and lists that are searched in an input that is refused anyway. */
const MAX_SEARCHED = 10_000;

const isNested = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !ArrayBuffer.isView(value);

/** Whether all that it holds are texts, numbers and the like, under names that are not hidden. */
function isFlat(input: unknown): boolean {
  if (!isNested(input)) return true;
  for (const name in input) {
    const value = (input as Record<string, unknown>)[name];
    if ((typeof value === "object" && value !== null) || HIDDEN.includes(name)) return false;
  }
  return true;
}

/** An object or a list within an input, and its path, which is only formatted for messages. */
type Inner = { value: object; name: string; within: Inner | undefined };

function pathOf({ name, within }: Inner): string {
  let path = name;
  for (let outer = within; outer?.within && path.length < 200; outer = outer.within) path = `${outer.name}.${path}`;
  return path.length < 200 ? path : `…${path.slice(-199)}`;
}

/** Fields that valibot passes over without a word, wherever they are, in the first `max` objects and lists. */
function hiddenFields(input: unknown, max: number): string[] {
  const found: string[] = [];
  // Most inputs are, and looking costs them more than checking.
  if (!isNested(input) || isFlat(input)) return found;
  const open: Inner[] = [{ value: input, name: "", within: undefined }];
  const push = (value: unknown, name: string | number, within: Inner) => {
    if (isNested(value) && open.length < max) open.push({ value, name: String(name), within });
  };
  // Not by recursion: JSON may be nested deeper than calls can be.
  for (let searched = 0; open.length > 0 && searched < max && found.length < MAX_NAMED; searched++) {
    const inner = open.pop()!;
    const { value } = inner;
    if (Array.isArray(value)) {
      for (let index = 0; index < value.length && open.length < max; index++) push(value[index], index, inner);
      continue;
    }
    for (const name of HIDDEN) if (Object.hasOwn(value, name)) found.push(pathOf({ value, name, within: inner }));
    for (const name in value)
      if (Object.hasOwn(value, name)) push((value as Record<string, unknown>)[name], name, inner);
  }
  return found;
}

/**
 * Fails with VALIDATION_ERROR and one message that names every invalid field, at most twenty, and quotes its value unless it may be secret.
 * `at` is the path of the input in the body.
 */
export function check<Schema extends v.GenericSchema>(
  schema: Schema,
  input: unknown,
  quotes = true,
  at = "",
): v.InferOutput<Schema> {
  const result = v.safeParse(schema, input);
  // A schema bounds what it accepts.
  const hidden = hiddenFields(input, result.success ? Infinity : MAX_SEARCHED);
  if (result.success && hidden.length === 0) return result.output;
  const messages = new Set<string>();
  const isFull = () => messages.size > MAX_NAMED;
  for (const issue of result.issues ?? []) {
    if (isFull()) break;
    messages.add(describe(issue, input, quotes, at));
  }
  for (const path of hidden) messages.add(`Unknown field ${nameOf(at === "" ? path : `${at}.${path}`)}`);
  // Valibot stops at the first unknown key of an object.
  if ("entries" in schema && typeof input === "object" && input !== null)
    for (const key of Object.keys(input)) {
      if (isFull()) break;
      if (!Object.hasOwn(schema.entries as object, key))
        messages.add(`Unknown field ${nameOf(at === "" ? key : `${at}.${key}`)}`);
    }
  const shown = [...messages].slice(0, MAX_NAMED).join("; ");
  fail("VALIDATION_ERROR", isFull() ? `${shown}; and more` : shown);
}

function decode(text: string, plus: boolean): string {
  const spaced = plus && text.includes("+") ? text.replaceAll("+", " ") : text;
  return spaced.includes("%") ? decodeURIComponent(spaced) : spaced;
}

/** Our largest form has some hundred fields. */
const MAX_PARAMETERS = 1_000;

/**
 * Adds a parameter to those before. Values of one that may be repeated are joined by commas; any other fails with VALIDATION_ERROR if
 * it is repeated.
 */
export function addParameter(
  parameters: Record<string, string>,
  name: string,
  value: string,
  mayRepeat: (name: string) => boolean,
): void {
  if (!(name in parameters)) parameters[name] = value;
  else if (mayRepeat(name)) parameters[name] += `,${value}`;
  else fail("VALIDATION_ERROR", `Cannot read ${nameOf(name)}: given more than once`);
}

const never = () => false;

/** `a=1&b=2` → an object without prototype; a repeated or badly encoded parameter fails, and so do too many. */
export function parseQuery(search: string, mayRepeat: (name: string) => boolean = never): Record<string, string> {
  const query: Record<string, string> = Object.create(null);
  if (search === "") return query;
  let count = 1;
  for (let at = search.indexOf("&"); at !== -1; at = search.indexOf("&", at + 1))
    if (++count > MAX_PARAMETERS) fail("VALIDATION_ERROR", `Too many parameters: at most ${MAX_PARAMETERS}`);
  for (const pair of search.split("&")) {
    if (pair === "") continue;
    const equals = pair.indexOf("=");
    let name = equals === -1 ? pair : pair.slice(0, equals);
    try {
      name = decode(name, true);
      const value = equals === -1 ? "" : decode(pair.slice(equals + 1), true);
      // Texts must not contain NUL, which would otherwise only fail in the database.
      if (name.includes("\0") || value.includes("\0"))
        fail("VALIDATION_ERROR", `Cannot read ${nameOf(name)}: expected a text without NUL`);
      addParameter(query, name, value, mayRepeat);
    } catch (error) {
      if (!(error instanceof URIError)) throw error;
      fail("VALIDATION_ERROR", `Cannot read ${nameOf(name)}: not valid percent-encoded UTF-8`);
    }
  }
  return query;
}

/** Decodes and checks the values of a path's parameters, which come in the order of the schema's entries. */
export function parsePath<Schema extends v.StrictObjectSchema<v.ObjectEntries, undefined>>(
  schema: Schema,
  segments: readonly string[],
): v.InferOutput<Schema> {
  const input: Record<string, string> = {};
  let index = 0;
  for (const name in schema.entries) {
    try {
      input[name] = decode(segments[index++]!, false);
    } catch {
      fail("VALIDATION_ERROR", `Cannot read ${nameOf(name)}: not valid percent-encoded UTF-8`);
    }
  }
  return check(schema, input);
}

/** UTF-8; fails with VALIDATION_ERROR on anything else. */
export function decodeText(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    fail("VALIDATION_ERROR", "Cannot read the body: not valid UTF-8");
  }
}

/** A JSON object; an empty body is an empty object, so that `curl -X POST` needs no `-d '{}'`. */
export function parseBody(bytes: Uint8Array, quotes = true): Record<string, unknown> {
  if (bytes.byteLength === 0) return {};
  const text = decodeText(bytes);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(/^JSON Parse error: /, "").slice(0, 200) : "";
    fail("VALIDATION_ERROR", `Cannot read the body: not valid JSON${quotes ? ` (${reason})` : ""}`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    fail("VALIDATION_ERROR", `Cannot read the body: expected a JSON object, got ${quote(value)}`);
  return value as Record<string, unknown>;
}
