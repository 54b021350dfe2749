/** Reads XML of test runners: cleans it, parses it with Bun, and repairs documents that are not well formed. */

import type { XmlPart } from "./fields.ts";
import { MAX_LEVELS, ReportError } from "./report.ts";
import { lineAt } from "./text.ts";
import { divide, Indivisible, tryParse } from "./xml_divide.ts";
import {
  countElements,
  isLarge,
  MAX_ELEMENTS,
  refuseElements,
  refuseExcess,
  SIZES,
  tooManyElements,
} from "./xml_limits.ts";
import { repairXml } from "./xml_repair.ts";
import { cleanXml, prolog } from "./xml_syntax.ts";

/** A document of which a reader has made something. */
type XmlDocument<Result> = {
  result: Result;
  /** Location and reason of the syntax error, if only the part before it could be read. */
  broken: string | null;
  /** Number of characters that should have been escaped. */
  repaired: number;
  /** The first line of text after the document, which is ignored: a program printed it at its end. */
  trailing: string | null;
};

export type XmlReading<Result> = {
  /** A broken document is read up to the last complete element of this name; null: it is refused. */
  whole: string | null;
  /** Whether elements of this name (without prefix) may be split over several parts. Undefined: there is one part. */
  isDivisible?: (name: string) => boolean;
  /** Whether elements of this name (without prefix) may be further roots. Undefined: there is one root. */
  isRoot?: (name: string) => boolean;
  /** Default: MAX_LEVELS. */
  maxLevels?: number;
  /** Called again with other parts if the given ones turn out to be broken. */
  read: (parts: Iterable<XmlPart>) => Result;
};

/** Throws a ReportError with the line when the document is broken, and nothing whole is before that. */
export function parseXml<Result>(raw: string, reading: XmlReading<Result>, sizes = SIZES): XmlDocument<Result> {
  const text = cleanXml(raw);
  const { doctype } = prolog(text);
  // No test runner declares entities or refers to a DTD. Such a document wants us to expand or fetch something.
  if (doctype && /\[|\s(?:SYSTEM|PUBLIC)\s/.test(doctype)) {
    throw new ReportError("entity declarations and external document types are not accepted");
  }
  refuseExcess(text);
  refuseElements(text);
  const first = tryRead(text, reading, sizes);
  if (!(first instanceof Error)) return { ...first, broken: null, repaired: 0, trailing: null };

  const repair = repairXml(text, reading);
  if (text.length > SIZES.large.characters) Bun.gc(true);
  const line = (at: number) => lineAt(raw, raw.length - raw.trimStart().length) - 1 + lineAt(text, at);
  const broken = repair.fault && `line ${line(repair.fault.at)}: ${repair.fault.reason}`;
  const second = repair.text === null ? first : tryRead(repair.text, reading, sizes);
  if (second instanceof Error) {
    throw new ReportError(broken ? `malformed XML at ${broken}` : `malformed XML: ${second.message}`);
  }
  return { ...second, broken, repaired: repair.edits, trailing: repair.trailing };
}

function tryRead<Result>(
  text: string,
  { isDivisible, isRoot, maxLevels = MAX_LEVELS, read }: XmlReading<Result>,
  { large, part }: typeof SIZES,
): { result: Result } | Error {
  if (isDivisible && isLarge(text, large)) {
    const whole = readParts(divide(text, isDivisible, { part, isRoot, maxLevels }), read);
    if (whole) return whole;
  }
  if (countElements(text, MAX_ELEMENTS) > MAX_ELEMENTS) {
    if (!isDivisible) throw tooManyElements();
    return tooManyElements();
  }
  const root = tryParse(text, maxLevels);
  if (!(root instanceof Error)) return { result: read([{ root, depth: 0, open: 0 }]) };
  if (!isDivisible || !isRoot || !SEVERAL_ROOTS.test(root.message)) return root;
  return readParts(divide(text, isDivisible, { part, isRoot, maxLevels }), read) ?? root;
}

/** Errors of the parser for a second root, and for the declaration before it. */
const SEVERAL_ROOTS = /^only one root element|'<\?xml' is reserved/;

/** `null` when a part is broken. */
function readParts<Result>(
  parts: Generator<XmlPart>,
  read: (parts: Iterable<XmlPart>) => Result,
): { result: Result } | null {
  // The iterator has no `return`, so that the reader cannot end it by failing.
  const rest = { [Symbol.iterator]: () => ({ next: () => parts.next() }) };
  try {
    try {
      return { result: read(rest) };
    } catch (error) {
      // Errors in the markup take precedence over errors in the test cases, wherever they are.
      if (error instanceof ReportError) for (const _ of rest);
      throw error;
    }
  } catch (error) {
    if (!(error instanceof Indivisible)) throw error;
    return null;
  }
}
