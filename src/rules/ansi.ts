/** Text as programs write it for terminals: its colours are read, everything else that steers a terminal is left out. */

export type Colour = "red" | "green" | "yellow" | "blue" | "magenta" | "cyan" | "grey";
/** A stretch of one look. */
export type Stretch = { text: string; colour: Colour | null; bold: boolean };

const COLOURS: readonly (Colour | null)[] = ["grey", "red", "green", "yellow", "blue", "magenta", "cyan", null];

/** Commands with parameters, titles of windows and links, and the short ones; each bounded by what may stand in it. */
// oxlint-disable-next-line no-control-regex
const ESCAPES =
  /\x1b(?:\[([0-?]*)[ -/]*([@-~])|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~]|$)|\x9b([0-?]*)[ -/]*([@-~])/g;

/** XML cannot hold the character that begins a command: reports bear the rest of it. */
const restore = (text: string): string =>
  // oxlint-disable-next-line no-control-regex
  text.includes("[") ? text.replace(/(?<!\x1b)\ufffd?\[(\d{1,2}(?:;\d{1,3}){0,4}m)/g, "\x1b[$1") : text;

/** Returns what a line shows after its carriage returns, with which progress bars overwrite themselves. */
function settleLine(line: string): string {
  let end = line.length;
  while (line[end - 1] === "\r") end--;
  return line.slice(line.lastIndexOf("\r", end - 1) + 1, end);
}

const settle = (text: string): string => (text.includes("\r") ? text.split("\n").map(settleLine).join("\n") : text);

export function stripAnsi(text: string): string {
  const source = restore(text);
  return /[\x1b\x9b]/.test(source) ? source.replace(ESCAPES, "") : source;
}

type Look = Omit<Stretch, "text">;
const PLAIN: Look = { colour: null, bold: false };

/** The look after a command of colours and weights. */
function apply(look: Look, parameters: string): Look {
  const codes = parameters === "" ? [0] : parameters.split(/[;:]/, 32).map(Number);
  let { colour, bold } = look;
  for (let index = 0; index < codes.length; index++) {
    const code = codes[index]!;
    if (code === 0) [colour, bold] = [null, false];
    else if (code === 1) bold = true;
    else if (code === 2) colour = "grey";
    else if (code === 22) [colour, bold] = [colour === "grey" ? null : colour, false];
    else if (code >= 30 && code <= 37) colour = COLOURS[code - 30]!;
    else if (code >= 90 && code <= 97) colour = COLOURS[code - 90]!;
    else if (code === 39) colour = null;
    else if (code === 38 || code === 48) {
      const isIndexed = codes[index + 1] === 5;
      if (code === 38) colour = isIndexed ? (COLOURS[(codes[index + 2] ?? 99) % 8] ?? null) : null;
      if (code === 38 && isIndexed && (codes[index + 2] ?? 99) > 15) colour = null;
      index += isIndexed ? 2 : 4;
    }
  }
  return { colour, bold };
}

/** More changes than this make a picture and no log: what follows is plain. */
const MAX_STRETCHES = 5_000;

export function readAnsi(text: string): Stretch[] {
  const stretches: Stretch[] = [];
  let look = PLAIN;
  let from = 0;
  const source = restore(settle(text));
  const add = (part: string) => {
    if (part === "") return;
    const last = stretches.at(-1);
    if (last && last.colour === look.colour && last.bold === look.bold) last.text += part;
    else stretches.push({ text: part, ...look });
  };
  for (const match of source.matchAll(ESCAPES)) {
    add(source.slice(from, match.index));
    from = match.index + match[0].length;
    if ((match[2] ?? match[4]) !== "m") continue;
    look = stretches.length < MAX_STRETCHES ? apply(look, match[1] ?? match[3] ?? "") : PLAIN;
  }
  add(source.slice(from));
  return stretches;
}
