/** Executions: one trigger of one or more tasks. */

import * as v from "valibot";
import { listOf } from "./bounded.ts";
import {
  branch,
  branchName,
  buildUrl,
  commit,
  count,
  counts,
  createdAt,
  described,
  distinct,
  integer,
  integerText,
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
import { listPage, pageQuery } from "./page.ts";

const EXECUTION_STATUSES = ["queued", "running", "passed", "failed", "cancelled", "timed_out"] as const;
const statuses = EXECUTION_STATUSES.map((status) => `"${status}"`).join(", ");
export const executionStatus = described(
  v.picklist(EXECUTION_STATUSES, `expected one of ${statuses}`),
  "queued: nothing has arrived yet; running: reports are awaited; passed and failed: by the results; cancelled: somebody ended " +
    "it; timed_out: a task never reported",
  "failed",
);
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
    v.examples(["failed"]),
  ),
  attempt: v.pipe(count, v.description("0: nothing has arrived yet"), v.examples([1])),
  missingShards: v.pipe(v.array(count), v.description("Those that are announced and not in"), v.examples([[]])),
  ...counts,
  startedAt: described(v.nullable(time), "When its first report arrived, or a runner began it; null: neither yet"),
  completedAt: described(v.nullable(time), "When it was complete; null: it is not yet"),
  runner: v.pipe(
    v.nullable(v.string()),
    v.description("Who runs it, or ran it last; null: no runner of ours"),
    v.examples([null]),
  ),
  reason: v.pipe(
    v.nullable(v.string()),
    v.description("Why it ended without a report, or without a whole one, or failed without a failing test"),
    v.examples([null]),
  ),
});
export type Task = v.InferOutput<typeof task>;

const buildKey = described(
  v.nullable(v.string()),
  "Its name in CI, as execution_key or key gave it; null: it has none",
  "4711",
);
const pullRequest = described(
  v.nullable(v.string()),
  "The pull or merge request; null: none, or nobody has said",
  "128",
);
const environment = described(v.nullable(v.string()), "What the tests ran against; null: nobody has said", "staging");

/** Where an execution comes from, as runners are told it. */
export const executionOrigin = { key: buildKey, branch, commit, pullRequest, environment };

export const execution = v.strictObject({
  id: described(uuid, "The id of the execution"),
  key: buildKey,
  status: executionStatus,
  mode: executionMode,
  branch,
  commit,
  pullRequest,
  buildUrl: described(
    v.nullable(v.string()),
    "The page of the build in CI; null: nobody has said",
    "https://ci.example/builds/4711",
  ),
  environment,
  trigger: v.pipe(
    executionTrigger,
    v.description(
      "api: created by a request of its own; upload: by the first report that named it; rerun: by a rerun; automation " +
        "and schedule: by an automation",
    ),
  ),
  rerunOf: v.pipe(v.nullable(uuid), v.description("The execution that this one repeats")),
  repeatedStatus: v.pipe(
    v.nullable(v.picklist(["passed", "failed", "timed_out"])),
    v.description(
      "What its reruns have made of its outcome: each task counts as its last rerun with a result left it. null: there " +
        "is no rerun with a result, or it agrees with the status; also null in a rerun, which is part of what it repeats",
    ),
  ),
  baselineId: v.pipe(
    v.nullable(uuid),
    v.description(
      "What it is compared with, fixed when it began: the last execution of the default branch that was over by then, or " +
        "that of its base commit; null: there was none",
    ),
  ),
  tasks: described(v.array(task), "Its tasks: those that were declared, and those that have reported"),
  ...counts,
  flaky: described(count, "Test cases that failed before they passed; they are among the passed ones", 2),
  verdict: v.pipe(v.nullable(verdict), v.description("null while nothing has failed and reports may still arrive")),
  durationMs: described(
    count,
    "Wall time of its tests, in milliseconds: from the first start to the last end over all tasks, or that of the longest task " +
      "where reports do not tell when they began",
    252_000,
  ),
  machineTimeMs: described(count, "How long its tests ran in sum, over all tasks, shards and attempts", 756_000),
  reason: described(
    v.nullable(v.string()),
    "Why it is red beside its failing tests, in one line: a shard that is missing, a task that did not report, a report that " +
      "broke off, a test runner that failed; null: only its failing tests make it red, or it is not red",
    "Incomplete: e2e shard 2 of 3 missing",
  ),
  createdAt,
  startedAt: described(v.nullable(time), "When its first report arrived, or a runner began; null: neither yet"),
  completedAt: described(v.nullable(time), "When it ended; null: it has not"),
  url: described(
    v.string(),
    "Its page in the dashboard",
    "https://assay.example/projects/0199b2c4-7c1e-7a54-9f0d-3b1c5a7e8d21/executions/0199b2c4-7c1e-7a54-9f0d-3b1c5a7e8d21",
  ),
  sample,
});
export type Execution = v.InferOutput<typeof execution>;
export const executionPage = listPage(execution);

