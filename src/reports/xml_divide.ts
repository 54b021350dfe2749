/** Parses XML with Bun: as a whole, or a large document in parts, which are divided between its elements. */

import { elementsOf, type XmlPart } from "./fields.ts";
import { MAX_LEVELS, nestedTooDeeply, ReportError } from "./report.ts";
import { localName } from "./text.ts";
import { MAX_ELEMENTS, SIZES, tooManyElements } from "./xml_limits.ts";
import { after, match, MAX_SECTIONS, NAME, SECTIONS, SLASH, tagEnd, tooManySections } from "./xml_syntax.ts";

export function tryParse(text: string, maxLevels: number): Bun.XML.Node | Error {
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

/** Each is parsed by itself. */
const MAX_ROOTS = 10_000;
/** Maximum length of the start tags that are repeated before every part. */
const MAX_REPEATED = 65_536;
const [BANG, QUESTION] = [0x21, 0x3f];

/** The markup cannot be divided: only the whole document shows what is wrong with it. */
export class Indivisible extends Error {}

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
  }: { part?: typeof SIZES.part; isRoot?: ((name: string) => boolean) | undefined; maxLevels?: number } = {},
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
