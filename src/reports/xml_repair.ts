/** Repairs XML that does not parse: escapes characters, and cuts a document that breaks off behind its last complete element. */

import { ReportError } from "./report.ts";
import { firstLine, lineAt, localName } from "./text.ts";
import { excessAt, SIZES } from "./xml_limits.ts";
import { after, match, MAX_EDITS, MAX_SECTIONS, NAME, SECTIONS, tooManySections } from "./xml_syntax.ts";

type Open = { name: string; outer: Open } | null;
type Repair = {
  text: string | null;
  edits: number;
  fault: { at: number; reason: string } | null;
  trailing: string | null;
};

const tooManyEdits = () =>
  new ReportError(`more than ${MAX_EDITS.toLocaleString("en")} of its characters are not escaped as XML wants`);

const ATTRIBUTE = /\s+([^\s<>/="'&]+)\s*=\s*(?:"[^"]*"|'[^']*')/y;
const TAG_END = /\s*(\/?)>/y;
const CLOSING = /<\/([^\s<>/]+)\s*>/y;
const UNESCAPED = /&(?!(?:#\d+|#x[\da-f]+|amp|lt|gt|quot|apos);)|\]\]>|</gi;

/**
 * Scans the markup of a document that did not parse. Characters that should have been escaped are escaped (node writes "]]>" literally); at
 * the first real error, the document is cut after the last complete element and its ancestors are closed.
 */
export function repairXml(
  text: string,
  { whole, isRoot }: { whole: string | null; isRoot?: (name: string) => boolean },
): Repair {
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
  const fail = (at: number, reason: string): Repair => {
    if (!cut) return { text: null, edits: 0, fault: { at, reason }, trailing: null };
    let repaired = pieces.slice(0, cut.pieces).join("") + text.slice(cut.copied, cut.at);
    for (let element = cut.open; element; element = element.outer) repaired += `</${element.name}>`;
    return { text: repaired, edits: cut.pieces / 2, fault: { at, reason }, trailing: null };
  };
  const end = (to: number, trailing: string | null): Repair => {
    const isSame = pieces.length === 0 && to === text.length;
    const repaired = isSame ? null : pieces.join("") + text.slice(copied, to);
    return { text: repaired, edits: pieces.length / 2, fault: null, trailing };
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
