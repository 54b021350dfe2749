/** Styles for the colours of terminals, readable on light and dark backgrounds. */

import { FIRST_FIXED_COLOUR, type Rgb, rgbOf } from "../../rules/palette.ts";

/** The values of `--ground` in both colour schemes of the style sheet. */
const LIGHT_GROUND: Rgb = [250, 250, 248];
const DARK_GROUND: Rgb = [20, 22, 25];
const BLACK: Rgb = [0, 0, 0];
const WHITE: Rgb = [255, 255, 255];

/** Minimum contrast to the plain background. On a tinted background at least 4.5 remains. */
const MIN_CONTRAST = 6.8;
/** Opacity of the colour of a background. */
const TINT = "1c";

/** The 16 named colours as variables of the style sheet: black, red, green, yellow, blue, magenta, cyan, white. */
const NAMED = ["soft", "failed", "passed", "flaky", "running", "magenta", "cyan", "ink"];

/** The relative luminance of WCAG 2. */
function luminance(rgb: Rgb): number {
  const [red, green, blue] = rgb.map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
}

function contrast(one: Rgb, other: Rgb): number {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light! + 0.05) / (dark! + 0.05);
}

const toHex = (rgb: Rgb): string => `#${rgb.map((value) => value.toString(16).padStart(2, "0")).join("")}`;

/** Returns the colour mixed with the least black or white that makes it readable on the background. */
function readable(rgb: Rgb, ground: Rgb): string {
  const ink = ground === LIGHT_GROUND ? BLACK : WHITE;
  for (let share = 0; share < 1; share += 0.05) {
    const [red, green, blue] = rgb.map((value, at) => Math.round(value + (ink[at]! - value) * share));
    const mixed: Rgb = [red!, green!, blue!];
    if (contrast(mixed, ground) >= MIN_CONTRAST) return toHex(mixed);
  }
  return toHex(ink);
}

function rulesOf(colour: number): string {
  if (colour < FIRST_FIXED_COLOUR) {
    const name = `var(--${NAMED[colour % 8]!})`;
    return `.fg${colour}{color:${name}}.bg${colour}{background:color-mix(in srgb,${name} 11%,transparent)}`;
  }
  const rgb = rgbOf(colour);
  const front = `light-dark(${readable(rgb, LIGHT_GROUND)},${readable(rgb, DARK_GROUND)})`;
  return `.fg${colour}{color:${front}}.bg${colour}{background:${toHex(rgb)}${TINT}}`;
}

/** Generates one rule for each foreground and background of the palette. */
export const TERMINAL_STYLE = Array.from({ length: 256 }, (_, colour) => rulesOf(colour)).join("\n");
