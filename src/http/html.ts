/** HTML that is safe to send: text is escaped when it becomes a part of it. Pages write it as TSX (jsx_runtime.ts). */

/** Markup of our own, which is not escaped again. */
export class Html {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
  toString(): string {
    return this.text;
  }
}

/** The contents of an element; null, undefined, false and true are empty. */
export type Piece = Html | string | number | boolean | null | undefined | readonly Piece[];

/** A path of this server, from its root. */
export type Path = `/${string}`;

/** The addresses that a link, a form or an image may have: the type refuses `javascript:` and every other scheme. */
export type Href = Path | `../${string}` | `#${string}` | `?${string}` | `http://${string}` | `https://${string}`;

/** Control characters are shown as escape sequences, because text of users could reorder or hide the text beside it. */
const INVISIBLE = /[\u202a-\u202e\u2066-\u2069\u200e\u200f\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/g;

const toCode = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;

/** Returns text that is safe as the content of an element and between the quotes of an attribute. */
export const escapeText = (text: string): string => Bun.escapeHTML(text.replace(INVISIBLE, toCode).toWellFormed());

export function render(piece: Piece): string {
  if (piece instanceof Html) return piece.text;
  if (typeof piece === "string") return escapeText(piece);
  if (Array.isArray(piece)) {
    let text = "";
    for (const part of piece as readonly Piece[]) text += render(part);
    return text;
  }
  return typeof piece === "number" ? String(piece) : "";
}

/** Inserts our own markup without escaping. */
export const raw = (text: string): Html => new Html(text);

/** Returns an untrusted address if it is safe as a link: only http and https are. */
export const safeUrl = (url: string | null | undefined): Href | undefined =>
  url && /^https?:\/\//i.test(url) && URL.canParse(url) ? (url as Href) : undefined;
