/** Limits of XML: what would take the parser seconds or gigabytes is refused, or read in parts. */

import { ReportError } from "./report.ts";
import { lineAt } from "./text.ts";
import { after, match, NAME, SECTIONS, SLASH } from "./xml_syntax.ts";

/** The tree of a document takes several times its length, and some 300 bytes for each of its elements. */
export const SIZES = {
  large: { characters: 32 * 2 ** 20, elements: 300_000 },
  part: { characters: 4 * 2 ** 20, elements: 100_000 },
};
/** Maximum elements of a document that is read as a whole: ten for each of 200,000 test cases. */
export const MAX_ELEMENTS = 2_000_000;
/** The same for one that is read in parts: reading takes three seconds for each million. */
const MAX_ALL_ELEMENTS = 5_000_000;
export const tooManyElements = (max = MAX_ELEMENTS) =>
  new ReportError(`it has more than ${max.toLocaleString("en")} elements`);

/** Throws a ReportError. */
export function refuseElements(text: string): void {
  if (countElements(text, MAX_ALL_ELEMENTS) > MAX_ALL_ELEMENTS) throw tooManyElements(MAX_ALL_ELEMENTS);
}

export function isLarge(text: string, { characters, elements }: typeof SIZES.large): boolean {
  return text.length > characters || countElements(text, elements) > elements;
}

/** Counts elements up to `max` + 1. */
export function countElements(text: string, max: number): number {
  let count = 0;
  for (let at = text.indexOf("<"); at !== -1 && count <= max; at = text.indexOf("<", at + 1))
    if (text.charCodeAt(at + 1) !== SLASH) count++;
  return count;
}

const ATTRIBUTE_START = /\s+([^\s<>/="'&]+)\s*=\s*["']/y;

/** Maximum number of characters. Longer messages are truncated, but no tool writes this much into one. */
const MAX_ATTRIBUTE = 16 * 1_048_576;
const MAX_ATTRIBUTES = 1_000;
/** Room for more attributes than that, each ` a=""`. */
const MIN_EXCESS = 5 * MAX_ATTRIBUTES;

/**
 * Throws a ReportError for an attribute, or a number of attributes in one element, that would take the parser seconds. A tag contains no
 * "<", so only long stretches without "<" are checked.
 */
export function refuseExcess(text: string): void {
  for (let at = text.indexOf("<"); at !== -1;) {
    const later = text.lastIndexOf("<", at + MIN_EXCESS);
    if (later > at) at = later;
    // It may be a tag that is quoted in a comment or in the output of a test.
    else if (excessOf(text, at) !== null) return refuseExcessOutside(text);
    else at = text.indexOf("<", at + MIN_EXCESS);
  }
}

/** Checks like `refuseExcess` but for every tag, and skips text that is not markup. */
function refuseExcessOutside(text: string): void {
  for (let at = text.indexOf("<"); at !== -1;) {
    const section = SECTIONS.find(({ opens }) => text.startsWith(opens, at));
    const excess = section ? null : excessOf(text, at);
    if (excess !== null) throw new ReportError(`line ${lineAt(text, at)}: ${excess}`);
    at = section ? after(text, section.closes, at + section.opens.length) : at + 1;
    if (at !== -1) at = text.indexOf("<", at);
  }
}

/** Describes the excess of the tag that begins at `at`; null if there is none. */
function excessOf(text: string, at: number): string | null {
  const next = text.indexOf("<", at + 1);
  const end = next === -1 ? text.length : next;
  if (end - at < MIN_EXCESS) return null;
  const tag = match(text, NAME, at)?.[1];
  if (tag === undefined) return null;
  let from = at + 1 + tag.length;
  for (let count = 1; ; count++) {
    const name = match(text, ATTRIBUTE_START, from)?.[1];
    if (name === undefined) return null;
    const value = ATTRIBUTE_START.lastIndex;
    const close = text.indexOf(text[value - 1]!, value);
    if (close === -1 || close > end) return null;
    const excess = excessAt(tag, name, count, close - value);
    if (excess !== null) return excess;
    from = close + 1;
  }
}

export function excessAt(tag: string, attribute: string, count: number, length: number): string | null {
  const of = `the tag <${tag.slice(0, 50)}>`;
  if (count > MAX_ATTRIBUTES) return `${of} has more than ${MAX_ATTRIBUTES.toLocaleString("en")} attributes`;
  if (length > MAX_ATTRIBUTE) return `the attribute ${attribute.slice(0, 50)} of ${of} is longer than 16 MiB`;
  return null;
}
