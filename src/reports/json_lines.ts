/** Reports that hold one JSON object per line, beside lines that other programs write. */

import { isObject, type JsonObject } from "./fields.ts";
import { parseLine } from "./json.ts";
import { linesOf, plural } from "./text.ts";

/** Calls `read` with each object, and `readOther` with each other line. `isCut`: the last line begins like an object and does not end. */
export function readJsonLines(
  text: string,
  read: (value: JsonObject) => void,
  readOther?: (line: string) => void,
): { warnings: string[]; isCut: boolean } {
  let [broken, isCut] = [0, false];
  for (const line of linesOf(text)) {
    if (!line.startsWith("{")) {
      if (line !== "") isCut = false;
      readOther?.(line);
      continue;
    }
    const value = parseLine(line);
    isCut = !isObject(value);
    if (isObject(value)) read(value);
    else broken++;
  }
  return { warnings: broken > 0 ? [`Left out ${plural(broken, "line")} of malformed JSON`] : [], isCut };
}

/** Characters in which the first object begins, if there is one. */
const MAX_HEAD = 200_000;

/** The beginning of the first line that begins like an object, after at most 1,000 others. */
export const firstJsonLine = (text: string): string =>
  /^(?:(?!\{).*\n){0,1000}(\{.{0,5000})/.exec(text.slice(0, MAX_HEAD))?.[1] ?? "";

/** Whether the text is one object, and then more that is on lines of its own: it is no JSON document. */
export function isJsonLines(text: string): boolean {
  const end = text.indexOf("\n");
  if (end === -1 || end > MAX_HEAD || !text.startsWith("{") || text.slice(end, end + MAX_HEAD).trim() === "")
    return false;
  return isObject(parseLine(text.slice(0, end)));
}
