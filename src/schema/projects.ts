/** The project itself. */

import * as v from "valibot";
import { listOf } from "./bounded.ts";
import { createdAt, described, integer, patchOf, text, timeoutMinutes, uuid } from "./fields.ts";

const MAX_PATTERNS = 20;

export const project = v.strictObject({
  id: described(uuid, "The id of the project"),
  name: described(v.string(), "What the project is called", "shop"),
  defaultBranch: described(
    v.string(),
    "The branch that others are compared with, and whose failures open bug reports; main where nobody has said otherwise",
    "main",
  ),
  longLivedBranches: described(
    v.array(v.string()),
    "Branches beside the default one that live long, as those of releases: each is compared with its own builds. * stands for " +
      "any text",
    ["release/*"],
  ),
  executionTimeoutMinutes: described(
    v.number(),
    "How many minutes an execution may wait for its next report, where it does not say so itself; 30 where nobody has said otherwise",
    30,
  ),
  retentionDays: described(v.number(), "How many days results are kept; 0: for ever. Runs keep their counts", 90),
  createdAt,
});
export type Project = v.InferOutput<typeof project>;

const branchPattern = v.pipe(
  text(200),
  v.check((pattern) => !/^\*+$/.test(pattern), "expected a pattern that does not match every branch"),
);

export const projectPatch = patchOf({
  name: described(v.optional(text(200)), "What the project is called", "shop"),
  defaultBranch: described(
    v.optional(text(500)),
    "The branch that others are compared with, and whose failures open bug reports",
    "main",
  ),
  longLivedBranches: described(
    v.optional(
      listOf(branchPattern, {
        max: MAX_PATTERNS,
        expected: "expected a list of patterns",
        tooMany: `expected at most ${MAX_PATTERNS} patterns`,
      }),
    ),
    "Branches beside the default one that live long, as those of releases: each is compared with its own builds. * stands for " +
      "any text",
    ["release/*", "hotfix/*"],
  ),
  executionTimeoutMinutes: described(
    v.optional(timeoutMinutes),
    "How many minutes an execution may wait for its next report, where it does not say so itself; then it ends, as timed_out " +
      "where a task has not reported",
    45,
  ),
  retentionDays: described(
    v.optional(v.nullable(integer(0, 36_500))),
    "How many days results are kept; 0: for ever; null: what the server is configured for (RETENTION_DAYS)",
    90,
  ),
});
export type ProjectPatch = v.InferOutput<typeof projectPatch>;
