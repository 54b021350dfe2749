/** Hides secret values in text, in the forms in which tools usually print them, with or without colours inside. */

import { toVisible, type VisibleText } from "./escapes.ts";

/** A shorter value would black out whole logs, and is easily guessed anyway. In characters. */
const MIN_VALUE_LENGTH = 6;
/** Lines of a value are often ordinary text: shorter or more monotonous ones are hidden only with the lines around them. */
const MIN_LINE_LENGTH = 8;
const MIN_DISTINCT_CHARACTERS = 4;

/**
 * Longer forms are masked in pieces of this length. So only a short end of a text must wait for the next chunk, the time for a text does
 * not depend on the length of the values, and a truncated value is masked as well. At most 32, because lengths are bits of a number.
 */
const PIECE_BYTES = 32;

/** Other tasks go on while a large text is masked. */
const BYTES_BETWEEN_YIELDS = 262_144;

export type Mask = {
  /** Masks a whole text of UTF-8; yields to the event loop. Returns the same bytes if there are no secrets. */
  bytes(bytes: Uint8Array): Promise<Uint8Array>;
  /** Masks a short text without yielding. */
  text(text: string): string;
  /** Masks a text that arrives in chunks: an end that may be the beginning of a secret is kept until the next chunk. */
  stream(): { push(bytes: Uint8Array): Uint8Array; end(): Uint8Array };
  /** Whether there is nothing to hide. */
  isEmpty: boolean;
};

/** Replaces each of the secret `values`, as a whole and line by line. Secrets that overlap or touch are replaced once. */
export function createMask(values: readonly string[], replacement = "***"): Mask {
  const pieces = piecesOf(values);
  const isEmpty = pieces.size === 0;
  const search = createSearch(pieces);
  const stream = () => (isEmpty ? PASS_THROUGH : createStream(search, replacement));
  return {
    isEmpty,
    stream,
    text(text) {
      if (isEmpty) return text;
      const { push, end } = stream();
      return Buffer.concat([push(Buffer.from(text)), end()]).toString();
    },
    async bytes(bytes) {
      if (isEmpty) return bytes;
      const { push, end } = stream();
      const parts: Uint8Array[] = [];
      for (let at = 0; at < bytes.length; at += BYTES_BETWEEN_YIELDS) {
        if (at > 0) await new Promise(setImmediate);
        parts.push(push(bytes.subarray(at, at + BYTES_BETWEEN_YIELDS)));
      }
      return Buffer.concat([...parts, end()]);
    },
  };
}

const PASS_THROUGH = { push: (bytes: Uint8Array) => bytes, end: () => new Uint8Array(0) };

/** Returns the texts to hide: the values, the values without surrounding white space, and their lines that are long and varied enough. */
function textsOf(values: readonly string[]): Set<string> {
  const texts = new Set<string>();
  for (const value of values.map((value) => value.toWellFormed())) {
    for (const text of [value, value.trim()])
      if (text.length >= MIN_VALUE_LENGTH && text.trim() !== "") texts.add(text);
    for (const line of value.split(/[\r\n]/)) {
      const text = line.trim();
      if (text.length >= MIN_LINE_LENGTH && isVaried(text)) texts.add(text);
    }
  }
  return texts;
}

function isVaried(text: string): boolean {
  let distinct = "";
  for (let at = 0; at < text.length && distinct.length < MIN_DISTINCT_CHARACTERS; at++)
    if (!distinct.includes(text[at]!)) distinct += text[at];
  return distinct.length === MIN_DISTINCT_CHARACTERS;
}

