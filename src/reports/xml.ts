/** XML as test runners write it: cleaned, parsed by Bun, and mended where the document is not well formed. */

import { ReportError } from "./report.ts";
import { clean, lineAt, localName } from "./text.ts";

export type XmlDocument = {
  root: Bun.XML.Node;
  /** Where the document broke and why, when only what comes before could be read. */
  broken: string | null;
  /** How many characters had to be taken literally that XML wants escaped. */
  mended: number;
};

/**
 * When the document is broken, it is read up to the last whole `<whole>` element before the break; with `whole` null,
 * or nothing whole before it, a ReportError tells the line.
 */
export function parseXml(raw: string, whole: string | null): XmlDocument {
  const text = cleanXml(raw);
  const { doctype } = prolog(text);
  // No test runner declares entities or points to a DTD; whoever does wants us to expand or to fetch something.
  if (doctype && /\[|\s(?:SYSTEM|PUBLIC)\s/.test(doctype)) {
    throw new ReportError("it declares entities or an external document type, which is refused");
  }
  refuseExcess(text);
  const first = tryParse(text);
  if (!(first instanceof Error)) return { root: first, broken: null, mended: 0 };

  const mend = mendXml(text, whole);
  const line = (at: number) => lineAt(raw, raw.length - raw.trimStart().length) - 1 + lineAt(text, at);
  const broken = mend.fault && `line ${line(mend.fault.at)}: ${mend.fault.reason}`;
  const second = mend.text === null ? first : tryParse(mend.text);
  if (second instanceof Error) {
    throw new ReportError(broken ? `malformed XML at ${broken}` : `malformed XML: ${second.message}`);
  }
  return { root: second, broken, mended: mend.edits };
}

/** Characters; a message of any length is cut, but nobody writes this much into one. */
const MAX_ATTRIBUTE = 16 * 1_048_576;
const MAX_ATTRIBUTES = 1_000;
/** Room for more attributes than that, each ` a=""`. */
const MIN_EXCESS = 5 * MAX_ATTRIBUTES;

/**
 * Throws a ReportError at an attribute, or a number of attributes in one element, that would take the parser seconds.
 * There is no "<" within a tag, so only tags without another one for long are looked at, and the rest is leapt over.
 */
export function refuseExcess(text: string): void {
  for (let at = text.indexOf("<"); at !== -1;) {
    const later = text.lastIndexOf("<", at + MIN_EXCESS);
    if (later > at) at = later;
    // It may be a tag that is quoted in a comment or in what a test has printed.
    else if (excessOf(text, at) !== null) return refuseExcessOutside(text);
    else at = text.indexOf("<", at + MIN_EXCESS);
  }
}

/** The same without leaps, which knows what is not markup. */
function refuseExcessOutside(text: string): void {
  for (let at = text.indexOf("<"); at !== -1;) {
    const section = SECTIONS.find(({ opens }) => text.startsWith(opens, at));
    const excess = section ? null : excessOf(text, at);
    if (excess !== null) throw new ReportError(`line ${lineAt(text, at)}: ${excess}`);
    at = section ? after(text, section.closes, at + section.opens.length) : at + 1;
    if (at !== -1) at = text.indexOf("<", at);
  }
}

/** What the tag that begins there has too much of. */
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

function excessAt(tag: string, attribute: string, count: number, length: number): string | null {
  const of = `the tag <${tag.slice(0, 50)}>`;
  if (count > MAX_ATTRIBUTES) return `${of} has more than ${MAX_ATTRIBUTES.toLocaleString("en")} attributes`;
  if (length > MAX_ATTRIBUTE) return `the attribute ${attribute.slice(0, 50)} of ${of} is longer than 16 MiB`;
  return null;
}

function tryParse(text: string): Bun.XML.Node | Error {
  try {
    return Bun.XML.parse(text, { compact: false });
  } catch (error) {
    if (error instanceof RangeError) throw new ReportError("its elements are nested too deeply");
    const reason = (error as Error).message.replace("XML Parse error: ", "");
    return new Error(reason.charAt(0).toLowerCase() + reason.slice(1));
  }
}

// All references but those to tab, line feed and carriage return, which most documents have many of.
const REFERENCE = /&#(?!(?:9|10|13|x0*[9ad]);)(?:x([\da-f]+)|(\d+));/gi;

/** Drops what XML 1.0 does not allow even as a reference; without a copy when there is nothing to drop. */
function cleanXml(raw: string): string {
  const text = raw.includes("&#") ? raw.replace(REFERENCE, illegalToRaw) : raw;
  return clean(text).trim();
}

function illegalToRaw(reference: string, hex: string | undefined, decimal: string | undefined): string {
  const code = hex ? Number.parseInt(hex, 16) : Number(decimal);
  if (code > 0x10ffff) return "\ufffd";
  const legal = code >= 0x20 && (code < 0xd800 || code > 0xdfff) && code !== 0xfffe && code !== 0xffff;
  // Two surrogate references side by side join here; `clean` deals with lone ones and with the rest.
  return legal ? reference : String.fromCharCode(code);
}

/** The name of the root element, and the document type declaration, without parsing what follows. */
export function prolog(text: string): { root: string | null; doctype: string | null } {
  let doctype: string | null = null;
  for (let at = 0; ;) {
    at = after(text, SPACE, at);
    if (text.startsWith("<?", at)) at = after(text, "?>", at);
    else if (text.startsWith("<!--", at)) at = after(text, "-->", at);
    else if (/^<!doctype/i.test(text.slice(at, at + 9))) {
      const end = after(text, /<!doctype[^[>]*(?:\[[^\]]*\]\s*)?>/iy, at);
      doctype = text.slice(at, end === -1 ? at + 500 : end);
      at = end;
    } else return { root: /^<([^\s<>/="'&!?]+)/.exec(text.slice(at, at + 200))?.[1] ?? null, doctype };
    if (at === -1) return { root: null, doctype };
  }
}

function after(text: string, end: string | RegExp, at: number): number {
  if (typeof end === "string") {
    const found = text.indexOf(end, at);
    return found === -1 ? -1 : found + end.length;
  }
  end.lastIndex = at;
  return end.test(text) ? end.lastIndex : -1;
}

function match(text: string, pattern: RegExp, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

const SPACE = /\s*/y;

type Open = { name: string; outer: Open } | null;
type Mend = { text: string | null; edits: number; fault: { at: number; reason: string } | null };

const NAME = /<([^\s<>/="'&!?]+)/y;
const ATTRIBUTE_START = /\s+([^\s<>/="'&]+)\s*=\s*["']/y;
const ATTRIBUTE = /\s+([^\s<>/="'&]+)\s*=\s*(?:"[^"]*"|'[^']*')/y;
const TAG_END = /\s*(\/?)>/y;
const CLOSING = /<\/([^\s<>/]+)\s*>/y;
const UNESCAPED = /&(?!(?:#\d+|#x[\da-f]+|amp|lt|gt|quot|apos);)|\]\]>|</gi;
const SECTIONS = [
  { opens: "<!--", closes: "-->", what: "a comment" },
  { opens: "<![CDATA[", closes: "]]>", what: "a CDATA section" },
  { opens: "<?", closes: "?>", what: "a processing instruction" },
];

/**
 * Walks the markup of a document that did not parse. Characters that should have been escaped are (node writes "]]>"
 * as it is); at the first real break, the document is cut behind the last whole element and its ancestors closed.
 */
function mendXml(text: string, whole: string | null): Mend {
  const pieces: string[] = [];
  let copied = 0;
  let open: Open = null;
  let rooted = false;
  let cut: { at: number; open: Open; pieces: number; copied: number } | null = null;

  const escape = (from: number, to: number) => {
    for (const match of text.slice(from, to).matchAll(UNESCAPED)) {
      const at = from + match.index;
      const what = match[0] === "&" ? "&amp;" : match[0] === "<" ? "&lt;" : "]]&gt;";
      pieces.push(text.slice(copied, at), what);
      copied = at + match[0].length;
    }
  };
  const fail = (at: number, reason: string): Mend => {
    if (!cut) return { text: null, edits: 0, fault: { at, reason } };
    let mended = pieces.slice(0, cut.pieces).join("") + text.slice(cut.copied, cut.at);
    for (let element = cut.open; element; element = element.outer) mended += `</${element.name}>`;
    return { text: mended, edits: cut.pieces / 2, fault: { at, reason } };
  };
  const close = (name: string, at: number) => {
    if (whole !== null && localName(name) === whole) cut = { at, open, pieces: pieces.length, copied };
  };

  for (let at = 0; at < text.length;) {
    let tag = text.indexOf("<", at);
    while (tag !== -1 && open && !/[^\s<>="'&\d.-]/.test(text[tag + 1] ?? " ")) tag = text.indexOf("<", tag + 1);
    const end = tag === -1 ? text.length : tag;
    if (open) escape(at, end);
    else if (text.slice(at, end).trim())
      return fail(at, rooted ? "there is more after its end" : "text before its root");
    if (tag === -1) break;

    const section = SECTIONS.find(({ opens }) => text.startsWith(opens, tag));
    if (section) {
      at = after(text, section.closes, tag + section.opens.length);
      if (at === -1) return fail(tag, `${section.what} is not closed`);
    } else if (text[tag + 1] === "/") {
      at = after(text, CLOSING, tag);
      const name = at === -1 ? "" : text.slice(tag + 2, at - 1).trim();
      if (!open || (open as { name: string }).name !== name) {
        return fail(tag, open ? `<${open.name}> is not closed` : "it closes more elements than it opens");
      }
      open = open.outer;
      close(name, at);
    } else if (text[tag + 1] === "!") {
      at = after(text, /<!doctype[^[>]*>/iy, tag);
      if (at === -1) return fail(tag, "a declaration is malformed");
    } else {
      if (!open && rooted) return fail(tag, "there is more after its end");
      rooted = true;
      at = after(text, NAME, tag);
      if (at === -1) return fail(tag, "a tag is malformed");
      const name = text.slice(tag + 1, at);
      const seen = new Set<string>();
      for (let found = match(text, ATTRIBUTE, at); found; found = match(text, ATTRIBUTE, at)) {
        if (seen.has(found[1]!)) return fail(tag, `the tag <${name.slice(0, 50)}> has the attribute ${found[1]} twice`);
        seen.add(found[1]!);
        const excess = excessAt(name, found[1]!, seen.size, found[0].length);
        if (excess !== null) throw new ReportError(`line ${lineAt(text, tag)}: ${excess}`);
        escape(at, ATTRIBUTE.lastIndex);
        at = ATTRIBUTE.lastIndex;
      }
      const tagEnd = after(text, TAG_END, at);
      if (tagEnd === -1) return fail(tag, `the tag <${name.slice(0, 50)}> is malformed or breaks off`);
      at = tagEnd;
      if (text[tagEnd - 2] === "/") close(name, at);
      else open = { name, outer: open };
    }
  }
  if (open) return fail(text.length, `it breaks off inside <${open.name}>`);
  if (pieces.length === 0) return { text: null, edits: 0, fault: null };
  return { text: pieces.join("") + text.slice(copied), edits: pieces.length / 2, fault: null };
}
