/** Finds environment variables that are probably meant for Assay, but have a wrong name, so that a default applies instead. */

/** Short names such as HOST and PORT are similar to too many others. */
const MIN_LENGTH = 8;
const MAX_EDITS = 2;

/** How many characters are inserted, deleted or replaced (Levenshtein distance). */
function editsBetween(a: string, b: string): number {
  let before = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const replaced = before[column - 1]! + (a[row - 1] === b[column - 1] ? 0 : 1);
      current.push(Math.min(current[column - 1]! + 1, before[column]! + 1, replaced));
    }
    before = current;
  }
  return before[b.length]!;
}

/** Case, underscores and the prefix ASSAY_ make no difference. */
const toComparable = (name: string): string =>
  name
    .toUpperCase()
    .replace(/^ASSAY_/, "")
    .replaceAll("_", "");

export type Misspelt = { name: string; meant: string };

export function findMisspelt(names: readonly string[], known: readonly string[]): Misspelt[] {
  const texts = known
    .map((name) => ({ name, text: toComparable(name) }))
    .filter(({ text }) => text.length >= MIN_LENGTH);
  return names.flatMap((name) => {
    const text = toComparable(name);
    if (known.includes(name) || text.length > 64) return [];
    const [nearest] = texts
      .map((other) => ({ name: other.name, edits: editsBetween(text, other.text) }))
      .sort((a, b) => a.edits - b.edits);
    return nearest && nearest.edits <= MAX_EDITS ? [{ name, meant: nearest.name }] : [];
  });
}

export const toMisspeltText = ({ name, meant }: Misspelt): string => `The variable ${name} is not known; ${meant}?`;
