/** Reads XML of test runners: cleans it, parses it with Bun, and repairs documents that are not well formed. */

import { elementsOf, type XmlPart } from "./fields.ts";
import { MAX_LEVELS, nestedTooDeeply, ReportError } from "./report.ts";
import { clean, firstLine, lineAt, localName } from "./text.ts";

/** A document of which a reader has made something. */
type XmlDocument<Result> = {
  result: Result;
  /** Location and reason of the syntax error, if only the part before it could be read. */
  broken: string | null;
  /** Number of characters that should have been escaped. */
  mended: number;
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
  const first = tryRead(text, reading, sizes);
  if (!(first instanceof Error)) return { ...first, broken: null, mended: 0, trailing: null };

  const mend = mendXml(text, reading);
  if (text.length > SIZES.large.characters) Bun.gc(true);
  const line = (at: number) => lineAt(raw, raw.length - raw.trimStart().length) - 1 + lineAt(text, at);
  const broken = mend.fault && `line ${line(mend.fault.at)}: ${mend.fault.reason}`;
  const second = mend.text === null ? first : tryRead(mend.text, reading, sizes);
  if (second instanceof Error) {
    throw new ReportError(broken ? `malformed XML at ${broken}` : `malformed XML: ${second.message}`);
  }
  return { ...second, broken, mended: mend.edits, trailing: mend.trailing };
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

/** Maximum number of characters. Longer messages are truncated, but no tool writes this much into one. */
const MAX_ATTRIBUTE = 16 * 1_048_576;
const MAX_ATTRIBUTES = 1_000;
/** Room for more attributes than that, each ` a=""`. */
const MIN_EXCESS = 5 * MAX_ATTRIBUTES;

/**
 * Throws a ReportError for an attribute, or a number of attributes in one element, that would take the parser seconds. A tag contains no
 * "<", so only long stretches without "<" are checked.
 */
function refuseExcess(text: string): void {
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

function excessAt(tag: string, attribute: string, count: number, length: number): string | null {
  const of = `the tag <${tag.slice(0, 50)}>`;
  if (count > MAX_ATTRIBUTES) return `${of} has more than ${MAX_ATTRIBUTES.toLocaleString("en")} attributes`;
  if (length > MAX_ATTRIBUTE) return `the attribute ${attribute.slice(0, 50)} of ${of} is longer than 16 MiB`;
  return null;
}

function tryParse(text: string, maxLevels: number): Bun.XML.Node | Error {
  try {
    return requireFlat(Bun.XML.parse(text, { compact: false }), maxLevels);
  } catch (error) {
    if (error instanceof ReportError) throw error;
    if (error instanceof RangeError) throw nestedTooDeeply("elements", maxLevels);
    const reason = (error as Error).message.replace("XML Parse error: ", "");
    return new Error(reason.charAt(0).toLowerCase() + reason.slice(1));
  }
}

/** Readers may then do something for each element around another, and call themselves for each level. */
function requireFlat(root: Bun.XML.Node, maxLevels: number): Bun.XML.Node {
  let level = [root];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth === maxLevels) throw nestedTooDeeply("elements", maxLevels);
    level = level.flatMap(elementsOf);
  }
  return root;
}

/** The tree of a document takes several times its length, and some 300 bytes for each of its elements. */
const SIZES = {
  large: { characters: 32 * 2 ** 20, elements: 300_000 },
  part: { characters: 4 * 2 ** 20, elements: 100_000 },
};
/** Maximum elements of a document that is read as a whole: ten for each of 200,000 test cases. */
const MAX_ELEMENTS = 2_000_000;
/** Each is parsed by itself. */
const MAX_ROOTS = 10_000;
/** Maximum length of the start tags that are repeated before every part. */
const MAX_REPEATED = 65_536;

function isLarge(text: string, { characters, elements }: typeof SIZES.large): boolean {
  return text.length > characters || countElements(text, elements) > elements;
}

/** Counts elements up to `max` + 1. */
function countElements(text: string, max: number): number {
  let count = 0;
  for (let at = text.indexOf("<"); at !== -1 && count <= max; at = text.indexOf("<", at + 1))
    if (text.charCodeAt(at + 1) !== SLASH) count++;
  return count;
}

/** Comments, CDATA sections and instructions. */
const MAX_SECTIONS = 2_000_000;
const tooManySections = () =>
  new ReportError(`it has more than ${MAX_SECTIONS.toLocaleString("en")} comments and other sections`);
const tooManyElements = () => new ReportError(`it has more than ${MAX_ELEMENTS.toLocaleString("en")} elements`);

/** The markup cannot be divided: only the whole document shows what is wrong with it. */
class Indivisible extends Error {}

