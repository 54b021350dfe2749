/** The state of a branch: whether it is red, since when, and which tasks make it so. */

import * as v from "valibot";
import { branchName, count, described, sample, taskSlug, time, uuid } from "./fields.ts";

const branchTask = v.strictObject({
  slug: taskSlug,
  status: v.pipe(
    v.picklist(["passed", "failed", "incomplete", "timed_out"]),
    v.description(
      "The latest result of the task on the branch; a rerun counts for the build that it repeats. incomplete: shards are " +
        "missing; timed_out: it was announced and never reported",
    ),
  ),
  since: described(
    time,
    "When it ended in the first build from which on it has always passed, or never; among the newest 200 executions of the branch",
  ),
  executionId: described(uuid, "That build"),
  lastExecutionId: described(uuid, "The execution of its latest result"),
  passed: described(count, "Test cases that passed in that", 41),
  failed: described(count, "Test cases that failed in that", 1),
});

export const branchState = v.strictObject({
  branch: described(v.string(), "The branch", "main"),
  state: v.pipe(
    v.nullable(v.picklist(["passed", "failed"])),
    v.description(
      "failed: the latest result of at least one task is not passed; null: no task of the branch has a result",
    ),
  ),
  since: described(
    v.nullable(time),
    "Failed: since the task that has been red for longest is red; passed: since the last of them is green",
  ),
  executionId: described(v.nullable(uuid), "The build in which that began"),
  tasks: described(
    v.array(branchTask),
    "The tasks of the branch, the red ones first, those that have been so for longest first",
  ),
  missing: described(
    v.array(branchTask),
    "Tasks that do not count any more: they have no result in the branch's newest 50 builds, or none in the 14 days before " +
      "its newest build",
  ),
  sample,
});
export type BranchStateAnswer = v.InferOutput<typeof branchState>;

export const stateFilter = v.strictObject({
  branch: described(v.optional(branchName), "The branch; default: the project's default branch", "main"),
});