/** Where a build comes from. */
const origin = {
  branch: described(
    v.optional(branchName),
    "The branch that is tested; refs/heads/main is taken for main. What names none counts as the default one",
    "main",
  ),
  commit: described(
    v.optional(text(200)),
    "The commit that is tested: of a pull request its head",
    "9f8e7d6c5b4a39281706f5e4d3c2b1a098765432",
  ),
  baseCommit: described(
    v.optional(text(200)),
    "The commit that the branch began from: what the execution is compared with. Default: the last execution of the default " +
      "branch that is over",
    "1a2b3c4d",
  ),
  pullRequest: described(v.optional(text(200)), "The pull or merge request", "128"),
  buildUrl: described(
    v.optional(buildUrl),
    "The page of the build in CI, to link to; an http or https address",
    "https://ci.example/builds/4711",
  ),
  environment: described(
    v.optional(text(200)),
    "What the tests run against. Of mode run it is the slug of an environment of the team, whose variables the tasks get",
    "staging",
  ),
};

/** What a runner must have to be given a task. */
export const taskLabel = described(
  v.pipe(
    v.string("expected a label"),
    v.regex(/^[A-Za-z0-9][A-Za-z0-9._:=/-]{0,99}$/, 'expected a label such as "linux" or "browser=chrome"'),
  ),
  "What a runner must have",
  "browser=chrome",
);

/** How many shards an execution may have in all. */
const MAX_SHARDS = 2_000;
const EXPECTED_TASKS = `expected an array of task slugs, or objects with a "slug"`;

export const plannedTask = v.strictObject({
  slug,
  shards: v.pipe(v.optional(integer(1, 500), 1), v.description("Each is run, or reported, by itself")),
  labels: v.pipe(
    v.optional(
      listOf(taskLabel, { max: 20, expected: "expected a list of labels", tooMany: "expected at most 20 labels" }),
      [],
    ),
    v.description("Only runners that have all of these are given it"),
  ),
  timeoutSeconds: v.pipe(
    v.optional(integer(1, 604_800)),
    v.description("After so long its runner is told to end it; default: timeoutMinutes"),
  ),
  concurrencyGroup: described(
    v.optional(text(200)),
    "Tasks of one group run one after the other, over all executions of the project: for what shares a database or a test environment",
    "staging",
  ),
});
export type PlannedTask = v.InferOutput<typeof plannedTask>;
/** `priority`: -100 to 100; what has the highest is handed to runners first. 0 where it is absent. */
export type QueuedTask = PlannedTask & { priority?: number };