/**
 * Divides a document between elements and parses the parts one by one, each inside the start tags that are open there and with the missing
 * end tags. If the parser accepts every part, it would accept the whole document with the same result: at the end of each part the same
 * elements are open as at the beginning of the next. If there are several roots in sequence, each begins a part; comments, instructions and
 * declarations may be between them.
 */
export function* divide(
  text: string,
  isDivisible: (name: string) => boolean,
  {
    part = SIZES.part,
    isRoot = () => false,
    maxLevels = MAX_LEVELS,
  }: Pick<XmlReading<unknown>, "maxLevels"> & {
    isRoot?: XmlReading<unknown>["isRoot"] | undefined;
    part?: typeof SIZES.part;
  } = {},
): Generator<XmlPart> {
  const open: { name: string; tag: string }[] = [];
  let repeated: typeof open = [];
  let head = "";
  let length = 0;
  let [from, elements, inside] = [0, 0, 0];
  // Offsets: start of the current root, end of the previous root, and end of the text whose memory has been released.
  let [begun, ended, relieved, roots, sections] = [0, -1, 0, 1, 0];

  const parse = (to: number): XmlPart => {
    const before = from === begun ? "" : head + repeated.map(({ tag }) => tag).join("");
    const after = open.map(({ name }) => `</${name}>`).reverse();
    const root = tryParse(before + text.slice(from, to) + after.join(""), maxLevels);
    if (root instanceof Error) throw new Indivisible();
    return { root, depth: from === begun ? 0 : repeated.length, open: open.length };
  };
  // Releases trees of earlier parts, because the garbage collector does not know that memory is scarce.
  const relieve = (at: number) => {
    if (part === SIZES.part) Bun.gc(true);
    relieved = at;
  };

  for (let at = text.indexOf("<"), clear = 0; at !== -1; at = text.indexOf("<", at)) {
    const start = at;
    const next = text.charCodeAt(at + 1);
    if (ended !== -1 && (next === SLASH || text.slice(clear, start).trim() !== "")) throw new Indivisible();
    const section =
      next === BANG || next === QUESTION ? SECTIONS.find(({ opens }) => text.startsWith(opens, at)) : null;
    if (section && ++sections > MAX_SECTIONS) throw tooManySections();
    if (section) at = after(text, section.closes, at + section.opens.length);
    else if (next === BANG) at = after(text, ">", at);
    else at = tagEnd(text, at);
    if (at === -1) throw new Indivisible();
    clear = at;
    if (next === BANG || next === QUESTION) {
      if (ended !== -1 && !section) throw new Indivisible();
      continue;
    }
    if (ended !== -1) {
      if (!isRoot(localName(match(text, NAME, start)?.[1] ?? ""))) throw new Indivisible();
      if (++roots > MAX_ROOTS)
        throw new ReportError(`it has more than ${MAX_ROOTS.toLocaleString("en")} root elements`);
      yield parse(ended);
      if (ended - relieved > part.characters) relieve(ended);
      [from, begun, ended, elements, repeated] = [start, start, -1, 0, []];
    }

    if (next !== SLASH && ++elements > MAX_ELEMENTS) throw tooManyElements();
    if (next === SLASH) {
      if (inside > 0) inside--;
      else length -= open.pop()?.tag.length ?? 0;
    } else if (text.charCodeAt(at - 2) !== SLASH) {
      const name = inside > 0 ? "" : (match(text, NAME, start)?.[1] ?? "");
      if (inside > 0 || !isDivisible(localName(name))) inside++;
      else {
        const tag = text.slice(start, at);
        // The declaration is repeated before every part.
        if (open.length === 0) head = start - begun > MAX_REPEATED ? "" : text.slice(begun, start);
        open.push({ name, tag });
        length += tag.length;
      }
    }
    if (open.length === 0 && inside === 0) ended = at;
    const isFull = at - from > part.characters || elements > part.elements;
    if (isFull && inside === 0 && open.length > 0 && length < MAX_REPEATED) {
      yield parse(at);
      [from, elements, repeated] = [at, 0, [...open]];
      relieve(at);
    }
  }
  if (open.length > 0 || inside > 0) throw new Indivisible();
  yield parse(text.length);
}

const [BANG, SLASH, QUESTION, GREATER, QUOTE, APOSTROPHE] = [0x21, 0x2f, 0x3f, 0x3e, 0x22, 0x27];

/** Returns the offset after the tag that opens at `at`, or -1. */
function tagEnd(text: string, at: number): number {
  for (let here = at + 1; here < text.length; here++) {
    const code = text.charCodeAt(here);
    if (code === GREATER) return here + 1;
    if (code !== QUOTE && code !== APOSTROPHE) continue;
    here = text.indexOf(code === QUOTE ? '"' : "'", here + 1);
    if (here === -1) return -1;
  }
  return -1;
}

