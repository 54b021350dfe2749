/** Text as reports hold it: bytes to characters, characters that may be stored, lengths that may be kept. */

import { isStorable, toStorable } from "../schema/fields.ts";
import { type CaseStatus, type ReportAttachment, type ReportedCase, ReportError } from "./report.ts";

export const MAX_CASES = 200_000;
/** Maximum count of a run: the range of an integer column. */
export const MAX_COUNT = 2 ** 31 - 1;
export const MAX_NAME = 1_000;
export const MAX_PROPERTIES = 50;
/** Per test case. */
export const MAX_ATTACHMENTS = 100;
/** Decoded, of all attachments that a file holds itself. */
const MAX_ATTACHED_BYTES = 50 * 2 ** 20;
const MAX_CONTENT_TYPE = 200;

const KIB = 1024;
const LIMITS = {
  name: { max: MAX_NAME, unit: "1,000 characters" },
  suite: { max: MAX_NAME, unit: "1,000 characters" },
  file: { max: MAX_NAME, unit: "1,000 characters" },
  property: { max: MAX_NAME, unit: "1,000 characters" },
  message: { max: 64 * KIB, unit: "64 KiB" },
  stack: { max: 64 * KIB, unit: "64 KiB" },
  output: { max: KIB * KIB, unit: "1 MiB" },
};

type TextKind = keyof typeof LIMITS;

/** Decodes by byte-order mark, then by the XML declaration; invalid bytes become U+FFFD. */
export function decode(bytes: Uint8Array): string {
  const label = encodingOf(bytes);
  try {
    return new TextDecoder(label as Bun.Encoding).decode(bytes);
  } catch {
    throw new ReportError(`its encoding "${cut(label, 40)}" is not known`);
  }
}

/** The first `max` bytes, a character each. */
export const headOf = ({ buffer, byteOffset, byteLength }: Uint8Array, max: number): string =>
  Buffer.from(buffer, byteOffset, Math.min(byteLength, max)).toString("latin1");

function encodingOf(bytes: Uint8Array): string {
  const [first, second] = bytes;
  if (first === 0xff && second === 0xfe) return "utf-16le";
  if (first === 0xfe && second === 0xff) return "utf-16be";
  if (first === 0xef && second === 0xbb) return "utf-8";
  // "<", "{" and "[" are what a report begins with.
  if (first === 0 && [0x3c, 0x7b, 0x5b].includes(second ?? 0)) return "utf-16be";
  if (second === 0 && [0x3c, 0x7b, 0x5b].includes(first ?? 0)) return "utf-16le";
  const head = headOf(bytes, 200);
  const declared = /^\s*<\?xml[^>]*?\sencoding\s*=\s*["']([^"']+)["']/.exec(head)?.[1] ?? "utf-8";
  // The declaration was readable byte by byte, so it is wrong: .NET writes "utf-16" into files that it saves as UTF-8.
  return /^(?:utf-?16|ucs-?2|iso-10646-ucs-2)/i.test(declared) ? "utf-8" : declared;
}

/** Characters that `clean` handles: control characters, noncharacters, and surrogates. */
const ODD = /[\x00-\x08\x0b\x0c\x0e-\x1f\x9b\ud800-\udfff\ufffe\uffff]/;
// Matches only sequences that end soon and on the same line, so that an unterminated one does not remove following text or a "<".
const ANSI = /(?:\x1b\[|\x9b)[\d:;?]{0,40}[@-~]|\x1b\][^\x07\x1b\n<]{0,2048}(?:\x07|\x1b\\)/g;

