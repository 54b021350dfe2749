/** Finds misspelt names: environment variables that are probably meant for Assay, commands and options. */

/** Short names such as HOST and PORT are similar to too many others. */
const MIN_LENGTH = 8;
const MAX_LENGTH = 64;
const MAX_EDITS = 2;

/** Counts the characters that are inserted, deleted or replaced (Levenshtein distance). */
function countEdits(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const [index, letter] of [...a].entries()) {
    const before = row;
    row = [index + 1];
    for (let at = 0; at < b.length; at++)
      row.push(Math.min(row[at]! + 1, before[at + 1]! + 1, before[at]! + (letter === b[at] ? 0 : 1)));
  }
  return row[b.length]!;
}

/** Case, underscores and the prefix ASSAY_ make no difference. */
const toComparable = (name: string): string => name.toUpperCase().replace(/^ASSAY_|_/g, "");

export type Misspelt = { name: string; meant: string };

export function findMisspelt(names: readonly string[], known: readonly string[]): Misspelt[] {
  const long = known.filter((name) => toComparable(name).length >= MIN_LENGTH);
  return names.flatMap((name) => {
    if (known.includes(name) || name.length > MAX_LENGTH) return [];
    const meant = long.find((other) => countEdits(toComparable(name), toComparable(other)) <= MAX_EDITS);
    return meant === undefined ? [] : [{ name, meant }];
  });
}

const SHORT_LENGTH = 5;

/** Counts edits, and two neighbours that were swapped as one. */
function countSlips(a: string, b: string): number {
  const edits = countEdits(a, b);
  const sort = (word: string) => [...word].sort().join("");
  return edits === 2 && sort(a) === sort(b) ? 1 : edits;
}

/** Returns the name that is most similar to the given one, or the first that begins with it, or undefined. */
export function findNearest(given: string, names: readonly string[]): string | undefined {
  const toWord = (name: string) => name.replace(/^-+/, "");
  const word = toWord(given);
  if (word.length > MAX_LENGTH) return undefined;
  const slips = names.map((name) => countSlips(word, toWord(name)));
  const least = Math.min(...slips);
  if (least <= (word.length < SHORT_LENGTH ? 1 : MAX_EDITS)) return names[slips.indexOf(least)];
  return word.length < SHORT_LENGTH - 1 ? undefined : names.find((name) => toWord(name).startsWith(word));
}

export const toMisspeltText = ({ name, meant }: Misspelt): string => `The variable ${name} is not known; ${meant}?`;
