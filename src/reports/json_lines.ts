/** Reports that hold one JSON object per line, beside lines that other programs write. */

import { isObject, type JsonObject } from "./fields.ts";
import { linesOf, plural } from "./text.ts";

/** Calls `read` with each object, and `readOther` with each other line. Returns a warning where lines begin like one and are none. */
export function readJsonLines(
  text: string,
  read: (value: JsonObject) => void,
  readOther?: (line: string) => void,
): string[] {
  let broken = 0;
  for (const line of linesOf(text)) {
    if (!line.startsWith("{")) {
      readOther?.(line);
      continue;
    }
    const value = parseLine(line);
    if (isObject(value)) read(value);
    else broken++;
  }
  return broken > 0 ? [`Left out ${plural(broken, "line")} of malformed JSON`] : [];
}

/** `null` for what is no JSON. */
export function parseLine(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}

/** The first line that begins like an object, after at most 1,000 others. */
export const firstJsonLine = (text: string): string => /^(?:(?!\{).*\n){0,1000}(\{.{0,5000})/.exec(text)?.[1] ?? "";