/** Returns the forms in which tools write a text: plain, quoted for a shell or in source, and in JSON, URLs, XML, HTML, base64 and hex. */
function formsOf(text: string): string[] {
  const json = JSON.stringify(text).slice(1, -1);
  const url = encodeURIComponent(text);
  const strict = url.replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
  const hex = Buffer.from(text).toString("hex");
  return [
    text,
    json,
    json.replaceAll("/", "\\/"),
    json.replace(/[<>&]/g, (char) => `\\u00${char.charCodeAt(0).toString(16)}`),
    ...[/[^\x00-\x7f]/, /[^\x00-\x7f]|[<>&']/, /[^\x00-\x7f]|[<>&'"+`]/].flatMap((escaped) =>
      unicodeFormsOf(text, escaped),
    ),
    JSON.stringify(json).slice(1, -1),
    ...quotedFormsOf(text),
    ...[url, strict, strict.replaceAll("%2F", "/")].flatMap((form) => [
      ...[form, form.replaceAll("%20", "+")],
      form.replace(/%../g, (code) => code.toLowerCase()),
    ]),
    ...ENTITIES.map((entities) => text.replace(/[&<>"'`=/\t\n\r]/g, (char) => entities[char] ?? char)),
    ...base64FormsOf(text).flatMap((form) => [form, form.replaceAll("+", "-").replaceAll("/", "_")]),
    ...linesOf(Buffer.from(text).toString("base64"), 76),
    ...[hex, hex.toUpperCase(), ...linesOf(hex, 60)],
  ];
}

/** The lines in which `base64` and `xxd -p` write, but for a last one that is too short to be told from other text. */
const linesOf = (encoded: string, length: number): string[] =>
  encoded.length <= length
    ? []
    : (encoded.match(new RegExp(`.{1,${length}}`, "g")) ?? []).filter((line) => line.length >= MIN_LINE_LENGTH);

/** As `set -x`, `printf %q` and `declare -p` of a shell, and `repr` of Python write it. */
const quotedFormsOf = (text: string): string[] => [
  text.replaceAll("'", "'\\''"),
  text.replace(/[^\p{L}\p{N}_@%+=:./~-]/gu, "\\$&"),
  text.replace(/[$`"\\]/g, "\\$&"),
  text.replace(/[\\']/g, "\\$&").replaceAll("\n", "\\n").replaceAll("\t", "\\t"),
];

/** JSON with these characters as numbers, in small letters as of Python and in capitals as of .NET. */
function unicodeFormsOf(text: string, escaped: RegExp): string[] {
  const write = (toHex: (hex: string) => string) =>
    text.replace(/[^]/g, (unit) =>
      escaped.test(unit)
        ? `\\u${toHex(unit.charCodeAt(0).toString(16).padStart(4, "0"))}`
        : JSON.stringify(unit).slice(1, -1),
    );
  return [write((hex) => hex), write((hex) => hex.toUpperCase())];
}

const TAGS = { "&": "&amp;", "<": "&lt;" };
const MARKUP = { ...TAGS, ">": "&gt;" };
const QUOTED = { ...MARKUP, '"': "&quot;" };
const LINES = { "\t": "&#x9;", "\n": "&#xA;", "\r": "&#xD;" };
const DECIMAL_LINES = { "\t": "&#9;", "\n": "&#10;", "\r": "&#13;" };

/** How libraries write characters in XML and HTML. */
const ENTITIES: readonly Record<string, string>[] = [
  TAGS,
  MARKUP,
  QUOTED,
  // Python, and Bun.escapeHTML.
  { ...QUOTED, "'": "&#x27;" },
  // Ruby, .NET, lodash.
  { ...QUOTED, "'": "&#39;" },
  // PHP.
  { ...QUOTED, "'": "&#039;" },
  // XML in Java and C++.
  { ...QUOTED, "'": "&apos;" },
  // Attributes of XML writers, with the ends of lines.
  { ...TAGS, '"': "&quot;", ...LINES },
  { ...QUOTED, ...LINES },
  { ...QUOTED, ...DECIMAL_LINES },
  { ...QUOTED, "'": "&apos;", ...LINES },
  { ...QUOTED, "'": "&apos;", ...DECIMAL_LINES },
  // Go and MarkupSafe.
  { ...MARKUP, '"': "&#34;", "'": "&#39;" },
  { ...MARKUP, '"': "&#34;", "'": "&#39;", ...LINES },
  // Handlebars and mustache.
  { ...QUOTED, "'": "&#x27;", "`": "&#x60;", "=": "&#x3D;" },
  { ...QUOTED, "'": "&#39;", "`": "&#x60;", "=": "&#x3D;", "/": "&#x2F;" },
];

/** Data before the text shifts it by 0, 1 or 2 bytes in base64. Characters shared with neighbouring data are left out. */
function base64FormsOf(text: string): string[] {
  return [0, 1, 2].flatMap((shift) => {
    const bytes = Buffer.concat([Buffer.alloc(shift), Buffer.from(text)]);
    const first = [0, 2, 3][shift]!;
    const encoded = bytes.toString("base64");
    // At the end of the encoded data the last character is also known.
    return [encoded.slice(first, Math.floor((bytes.length * 8) / 6)), encoded.slice(first)];
  });
}

/** Returns the bytes of all forms, a character for each byte, in pieces of at most PIECE_BYTES. */
function piecesOf(values: readonly string[]): Set<string> {
  const pieces = new Set<string>();
  for (const text of textsOf(values))
    for (const form of new Set(formsOf(text)))
      for (const piece of cut(Buffer.from(form).toString("latin1"))) pieces.add(piece);
  return pieces;
}

/** The last piece overlaps the one before it. Monotonous pieces, such as white space, are ordinary text: they are left out. */
function cut(form: string): string[] {
  if (form.length <= PIECE_BYTES) return [form];
  const last = form.length - PIECE_BYTES;
  const pieces = Array.from({ length: Math.ceil(form.length / PIECE_BYTES) }, (_, index) => {
    const from = Math.min(index * PIECE_BYTES, last);
    return form.slice(from, from + PIECE_BYTES);
  });
  const varied = pieces.filter(isVaried);
  return varied.length > 0 ? varied : pieces;
}

type Search = ReturnType<typeof createSearch>;

function createSearch(pieces: ReadonlySet<string>) {
  /** A bit per length of the pieces, indexed by the first two bytes of a text, the first one low. */
  const lengths = new Uint32Array(65_536);
  for (const piece of pieces) lengths[piece.charCodeAt(0) | (piece.charCodeAt(1) << 8)]! |= 1 << (piece.length - 1);
  const sorted = [...pieces].sort();

  /** Whether a piece begins with the text and is longer. */
  function isBeginning(text: string): boolean {
    let [from, to] = [0, sorted.length];
    while (from < to) {
      const middle = (from + to) >>> 1;
      if (sorted[middle]! <= text) from = middle + 1;
      else to = middle;
    }
    return sorted[from]?.startsWith(text) ?? false;
  }

  return {
    /** Returns the length of the longest piece at this place; 0 if there is none. */
    lengthAt(text: string, at: number): number {
      for (let bits = lengths[text.charCodeAt(at) | (text.charCodeAt(at + 1) << 8)]!; bits !== 0;) {
        const length = 32 - Math.clz32(bits);
        if (at + length <= text.length && pieces.has(text.slice(at, at + length))) return length;
        bits &= ~(1 << (length - 1));
      }
      return 0;
    },

    /** Returns where the first piece may begin that the text does not have whole; its length if there is none. */
    openFrom(text: string): number {
      let at = Math.max(0, text.length - PIECE_BYTES + 1);
      while (at < text.length && !isBeginning(text.slice(at))) at++;
      return at;
    },
  };
}

/** Maximum number of bytes that wait for the next chunk because escape sequences stand in what may be a secret. */
const MAX_KEPT_BYTES = 4_096;

const SECRET = 1;
/** Marks an escape sequence inside a secret: it is written, because it colours what follows. */
const WITHIN_SECRET = 2;

function createStream({ lengthAt, openFrom }: Search, replacement: string) {
  let kept = "";
  /** A mark for each byte of the kept text. */
  let keptMarks = new Uint8Array(0);
  let isReplaced = false;

  /** Marks the secrets that begin before `end`, in the text as it is and in what is visible of it. */
  function mark(text: string, end: number, visible: VisibleText | undefined): Uint8Array<ArrayBuffer> {
    const marks = new Uint8Array(text.length);
    marks.set(keptMarks);
    for (let at = 0; at < end; at++) {
      const length = lengthAt(text, at);
      if (length > 0) marks.fill(SECRET, at, at + length);
    }
    for (let at = 0; visible && at < visible.text.length; at++) {
      const length = lengthAt(visible.text, at);
      if (length === 0) continue;
      let index = visible.indexOf(at);
      if (index >= end) break;
      for (let next = at; next < at + length; next++) {
        for (const to = visible.indexOf(next); index < to; index++) marks[index] ||= WITHIN_SECRET;
        marks[index++] = SECRET;
      }
    }
    return marks;
  }

  function advance(text: string, end: number, visible: VisibleText | undefined): Uint8Array {
    const marks = mark(text, end, visible);
    let written = "";
    for (let at = 0, to = 0; at < end; at = to) {
      const value = marks[at];
      while (to < end && marks[to] === value) to++;
      if (value !== SECRET) written += text.slice(at, to);
      else if (!isReplaced) written += replacement;
      isReplaced = value !== 0 && (isReplaced || value === SECRET);
    }
    kept = text.slice(end);
    keptMarks = marks.slice(end);
    return Buffer.from(written, "latin1");
  }

  return {
    push(bytes: Uint8Array): Uint8Array {
      const text = kept + Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1");
      const visible = toVisible(text);
      const open = Math.min(openFrom(text), visible ? visible.indexOf(openFrom(visible.text)) : text.length);
      return advance(text, Math.max(open, text.length - MAX_KEPT_BYTES), visible);
    },
    end: (): Uint8Array => advance(kept, kept.length, toVisible(kept)),
  };
}
