/** The syntax of XML as far as it is read by hand: the prolog, the ends of tags and sections, and characters that are not allowed. */

import { ReportError } from "./report.ts";
import { clean } from "./text.ts";

export const NAME = /<([^\s<>/="'&!?]+)/y;
export const SECTIONS = [
  { opens: "<!--", closes: "-->", what: "a comment" },
  { opens: "<![CDATA[", closes: "]]>", what: "a CDATA section" },
  { opens: "<?", closes: "?>", what: "a processing instruction" },
];

/** Comments, CDATA sections and instructions. */
export const MAX_SECTIONS = 2_000_000;
export const tooManySections = () =>
  new ReportError(`it has more than ${MAX_SECTIONS.toLocaleString("en")} comments and other sections`);

export function after(text: string, end: string | RegExp, at: number): number {
  if (typeof end === "string") {
    const found = text.indexOf(end, at);
    return found === -1 ? -1 : found + end.length;
  }
  end.lastIndex = at;
  return end.test(text) ? end.lastIndex : -1;
}

export function match(text: string, pattern: RegExp, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

const SPACE = /\s*/y;

/** Returns the name of the root element and the document type declaration, without parsing the rest. */
export function prolog(text: string): { root: string | null; doctype: string | null } {
  let doctype: string | null = null;
  for (let at = 0; ;) {
    at = after(text, SPACE, at);
    if (text.startsWith("<?", at)) at = after(text, "?>", at);
    else if (text.startsWith("<!--", at)) at = after(text, "-->", at);
    else if (doctype === null && /^<!doctype/i.test(text.slice(at, at + 9))) {
      const end = after(text, /<!doctype[^[>]*(?:\[[^\]]*\]\s*)?>/iy, at);
      doctype = text.slice(at, end === -1 ? at + 500 : end);
      at = end;
    } else return { root: /^<([^\s<>/="'&!?]+)/.exec(text.slice(at, at + 200))?.[1] ?? null, doctype };
    if (at === -1) return { root: null, doctype };
  }
}

export const SLASH = 0x2f;
const [GREATER, QUOTE, APOSTROPHE] = [0x3e, 0x22, 0x27];

/** Returns the offset after the tag that opens at `at`, or -1. */
export function tagEnd(text: string, at: number): number {
  for (let here = at + 1; here < text.length; here++) {
    const code = text.charCodeAt(here);
    if (code === GREATER) return here + 1;
    if (code !== QUOTE && code !== APOSTROPHE) continue;
    here = text.indexOf(code === QUOTE ? '"' : "'", here + 1);
    if (here === -1) return -1;
  }
  return -1;
}

/** Maximum number of edits, each of which takes a hundred bytes. A tool that does not escape the output of tests has fewer. */
export const MAX_EDITS = 1_000_000;

// All references but those to tab, line feed and carriage return, which most documents have many of.
const REFERENCE = /&#(?!(?:9|10|13|x0*[9ad]);)(?:x([\da-f]+)|(\d+));/gi;

/** Removes characters that XML 1.0 does not allow even as a reference; makes no copy if there are none. */
export function cleanXml(raw: string): string {
  // Counts one by one, because replacing would collect all matches first, at a hundred bytes each.
  let references = 0;
  for (REFERENCE.lastIndex = 0; REFERENCE.test(raw);)
    if (++references > MAX_EDITS)
      throw new ReportError(`it has more than ${MAX_EDITS.toLocaleString("en")} references to characters by number`);
  const text = references > 0 ? raw.replace(REFERENCE, illegalToRaw) : raw;
  return clean(text).trim();
}

function illegalToRaw(reference: string, hex: string | undefined, decimal: string | undefined): string {
  const code = hex ? Number.parseInt(hex, 16) : Number(decimal);
  if (code > 0x10ffff) return "\ufffd";
  const legal = code >= 0x20 && (code < 0xd800 || code > 0xdfff) && code !== 0xfffe && code !== 0xffff;
  // Two surrogate references side by side join here; `clean` deals with lone ones and with the rest.
  return legal ? reference : String.fromCharCode(code);
}
