/** Finds the line that stands for a whole text, such as a message or a stack, in a list or a title. */

/**
 * Returns the first line that is not blank, without blanks around it; "" if there is none. A line of more than `maxLength`
 * characters is cut and ends with "…".
 */
export function firstLineOf(text: string | null, maxLength = Infinity): string {
  const line = /\S.*/.exec(text ?? "")?.[0].trimEnd() ?? "";
  return line.length > maxLength ? `${line.slice(0, maxLength)}…` : line;
}
