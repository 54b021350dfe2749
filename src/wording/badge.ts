/** Draws a badge: a small SVG of two words. */

type BadgeTone = "good" | "bad" | "none";
/** `title` is the full text. */
export type Badge = { label: string; message: string; tone: BadgeTone; title: string };

/** Widths in tenths of a pixel at 11 px, as most systems draw "Verdana, DejaVu Sans". */
const WIDTHS: readonly (readonly [tenths: number, characters: string])[] = [
  [30, "'"],
  [32, "IJijl"],
  [36, " ,./:;\\|"],
  [40, "-f"],
  [44, "!()[]tr"],
  [52, '"'],
  [56, "*_`?zs"],
  [60, "Fc"],
  [64, "Lkvxy"],
  [68, "PTYaoe"],
  [70, "$0123456789ESbdghnpqu{}"],
  [76, "ABVXZCRK"],
  [82, "NUH"],
  [87, "&DGOQ"],
  [91, "#+<=>^~w"],
  [95, "M"],
  [108, "%@Wm"],
];
const TENTHS = new Map(WIDTHS.flatMap(([tenths, characters]) => [...characters].map((one) => [one, tenths] as const)));
/** Widths of other characters: of accented letters and the like, and of wide characters. */
const OTHER_WIDTH = 75;
const WIDE_WIDTH = 115;

/** Returns the width of a text in pixels. */
export const widthOf = (text: string): number =>
  Math.ceil(
    [...text].reduce((sum, one) => sum + (TENTHS.get(one) ?? (one < "\u1100" ? OTHER_WIDTH : WIDE_WIDTH)), 0) / 10,
  );

const COLOURS: Record<BadgeTone, string> = { good: "#176f42", bad: "#b9252b", none: "#5f656d" };
const LABEL = "#3a3d42";
const PADDING = 6;
const HEIGHT = 20;
const MAX_LENGTH = 40;

const cut = (text: string): string => {
  const characters = [...text];
  return characters.length > MAX_LENGTH ? `${characters.slice(0, MAX_LENGTH - 1).join("")}…` : text;
};

/** Characters that XML forbids or that change the direction of the text. */
// oxlint-disable-next-line no-control-regex
const UNFIT = /[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufffe\uffff]/g;
const escape = (text: string): string => Bun.escapeHTML(text.toWellFormed().replace(UNFIT, "\ufffd"));

/** Draws a self-contained SVG. The text is fitted to its width in case the font differs. */
export function drawBadge({ label, message, tone, title }: Badge): string {
  const [left, right] = [cut(label), cut(message)];
  const [labelWidth, messageWidth] = [widthOf(left) + 2 * PADDING, widthOf(right) + 2 * PADDING];
  const width = labelWidth + messageWidth;
  const text = (words: string, at: number, space: number) =>
    `<text x="${at + space / 2}" y="14" textLength="${space - 2 * PADDING}" lengthAdjust="spacingAndGlyphs">${escape(words)}</text>`;
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${HEIGHT}" viewBox="0 0 ${width} ${HEIGHT}" role="img" aria-label="${escape(title)}">` +
    `<title>${escape(title)}</title>` +
    `<clipPath id="r"><rect width="${width}" height="${HEIGHT}" rx="3"/></clipPath>` +
    `<g clip-path="url(#r)"><rect width="${labelWidth}" height="${HEIGHT}" fill="${LABEL}"/>` +
    `<rect x="${labelWidth}" width="${messageWidth}" height="${HEIGHT}" fill="${COLOURS[tone]}"/></g>` +
    `<g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,Geneva,sans-serif" font-size="11">` +
    `${text(left, 0, labelWidth)}${text(right, labelWidth, messageWidth)}</g></svg>`
  );
}
