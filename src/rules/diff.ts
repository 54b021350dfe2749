/** Extracts the expected and actual values of a failed assertion, line by line, from the messages of test frameworks. */

import { stripAnsi } from "./ansi.ts";

type DiffLine = { sign: "-" | "+" | " "; text: string };
/** `minus` and `plus` name the sides: what is expected is always on the side of the minus. */
type Diff = { minus: string; plus: string; lines: DiffLine[] };

const MAX_CHARACTERS = 20_000;
const MAX_LINES = 80;
const MAX_LENGTH = 2_000;

const EXPECTED = { minus: "expected", plus: "received" };

/** Null where neither says both sides. Never throws. */
export function readDiff(message: string | null, stack: string | null): Diff | null {
  for (const text of [message, stack]) {
    if (!text) continue;
    const lines = stripAnsi(text.slice(0, MAX_CHARACTERS))
      .split("\n", 600)
      .map((line) =>
        line
          .slice(0, MAX_LENGTH)
          .replace(/\r$/, "")
          .replace(/^E(?= {3}|$)/, ""),
      );
    const found = readBlock(lines) ?? readPair(lines) ?? readSentence(lines);
    if (found && found.lines.some(({ sign }) => sign !== " ")) return found;
  }
  return null;
}

/** Stack frames end the message of an assertion. */
const isFrame = (line: string) => /^\s+at \S|^\s*(?:❯|→) \S|^\S{1,300}:\d+: |^Traceback /.test(line);

type Header = { first: RegExp; second?: RegExp; sides: { minus: string; plus: string }; swaps?: boolean };
const HEADERS: readonly Header[] = [
  // Jest, Vitest: - Expected  - 1 / + Received  + 1
  { first: /^(\s*)- Expected\b/, second: /^\s*\+ (?:Received|Actual)\b/, sides: EXPECTED },
  // Unified: PHPUnit, testify
  { first: /^(\s*)--- ?Expected\b/i, second: /^\s*\+\+\+ ?(?:Actual|Received)\b/i, sides: EXPECTED },
  // Mocha means it the other way round
  { first: /^(\s*)\+ expected - actual\b/, sides: EXPECTED, swaps: true },
  // Node: + actual - expected
  { first: /^(\s*)\+ actual - expected\b/, sides: EXPECTED },
  // pytest: what is on the left of == was got
  { first: /^(\s*)Full diff:\s*$/, sides: EXPECTED },
  { first: /^(\s*)(?:AssertionError: )?assert .{1,2000} == /, sides: EXPECTED },
  { first: /^(\s*)AssertionError: .{1,2000} != /, sides: { minus: "first", plus: "second" } },
];

/** Reads a block of lines with signs, below a line that explains the signs. */
function readBlock(lines: readonly string[]): Diff | null {
  for (const { first, second, sides, swaps } of HEADERS)
    for (const [index, line] of lines.entries()) {
      if (!first.test(line) || (second && !second.test(lines[index + 1] ?? ""))) continue;
      const found = readSigns(lines.slice(index + (second ? 2 : 1)), swaps === true);
      if (found) return { ...sides, lines: found };
    }
  return null;
}

/** Reads lines such as "  - a", whose signs are in one column; null if there are none. */
function readSigns(lines: readonly string[], swaps: boolean): DiffLine[] | null {
  const start = lines.findIndex((line) => /^\s*[-+](?:\s|\S)/.test(line));
  if (start === -1 || start > 12 || lines.slice(0, start).some(isFrame)) return null;
  const column = lines[start]!.search(/[-+]/);
  let from = start;
  // Equal lines precede the first sign, indented further.
  while (from > 0 && /\S/.test(lines[from - 1]!) && lines[from - 1]!.search(/\S/) > column) from--;
  const found: DiffLine[] = [];
  for (const line of lines.slice(from)) {
    if (found.length >= MAX_LINES || isFrame(line)) break;
    const sign = line[column] ?? " ";
    const isBlank = !/\S/.test(line);
    if ((!isBlank && /\S/.test(line.slice(0, column))) || !/[-+ ?@\\.]/.test(sign)) break;
    if (isBlank && (found.length === 0 || found.at(-1)!.text === "")) {
      if (found.length > 0) break;
      continue;
    }
    if (sign === "?" || sign === "\\" || line.startsWith("@@", column)) continue;
    const rest = line.slice(column + 1);
    const turned = sign === "-" ? "+" : "-";
    found.push({ sign: sign === "-" || sign === "+" ? (swaps ? turned : sign) : " ", text: rest });
  }
  while (found.length > 0 && found.at(-1)!.sign === " " && found.at(-1)!.text.trim() === "") found.pop();
  // Most leave a blank behind the sign, a unified diff does not.
  if (found.every(({ text }) => text === "" || text.startsWith(" ")))
    for (const line of found) line.text = line.text.slice(1);
  return found.some(({ sign }) => sign !== " ") ? found : null;
}

type Labels = { expected: RegExp; actual: RegExp; sides: { minus: string; plus: string } };
const WHAT =
  "(?: (?:value|string|substring|pattern|length|number|object|array|path|code|status|count|message|name|text))?";
