/** The project itself. */

import * as v from "valibot";
import { listOf } from "./bounded.ts";
import { GATE_SHARE_MEANING, gateShare } from "./gate.ts";
import { createdAt, described, integer, patchOf, text, timeoutMinutes, uuid } from "./fields.ts";

const MAX_PATTERNS = 20;

export const project = v.strictObject({
  id: described(uuid, "The id of the project"),
  name: described(v.string(), "The name of the project", "shop"),
  defaultBranch: described(
    v.string(),
    "The branch that others are compared with, and whose failures open bug reports. Default: main",
    "main",
  ),
  longLivedBranches: described(
    v.array(v.string()),
    "Long-lived branches other than the default branch, such as release branches; each is compared with its own " +
      "builds. * stands for " +
      "any text",
    ["release/*"],
  ),
  executionTimeoutMinutes: described(
    v.number(),
    "The default time in minutes that an execution waits for its next report. Default: 30",
    30,
  ),
  retentionDays: described(
    v.number(),
    "The number of days that results are kept; 0: forever. Counts of runs are kept longer (EXECUTION_RETENTION_DAYS)",
    90,
  ),
  gateShare: described(v.number(), `${GATE_SHARE_MEANING}. Default: 0.2`, 0.2),
  createdAt,
});
export type Project = v.InferOutput<typeof project>;

const branchPattern = v.pipe(
  text(200),
  v.check((pattern) => !/^\*+$/.test(pattern), "expected a pattern that does not match every branch"),
);

export const projectPatch = patchOf({
  name: described(v.optional(text(200)), "The name of the project", "shop"),
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
    "Long-lived branches other than the default branch, such as release branches; each is compared with its own " +
      "builds. * stands for " +
      "any text",
    ["release/*", "hotfix/*"],
  ),
  executionTimeoutMinutes: described(
    v.optional(timeoutMinutes),
    "The default time in minutes that an execution waits for its next report. Then it ends, as timed_out if a task " +
      "has not reported",
    45,
  ),
  retentionDays: described(
    v.optional(v.nullable(integer(0, 36_500))),
    "The number of days that results are kept; 0: forever; null: the setting of the server (RETENTION_DAYS)",
    90,
  ),
  gateShare: described(v.optional(gateShare), `${GATE_SHARE_MEANING}. Applies to future decisions`, 0.05),
});
export type ProjectPatch = v.InferOutput<typeof projectPatch>;