// All references but those to tab, line feed and carriage return, which most documents have many of.
const REFERENCE = /&#(?!(?:9|10|13|x0*[9ad]);)(?:x([\da-f]+)|(\d+));/gi;

/** Removes characters that XML 1.0 does not allow even as a reference; makes no copy if there are none. */
function cleanXml(raw: string): string {
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
type Mend = {
  text: string | null;
  edits: number;
  fault: { at: number; reason: string } | null;
  trailing: string | null;
};

/** Maximum number of edits, each of which takes a hundred bytes. A tool that does not escape the output of tests has fewer. */
const MAX_EDITS = 1_000_000;
const tooManyEdits = () =>
  new ReportError(`more than ${MAX_EDITS.toLocaleString("en")} of its characters are not escaped as XML wants`);

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
 * Scans the markup of a document that did not parse. Characters that should have been escaped are escaped (node writes "]]>" literally); at
 * the first real error, the document is cut after the last complete element and its ancestors are closed.
 */
function mendXml(text: string, { whole, isRoot }: Pick<XmlReading<unknown>, "whole" | "isRoot">): Mend {
  const pieces: string[] = [];
  let copied = 0;
  let open: Open = null;
  let rooted = false;
  let root = "";
  let cut: { at: number; open: Open; pieces: number; copied: number } | null = null;

  const escape = (from: number, to: number) => {
    for (const match of text.slice(from, to).matchAll(UNESCAPED)) {
      if (pieces.length >= 2 * MAX_EDITS) throw tooManyEdits();
      const at = from + match.index;
      const what = match[0] === "&" ? "&amp;" : match[0] === "<" ? "&lt;" : "]]&gt;";
      pieces.push(text.slice(copied, at), what);
      copied = at + match[0].length;
    }
  };
  const fail = (at: number, reason: string): Mend => {
    if (!cut) return { text: null, edits: 0, fault: { at, reason }, trailing: null };
    let mended = pieces.slice(0, cut.pieces).join("") + text.slice(cut.copied, cut.at);
    for (let element = cut.open; element; element = element.outer) mended += `</${element.name}>`;
    return { text: mended, edits: cut.pieces / 2, fault: { at, reason }, trailing: null };
  };
  const end = (to: number, trailing: string | null): Mend => {
    const isSame = pieces.length === 0 && to === text.length;
    const mended = isSame ? null : pieces.join("") + text.slice(copied, to);
    return { text: mended, edits: pieces.length / 2, fault: null, trailing };
  };
  const close = (name: string, at: number) => {
    if (whole !== null && localName(name) === whole) cut = { at, open, pieces: pieces.length, copied };
  };

  let [relieved, sections] = [0, 0];
  for (let at = 0; at < text.length;) {
    if (at - relieved > SIZES.large.characters / 2) {
      relieved = at;
      Bun.gc(true);
    }
    let tag = text.indexOf("<", at);
    for (let literal = 0; tag !== -1 && open && !/[^\s<>="'&\d.-]/.test(text[tag + 1] ?? " "); literal++) {
      if (literal === MAX_EDITS) throw tooManyEdits();
      tag = text.indexOf("<", tag + 1);
    }
    const stop = tag === -1 ? text.length : tag;
    if (open) escape(at, stop);
    else if (text.slice(at, stop).trim()) {
      if (!rooted) return fail(at, "text before its root");
      if (hasRoot(text, at, root, isRoot)) return fail(at, "there is more after its end");
      return end(at, firstLine(text.slice(at)));
    }
    if (tag === -1) break;

    const section = SECTIONS.find(({ opens }) => text.startsWith(opens, tag));
    if (section) {
      if (++sections > MAX_SECTIONS) throw tooManySections();
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
      if (rooted && !open) return fail(tag, "there is more after its end");
      at = after(text, /<!doctype[^[>]*>/iy, tag);
      if (at === -1) return fail(tag, "a declaration is malformed");
    } else {
      at = after(text, NAME, tag);
      const name = at === -1 ? "" : text.slice(tag + 1, at);
      if (!open && rooted && !isRoot?.(localName(name))) return fail(tag, "there is more after its end");
      if (at === -1) return fail(tag, "a tag is malformed");
      if (!rooted) root = name;
      rooted = true;
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
  return end(text.length, null);
}

/** Whether another document follows: its root has this name, or may follow. */
function hasRoot(text: string, from: number, root: string, isRoot: ((name: string) => boolean) | undefined): boolean {
  for (let at = text.indexOf("<", from); at !== -1; at = text.indexOf("<", at + 1)) {
    const name = match(text, NAME, at)?.[1];
    if (name !== undefined && (name === root || isRoot?.(localName(name)))) return true;
  }
  return false;
}
