/** Hides secret values in what leaves a runner, in every writing in which tools print them. */

/** Shorter ones would black out whole logs, and are guessed anyway. In characters. */
const MIN_SECRET_LENGTH = 6;
const STARS = new TextEncoder().encode("***");
const NOTHING = new Uint8Array(0);

export type Mask = {
  /** Of a whole text, as bytes of UTF-8; the same bytes where there is nothing to hide. */
  bytes(bytes: Uint8Array): Uint8Array;
  text(text: string): string;
  /** For what comes in pieces: a piece that may be the beginning of a secret is kept until that is known. */
  stream(): { push(bytes: Uint8Array): Uint8Array; end(): Uint8Array };
};

/**
 * `values` are the secrets: each is hidden whole and line by line, as it is, and in base64 at its three alignments, escaped
 * for URIs, JSON (and JSON within JSON) and XML. What two of them cover together is hidden as one.
 */
export function createMask(values: readonly string[]): Mask {
  const needles = createNeedles(writingsOf(values));
  const stream = () => createStream(needles);
  const whole = (bytes: Uint8Array) => {
    const { push, end } = stream();
    return concat([push(bytes), end()]);
  };
  return {
    bytes: (bytes) => (needles.isEmpty ? bytes : whole(bytes)),
    text: (text) => (needles.isEmpty ? text : new TextDecoder().decode(whole(new TextEncoder().encode(text)))),
    stream,
  };
}

function writingsOf(values: readonly string[]): Set<string> {
  const texts = new Set<string>();
  for (const value of values.map((value) => value.toWellFormed())) {
    texts.add(value);
    for (const line of value.split(/\r\n|[\r\n]/).filter((line) => line.trim() !== ""))
      texts.add(line).add(line.trim());
  }
  const writings = new Set<string>();
  for (const text of [...texts].filter((text) => text.length >= MIN_SECRET_LENGTH))
    for (const writing of [
      text,
      ...base64Of(text),
      ...uriOf(text),
      ...jsonOf(text).flatMap(withJsonOf),
      ...xmlOf(text),
    ])
      writings.add(writing);
  return writings;
}

/** What stands before it shifts the text by 0, 1 or 2 bytes; characters that it shares with its neighbours are left out. */
function base64Of(text: string): string[] {
  return [0, 1, 2].flatMap((shift) => {
    const bytes = Buffer.concat([Buffer.alloc(shift), Buffer.from(text)]);
    const whole = Math.floor((bytes.length * 8) / 6);
    const encoded = bytes.toString("base64").slice([0, 2, 3][shift]);
    const inner = encoded.slice(0, whole - [0, 2, 3][shift]!);
    // At the end of what was encoded the last character is known, too.
    return [inner, encoded].flatMap((form) => [form, form.replaceAll("+", "-").replaceAll("/", "_")]);
  });
}

function uriOf(text: string): string[] {
  const component = encodeURIComponent(text);
  const strict = component.replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
  const forms = [component, strict, encodeURI(text)].flatMap((form) => [form, form.replaceAll("%2F", "/")]);
  const all = [...forms, ...[component, strict].map((form) => form.replaceAll("%20", "+"))];
  return [...all, ...all.map((form) => form.replace(/%../g, (code) => code.toLowerCase()))];
}

