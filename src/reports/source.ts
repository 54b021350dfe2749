/** A report file as text, and properties derived from its beginning. */

import { toStorable } from "../schema/fields.ts";
import { firstDocumentEnd, isFollowed, parseJson, parseLine } from "./json.ts";
import { isJsonLines } from "./json_lines.ts";
import { binaryKind, jsonKind, textKind, xmlKind } from "./refusals.ts";
import { ReportError } from "./report.ts";
import { isSubunit } from "./subunit_packets.ts";
import { cut, decode, localName, plural } from "./text.ts";
import { prolog } from "./xml_syntax.ts";
import type { Resources } from "./zip.ts";

export type Source = {
  text: string;
  /** The bytes of a format that is no text; then `text` is empty. */
  binary: Uint8Array | null;
  /** The root element without its prefix, when this is XML. */
  root: string | null;
  /** `undefined` when this is not JSON. */
  json: unknown;
  /** Why it is not JSON, when it begins like JSON. */
  fault: ReportError | null;
  /** The JSON document that the text begins with, and where it ends, when more follows it. */
  document: { json: unknown; end: number } | null;
  /** Whether `text` and `json` have U+FFFD in place of NUL, which no JSON may hold as it is; XML is cleaned by its reader. */
  hadNul: boolean;
  /** The files beside the report in its archive; null if it is not in one. */
  resources: Resources | null;
};

const NO_JSON = { json: undefined, fault: null, document: null };
export const NO_TEXT: Source = { text: "", binary: null, root: null, ...NO_JSON, hadNul: false, resources: null };

/** Returns null for a format that is no text. */
export function toText(bytes: Uint8Array): string | null {
  if (isSubunit(bytes)) return null;
  const kind = binaryKind(bytes);
  if (kind) throw new ReportError(`it is ${kind}, not a test report`);
  const text = decode(bytes);
  // Files that were joined have a byte-order mark each.
  return text.includes("\ufeff") ? text.replace(/^\ufeff/gm, "") : text;
}

export function toSource(raw: string): Source {
  const start = raw.slice(0, 100).trimStart() || raw.trimStart();
  if (start === "") throw new ReportError("it is empty");
  if (start.startsWith("<")) {
    const text = raw.trimStart();
    const { root, doctype } = prolog(text);
    const name = /^<!doctype\s+html/i.test(doctype ?? "") ? "html" : root && localName(root);
    return { ...NO_TEXT, text: raw, root: name };
  }
  const hadNul = raw.includes("\0");
  const stored = hadNul ? toStorable(raw) : raw;
  // Patterns of lines know one end of a line.
  const plain = stored.includes("\r\n") ? stored.replaceAll("\r\n", "\n") : stored;
  const source: Source = { ...NO_TEXT, text: plain.trimStart(), hadNul };
  if (!start.startsWith("{") && !start.startsWith("[")) return source;
  const { text } = source;
  if (isJsonLines(text)) {
    const end = text.indexOf("\n");
    const fault = new ReportError("malformed JSON at line 2: there is more after its end");
    return { ...source, fault, document: { json: parseLine(text.slice(0, end)), end } };
  }
  try {
    return { ...source, json: parseJson(plain) };
  } catch (error) {
    const end = isFollowed(error as ReportError) ? firstDocumentEnd(text) : null;
    const document = end === null ? null : { json: parseJson(text.slice(0, end)), end };
    return { ...source, fault: error as ReportError, document };
  }
}

/** The document that the text begins with, as if it were all of it; null if it is not JSON, or nothing follows. */
export const firstDocument = (source: Source): Source | null =>
  source.document && {
    ...source,
    text: source.text.slice(0, source.document.end),
    json: source.document.json,
    fault: null,
  };

/** Returns an error that says what the file is instead of a report. */
export function toRefusal({ text, root, json, fault, document }: Source): string {
  // One JSON object per line is not malformed JSON.
  if (fault && document && text.startsWith("{") && text[document.end + 1] === "{")
    return `it is JSON lines of no known format, the first ${describeKeys(document.json as object)}`;
  const stream = document && jsonKind(document.json);
  if (stream) return `it is ${stream}, not a test report`;
  if (fault) return fault.message;
  if (json !== undefined) {
    const kind = jsonKind(json);
    if (kind) return `it is ${kind}, not a test report`;
    if (Array.isArray(json)) return `it is a JSON list of ${plural(json.length, "element")} of no known format`;
    return `it is JSON of no known format, ${describeKeys(json as object)}`;
  }
  if (root !== null) {
    const kind = xmlKind(root, text.slice(0, 5000));
    return kind
      ? `it is ${kind}, not a test report`
      : `it is XML of no known format, with the root <${cut(root, 100)}>`;
  }
  if (text.trimStart().startsWith("<")) return "it is malformed XML without a root element";
  return `it is ${textKind(text)}, not a test report`;
}

function describeKeys(json: object): string {
  const keys = Object.keys(json);
  const some = keys.slice(0, 8).map((key) => JSON.stringify(cut(key, 40)));
  const rest = keys.length > 8 ? ` and ${keys.length - 8} more` : "";
  return keys.length > 0 ? `with the keys ${some.join(", ")}${rest}` : "with no keys";
}

export function needJson({ json, fault }: Source): unknown {
  if (fault) throw fault;
  if (json === undefined) throw new ReportError("it is not JSON");
  return json;
}
