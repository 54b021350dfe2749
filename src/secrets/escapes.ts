/** Finds the escape sequences of terminals in text, also as JSON and XML spell them, so that a secret is found although one splits it. */

/** The ways in which tools write the character ESC; the empty one is what is left where XML cannot hold it. A character is a byte. */
const INTRODUCERS = ["\x1b", "\xef\xbf\xbd", "\\u001b", "\\x1b", "\\033", "\\e", "&#27;", "&#x1b;", "#x1b"];

const toPattern = (text: string) => text.replace(/[\\[\]#;&]/g, "\\$&");
const oneOf = (texts: Iterable<string>) => `(?:${[...texts].map(toPattern).join("|")})`;
const introducer = `(?:${oneOf(INTRODUCERS)}\\[|\xc2\x9b|\\\\u009b)`;
const PARAMETERS = "[0-?]{0,64}";
const BARE_PARAMETERS = "\\[\\d{1,3}(?:;\\d{1,3}){0,15}";
/** Window titles and links. They end within a line. */
const STRING = "\x1b[\\]PX^_][^\x07\x1b\\n]{0,2048}";

const SEQUENCES = new RegExp(
  [
    `${introducer}${PARAMETERS}[ -/]{0,8}[@-~]`,
    `${STRING}(?:\x07|\x1b\\\\)`,
    "\x1b[ -/]{0,4}[0-Z\\\\^-~]",
    `${BARE_PARAMETERS}m`,
  ].join("|"),
  "gi",
);

const beginnings = new Set(
  [...INTRODUCERS, "\xc2\x9b", "\\u009b"].flatMap((text) =>
    Array.from(text, (_, at) => text.slice(0, at + 1)).filter((part) => part !== ""),
  ),
);
/** The end of a text that may be the beginning of a sequence. */
const OPEN_SEQUENCE = new RegExp(
  [
    `${introducer}${PARAMETERS}[ -/]{0,8}$`,
    `${STRING}\x1b?$`,
    "\x1b[ -/]{0,4}$",
    `${oneOf(beginnings)}$`,
    `${BARE_PARAMETERS}$`,
    "\\[(?:\\d{1,3};){0,15}$",
  ].join("|"),
  "i",
);
const MAX_SEQUENCE_BYTES = 2_100;

export type VisibleText = {
  text: string;
  /** Returns the index in the original text of a character of `text`; the length of the original for the end. */
  indexOf(at: number): number;
};

/** Returns a text, with a character for each byte, without escape sequences; undefined if it has none. */
export function toVisible(text: string): VisibleText | undefined {
  const tail = Math.max(0, text.length - MAX_SEQUENCE_BYTES);
  const open = OPEN_SEQUENCE.exec(text.slice(tail));
  const end = open ? tail + open.index : text.length;
  const parts: string[] = [];
  /** Where each part begins, in the visible text and in the original. */
  const starts: number[] = [];
  const origins: number[] = [];
  let [length, from] = [0, 0];
  const add = (to: number) => {
    if (to <= from) return;
    parts.push(text.slice(from, to));
    starts.push(length);
    origins.push(from);
    length += to - from;
  };
  for (const match of text.matchAll(SEQUENCES)) {
    if (match.index >= end) break;
    add(match.index);
    from = match.index + match[0].length;
  }
  if (from === 0 && end === text.length) return undefined;
  add(end);
  return {
    text: parts.join(""),
    indexOf(at) {
      if (at >= length) return text.length;
      let [low, high] = [0, starts.length - 1];
      while (low < high) {
        const middle = (low + high + 1) >>> 1;
        if (starts[middle]! <= at) low = middle;
        else high = middle - 1;
      }
      return origins[low]! + at - starts[low]!;
    },
  };
}
