/** Result words that a format does not define: a test case with one counts as failed, and the upload is warned. */

import { cut, plural } from "./text.ts";

/** Words that a warning quotes, and characters of each. */
const MAX_WORDS = 5;
const MAX_WORD_LENGTH = 50;

export type UnknownResults = ReturnType<typeof createUnknownResults>;

/** Counts unknown words, for one warning each. */
export function createUnknownResults() {
  const counts = new Map<string, number>();
  let others = 0;
  return {
    count(word: string): void {
      const short = cut(word, MAX_WORD_LENGTH);
      if (counts.has(short) || counts.size < MAX_WORDS) counts.set(short, (counts.get(short) ?? 0) + 1);
      else others++;
    },
    warnings: (): string[] => [
      ...[...counts].map(([word, n]) => `The result "${word}" is unknown: ${plural(n, "test case")} counted as failed`),
      ...(others > 0 ? [`Other unknown results: ${plural(others, "test case")} counted as failed`] : []),
    ],
    /** Where only the totals of a report tell what a word means. */
    openWarnings: (): string[] => [
      ...[...counts].map(
        ([word, n]) => `The ${word} is unknown: ${plural(n, "test case")} passed unless the totals say otherwise`,
      ),
      ...(others > 0
        ? [`Other unknown words: ${plural(others, "test case")} passed unless the totals say otherwise`]
        : []),
    ],
  };
}