function jsonOf(text: string): string[] {
  const plain = JSON.stringify(text).slice(1, -1);
  const code = (char: string) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;
  const upper = (char: string) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0").toUpperCase()}`;
  const forms = [plain, ...[code, upper].map((of) => plain.replace(/[^\0-\x7f]/g, of))];
  // For HTML some writers take codes for these as well, and others put a backslash before each slash.
  const all = [...forms, ...forms.map((form) => form.replace(/[<>&]/g, code)), plain.replace(/[<>&']/g, upper)];
  return [...new Set([...all, ...all.map((form) => form.replaceAll("/", "\\/"))])];
}

/** A text of JSON is often a value in another one: a body in a log line, a message in a report. */
const withJsonOf = (text: string): string[] => [text, ...jsonOf(text)];

function xmlOf(text: string): string[] {
  const escape = (codes: Record<string, string>) => text.replace(/[&<>"']/g, (char) => codes[char] ?? char);
  const inText = { "&": "&amp;", "<": "&lt;" };
  const forms = [
    inText,
    { ...inText, ">": "&gt;" },
    ...['"', "&quot;", "&#34;"].flatMap((quote) =>
      ["'", "&apos;", "&#39;", "&#x27;"].flatMap((single) => [
        { ...inText, '"': quote, "'": single },
        { ...inText, ">": "&gt;", '"': quote, "'": single },
      ]),
    ),
  ].map(escape);
  const ofLines = ["&#10;", "&#xA;", "&#xa;"].flatMap((code) => forms.map((form) => form.replaceAll("\n", code)));
  return [...forms, ...ofLines, text.replaceAll("]]>", "]]]]><![CDATA[>")];
}

type Needles = {
  isEmpty: boolean;
  /** Whether a needle begins with these two bytes: the first is the low one. */
  pairs: Uint8Array;
  /** Those that begin with four bytes, read as a number; the longest first. */
  byHead: Map<number, Buffer[]>;
  /** What needles begin with: one, two or three bytes, which are all that is left. */
  beginnings: Set<string>;
};

const headAt = (bytes: Buffer, at: number) => bytes.readUInt32LE(at);

function createNeedles(texts: Set<string>): Needles {
  const needles = [...texts].map((text) => Buffer.from(text)).sort((a, b) => b.length - a.length);
  const pairs = new Uint8Array(65_536);
  const byHead = new Map<number, Buffer[]>();
  const beginnings = new Set<string>();
  for (const needle of needles) {
    pairs[needle.readUInt16LE(0)] = 1;
    const head = headAt(needle, 0);
    byHead.set(head, [...(byHead.get(head) ?? []), needle]);
    for (const length of [1, 2, 3]) beginnings.add(needle.toString("latin1", 0, length));
  }
  return { isEmpty: needles.length === 0, pairs, byHead, beginnings };
}

/** How many bytes a secret has here; "more" where that depends on what comes; 0: none. */
function matchAt({ byHead, beginnings }: Needles, bytes: Buffer, at: number, isEnd: boolean): number | "more" {
  const left = bytes.length - at;
  if (left < 4) return !isEnd && beginnings.has(bytes.toString("latin1", at)) ? "more" : 0;
  for (const needle of byHead.get(headAt(bytes, at)) ?? []) {
    const length = Math.min(needle.length, left);
    if (needle.compare(bytes, at, at + length, 0, length) !== 0) continue;
    if (length === needle.length) return length;
    if (!isEnd) return "more";
  }
  return 0;
}

function createStream(needles: Needles) {
  let kept: Uint8Array = NOTHING;
  /** How much of what is kept is hidden already, with what was before it. */
  let covered = 0;

  const advance = (more: Uint8Array, isEnd: boolean): Uint8Array => {
    if (needles.isEmpty) return more;
    const bytes = asBuffer(kept.length === 0 ? more : concat([kept, more]));
    const parts: Uint8Array[] = [];
    let hiddenUntil = covered;
    let at = 0;
    for (; at < bytes.length; at++) {
      if (at + 1 < bytes.length && needles.pairs[bytes[at]! | (bytes[at + 1]! << 8)] === 0) continue;
      const match = matchAt(needles, bytes, at, isEnd);
      if (match === "more") break;
      if (match === 0) continue;
      if (at >= hiddenUntil) parts.push(bytes.subarray(hiddenUntil, at), STARS);
      hiddenUntil = Math.max(hiddenUntil, at + match);
    }
    if (hiddenUntil < at) parts.push(bytes.subarray(hiddenUntil, at));
    // A copy: a few bytes must not keep the whole piece.
    kept = bytes.slice(at);
    covered = Math.max(0, hiddenUntil - at);
    return concat(parts);
  };
  return { push: (bytes: Uint8Array) => advance(bytes, false), end: () => advance(NOTHING, true) };
}

const asBuffer = (bytes: Uint8Array) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
const concat = (parts: Uint8Array[]): Uint8Array =>
  parts.length === 1 ? parts[0]! : parts.length === 0 ? NOTHING : Buffer.concat(parts);
