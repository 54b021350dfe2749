/** The state of a branch: whether it is red, since when, and which tasks make it so. */

import * as v from "valibot";
import { branchName, count, described, sample, taskSlug, time, uuid } from "./fields.ts";

const isLonger = described(
  v.optional(v.literal(true)),
  "Present only if this may have begun before `since`: only the newest 200 executions of the branch are read, and in all of " +
    "them it is so",
);

const branchTask = v.strictObject({
  slug: taskSlug,
  status: v.pipe(
    v.picklist(["passed", "failed", "incomplete", "timed_out"]),
    v.description(
      "The latest result of the task on the branch; the results of a rerun are put over those of the build that it repeats. incomplete: shards are " +
        "missing; timed_out: it was announced but never reported",
    ),
  ),
  since: described(
    time,
    "When the first build of the current series of equal results ended; among the newest 200 executions of the " +
      "branch",
  ),
  executionId: described(uuid, "That build"),
  isLonger,
  lastExecutionId: described(uuid, "The execution of the latest result"),
  passed: described(count, "Test cases that passed in this result", 41),
  failed: described(count, "Test cases that failed in this result", 1),
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
    "For failed: since when the task that has been red for longest is red; for passed: since when the last task is " +
      "green",
  ),
  executionId: described(v.nullable(uuid), "The build in which this began"),
  isLonger,
  tasks: described(
    v.array(branchTask),
    "The tasks of the branch, red ones first, ordered by how long they have been red",
  ),
  missing: described(
    v.array(branchTask),
    "Tasks that no longer count: they have no result in the branch's newest 50 builds, or none in the 14 days before " +
      "its newest build",
  ),
  sample,
});
export type BranchStateAnswer = v.InferOutput<typeof branchState>;

export const stateFilter = v.strictObject({
  branch: described(v.optional(branchName), "The branch; default: the project's default branch", "main"),
});
