/** Keeps the answer of a tool below its size, and says what was left out. */

import { isJsonRecord, type JsonRecord } from "./json_rpc.ts";

/** Maximum size of a result as JSON in UTF-8: an assistant pays for every byte. */
export const MAX_RESULT_BYTES = 20_000;
/** Size of the envelope that the protocol adds to a result. */
const ENVELOPE_BYTES = 400;
/** Maximum size of the statement of what was left out. */
const STATEMENT_BYTES = 600;
/** The text repeats the structure for clients that do not read it. */
const COPIES = 2;
/** A text is not cut below this length. */
const MIN_TEXT_LENGTH = 100;

export type ToolResult = { content: { type: "text"; text: string }[]; structuredContent?: JsonRecord; isError?: true };

const bytesOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value) ?? "");

const toResult = (data: JsonRecord): ToolResult => ({
  content: [{ type: "text", text: JSON.stringify(data) }],
  structuredContent: data,
});

/** A list or a text within the data: where it is, and how to put a shorter one in its place. */
type Part = { path: string; value: unknown[] | string; bytes: number; put: (value: unknown) => void };

function* partsOf(value: JsonRecord | unknown[], path: string): Generator<Part> {
  for (const [name, inner] of Object.entries(value)) {
    const put = (shorter: unknown) => void ((value as JsonRecord)[name] = shorter);
    const at = Array.isArray(value) ? path : path === "" ? name : `${path}.${name}`;
    if (typeof inner === "string" && inner.length > MIN_TEXT_LENGTH)
      yield { path: at, value: inner, bytes: bytesOf(inner), put };
    if (Array.isArray(inner)) {
      if (inner.length > 1) yield { path: at, value: inner, bytes: bytesOf(inner), put };
      yield* partsOf(inner, at);
    } else if (isJsonRecord(inner)) yield* partsOf(inner, at);
  }
}

const largest = (parts: readonly Part[]): Part | undefined =>
  parts.reduce<Part | undefined>((most, part) => (most && most.bytes >= part.bytes ? most : part), undefined);

/** Drops items from the end of a list until `bytes` are saved; keeps the first. */
function dropItems(items: readonly unknown[], bytes: number): unknown[] {
  const kept = [...items];
  for (let saved = 0; saved < bytes && kept.length > 1;) saved += bytesOf(kept.pop());
  return kept;
}

const cutText = (text: string, bytes: number): string =>
  `${text.slice(0, Math.max(MIN_TEXT_LENGTH - 1, text.length - Math.max(bytes, text.length >> 3))).toWellFormed()}…`;

/**
 * Makes the result of a tool from its data. A result that is too large loses the ends of its longest lists first, then those of its longest
 * texts; `leftOut` of the data says so, with `hint` for how to get the rest. A page that has lost items has no `nextCursor`, which would
 * skip them.
 */
export function fit(given: JsonRecord, leftOut: readonly string[], hint = "ask for fewer at a time"): ToolResult {
  const data = structuredClone(given);
  const lost = new Map<string, { shown: number; of: number }>();
  let cutTexts = 0;
  const max = MAX_RESULT_BYTES - ENVELOPE_BYTES - STATEMENT_BYTES;
  for (;;) {
    const excess = bytesOf(toResult(data)) - max;
    if (excess <= 0) break;
    const parts = [...partsOf(data, "")];
    const list = largest(parts.filter(({ value }) => Array.isArray(value)));
    const part = list ?? largest(parts);
    if (!part) break;
    const bytes = Math.ceil(excess / COPIES);
    if (Array.isArray(part.value)) {
      const kept = dropItems(part.value, bytes);
      part.put(kept);
      lost.set(part.path, { shown: kept.length, of: lost.get(part.path)?.of ?? part.value.length });
    } else {
      part.put(cutText(part.value, bytes));
      cutTexts++;
    }
  }
  if (lost.size > 0 && "nextCursor" in data) delete data["nextCursor"];
  const statements = [
    ...leftOut,
    ...[...lost].map(([path, { shown, of }]) => `${path}: ${shown} of ${of} fit; ${hint}`),
    ...(cutTexts > 0 ? [`${cutTexts} more texts were shortened`] : []),
  ];
  return toResult({ ...data, leftOut: toStatements(statements) });
}

/** Keeps the statements themselves within their size. */
function toStatements(statements: readonly string[]): string[] {
  const kept: string[] = [];
  for (const statement of statements)
    if (bytesOf([...kept, statement]) * COPIES < STATEMENT_BYTES - 80) kept.push(statement);
  if (kept.length < statements.length) kept.push(`and ${statements.length - kept.length} more`);
  return kept;
}
