/** Names of tests with parts that were drawn for one run: dates, ids, seeds. The test is the same under its next name. */

import { plainWord } from "./randomness.ts";

/** Placeholders for drawn parts in the name of a test that was seen under several names. */
export const DRAWN_PART = /<(?:time|id|n)>/g;

export const isPlainName = (name: string): boolean => name.search(DRAWN_PART) !== -1;

const PARTS: [RegExp, string | ((...match: string[]) => string)][] = [
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, "<id>"],
  [/(?<!\d)\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?)?(?!\d)/g, "<time>"],
  [/(?<!\d)(?:19|20)\d\d([./])\d\d\1\d\d(?!\d)/g, "<time>"],
  [/(?<![\d:])\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d{1,9})?(?![\d:])/g, "<time>"],
  [/\b0x[0-9a-f]+\b/gi, "<id>"],
];
/** A number behind these is one of many, however small it is. */
const INSTANCE =
  /((?<![A-Za-z])(?:seed|id|run|build|order|user|request|session|job|attempt|timestamp|pid|nonce|rand(?:om)?)["']?(?:[ _=:#-]|: )?)(\d+)(?![A-Za-z0-9.])/gi;
const WORD = /<[a-z]+>|[A-Za-z0-9][A-Za-z0-9]*/g;
/** A number of fewer digits is a quantity that a person has chosen. */
const MIN_DRAWN_DIGITS = 4;
const MAX_NAME = 2_000;

/**
 * Replaces drawn parts of a name: "total[seed=48213]" → "total[seed=<n>]". Returns null if there are none, or if nothing else is left. A
 * part that a person has chosen may look drawn, so names are only treated as one test if one disappeared when another with the same plain
 * name appeared.
 */
export function plainName(name: string): string | null {
  if (name.length > MAX_NAME || !/\d/.test(name)) return null;
  let plain = name;
  for (const [pattern, replacement] of PARTS) plain = plain.replace(pattern, replacement as string);
  plain = plain.replace(INSTANCE, "$1<n>");
  plain = plain.replace(WORD, (word) => {
    if (word[0] === "<" || !/\d/.test(word)) return word;
    if (/^\d+$/.test(word)) return word.length >= MIN_DRAWN_DIGITS ? "<n>" : word;
    return plainWord(word);
  });
  return plain === name || !/[A-Za-z]{2}/.test(plain.replace(DRAWN_PART, "")) ? null : plain;
}