/** A task as it may be given: by its slug alone, or with how it is to be run. */
export const givenTask = v.union([slug, plannedTask], ({ input, issues }) => {
  // Of an object the mistake within is told, of anything else what it should be.
  const isObject = typeof input === "object" && input !== null;
  const { success, issues: inner } = v.safeParse(isObject ? plannedTask : slug, input);
  if (success) return issues![0].message;
  const [{ path, message, type, expected }] = inner;
  const field = JSON.stringify(path?.map(({ key }) => String(key)).join(".") ?? "");
  if (type === "strict_object") return `expected ${expected === "never" ? `no field ${field}` : `the field ${field}`}`;
  return path ? `expected for ${field}: ${message.replace(/^expected /, "")}` : message;
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
  listOf(v.pipe(givenTask, v.transform(toPlannedTask)), {
    max: 500,
    expected: EXPECTED_TASKS,
    tooMany: "expected at most 500 task slugs",
  }),
  distinct<PlannedTask>("expected each task slug once", ({ slug }) => slug),
  fewShards(),
);

export const newExecution = v.strictObject({
  key: described(
    v.optional(text(200)),
    "Any name of yours for it, such as the number of the build: uploads meet it by their execution_key. Where an execution has " +
      "this key, and agrees in branch and commit, it is answered with 200 and none is made",
    "4711",
  ),
  mode: v.optional(executionMode, "report"),
  tasks: described(
    v.optional(plannedTasks, []),
    "The tasks that are to report, each by its slug or as an object; it ends when all of them have. Without any it ends on " +
      "complete, or when its timeout is over. At most 500, and 2,000 shards in all; of mode run at least one",
    ["unit", { slug: "e2e", shards: 4 }],
  ),
  ...origin,
  variables: v.pipe(
    v.optional(executionVariables),
    v.description("Of mode run: what the tasks get beside the variables of the environment, which they win over"),
  ),
  failFast: v.pipe(
    v.optional(integer(1, 1_000_000)),
    v.description("Of mode run: after so many failures that are not quarantined, what has not begun is cancelled"),
  ),
  priority: v.pipe(
    v.optional(integer(-100, 100)),
    v.description("Of mode run: -100 to 100; the tasks with the highest are handed to runners first. Default: 0"),
  ),
  supersede: described(
    v.optional(v.boolean("expected true or false")),
    "Of mode run: cancels what runs or waits of the same branch and pull request, in executions of mode run that were created before",
    true,
  ),
  timeoutMinutes: described(
    v.optional(timeoutMinutes),
    "How many minutes it may wait for its next report, up to a week; then it ends, as timed_out where a task has not reported. " +
      "Default: executionTimeoutMinutes of the project",
    45,
  ),
  dispatch: v.pipe(
    v.optional(dispatch),
    v.description("Of mode report: the engine that is asked to run the tasks, when the execution is new"),
  ),
});
export const executionFilter = v.strictObject({
  ...pageQuery,
  status: described(v.optional(executionStatus), "Only those of this status", "failed"),
  key: described(v.optional(text(200)), "Only those with this key, which is exactly this", "4711"),
  branch: described(v.optional(branchName), "Only those of this branch", "main"),
  commit: v.pipe(
    v.optional(text(200)),
    v.description("A hash of 7 digits or more also finds the longer ones that begin with it"),
  ),
  pull_request: described(v.optional(text(200)), "Only those of this pull or merge request", "128"),
  environment: described(v.optional(text(200)), "Only those of this environment", "staging"),
  task_slug: described(v.optional(slug), "Only those with this task", "unit"),
  created_after: described(v.optional(timestamp), "Only those that were created after this time"),
  created_before: described(v.optional(timestamp), "Only those that were created before this time"),
});
export const executionWait = v.strictObject({
  wait: described(
    v.optional(integerText(1, 30)),
    "For so many seconds the answer waits until the execution has ended; without it, it is answered at once as it is",
    30,
  ),
});
export type ExecutionFilter = v.InferOutput<typeof executionFilter>;

export const rerunRequest = v.strictObject({
  failedOnly: v.pipe(
    v.optional(v.boolean("expected true or false"), false),
    v.description("Only the tasks that failed or did not report"),
  ),
});