/** Removes terminal colours and control characters. NUL and lone surrogates, which cannot be stored, become U+FFFD. */
export function clean(text: string): string {
  if (!ODD.test(text)) return text;
  const plain = text.replace(ANSI, "").replace(/[\x01-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/g, "");
  return isStorable(plain) ? plain : toStorable(plain);
}

/** Truncates to `max` UTF-16 units, without splitting a surrogate pair. */
export function cut(text: string, max: number): string {
  if (text.length <= max) return text;
  const last = text.charCodeAt(max - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? max - 1 : max);
}

const encoder = new TextEncoder();

/** Truncates to `max` bytes of UTF-8. */
function cutBytes(text: string, max: number): string {
  const { read } = encoder.encodeInto(text, new Uint8Array(max));
  return read === text.length ? text : text.slice(0, read);
}

/** An attachment as a report writes it; "" and null are unknown. */
export type WrittenAttachment = {
  name?: string | undefined;
  path?: string | null | undefined;
  contentType?: string | undefined;
  base64?: string | undefined;
};

/** The last part of a path. */
const fileName = (path: string): string => /[^/\\]*$/.exec(path)![0];

/** Number of cases between two checks of the memory of the process. Garbage is collected if it has grown by MAX_GROWTH_BYTES. */
const CASES_PER_MEMORY_CHECK = 25_000;
const MAX_GROWTH_BYTES = 96 * 2 ** 20;

/** Cuts texts to the lengths that are kept and counts the cuts, for one warning of each kind. */
export function createCutter() {
  const counts = new Map<TextKind | "dropped", number>();
  let cases = 0;
  let resident: number | null = null;
  let [attachedBytes, droppedAttachments] = [0, 0];
  const readBody = (base64: string | undefined): Uint8Array | null => {
    if (!base64) return null;
    // The decoded size, or up to two bytes more.
    attachedBytes += (base64.length / 4) * 3;
    return attachedBytes <= MAX_ATTACHED_BYTES ? new Uint8Array(Buffer.from(base64, "base64")) : null;
  };
  const readAttachment = ({
    name = "",
    path,
    contentType = "",
    base64,
  }: WrittenAttachment): ReportAttachment | null => {
    // A path that is cut is the path of another file.
    const kept = path && path.length <= MAX_NAME ? path : null;
    const body = readBody(base64);
    if (kept === null && body === null) return null;
    const title = cut(name.trim() || fileName(kept ?? "") || "attachment", MAX_NAME);
    return { name: title, path: kept, contentType: cut(contentType.trim(), MAX_CONTENT_TYPE) || null, body };
  };
  const count = (kind: TextKind | "dropped") => void counts.set(kind, (counts.get(kind) ?? 0) + 1);
  const shorten = (kind: TextKind, text: string, room = LIMITS[kind].max): string => {
    // No UTF-16 unit takes more than three bytes.
    if (text.length * 3 <= room) return text;
    const short = LIMITS[kind].unit.endsWith("B") ? cutBytes(text, room) : cut(text, room);
    if (short.length < text.length) count(kind);
    return short;
  };
  return {
    cut: shorten,
    /** An empty text counts as unknown. */
    cutOrNull: (kind: TextKind, text: string | null): string | null => (text ? shorten(kind, text) : null),
    /** `null` when there are none. */
    properties(pairs: [string, string][]): Record<string, string> | null {
      const [first] = pairs;
      if (first === undefined) return null;
      // Most have one, and a computed key is an ordinary one even if it is "__proto__".
      if (pairs.length === 1) return { [shorten("property", first[0] || "(no name)")]: shorten("property", first[1]) };
      const kept = new Map<string, string>();
      for (const [key, value] of pairs) {
        if (kept.size >= MAX_PROPERTIES) {
          count("dropped");
          continue;
        }
        let free = key || "(no name)";
        for (let n = 2; kept.has(free) && kept.get(free) !== value && n <= MAX_PROPERTIES; n++) free = `${key} ${n}`;
        kept.set(shorten("property", free), shorten("property", value));
      }
      // Unlike assignment, fromEntries makes "__proto__" an ordinary key.
      return Object.fromEntries(kept);
    },
    /** Each path once; `undefined` when there are none. */
    attachments(written: readonly WrittenAttachment[]): ReportAttachment[] | undefined {
      const kept: ReportAttachment[] = [];
      const paths = new Set<string>();
      for (const one of written) {
        if ((!one.path && !one.base64) || (one.path && paths.has(one.path))) continue;
        const attachment = kept.length < MAX_ATTACHMENTS ? readAttachment(one) : null;
        if (attachment === null) droppedAttachments++;
        else kept.push(attachment);
        if (one.path) paths.add(one.path);
      }
      return kept.length > 0 ? kept : undefined;
    },
    /**
     * Counts a test case and checks the memory, because the garbage collector alone lets the process grow to several times what a large
     * report needs.
     */
    countCase(): void {
      if (++cases % CASES_PER_MEMORY_CHECK !== 0) return;
      const size = process.memoryUsage.rss();
      resident ??= size;
      if (size > resident + MAX_GROWTH_BYTES) Bun.gc(true);
    },
    warnings: (): string[] => [
      ...[...counts].map(([kind, n]) =>
        kind === "dropped"
          ? `Left out ${n} ${n === 1 ? "property" : "properties"}: at most ${MAX_PROPERTIES} of a test case are kept`
          : `Cut ${n} ${n === 1 ? kind : kind.replace(/y$/, "ie") + "s"} to ${LIMITS[kind].unit}`,
      ),
      ...(droppedAttachments > 0
        ? [
            `Left out ${plural(droppedAttachments, "attachment")}: at most ${MAX_ATTACHMENTS} of a test case, paths of ` +
              `1,000 characters, and 50 MiB within the report are kept`,
          ]
        : []),
    ],
  };
}

/** Returns the attachments of all attempts of a case; undefined if there are none. */
export function joinAttachments(attempts: readonly ReportedCase[]): ReportAttachment[] | undefined {
  const all = attempts.flatMap(({ attachments = [] }) => attachments);
  return all.length > 0 ? all.slice(0, MAX_ATTACHMENTS) : undefined;
}

export type Cutter = ReturnType<typeof createCutter>;

// Columns of milliseconds are 32 bits wide; a test of more than 24 days is nanoseconds written as seconds.
const MAX_MS = 2 ** 31 - 1;

/** Returns whole milliseconds, or `null` for impossible values. */
export function toMs(ms: unknown): number | null {
  return typeof ms === "number" && ms >= 0 && ms <= MAX_MS ? Math.round(ms) : null;
}

/** Parses a number of seconds or its text: "1,234.567", "22.2s", "0,05", "4.5e-05". Returns null for anything else, never 0. */
export function msFromSeconds(text: unknown): number | null {
  if (typeof text === "number") return toMs(text * 1000);
  if (typeof text !== "string" || text.length > 40 || text.trim() === "") return null;
  const number = Number(text);
  if (number >= 0) return toMs(number * 1000);
  const match = /^\s*(\d[\d.,]*)(e[+-]?\d{1,3})?\s*(?:s|sec|seconds)?\s*$/i.exec(text);
  if (!match?.[1]) return null;
  const commas = match[1].split(",").length - 1;
  // surefire groups thousands, and then writes a point or several commas; a lone comma is a locale's decimal comma.
  const point = match[1].lastIndexOf(".") > match[1].lastIndexOf(",") || commas > 1;
  const plain = point ? match[1].replaceAll(",", "") : match[1].replaceAll(".", commas ? "" : ".").replace(",", ".");
  return toMs(Number(plain + (match[2] ?? "")) * 1000);
}

/** A whole number from 1, as lines are counted. */
export function toLine(line: unknown): number | null {
  const number = typeof line === "string" ? parseCount(line) : line;
  return typeof number === "number" && Number.isInteger(number) && number > 0 && number <= MAX_MS ? number : null;
}

/** A whole number as reports count their test cases, of at most nine digits; else null. */
export function parseCount(text: string | undefined): number | null {
  if (text === undefined || text === "" || text.length > 9) return null;
  let count = 0;
  // Half the time of a regular expression and Number(): most test cases have a line.
  for (let at = 0; at < text.length; at++) {
    const digit = text.charCodeAt(at) - ZERO;
    if (digit < 0 || digit > 9) return null;
    count = count * 10 + digit;
  }
  return count;
}

const ZERO = 0x30;

/** The name of an XML element without its namespace prefix. */
export function localName(name: string): string {
  return name.includes(":") ? name.slice(name.indexOf(":") + 1) : name;
}

/** The character data of an element, without that of the elements inside it. */
export function textOf(node: Bun.XML.Node): string {
  let text = "";
  for (const child of node.children) if (typeof child === "string") text += child;
  return text;
}

/** A line for every character would take a hundred times their length. */
const MAX_LINES = 5_000_000;

const COLLECT_LENGTH = 2 ** 24;

/** Returns a function that frees memory as a text is gone through: by itself the engine would let it grow to several times the text. */
export function createCollector(): (at: number) => void {
  let collectedAt = 0;
  return (at) => {
    if (at - collectedAt < COLLECT_LENGTH) return;
    collectedAt = at;
    Bun.gc(true);
  };
}

/** One line at a time, so that all are not in memory together. Throws a ReportError where they are too many. */
export function* linesOf(text: string): Generator<string, void> {
  const collect = createCollector();
  let count = 0;
  for (let from = 0, end = 0; end !== -1; from = end + 1) {
    if (++count > MAX_LINES) throw tooManyLines();
    end = text.indexOf("\n", from);
    collect(from);
    yield end === -1 ? text.slice(from) : text.slice(from, end);
  }
}

const tooManyLines = () => new ReportError(`it has more than ${MAX_LINES.toLocaleString("en")} lines`);

export const firstLine = (text: string): string => (text === "" ? "" : (/[^\s].*/.exec(text)?.[0].trimEnd() ?? ""));

/** Counted from 1. */
export function lineAt(text: string, offset: number): number {
  let line = 1;
  for (let at = text.indexOf("\n"); at !== -1 && at < offset; at = text.indexOf("\n", at + 1)) line++;
  return line;
}

/** A warning when a report's own totals, null where it gives none, are not those of its test cases. */
export function disagreement(declared: Totals, cases: ReportedCase[]): string[] {
  const counted = { tests: cases.length, passed: 0, failed: 0, skipped: 0 };
  for (const { status } of cases) counted[status]++;
  const keys = (["tests", "passed", "failed", "skipped"] as const).filter((key) => typeof declared[key] === "number");
  return keys.every((key) => declared[key] === counted[key]) ? [] : [describeTotals("The report", declared, counted)];
}

type Totals = Partial<Record<"tests" | CaseStatus, number | null>>;

/** Describes declared and counted totals, limited to the kinds that are declared. */
export function describeTotals(subject: string, declared: Totals, counted: Totals): string {
  const keys = (["tests", "passed", "failed", "skipped"] as const).filter((key) => typeof declared[key] === "number");
  const list = (counts: Totals) =>
    keys.map((key) => (key === "tests" ? plural(counts[key]!, "test") : `${counts[key]} ${key}`)).join(", ");
  return `${subject} declares ${list(declared)}, but its test cases are ${list(counted)}`;
}

/** "3 tests", "1 test". */
export const plural = (n: number, noun: string): string => `${n} ${noun}${n === 1 ? "" : "s"}`;

export const tooManyCases = (): ReportError =>
  new ReportError(`it has more than ${MAX_CASES.toLocaleString("en")} cases`);

/** Adds a title to those around a test; text beyond the length of a name is left out, because each test repeats it. */
export function addTitle(titles: string[], title: string): string[] {
  const room = MAX_NAME + 1 - titles.reduce((sum, { length }) => sum + length, 0);
  return room > 0 ? [...titles, cut(title, room)] : titles;
}
