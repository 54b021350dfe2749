/** Sentences about durations that are longer than usual. */

import type { Slower } from "../rules/slower.ts";
import { caseTitle } from "./case_title.ts";
import { toCount, toDuration } from "./numbers.ts";
import { singleLine } from "./single_line.ts";

/** Returns "6.2 s, usually 900 ms". */
export const slowerWords = (durationMs: number, { usualMs }: Pick<Slower, "usualMs">): string =>
  `${toDuration(durationMs)}, usually ${toDuration(usualMs)}`;

type NamedSlower = Parameters<typeof caseTitle>[0] & Pick<Slower, "usualMs"> & { durationMs: number };

/** Returns "Slower than usual: cart > adds an item (6.2 s, usually 900 ms) and 2 more"; undefined if nothing was slower. */
export function slowerLine(tests: readonly NamedSlower[]): string | undefined {
  const [first, ...others] = tests;
  if (!first) return undefined;
  const more = others.length === 0 ? "" : ` and ${toCount(others.length)} more`;
  return `Slower than usual: ${singleLine(caseTitle(first))} (${slowerWords(first.durationMs, first)})${more}`;
}
