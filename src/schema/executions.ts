/** Executions: one trigger of one or more tasks. */

import * as v from "valibot";
import {
  branchName,
  buildUrl,
  count,
  distinct,
  integer,
  sample,
  slug,
  text,
  time,
  timeoutMinutes,
  timestamp,
  uuid,
  verdict,
} from "./fields.ts";
import { executionVariables } from "./environments.ts";
import { dispatch } from "./integrations.ts";
import { page, pageQuery } from "./page.ts";

const EXECUTION_STATUSES = ["queued", "running", "passed", "failed", "cancelled", "timed_out"] as const;
const statuses = EXECUTION_STATUSES.map((status) => `"${status}"`).join(", ");
export const executionStatus = v.picklist(EXECUTION_STATUSES, `expected one of ${statuses}`);
export type ExecutionStatus = v.InferOutput<typeof executionStatus>;

/** A task may also have ended with some of its announced shards missing. */
export const taskStatus = v.picklist([...EXECUTION_STATUSES, "incomplete"]);
export type TaskStatus = v.InferOutput<typeof taskStatus>;

export const executionMode = v.pipe(
  v.picklist(["report", "run"], `expected "report" or "run"`),
  v.description("report: whoever runs the tests uploads their reports; run: runners take the tasks and run them"),
);
export type ExecutionMode = v.InferOutput<typeof executionMode>;

const executionTrigger = v.picklist(["api", "upload", "rerun", "automation", "schedule"]);
export type ExecutionTrigger = v.InferOutput<typeof executionTrigger>;

const task = v.strictObject({
  slug,
  status: v.pipe(
    taskStatus,
    v.description(
      "incomplete: the execution has ended without some of its announced shards; timed_out: nothing of it has come",
    ),
  ),
  attempt: v.pipe(count, v.description("0: nothing has arrived yet")),
  missingShards: v.pipe(v.array(count), v.description("Those that are announced and not in")),
  passed: count,
  failed: count,
  skipped: count,
  total: count,
  startedAt: v.nullable(time),
  completedAt: v.nullable(time),
  runner: v.pipe(v.nullable(v.string()), v.description("Who runs it, or ran it last; null: no runner of ours")),
  reason: v.pipe(v.nullable(v.string()), v.description("Why it ended without a report, or without a whole one")),
});
export type Task = v.InferOutput<typeof task>;

export const execution = v.strictObject({
  id: uuid,
  key: v.nullable(v.string()),
  status: executionStatus,
  mode: executionMode,
  branch: v.nullable(v.string()),
  commit: v.nullable(v.string()),
  pullRequest: v.nullable(v.string()),
  buildUrl: v.nullable(v.string()),
  environment: v.nullable(v.string()),
  trigger: v.pipe(
    executionTrigger,
    v.description(
      "api: created by a request of its own; upload: by the first report that named it; rerun: by a rerun; automation " +
        "and schedule: by an automation",
    ),
  ),
  rerunOf: v.pipe(v.nullable(uuid), v.description("The execution that this one repeats")),
  baselineId: v.pipe(
    v.nullable(uuid),
    v.description(
      "What it is compared with, fixed when it began: the last execution of the default branch that was over by then, or " +
        "that of its base commit; null: there was none",
    ),
  ),
  tasks: v.array(task),
  passed: count,
  failed: count,
  skipped: count,
  total: count,
  flaky: count,
  verdict: v.pipe(v.nullable(verdict), v.description("null while nothing has failed and reports may still arrive")),
  createdAt: time,
  startedAt: v.nullable(time),
  completedAt: v.nullable(time),
  url: v.string(),
  sample,
});
export type Execution = v.InferOutput<typeof execution>;
export const executionPage = page(execution);

/** Where a build comes from. */
const origin = {
  branch: v.optional(branchName),
  commit: v.optional(text(200)),
  baseCommit: v.pipe(
    v.optional(text(200)),
    v.description("The commit that the branch began from: what the execution is compared with"),
  ),
  pullRequest: v.optional(text(200)),
  buildUrl: v.optional(buildUrl),
  environment: v.optional(text(200)),
};

