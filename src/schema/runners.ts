/** Runners of a team, as they are listed and paused. */

import * as v from "valibot";
import { count, described, executionId, slug, text, time, uuid } from "./fields.ts";
import { listPage, pageQuery } from "./page.ts";
import { shardPlace } from "./leases.ts";

const runner = v.strictObject({
  name: described(v.string(), "The name of the runner", "build-3/1"),
  labels: described(v.array(v.string()), "The labels of the runner", ["linux"]),
  taskSlugs: v.pipe(
    v.nullable(v.array(v.string())),
    v.description("The tasks that it can run; null: every task"),
    v.examples([["unit"]]),
  ),
  free: v.pipe(count, v.description("The number of tasks that it could begin at its last request"), v.examples([1])),
  seenAt: described(time, "The time of its last request"),
  online: described(
    v.boolean(),
    "Whether it has made a request within the last two minutes and has not ended since",
    true,
  ),
  version: described(v.nullable(v.string()), "The version of the runner; null: unknown", "1.4.0"),
  paused: described(
    v.nullable(
      v.strictObject({
        reason: described(v.string(), "The reason", "Paused by Ann"),
        until: described(v.nullable(time), "When it gets tasks again; null: when it is resumed by hand"),
      }),
    ),
    "Present if the runner is paused: it gets no new tasks and finishes its current ones; null: not paused",
  ),
  leases: v.pipe(
    v.array(
      v.strictObject({
        id: described(uuid, "The lease"),
        executionId,
        taskSlug: slug,
        shard: described(v.nullable(v.strictObject(shardPlace)), "The slice of the task; null: the whole task"),
        startedAt: described(v.nullable(time), "When the runner began it; null: not yet"),
      }),
    ),
    v.description("The leases that it holds"),
  ),
});
export type Runner = v.InferOutput<typeof runner>;
/** Pauses a runner, or resumes it. */
export const runnerPause = v.strictObject({
  runner: described(text(200), "Its name", "build-3/1"),
  paused: described(v.boolean("expected true or false"), "Whether the runner is paused; false resumes it", true),
  reason: described(v.optional(text(200)), "The reason, shown to people", "The disk is exchanged"),
});
export const runnerPage = listPage(runner);
export const runnerFilter = v.strictObject(pageQuery);
