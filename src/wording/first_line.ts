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

/** Matches a line that only names the kind of error, such as "AssertionError", "java.lang.AssertionError:" or "Error". */
const ONLY_KIND = /^(?:[\w$.]*(?:Error|Exception|Failure)|Failed|FAIL)\s*:?$/;
/** Matches a frame of a stack. */
const FRAME = /^\s*(?:at |File ")/;

/** Returns the first line that says what went wrong; a line that only names the kind of error does so if nothing but a stack follows. */
export function messageLineOf(text: string | null): string {
  const first = firstLineOf(text);
  if (!ONLY_KIND.test(first)) return first;
  const next = firstLineOf(text!.slice(text!.indexOf(first) + first.length));
  return next === "" || FRAME.test(next) ? first : next;
}

/** As `messageLineOf`, without colours and at most 300 characters; "" if there is no line. */
export const firstPlainLine = (text: string | null): string =>
  messageLineOf(stripAnsi((text ?? "").slice(0, 4_000))).slice(0, 300);
