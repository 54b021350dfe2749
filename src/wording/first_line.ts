/** Finds the line that stands for a whole text, such as a message or a stack, in a list or a title. */

import { stripAnsi } from "../rules/ansi.ts";

/**
 * Returns the first line that is not blank, without blanks around it; "" if there is none. A line of more than `maxLength`
 * characters is cut and ends with "…".
 */
export function firstLineOf(text: string | null, maxLength = Infinity): string {
  const line = /\S.*/.exec(text ?? "")?.[0].trimEnd() ?? "";
  return line.length > maxLength ? `${line.slice(0, maxLength)}…` : line;
}

/** Returns the first line that is not blank, without colours and at most 300 characters; "" if there is none. */
export const firstPlainLine = (text: string | null): string =>
  firstLineOf(stripAnsi((text ?? "").slice(0, 4_000))).slice(0, 300);
