/** Text as programs write it for terminals: its colours are read, everything else that steers a terminal is left out. */

import { nearestColour } from "./palette.ts";

/** `foreground` and `background` are colours of the palette of 256; null is the terminal's own. */
export type Look = {
  foreground: number | null;
  background: number | null;
  bold: boolean;
  dim: boolean;
  italic: boolean;
  underline: boolean;
  inverse: boolean;
  strike: boolean;
};

/** A piece of a line in one look. */
export type Stretch = { text: string; look: Look };

export const PLAIN_LOOK: Look = {
  foreground: null,
  background: null,
  bold: false,
  dim: false,
  italic: false,
  underline: false,
  inverse: false,
  strike: false,
};

/** Commands with parameters, titles of windows and links, and short commands. Each part excludes its end, so that matching is linear. */
// oxlint-disable-next-line no-control-regex
const ESCAPES =
  /\x1b(?:\[([0-?]*)[ -/]*([@-~])|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~]|$)|\x9b([0-?]*)[ -/]*([@-~])/g;

/** XML cannot hold the character that begins a command: reports bear the rest of it. */
const restore = (text: string): string =>
  // oxlint-disable-next-line no-control-regex
  text.includes("[") ? text.replace(/(?<!\x1b)\ufffd?\[(\d{1,2}(?:;\d{1,3}){0,15}m)/g, "\x1b[$1") : text;

/** Splits a line into text overwritten by carriage returns, as in progress bars, and the text shown in the end. */
function settleLine(line: string): [overwritten: string, shown: string] {
  let end = line.length;
  while (line[end - 1] === "\r") end--;
  const start = line.lastIndexOf("\r", end - 1) + 1;
  return [line.slice(0, start), line.slice(start, end)];
}

export function stripAnsi(text: string): string {
  const source = restore(text);
  return /[\x1b\x9b]/.test(source) ? source.replace(ESCAPES, "") : source;
}

/** Maximum number of parameters of a command; the rest is ignored, because no program writes more. */
const MAX_PARAMETERS = 32;

/** Returns the effect of a code of "Select Graphic Rendition", except colours with parameters. */
function changeOf(code: number): Partial<Look> | undefined {
  if (code >= 30 && code <= 37) return { foreground: code - 30 };
  if (code >= 40 && code <= 47) return { background: code - 40 };
  if (code >= 90 && code <= 97) return { foreground: code - 90 + 8 };
  if (code >= 100 && code <= 107) return { background: code - 100 + 8 };
  return CHANGES[code];
}

const CHANGES: Record<number, Partial<Look>> = {
  0: PLAIN_LOOK,
  1: { bold: true },
  2: { dim: true },
  3: { italic: true },
  4: { underline: true },
  7: { inverse: true },
  9: { strike: true },
  21: { underline: true },
  22: { bold: false, dim: false },
  23: { italic: false },
  24: { underline: false },
  27: { inverse: false },
  29: { strike: false },
  39: { foreground: null },
  49: { background: null },
};

const isByte = (value: number | undefined): value is number => value !== undefined && value >= 0 && value <= 255;

/** Returns the colour that `[5, index]` or `[2, red, green, blue]` names; undefined if it names none. */
function paletteColour([mode, first, second, third]: readonly number[]): number | undefined {
  if (mode === 5) return isByte(first) ? first : undefined;
  if (mode !== 2 || !isByte(first) || !isByte(second) || !isByte(third)) return undefined;
  return nearestColour([first, second, third]);
}

/** `38:2:red:green:blue`, with or without a colour space after the mode, and `38:5:index`; `4:0` is no underline. */
function applySubparameters(look: Look, [code, ...rest]: readonly number[]): void {
  if (code === 4) look.underline = rest[0] !== 0;
  if (code !== 38 && code !== 48) return;
  const colour = paletteColour(rest[0] === 2 && rest.length > 4 ? [2, ...rest.slice(2, 5)] : rest);
  if (colour !== undefined) look[code === 38 ? "foreground" : "background"] = colour;
}

/** Returns the look after a command with these parameters: codes between semicolons, parts of one code between colons. */
function applyCommand(before: Look, parameters: string): Look {
  const look = { ...before };
  const groups = parameters.split(";", MAX_PARAMETERS);
  for (let index = 0; index < groups.length; index++) {
    const group = groups[index]!;
    if (group.includes(":")) {
      applySubparameters(look, group.split(":", MAX_PARAMETERS).map(Number));
      continue;
    }
    const code = Number(group);
    // 58 is the colour of underlines: its parameters must not be taken for codes.
    if (code !== 38 && code !== 48 && code !== 58) {
      Object.assign(look, changeOf(code));
      continue;
    }
    const mode = Number(groups[index + 1]);
    const length = mode === 5 ? 2 : mode === 2 ? 4 : MAX_PARAMETERS;
    const colour = paletteColour(groups.slice(index + 1, index + 1 + length).map(Number));
    if (colour !== undefined && code !== 58) look[code === 38 ? "foreground" : "background"] = colour;
    index += length;
  }
  return look;
}

const LOOK_NAMES = Object.keys(PLAIN_LOOK) as (keyof Look)[];
const isSameLook = (one: Look, other: Look): boolean => LOOK_NAMES.every((name) => one[name] === other[name]);

/** A line with more changes of look than this is a picture and no log: the rest of the line is plain. */
const MAX_LINE_STRETCHES = 500;

/** Reads lines one after the other: a look goes on over the ends of lines. */
function createLineReader(): (line: string) => Stretch[] {
  let look = PLAIN_LOOK;
  const applyMatch = (match: RegExpExecArray) => {
    if ((match[2] ?? match[4]) === "m") look = applyCommand(look, match[1] ?? match[3] ?? "");
  };
  return (written) => {
    const [overwritten, line] = settleLine(written);
    if (!/[\x1b\x9b]/.test(written)) return line === "" ? [] : [{ text: line, look }];
    const stretches: Stretch[] = [];
    let from = 0;
    const add = (part: string) => {
      if (part === "") return;
      const shown = stretches.length < MAX_LINE_STRETCHES ? look : PLAIN_LOOK;
      const last = stretches.at(-1);
      if (last && isSameLook(last.look, shown)) last.text += part;
      else stretches.push({ text: part, look: shown });
    };
    for (const match of overwritten.matchAll(ESCAPES)) applyMatch(match);
    for (const match of line.matchAll(ESCAPES)) {
      add(line.slice(from, match.index));
      from = match.index + match[0].length;
      applyMatch(match);
    }
    add(line.slice(from));
    return stretches;
  };
}

/** Returns the lines of a text, each as its stretches. */
export const readAnsiLines = (text: string): Stretch[][] => restore(text).split("\n").map(createLineReader());
