/** Reads the search field of a list: words such as `is:flaky owner:"web team"`, and the rest is text. */

/** A word `key:value`, and where it is in the search. */
type Word<Condition> = { key: string; condition: Condition; start: number; end: number };

type Key<Condition> = {
  /** Describes the value in error messages. */
  expected: string;
  /** Undefined: the value is not one of the expected ones. */
  read: (value: string) => Condition | undefined;
  /** Several words with this key can all hold. */
  mayRepeat?: boolean;
};

export type Keys<Condition> = Readonly<Record<string, Key<Condition>>>;

export type Search<Condition> = {
  words: readonly Word<Condition>[];
  /** The parts between the words, as they were written. */
  rest: readonly string[];
  /** The text to look for; undefined: none. */
  text: string | undefined;
};

/** Says which word cannot be read, and what is expected instead. */
export type SearchProblem = { problem: string };

const KEY = /([a-z]+):/y;
const SPACE = /\s/;
const MAX_QUOTED = 60;

const shown = (word: string) =>
  JSON.stringify((word.length > MAX_QUOTED ? `${word.slice(0, MAX_QUOTED)}…` : word).toWellFormed());

/** Reads a text in quotation marks that begins at `start`. Undefined: it does not end, or more follows directly. */
function readQuoted(q: string, start: number): { value: string; end: number } | undefined {
  let value = "";
  for (let at = start + 1; at < q.length; at++) {
    const char = q[at]!;
    if (char === '"') return at + 1 === q.length || SPACE.test(q[at + 1]!) ? { value, end: at + 1 } : undefined;
    if (char === "\\" && (q[at + 1] === '"' || q[at + 1] === "\\")) at++;
    value += q[at]!;
  }
  return undefined;
}

function endOfWord(q: string, start: number): number {
  let end = start;
  while (end < q.length && !SPACE.test(q[end]!)) end++;
  return end;
}

/** Whether a colon before this character is part of a text, such as `std::vector`, `https://` or `C:\`. */
const continuesText = (next: string | undefined) =>
  next === undefined || SPACE.test(next) || next === ":" || next === "/" || next === "\\";

/** Reads a search in one pass. A search without words and quotation marks is a text as it is. */
export function readSearch<Condition>(q: string, keys: Keys<Condition>): Search<Condition> | SearchProblem {
  const words: Word<Condition>[] = [];
  const rest: string[] = [];
  const texts: string[] = [];
  let hasQuoted = false;
  for (let start = 0; start < q.length;) {
    if (SPACE.test(q[start]!)) {
      start++;
      continue;
    }
    KEY.lastIndex = start;
    const key = KEY.exec(q)?.[1];
    const valueStart = start + (key?.length ?? 0) + 1;
    const isKnown = key !== undefined && Object.hasOwn(keys, key) && q[valueStart] !== ":";
    if (key !== undefined && (isKnown || !continuesText(q[valueStart]))) {
      const quoted = q[valueStart] === '"' ? readQuoted(q, valueStart) : undefined;
      const end = quoted?.end ?? endOfWord(q, valueStart);
      const word = shown(q.slice(start, end));
      if (!isKnown)
        return {
          problem: `expected one of ${Object.keys(keys).join(", ")} before the colon of ${word}, or quotation marks around a text`,
        };
      if (q[valueStart] === '"' && !quoted) return { problem: `expected a quotation mark at the end of ${word}` };
      const value = quoted?.value ?? q.slice(valueStart, end);
      const condition = value === "" ? undefined : keys[key]!.read(value);
      if (condition === undefined) return { problem: `expected ${keys[key]!.expected} in ${word}` };
      words.push({ key, condition, start, end });
      start = end;
      continue;
    }
    const quoted = q[start] === '"' ? readQuoted(q, start) : undefined;
    const end = quoted?.end ?? endOfWord(q, start);
    rest.push(q.slice(start, end));
    texts.push(quoted?.value ?? q.slice(start, end));
    hasQuoted ||= quoted !== undefined;
    start = end;
  }
  const text = words.length === 0 && !hasQuoted ? q : texts.join(" ");
  return { words, rest, text: text === "" ? undefined : text };
}

/** Returns the conditions of a search, which must all be met. The text is the last one. */
export function readConditions<Condition>(
  q: string,
  keys: Keys<Condition>,
): { conditions: (Condition | { field: "text"; is: string })[] } | SearchProblem {
  const read = readSearch(q, keys);
  if ("problem" in read) return read;
  const { words, text } = read;
  const conditions = words.map(({ condition }) => condition);
  return { conditions: text === undefined ? conditions : [...conditions, { field: "text", is: text }] };
}

const quote = (value: string) => `"${value.replaceAll(/["\\]/g, "\\$&")}"`;

/** Returns the word for a value, in quotation marks if it needs them. */
export const toSearchWord = (key: string, value: string): string =>
  `${key}:${/^[":]|\s/.test(value) ? quote(value) : value}`;

/** Returns a search that finds this text, whatever it contains. */
export const quoteSearchText = (text: string): string => (/[":]/.test(text) ? quote(text) : text);

/**
 * Adds words to a search. Each replaces the words that say something else about the same field, unless its key may be repeated. A search that
 * cannot be read is kept as it is.
 */
export function addSearchWords<Condition extends { field: string }>(
  q: string,
  keys: Keys<Condition>,
  added: readonly string[],
): string {
  const fieldOf = (word: Word<Condition>) =>
    keys[word.key]!.mayRepeat ? `${word.key} ${JSON.stringify(word.condition)}` : word.condition.field;
  const [search, extra] = [readSearch(q, keys), readSearch(added.join(" "), keys)];
  if ("problem" in search || "problem" in extra) return [q, ...added].join(" ").trim();
  const replaced = new Set(extra.words.map(fieldOf));
  const kept = search.words.filter((word) => !replaced.has(fieldOf(word)));
  return [...kept.map(({ start, end }) => q.slice(start, end)), ...added, ...search.rest].join(" ");
}

/** A comparison, as SQL writes it. */
export type Sign = ">" | ">=" | "<" | "<=" | "=";

/** Reads `>2`, `>=2`, `<2`, `<=2`, and `2` for "=". `pattern`: of what follows the sign. */
export function readComparison(value: string, pattern: RegExp): { sign: Sign; operand: RegExpExecArray } | undefined {
  const [, sign, operand] = /^([<>]=?|)(.*)$/s.exec(value)!;
  const read = pattern.exec(operand!);
  return read ? { sign: (sign || "=") as Sign, operand: read } : undefined;
}

/** Reads one of the values, or several separated by commas. */
export function readListed<const Value extends string>(value: string, values: readonly Value[]): Value[] | undefined {
  const parts = [...new Set(value.split(","))];
  return parts.every((part): part is (typeof values)[number] => (values as readonly string[]).includes(part))
    ? (parts as Value[])
    : undefined;
}
