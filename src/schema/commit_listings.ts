/** The commits of a range, as a runner lists them for the search for a culprit. */

import * as v from "valibot";
import { listOf } from "./bounded.ts";
import {
  MAX_COMMIT_AUTHOR,
  MAX_COMMIT_FILES,
  MAX_COMMIT_PATH,
  MAX_COMMIT_SUBJECT,
  MAX_RANGE_COMMITS,
} from "./culprit_searches.ts";
import { described, toStorable } from "./fields.ts";

const HASH = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;
const EXPECTED_HASH = "expected a full commit hash in lower case";
const storedText = (max: number) => {
  const expected = `expected a text of at most ${max} characters`;
  return v.pipe(v.string(expected), v.maxLength(max, expected), v.transform(toStorable));
};

const rangeCommit = v.strictObject({
  hash: described(
    v.pipe(v.string(EXPECTED_HASH), v.regex(HASH, EXPECTED_HASH)),
    "The full hash",
    "c4d5e6f0127a8b9c0d1e2f3a4b5c6d7e8f901234",
  ),
  author: described(storedText(MAX_COMMIT_AUTHOR), "The name of the author, at most 200 characters", "Ada"),
  date: described(storedText(40), "The time of the commit, ISO 8601", "2026-01-31T10:00:00+01:00"),
  subject: described(
    storedText(MAX_COMMIT_SUBJECT),
    "The first line of the message, at most 500 characters",
    "Round prices",
  ),
  files: described(
    listOf(storedText(MAX_COMMIT_PATH), {
      max: MAX_COMMIT_FILES,
      expected: "expected a list of paths",
      tooMany: `expected at most ${MAX_COMMIT_FILES} paths`,
    }),
    "The first files that it changes, compared with its first parent, at most 200",
    ["src/cart.ts"],
  ),
});

export const commitListing = v.strictObject({
  commits: described(
    v.pipe(
      listOf(rangeCommit, {
        max: MAX_RANGE_COMMITS + 1,
        expected: "expected a list of commits",
        tooMany: `expected at most ${MAX_RANGE_COMMITS + 1} commits`,
      }),
      v.minLength(2, "expected at least two commits"),
    ),
    "The good commit, and after it the commits of the range along first parents, the oldest first; at most 1,025",
  ),
});
