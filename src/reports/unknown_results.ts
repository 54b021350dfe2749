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
  const describe = (show: (word: string) => string, verdict: string): string[] => [
    ...[...counts].map(([word, n]) => `The ${show(word)} is unknown: ${plural(n, "test case")} ${verdict}`),
    ...(others > 0 ? [`Other unknown results: ${plural(others, "test case")} ${verdict}`] : []),
  ];
  return {
    count(word: string): void {
      const short = cut(word, MAX_WORD_LENGTH);
      if (counts.has(short) || counts.size < MAX_WORDS) counts.set(short, (counts.get(short) ?? 0) + 1);
      else others++;
    },
    warnings: (): string[] => describe((word) => `result "${word}"`, "counted as failed"),
    /** Warnings for words that the report does not explain, where only its totals tell what they mean. */
    openWarnings: (): string[] => describe((word) => word, "passed unless the totals say otherwise"),
  };
}
