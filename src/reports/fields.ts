/** Code that the readers of JSON and XML share: converts values of any type to text, and the fields of a test case to a result. */

import {
  type CaseName,
  type CaseStatus,
  type FailureKind,
  type KnownNames,
  type ReportedCase,
  ReportError,
} from "./report.ts";
import { clean, cut, type Cutter, localName, textOf, toLine, type WrittenAttachment } from "./text.ts";

export type JsonObject = Record<string, unknown>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

// Readers ask for fields that are missing several times for each test.
const NO_FIELDS: JsonObject = Object.freeze({});
const NO_ELEMENTS: readonly unknown[] = Object.freeze([]);

/** The fields of an object; of anything else, none. */
export function toFields(value: unknown): JsonObject {
  return isObject(value) ? value : NO_FIELDS;
}

/** The elements of a list; of anything else, none. */
export function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : NO_ELEMENTS;
}

/** A number of test cases as reports count them, or null. */
export const asCount = (count: unknown): number | null =>
  typeof count === "number" && count >= 0 && count < 1e9 ? count : null;

/** Returns texts without characters that cannot be stored, numbers as texts, and "" for anything else. */
export function asText(value: unknown): string {
  return typeof value === "string" ? clean(value) : typeof value === "number" ? String(value) : "";
}

/** Maximum number of texts of a list that are kept. */
const MAX_TEXTS = 1_000;
/** Returns a text or a list of texts as a list, without empty ones. */
export function toTexts(value: unknown): string[] {
  const texts: string[] = [];
  const add = (one: unknown) => {
    const text = asText(one);
    if (text !== "") texts.push(text);
  };
  if (Array.isArray(value)) for (const one of value.slice(0, MAX_TEXTS)) add(one);
  else add(value);
  return texts;
}

/** Maximum number of attachments of a list that are read. A run keeps fewer. */
const MAX_ATTACHMENTS = 1_000;
/** Attachments as Playwright and CTRF list them. */
export const toAttachments = (list: unknown): WrittenAttachment[] =>
  asList(list)
    .slice(0, MAX_ATTACHMENTS)
    .map(toFields)
    .map(({ name, path, contentType, body }) => ({
      name: asText(name),
      path: asText(path),
      contentType: asText(contentType),
      base64: typeof body === "string" ? body : undefined,
    }));

/** Milliseconds since 1970 from milliseconds or, as some reporters write them, seconds; null before the year 2000. */
export function toEpochMs(time: unknown): number | null {
  if (typeof time !== "number" || !(time > 0)) return null;
  const ms = time < 1e11 ? time * 1000 : time;
  return ms >= Date.UTC(2000) && ms < Date.UTC(2200) ? Math.round(ms) : null;
}

/** The fields of a test case as a report has them. Texts are clean; "" and null mean that the report does not have the field. */
export type RawCase = {
  suite?: string | undefined;
  name: string;
  file?: string | null | undefined;
  line?: unknown;
  status: CaseStatus;
  /** Default "failure"; meaningless unless failed. */
  kind?: FailureKind | null | undefined;
  flaky?: boolean | undefined;
  attempts?: number | undefined;
  durationMs?: number | null | undefined;
  message?: string | null | undefined;
  stack?: string | null | undefined;
  output?: string | null | undefined;
  properties?: [string, string][] | undefined;
  attachments?: readonly WrittenAttachment[] | undefined;
} & KnownNames;

/** Creates a case and truncates its texts. */
export function toCase(cutter: Cutter, raw: RawCase): ReportedCase {
  cutter.countCase();
  const attachments = raw.attachments && cutter.attachments(raw.attachments);
  // Written without object spreads, which would take longer than the rest of the function.
  const result: ReportedCase = {
    suite: cutter.cut("suite", raw.suite ?? ""),
    name: cutter.cut("name", raw.name.trim() || "(no name)"),
    file: cutter.cutOrNull("file", raw.file ?? null),
    line: toLine(raw.line),
    status: raw.status,
    kind: raw.status === "failed" ? (raw.kind ?? "failure") : null,
    flaky: raw.status === "passed" && raw.flaky === true,
    attempts: raw.attempts ?? 1,
    durationMs: raw.durationMs ?? null,
    message: cutter.cutOrNull("message", raw.message ?? null),
    stack: cutter.cutOrNull("stack", raw.stack ?? null),
    output: cutter.cutOrNull("output", raw.output ?? null),
    properties: raw.properties ? cutter.properties(raw.properties) : null,
  };
  if (attachments) result.attachments = attachments;
  if (raw.otherNames) result.otherNames = raw.otherNames.map((name) => cutName(name, cutter));
  if (raw.keepOtherNames) result.keepOtherNames = true;
  return result;
}

const cutName = ({ suite, name, file }: CaseName, cutter: Cutter): CaseName => ({
  suite: cutter.cut("suite", suite),
  name: cutter.cut("name", name.trim() || "(no name)"),
  file: cutter.cutOrNull("file", file),
});

/** The name of a failure that a report declares without a case that shows it. */
export const FAULT = "(failure without a test case)";

/** Creates a failed case for a failure that a report has outside of its test cases. */
export function toFault(
  cutter: Cutter,
  raw: Omit<RawCase, "name" | "status" | "message"> & { name?: string; message: string },
): ReportedCase {
  return toCase(cutter, { name: FAULT, kind: "error", ...raw, status: "failed" });
}

/** A report that declares failures is not green: one failed case where none of its cases has failed, else none. */
export function hiddenFailures(cutter: Cutter, declared: unknown, cases: ReportedCase[]): ReportedCase[] {
  if (typeof declared !== "number" || !(declared > 0)) return [];
  if (cases.some(({ status }) => status === "failed")) return [];
  return [toFault(cutter, { message: `The report declares ${declared} failed, but none of its test cases failed` })];
}

type Node = Bun.XML.Node;

/**
 * A document, or a part of a large one. In a part, the first `depth` elements, each the first child of the previous one, were open where
 * the part begins, and are continued. The last `open` elements, each the last child of the previous one, continue in the next part. A part
 * of depth 0 that is not the first begins another root.
 */
export type XmlPart = { root: Node; depth: number; open: number };

/** The elements inside an element, without the text between them. */
export const elementsOf = (node: Node): Node[] =>
  node.children.filter((child) => typeof child === "object" && "name" in child);

/**
 * Throws a ReportError if the root of a document without test cases contains elements that its format does not have: then it is another
 * document, and not an empty report.
 */
export function refuseForeign(root: Node, known: ReadonlySet<string>): void {
  const foreign = elementsOf(root).find(({ name }) => !known.has(localName(name)));
  if (foreign) throw foreignElement(root.name, foreign.name);
}

export const foreignElement = (root: string, name: string): ReportError =>
  new ReportError(`its root <${cut(root, 100)}> holds <${cut(name, 100)}>, which this format does not have`);

const isNamed = (part: Node["children"][number], name: string): part is Node =>
  typeof part === "object" && "name" in part && localName(part.name) === name;

/** The elements of that name inside an element, whatever their prefix. */
export const named = (node: Node, name: string): Node[] =>
  node.children.filter((part): part is Node => isNamed(part, name));

/** The first of them; of nothing, nothing. */
export const child = (node: Node | undefined, name: string): Node | undefined =>
  node?.children.find((part): part is Node => isNamed(part, name));

/** The text of an element without white space around it; of nothing, "". */
export const textBelow = (node: Node | undefined): string => (node ? textOf(node).trim() : "");
