/** The tasks of a new execution, as they may be given. */

import * as v from "valibot";
import { listOf } from "./bounded.ts";
import { described, distinct, integer, slug, text } from "./fields.ts";

/** A label that the runner must have to be given a task. */
export const taskLabel = described(
  v.pipe(
    v.string("expected a label"),
    v.regex(/^[A-Za-z0-9][A-Za-z0-9._:=/-]{0,99}$/, 'expected a label such as "linux" or "browser=chrome"'),
  ),
  "A label that the runner must have",
  "browser=chrome",
);

/** Maximum total number of shards of an execution. */
const MAX_SHARDS = 2_000;
const EXPECTED_TASKS = `expected an array of task slugs, or objects with a "slug"`;

export const plannedTask = v.strictObject({
  slug,
  shards: v.pipe(
    v.optional(integer(1, 500), 1),
    v.description("The number of shards; each is run or reported separately"),
  ),
  labels: v.pipe(
    v.optional(
      listOf(taskLabel, { max: 20, expected: "expected a list of labels", tooMany: "expected at most 20 labels" }),
      [],
    ),
    v.description("Only runners that have all of these labels get the task"),
  ),
  timeoutSeconds: v.pipe(
    v.optional(integer(1, 604_800)),
    v.description("The time limit of the task; the runner then ends it. Default: timeoutMinutes"),
  ),
  newTests: described(
    v.optional(
      v.strictObject({
        runs: described(integer(1, 100), "The number of further runs of each new test, 1 to 100", 10),
      }),
    ),
    "For mode run, outside the default branch: after the execution has ended, each test that passed and that no " +
      "execution of the default branch has ever run is run so many times more, alone, by runners with checkout and " +
      "rerun. At most 20 tests. The result is in newTests of the execution",
    { runs: 10 },
  ),
  concurrencyGroup: described(
    v.optional(text(200)),
    "Tasks of one group run one after the other across all executions of the project, for example if they share a " +
      "database",
    "staging",
  ),
});
export type PlannedTask = v.InferOutput<typeof plannedTask>;
/** `priority`: -100 to 100; the highest is handed to runners first. 0 if absent. */
export type QueuedTask = PlannedTask & { priority?: number };

/** A task as it may be given: by its slug alone, or with how it is to be run. */
export const givenTask = v.union([slug, plannedTask], ({ input, issues }) => {
  // An object gets the error of its field; any other value gets the expected type.
  const isObject = typeof input === "object" && input !== null;
  const { success, issues: inner } = v.safeParse(isObject ? plannedTask : slug, input);
  if (success) return issues![0].message;
  const [{ path, message, type, expected }] = inner;
  const field = JSON.stringify(path?.map(({ key }) => String(key)).join(".") ?? "");
  if (type === "strict_object") return `expected ${expected === "never" ? `no field ${field}` : `the field ${field}`}`;
  return path ? `expected for ${field}: ${message.replace(/^expected /, "")}` : message;
});
type GivenTask = v.InferOutput<typeof givenTask>;

export const toPlannedTask = (task: GivenTask): PlannedTask =>
  typeof task === "string" ? { slug: task, shards: 1, labels: [] } : task;

/** Refuses a list of tasks with too many shards. */
export const fewShards = <Task extends GivenTask>() =>
  v.check<Task[], string>(
    (tasks) => tasks.reduce((sum, task) => sum + toPlannedTask(task).shards, 0) <= MAX_SHARDS,
    `expected at most ${MAX_SHARDS} shards in total`,
  );

export const plannedTasks = v.pipe(
  listOf(v.pipe(givenTask, v.transform(toPlannedTask)), {
    max: 500,
    expected: EXPECTED_TASKS,
    tooMany: "expected at most 500 task slugs",
  }),
  distinct<PlannedTask>("expected each task slug once", ({ slug }) => slug),
  fewShards(),
);