const LABELS: readonly Labels[] = [
  {
    expected: new RegExp(`^\\s*expected${WHAT}\\s*:(?: |$)(.*)$`, "i"),
    actual: new RegExp(`^\\s*(?:received|actual|got|found|but was|but)${WHAT}\\s*:(?: |$)(.*)$`, "i"),
    sides: EXPECTED,
  },
  { expected: /^\s*wanted\s*:(?: |$)(.*)$/, actual: /^\s*found\s*:(?: |$)(.*)$/, sides: EXPECTED },
  {
    expected: /^\s*to be equal to\s*:(?: |$)(.*)$/,
    actual: /^\s*expecting(?: actual)?\s*:(?: |$)(.*)$/i,
    sides: EXPECTED,
  },
  {
    expected: /^\s*left\s*:(?: |$)(.*)$/,
    actual: /^\s*right\s*:(?: |$)(.*)$/,
    sides: { minus: "left", plus: "right" },
  },
];

/** Two values, each behind its label or below it. */
function readPair(lines: readonly string[]): Diff | null {
  for (const { expected, actual, sides } of LABELS) {
    const [at, other] = [lines.findIndex((line) => expected.test(line)), lines.findIndex((line) => actual.test(line))];
    if (at === -1 || other === -1 || Math.abs(at - other) > MAX_LINES) continue;
    const isLabel = (line: string) => expected.test(line) || actual.test(line);
    const valueAt = (index: number, label: RegExp) => {
      const value = [label.exec(lines[index]!)![1]!];
      for (const line of lines.slice(index + 1, index + MAX_LINES)) {
        if (!/\S/.test(line) || isLabel(line) || isFrame(line) || /^\s*[A-Z][\w ]{0,30}:(?:\s|$)/.test(line)) break;
        value.push(line);
      }
      return dedent(value);
    };
    return { ...sides, lines: compare(valueAt(at, expected), valueAt(other, actual)) };
  }
  return null;
}

function dedent(value: readonly string[]): string[] {
  const kept = value[0]!.trim() === "" ? value.slice(1) : value;
  const indents = kept.slice(kept === value ? 1 : 0).map((line) => line.search(/\S/));
  const least = indents.length === 0 ? 0 : Math.min(...indents);
  return kept.map((line, index) => (index === 0 && kept === value ? line : line.slice(least)).trimEnd());
}

/** A value on a line: a literal, and not words such as "defined" or "a string". */
const LITERAL = /^(?:["'`{[<(\-\d]|(?:true|false|null|undefined|NaN|None|True|False|nil)\b|[A-Z]\w* ?[{[(])/;

type Sentence = { pattern: RegExp; expected: 1 | 2; sides: { minus: string; plus: string } };
const SENTENCES: readonly Sentence[] = [
  // JUnit: expected: <1> but was: <2>
  { pattern: /\bexpected:? ?<(.{0,1000}?)> but was:? ?<(.{0,1000})>/, expected: 1, sides: EXPECTED },
  // Hamcrest, NUnit on one line
  { pattern: /\bExpected: (.{1,1000}?),? {1,8}[Bb]ut was: (.{1,1000})$/, expected: 1, sides: EXPECTED },
  // Chai, Vitest: expected 1 to deeply equal 2
  {
    pattern:
      /\bexpected (.{1,1000}?) to (?:(?:deep(?:ly)?|strict(?:ly)?|loose(?:ly)?|be) ){0,2}(?:equal(?: to)?|eql|be) (.{1,1000}?)(?: \/\/ Object\.is equality)?$/,
    expected: 2,
    sides: EXPECTED,
  },
  {
    pattern: /Failed asserting that (.{1,1000}?) (?:matches expected|is identical to) (.{1,1000}?)\.?$/,
    expected: 2,
    sides: EXPECTED,
  },
  // pytest: assert 1 == 2
  { pattern: /^\s*(?:AssertionError: )?assert (.{1,1000}?) == (.{1,1000})$/, expected: 2, sides: EXPECTED },
  // Node: 1 !== 2
  { pattern: /^\s*(\S.{0,1000}?) !== (\S.{0,1000})$/, expected: 2, sides: EXPECTED },
  // unittest: AssertionError: 1 != 2
  {
    pattern: /^\s*AssertionError: (.{1,1000}?) != (.{1,1000}?)(?: : .{0,1000})?$/,
    expected: 1,
    sides: { minus: "first", plus: "second" },
  },
];

/** Both sides in a sentence. */
function readSentence(lines: readonly string[]): Diff | null {
  for (const line of lines.slice(0, 12)) {
    if (isFrame(line)) return null;
    for (const { pattern, expected, sides } of SENTENCES) {
      const match = pattern.exec(line);
      if (!match) continue;
      const [one, two] = [match[expected]!.trim(), match[3 - expected]!.trim()];
      const isUnquoted = pattern !== SENTENCES[0]!.pattern && pattern !== SENTENCES[1]!.pattern;
      if (isUnquoted && !LITERAL.test(one)) continue;
      return { ...sides, lines: compare([one], [two]) };
    }
  }
  return null;
}

/** The longest common lines stay, the others are on one side. */
function compare(expected: readonly string[], actual: readonly string[]): DiffLine[] {
  const [a, b] = [expected.slice(0, MAX_LINES), actual.slice(0, MAX_LINES)];
  const lengths = Array.from({ length: a.length + 1 }, () => new Array<number>(b.length + 1).fill(0));
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      lengths[i]![j] = a[i] === b[j] ? lengths[i + 1]![j + 1]! + 1 : Math.max(lengths[i + 1]![j]!, lengths[i]![j + 1]!);
  const lines: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push({ sign: " ", text: a[i]! });
      [i, j] = [i + 1, j + 1];
    } else if (i < a.length && (j === b.length || lengths[i + 1]![j]! >= lengths[i]![j + 1]!))
      lines.push({ sign: "-", text: a[i++]! });
    else lines.push({ sign: "+", text: b[j++]! });
  }
  return lines;
}