/** What a runner must have to be given a task. */
export const taskLabel = v.pipe(
  v.string("expected a label"),
  v.regex(/^[A-Za-z0-9][A-Za-z0-9._:=/-]{0,99}$/, 'expected a label such as "linux" or "browser=chrome"'),
);

/** How many shards an execution may have in all. */
const MAX_SHARDS = 2_000;
const EXPECTED_TASKS = `expected an array of task slugs, or objects with a "slug"`;

const plannedTask = v.strictObject({
  slug,
  shards: v.pipe(v.optional(integer(1, 500), 1), v.description("Each is run, or reported, by itself")),
  labels: v.pipe(
    v.optional(
      v.pipe(v.array(taskLabel, "expected a list of labels"), v.maxLength(20, "expected at most 20 labels")),
      [],
    ),
    v.description("Only runners that have all of these are given it"),
  ),
  timeoutSeconds: v.pipe(
    v.optional(integer(1, 604_800)),
    v.description("After so long its runner is told to end it; default: timeoutMinutes"),
  ),
});
export type PlannedTask = v.InferOutput<typeof plannedTask>;

/** A task as it may be given: by its slug alone, or with how it is to be run. */
export const givenTask = v.union([slug, plannedTask], ({ input, issues }) => {
  // Of an object the mistake within is told, of anything else what it should be.
  const isObject = typeof input === "object" && input !== null;
  const { success, issues: inner } = v.safeParse(isObject ? plannedTask : slug, input);
  return success ? issues![0].message : inner[0].message;
});
export type GivenTask = v.InferOutput<typeof givenTask>;

export const toPlannedTask = (task: GivenTask): PlannedTask =>
  typeof task === "string" ? { slug: task, shards: 1, labels: [] } : task;

/** For a list of tasks: not too many shards. */
export const fewShards = <Task extends GivenTask>() =>
  v.check<Task[], string>(
    (tasks) => tasks.reduce((sum, task) => sum + toPlannedTask(task).shards, 0) <= MAX_SHARDS,
    `expected at most ${MAX_SHARDS} shards in all`,
  );

export const plannedTasks = v.pipe(
  v.array(v.pipe(givenTask, v.transform(toPlannedTask)), EXPECTED_TASKS),
  v.maxLength(500, "expected at most 500 task slugs"),
  distinct<PlannedTask>("expected each task slug once", ({ slug }) => slug),
  fewShards(),
);

export const newExecution = v.strictObject({
  key: v.optional(text(200)),
  mode: v.optional(executionMode, "report"),
  tasks: v.optional(plannedTasks, []),
  ...origin,
  variables: v.pipe(
    v.optional(executionVariables),
    v.description("Of mode run: what the tasks get beside the variables of the environment, which they win over"),
  ),
  failFast: v.pipe(
    v.optional(integer(1, 1_000_000)),
    v.description("Of mode run: after so many failures that are not quarantined, what has not begun is cancelled"),
  ),
  timeoutMinutes: v.optional(timeoutMinutes),
  dispatch: v.pipe(
    v.optional(dispatch),
    v.description("Of mode report: the engine that is asked to run the tasks, when the execution is new"),
  ),
});
export const executionFilter = v.strictObject({
  ...pageQuery,
  status: v.optional(executionStatus),
  key: v.optional(text(200)),
  branch: v.optional(branchName),
  commit: v.pipe(
    v.optional(text(200)),
    v.description("A hash of 7 digits or more also finds the longer ones that begin with it"),
  ),
  pull_request: v.optional(text(200)),
  environment: v.optional(text(200)),
  task_slug: v.optional(slug),
  created_after: v.optional(timestamp),
  created_before: v.optional(timestamp),
});
export type ExecutionFilter = v.InferOutput<typeof executionFilter>;

export const rerunRequest = v.strictObject({
  failedOnly: v.pipe(
    v.optional(v.boolean("expected true or false"), false),
    v.description("Only the tasks that failed or did not report"),
  ),
});
