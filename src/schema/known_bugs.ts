/** The bug report that failures of an execution have joined, as causes, comments and messages mention it. */

import * as v from "valibot";
import { bugStatus } from "./bug_reports.ts";
import { culpritSummary } from "./culprit_searches.ts";
import { count, described, uuid } from "./fields.ts";

export const joinedBug = v.strictObject({
  id: described(uuid, "The id of the bug report"),
  number: described(count, "Its number in the project", 17),
  title: described(v.string(), "Its title", "expected # items, got #"),
  status: described(bugStatus, "Its status", "open"),
  known: described(v.boolean(), "It is open or in progress, and this execution neither opened nor reopened it", true),
  culprit: described(
    v.nullable(
      v.strictObject({
        searchId: culpritSummary.entries.searchId,
        commit: described(v.string(), "The hash", "c4d5e6f0127a"),
        author: described(v.string(), "The author", "Ada"),
        summary: described(
          v.string(),
          "The proof in one sentence",
          "c4d5e6f012 by Ada broke it: it failed there 2 of 2 times",
        ),
      }),
    ),
    "The commit that is proven to have broken its test; null: none",
  ),
});
export type JoinedBug = v.InferOutput<typeof joinedBug>;

/** A bug that failures have joined, with the number of its failures in the execution. */
export type CountedBug = JoinedBug & { failed: number };
