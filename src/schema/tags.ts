/** Tags of uploads, such as browser:webkit, in parameters and answers. */

import * as v from "valibot";
import { described, isStorable, mayBeEmpty, text } from "./fields.ts";

/** Maximum number of tags of one upload. */
export const MAX_TAGS = 8;

/** No comma and no bracket: both separate tags in the name of a run. */
const TAG = /^[A-Za-z0-9][\w.-]{0,31}:[^\s,[\]](?:[^\p{Cc},[\]]{0,62}[^\s,[\]])?$/u;

export const isTag = (text: string): boolean => TAG.test(text) && isStorable(text);

export const keyOfTag = (tag: string): string => tag.slice(0, tag.indexOf(":"));

const EXPECTED_TAG =
  "expected a tag such as browser:webkit: a key of up to 32 letters, digits, _ . and -, a colon, and a value of up to " +
  "64 characters without , [ and ]";

const isDistinct = (tags: readonly string[]): boolean => new Set(tags.map(keyOfTag)).size === tags.length;

/** Returns distinct tags in alphabetical order; empty ones are omitted. */
export const splitTags = (text: string): string[] => {
  const tags = text.split(",").map((tag) => tag.trim());
  return [...new Set(tags.filter((tag) => tag !== ""))].sort();
};

export const tagsText = v.pipe(
  v.string(EXPECTED_TAG),
  v.maxLength(2_000, EXPECTED_TAG),
  v.transform(splitTags),
  v.check((tags: string[]) => tags.every(isTag), EXPECTED_TAG),
  v.check((tags: string[]) => tags.length <= MAX_TAGS, `expected at most ${MAX_TAGS} tags`),
  v.check((tags: string[]) => isDistinct(tags), "expected one value for each key"),
  v.metadata({
    isRepeatable: true,
    openapi: { type: "array", items: { type: "string", pattern: "^[A-Za-z0-9][\\w.-]{0,31}:[^,\\[\\]]{1,64}$" } },
  }),
);

/** A query parameter or form field that may be repeated. */
export const tagParameter = (description: string) =>
  described(v.optional(tagsText), `${description}; may be repeated`, ["browser:webkit"]);

/** A filter of a page; `splitTags` reads it. */
export const tagFilter = mayBeEmpty(
  v.pipe(
    text(600),
    v.check((given) => splitTags(given).every(isTag), EXPECTED_TAG),
  ),
);

/** Tags in answers. */
export const tags = described(
  v.array(v.string()),
  "The tags of this variant of the task, in alphabetical order; empty: it has none",
  [],
);

export const onlyWith = described(
  v.array(v.string()),
  "The tags of exactly those variants in which it failed, if it passed in all others; empty: no tags explain it",
  ["browser:webkit"],
);
