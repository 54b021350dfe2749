/** Parses JSON and locates syntax errors, which the engine does not. */

import { cut, firstLine, lineAt } from "./text.ts";
import { MAX_LEVELS, nestedTooDeeply, ReportError } from "./report.ts";

/** Maximum estimated memory for the values of a document: a list of {} takes thirty times the length of its text. */
const MAX_PARSED_BYTES = 512 * 2 ** 20;
const SHORT_LINE = 100_000;
/** Approximate bytes that the engine needs for each value; each key is stored once. */
const WEIGHT = { object: 72, list: 32, string: 64, value: 16 };
/** Objects with more keys are no report: the engine takes seconds and gigabytes for millions. */
const MAX_KEYS = 1_000_000;

/** Throws a ReportError with the line of a syntax error, or if the values would take too much memory or are nested too deeply. */
export function parseJson(text: string): unknown {
  requireReadable(text);
  try {
    return JSON.parse(text);
  } catch (error) {
    const { at, reason } = findFault(text) ?? { at: 0, reason: (error as Error).message };
    throw new ReportError(`malformed JSON at line ${lineAt(text, at)}: ${reason}`);
  }
}

/** The value of a line of a report; null if it is not JSON. Throws a ReportError as `parseJson` does. */
export function parseLine(line: string): unknown {
  // A short line cannot hold too much.
  if (line.length > SHORT_LINE) requireReadable(line);
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}

/** Returns the end of the first document of the text if more follows it, else null. */
export const firstDocumentEnd = (text: string): number | null => findFault(text)?.at ?? null;

/** Whether the fault is that text follows the end of the document. */
export const isFollowed = ({ message }: ReportError): boolean => message.endsWith(MORE_FOLLOWS);

export const BREAKS_OFF = "it breaks off";
const MORE_FOLLOWS = "there is more after its end";

const [QUOTE, BACKSLASH, COLON, COMMA, BRACE, BRACKET] = [0x22, 0x5c, 0x3a, 0x2c, 0x7b, 0x5b];
const [CLOSING_BRACE, CLOSING_BRACKET] = [0x7d, 0x5d];

/**
 * Throws a ReportError if the values would take too much memory besides their characters, or are nested too deeply: readers may do work for
 * each enclosing value, and recurse for each level.
 */
function requireReadable(text: string): void {
  let [bytes, depth] = [0, 0];
  const keys = new Uint32Array(MAX_LEVELS + 1);
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === BRACE || code === BRACKET) {
      bytes += code === BRACE ? WEIGHT.object : WEIGHT.list;
      if (++depth > MAX_LEVELS) throw nestedTooDeeply("values");
      keys[depth] = 0;
    } else if (code === CLOSING_BRACE || code === CLOSING_BRACKET) depth--;
    else if (code === COMMA) bytes += WEIGHT.value;
    else if (code === COLON) {
      bytes += WEIGHT.value - WEIGHT.string;
      if (++keys[Math.max(0, depth)]! > MAX_KEYS)
        throw new ReportError(`one of its objects has more than ${MAX_KEYS.toLocaleString("en")} keys`);
    } else if (code === QUOTE) {
      bytes += WEIGHT.string;
      at = endOfString(text, at);
      if (at === -1) break;
    }
    if (bytes > MAX_PARSED_BYTES)
      throw new ReportError("it holds too many values: reading them would take more than 512 MiB");
  }
}

/** The quote that ends the string which opens at `at`, or -1. */
function endOfString(text: string, at: number): number {
  let end = text.indexOf('"', at + 1);
  while (end !== -1 && text.charCodeAt(end - 1) === BACKSLASH && isEscaped(text, end)) end = text.indexOf('"', end + 1);
  return end;
}

function isEscaped(text: string, at: number): boolean {
  let before = at - 1;
  while (text.charCodeAt(before) === BACKSLASH) before--;
  return (at - before) % 2 === 0;
}

type JsonFault = { at: number; reason: string; isAfterEnd?: true };

const SPACE = /[ \t\r\n]*/y;
const PLAIN = /[^"\\\x00-\x1f]*/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[\da-fA-F]{4})/y;
const SCALAR = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;

function skip(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : at;
}

/** The end of the string that opens at `at`, or minus the place where it goes wrong. */
function stringEnd(text: string, at: number): number {
  for (let here = at + 1; ;) {
    here = skip(PLAIN, text, here);
    if (text[here] === '"') return here + 1;
    const next = skip(ESCAPE, text, here);
    if (next === here) return -here;
    here = next;
  }
}

function unexpected(text: string, at: number, expected: string): { at: number; reason: string } {
  return { at, reason: `expected ${expected}, found "${cut(firstLine(text.slice(at, at + 40)), 20)}"` };
}

/** Where the text is no longer one JSON document; `isAfterEnd`: it goes on after the end of the first. */
export function findFault(text: string): JsonFault | null {
  const open: string[] = [];
  let expected: "a value" | "a key" | "a colon" | "a comma or the end" = "a value";
  let closable = false;
  for (let at = skip(SPACE, text, 0); ; at = skip(SPACE, text, at)) {
    if (at >= text.length) return { at, reason: BREAKS_OFF };
    const char = text[at]!;
    const wasClosable: boolean = closable;
    closable = false;
    if (expected === "a colon") {
      if (char !== ":") return unexpected(text, at, expected);
      expected = "a value";
      at++;
    } else if (expected !== "a comma or the end" && char === '"') {
      const end = stringEnd(text, at);
      if (end < 0) return { at: -end, reason: -end >= text.length ? BREAKS_OFF : "a string is not terminated" };
      expected = expected === "a key" ? "a colon" : "a comma or the end";
      at = end;
    } else if ((char === "}" || char === "]") && (wasClosable || expected === "a comma or the end")) {
      if (open.pop() !== (char === "}" ? "{" : "[")) return unexpected(text, at, expected);
      expected = "a comma or the end";
      at++;
    } else if (expected === "a comma or the end") {
      if (char !== "," || open.length === 0) return unexpected(text, at, expected);
      expected = open.at(-1) === "{" ? "a key" : "a value";
      at++;
    } else if (expected === "a value" && (char === "{" || char === "[")) {
      open.push(char);
      expected = char === "{" ? "a key" : "a value";
      closable = true;
      at++;
    } else if (expected === "a value") {
      const end = skip(SCALAR, text, at);
      if (end === at) return unexpected(text, at, expected);
      expected = "a comma or the end";
      at = end;
    } else return unexpected(text, at, expected);
    if (open.length === 0 && expected === "a comma or the end") {
      at = skip(SPACE, text, at);
      return at < text.length ? { at, reason: MORE_FOLLOWS, isAfterEnd: true } : null;
    }
  }
}
