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

const codeOf = new Map<string, string>();

function toCode(character: string): string {
  const code = `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  codeOf.set(character, code);
  return code;
}

const show = (text: string) => text.replace(INVISIBLE, (one) => codeOf.get(one) ?? toCode(one));

const render = (piece: Piece): string => {
  if (piece instanceof Html) return piece.text;
  if (Array.isArray(piece)) return piece.map(render).join("");
  if (piece === null || piece === undefined || typeof piece === "boolean") return "";
  return Bun.escapeHTML(show(String(piece)).toWellFormed());
};

const slimmed = new WeakMap<TemplateStringsArray, readonly string[]>();

/** The literal parts of a template without the indentation of its source; preformatted text keeps its white space. */
function slim(strings: TemplateStringsArray): readonly string[] {
  let isPreformatted = false;
  const parts = strings.map((string) =>
    string
      .split(/(<\/?(?:pre|textarea)\b)/)
      .map((part) => {
        if (part.startsWith("<pre") || part.startsWith("<textarea")) isPreformatted = true;
        else if (part.startsWith("</")) isPreformatted &&= part !== "</pre" && part !== "</textarea";
        return isPreformatted ? part : part.replace(/\s*\n\s*/g, "\n");
      })
      .join(""),
  );
  slimmed.set(strings, parts);
  return parts;
}

/**
 * Attributes are always quoted in our templates: escaped values are safe in them, addresses only from `href`. Indentation
 * is removed from each template once, and never from what is put into it.
 */
export function html(strings: TemplateStringsArray, ...pieces: Piece[]): Html {
  const parts = slimmed.get(strings) ?? slim(strings);
  let text = parts[0]!;
  for (let index = 0; index < pieces.length; index++) text += render(pieces[index]) + parts[index + 1]!;
  return new Html(text);
}

/** Only for markup of our own. */
export const raw = (text: string): Html => new Html(text);

/** An address that may be followed: anything but http and https, javascript: for one, is no link. */
export const safeUrl = (url: string | null | undefined): string | undefined =>
  url && /^https?:\/\//i.test(url) && URL.canParse(url) ? url : undefined;
