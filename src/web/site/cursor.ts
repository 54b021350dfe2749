/** Reads and writes the cursor of a list: the sort keys of the last row of the page before, joined by `~`. */

import * as v from "valibot";
import { fail } from "../../http/problem.ts";
import { uuid } from "../../schema/fields.ts";

/** The possible types of a part of a cursor. */
export const PART = {
  number: (text: string) => /^\d{1,10}$/.test(text) && Number(text) <= 2_147_483_647,
  real: (text: string) => /^\d{1,10}(?:\.\d{1,20})?(?:e-?\d\d?)?$/.test(text),
  time: (text: string) =>
    text === "-infinity" ||
    (/^2\d{3}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?\+00$/.test(text) && !Number.isNaN(Date.parse(text))),
  id: (text: string) => /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text),
  none: (text: string) => text === "",
} as const;

export const writeCursor = (parts: readonly string[]): string => parts.join("~");

/** Returns undefined for the first page. Throws VALIDATION_ERROR if a part does not have its type. */
export function readCursor(
  cursor: string | undefined,
  parts: readonly ((text: string) => boolean)[],
): string[] | undefined {
  if (cursor === undefined) return undefined;
  const texts = cursor.split("~");
  if (texts.length !== parts.length || !parts.every((isPart, index) => isPart(texts[index]!)))
    fail("VALIDATION_ERROR", `Cannot read "cursor": expected a link of this list`);
  return texts;
}

const EXPECTED_PAGE = "expected the address of a next page";

/** The cursor of a list that is sorted by name: an id and the name of the last row. Undefined for the first page. */
export const idAndNameCursor = v.pipe(
  v.string(EXPECTED_PAGE),
  v.transform((text) => /^([0-9a-f-]{36}) ([^]*)$/.exec(text)),
  v.check((match) => match === null || v.is(uuid, match[1]), EXPECTED_PAGE),
  v.transform((match) => (match === null ? undefined : { id: match[1]!, name: match[2]! })),
);
