/** HTML as a template that escapes whatever is put into it. */

/** Markup of ours: what is put into a template as this is not escaped again. */
export class Html {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
  toString(): string {
    return this.text;
  }
}

/** What may be put into a template; null, undefined, false and true are nothing. */
export type Piece = Html | string | number | boolean | null | undefined | readonly Piece[];

/** Text of others may reorder or hide what stands beside it: controls of direction are shown as what they are. */
const INVISIBLE = /[\u202a-\u202e\u2066-\u2069\u200e\u200f\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/g;

const show = (text: string) =>
  text.replace(INVISIBLE, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);

const render = (piece: Piece): string => {
  if (piece instanceof Html) return piece.text;
  if (Array.isArray(piece)) return piece.map(render).join("");
  if (piece === null || piece === undefined || typeof piece === "boolean") return "";
  return Bun.escapeHTML(show(String(piece)).toWellFormed());
};

/** Attributes are always quoted in our templates: escaped values are safe in them, addresses only from `href`. */
export const html = (strings: TemplateStringsArray, ...pieces: Piece[]): Html =>
  new Html(strings.reduce((text, string, index) => text + render(pieces[index - 1]) + string));

/** Only for markup of our own. */
export const raw = (text: string): Html => new Html(text);

/** An address that may be followed: anything but http and https, javascript: for one, is no link. */
export const safeUrl = (url: string | null | undefined): string | undefined =>
  url && /^https?:\/\//i.test(url) && URL.canParse(url) ? url : undefined;
