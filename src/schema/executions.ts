/** Executions: one trigger of one or more tasks. */

import * as v from "valibot";
import { slowerRun } from "./slower.ts";
import {
  branch,
  branchName,
  buildUrl,
  commit,
  count,
  counts,
  createdAt,
  described,
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
  booleanText,
} from "./fields.ts";
import { caseRef } from "./case_ref.ts";
import { executionVariables } from "./environments.ts";
import { dispatch } from "./integration_configs.ts";
import { listPage, pageQuery } from "./page.ts";
import { verificationStatus } from "./verifications.ts";
import { plannedTasks } from "./planned_tasks.ts";
import { tagParameter, tags } from "./tags.ts";

const EXECUTION_STATUSES = ["queued", "running", "passed", "failed", "cancelled", "timed_out"] as const;
const statuses = EXECUTION_STATUSES.map((status) => `"${status}"`).join(", ");
export const executionStatus = described(
  v.picklist(EXECUTION_STATUSES, `expected one of ${statuses}`),
  "queued: no report has arrived yet; running: reports are expected; passed and failed: by the results; cancelled: " +
    "ended by a person or a program; timed_out: a task never reported",
  "failed",
);
export type ExecutionStatus = v.InferOutput<typeof executionStatus>;

/** A task may also have ended with some of its announced shards missing. */
export const taskStatus = v.picklist([...EXECUTION_STATUSES, "incomplete"]);
export type TaskStatus = v.InferOutput<typeof taskStatus>;

export const executionMode = v.pipe(
  v.picklist(["report", "run"], `expected "report" or "run"`),
  v.description("report: your CI runs the tests and uploads their reports; run: runners execute the tasks"),
);
export type ExecutionMode = v.InferOutput<typeof executionMode>;

const executionTrigger = v.picklist(["api", "upload", "rerun", "automation", "schedule", "probe"]);
export type ExecutionTrigger = v.InferOutput<typeof executionTrigger>;

export const task = v.strictObject({
  slug,
  tags,
  status: v.pipe(
    taskStatus,
    v.description(
      "incomplete: the execution has ended without some of its announced shards; timed_out: the task has not reported",
    ),
    v.examples(["failed"]),
  ),
  attempt: v.pipe(count, v.description("0: no report has arrived yet"), v.examples([1])),
  missingShards: v.pipe(
    v.array(count),
    v.description("The shards that were announced but have not reported"),
    v.examples([[]]),
  ),
  ...counts,
  startedAt: described(v.nullable(time), "When the first report arrived or a runner began; null: not yet"),
  completedAt: described(v.nullable(time), "When it was complete; null: not yet"),
  runner: v.pipe(
    v.nullable(v.string()),
    v.description("The runner that runs it or ran it last; null: it was not run by an Assay runner"),
    v.examples([null]),
  ),
  reason: v.pipe(
    v.nullable(v.string()),
    v.description("Why it ended without a complete report, or failed without a failing test"),
    v.examples([null]),
  ),
  slower: described(
    v.nullable(slowerRun),
    "With what its wall time is compared, if it passed and took longer than usual; null: it did not",
  ),
});
export type Task = v.InferOutput<typeof task>;

const buildKey = described(
  v.nullable(v.string()),
  "The name of the build in CI, from execution_key or key; null: none",
  "4711",
);
const pullRequest = described(v.nullable(v.string()), "The pull or merge request; null: none or unknown", "128");
const environment = described(v.nullable(v.string()), "The environment of the tests; null: unknown", "staging");

/** The origin of an execution, as runners receive it. */
export const executionOrigin = { key: buildKey, branch, commit, pullRequest, environment };

const probeResult = described(
  v.nullable(v.picklist(["passed", "failed", "no_build", "no_result"])),
  "The result of the test case; no_build: the commit cannot be checked out or built; no_result: the test case did not " +
    "run, or the runner or its machine failed; null: not yet",
  "passed",
);
export type ProbeOutcome = NonNullable<v.InferOutput<typeof probeResult>>;

const executionProbe = v.strictObject({
  testCase: described(
    v.nullable(caseRef),
    "The test case, the first if it runs several; null: the probe lists commits",
  ),
  result: probeResult,
  verificationId: described(v.nullable(uuid), "The verification that it belongs to; null: none"),
  culpritSearchId: described(v.nullable(uuid), "The search for a culprit for which it was created; null: none"),
  tests: described(
    v.array(
      v.strictObject({
        testCase: described(caseRef, "The test case"),
        result: probeResult,
        culpritSearchId: described(v.nullable(uuid), "The search for a culprit that gets the result; null: none"),
      }),
    ),
    "What it runs: one test case, or one for each search for a culprit that shares the probe. Empty: it lists commits",
  ),
});
export type ExecutionProbe = v.InferOutput<typeof executionProbe>;

const newTest = v.strictObject({
  testCase: described(caseRef, "The test case"),
  verificationId: described(uuid, "The verification that runs it again"),
  status: verificationStatus,
  passed: described(count, "The number of further runs that passed", 8),
  failed: described(count, "The number of further runs that failed", 2),
  statement: described(v.string(), "The result in words", "New test, failed 2 of 10 more runs: flaky from the start"),
});

export const execution = v.strictObject({
  id: described(uuid, "The id of the execution"),
  key: buildKey,
  status: executionStatus,
  mode: executionMode,
  branch,
  commit,
  commitAuthor: described(v.nullable(v.string()), "The author of the commit; null: no upload has described it", "Ada"),
  commitSubject: described(
    v.nullable(v.string()),
    "The first line of the message of the commit; null: no upload has described it",
    "Round prices",
  ),
  pullRequest,
  baseBranch: described(
    v.nullable(v.string()),
    "The branch that the pull request, merge queue or merge train is merged into; null: it is another build, or unknown",
    "main",
  ),
  queueRef: described(
    v.nullable(v.string()),
    "The ref that a merge queue has made for the build; branch is null then, and pullRequest names the pull request. " +
      "null: it is not a build of a merge queue",
    null,
  ),
  buildUrl: described(
    v.nullable(v.string()),
    "The page of the build in CI; null: unknown",
    "https://ci.example/builds/4711",
  ),
  environment,
  trigger: v.pipe(
    executionTrigger,
    v.description(
      "api: created by a request; upload: by the first report that named it; rerun: by a rerun; automation and " +
        "schedule: by an automation; probe: by a verification or the search for a culprit",
    ),
  ),
  rerunOf: v.pipe(v.nullable(uuid), v.description("The execution that this one repeats")),
  repeatedStatus: v.pipe(
    v.nullable(v.picklist(["passed", "failed", "timed_out"])),
    v.description(
      "The status after its reruns: for each task, the last rerun with a result counts. null: there is no rerun with a " +
        "result, or the status is unchanged; always null for a rerun itself",
    ),
  ),
  baselineId: v.pipe(
    v.nullable(uuid),
    v.description(
      "The execution that it is compared with, fixed when it began: the last one of its target branch at or before its " +
        "base commit, or of the default branch; null: there was none. What that lacks comes from the ones before it",
    ),
  ),
  tasks: described(v.array(task), "The declared tasks and the tasks that have reported"),
  ...counts,
  flaky: described(count, "Test cases that failed before they passed; they are included in passed", 2),
  verdict: v.pipe(v.nullable(verdict), v.description("null while nothing has failed and reports may still arrive")),
  durationMs: described(
    count,
    "Wall time of the tests in milliseconds: from the first start to the last end over all tasks, or the time of the " +
      "longest task if reports contain no start times",
    252_000,
  ),
  machineTimeMs: described(
    count,
    "The total duration of the tests in milliseconds, over all tasks, shards and attempts",
    756_000,
  ),
  reason: described(
    v.nullable(v.string()),
    "The reason other than failed tests why it is red, in one line: a missing shard, a task that did not report, a " +
      "truncated report, a failed test tool; null: it is red only because of failed tests, or it is not red",
    "Incomplete: e2e: shard 2 of 3 missing",
  ),
  untrusted: described(
    v.boolean(),
    "Whether the execution comes from a fork: its results are shown and compared, but not used for anything else",
    false,
  ),
  probe: described(
    v.nullable(executionProbe),
    "Set for a probe: an execution that runs one test case, or those of several searches, at one commit. It is shown, but not used for anything else " +
      "than what it belongs to. null: it is no probe",
  ),
  newTests: described(
    v.array(newTest),
    "The tests that the execution has added and that are run again because newTests of their task asks for it",
    [],
  ),
  createdAt,
  startedAt: described(v.nullable(time), "When the first report arrived or a runner began; null: not yet"),
  completedAt: described(v.nullable(time), "When it ended; null: not yet"),
  url: described(
    v.string(),
    "The page in the dashboard",
    "https://assay.example/projects/0199b2c4-7c1e-7a54-9f0d-3b1c5a7e8d21/executions/0199b2c4-7c1e-7a54-9f0d-3b1c5a7e8d21",
  ),
  sample,
});
export type Execution = v.InferOutput<typeof execution>;
export const executionPage = listPage(execution);

/** The origin of a build. */
const origin = {
  branch: described(
    v.optional(branchName),
    "The tested branch; refs/heads/main is read as main. An execution without a branch counts as the default branch",
    "main",
  ),
  commit: described(
    v.optional(text(200)),
    "The tested commit; for a pull request the commit of its head",
    "9f8e7d6c5b4a39281706f5e4d3c2b1a098765432",
  ),
  baseCommit: described(
    v.optional(text(200)),
    "The newest commit of the target branch that the tested tree contains. The execution is compared with the last " +
      "build at or before this commit, in the order in which the branch saw its commits. Default: the last one that has ended",
    "1a2b3c4d",
  ),
  pullRequest: described(v.optional(text(200)), "The pull or merge request", "128"),
  baseBranch: described(
    v.optional(branchName),
    "The branch that the pull request or the merge train is merged into: its builds are the baseline, and those of the " +
      "default branch while it has no result of the task. The ref of a merge queue of GitHub names it",
    "main",
  ),
  buildUrl: described(
    v.optional(buildUrl),
    "The page of the build in CI, to link to; an http or https address",
    "https://ci.example/builds/4711",
  ),
  environment: described(
    v.optional(text(200)),
    "The environment of the tests. For mode run, the slug of an environment of the team, whose variables the tasks " +
      "receive",
    "staging",
  ),
};

export const newExecution = v.strictObject({
  key: described(
    v.optional(text(200)),
    "A name that you choose, such as the number of the build; uploads with this execution_key join the execution. If " +
      "an execution with this key, branch and commit exists, it is returned with 200 and no execution is created",
    "4711",
  ),
  mode: v.optional(executionMode, "report"),
  tasks: described(
    v.optional(plannedTasks, []),
    "The expected tasks, each as a slug or an object. The execution ends when all of them have reported. Without " +
      "tasks it ends on complete or after its timeout. At most 500 tasks and 2,000 shards in total; mode run requires " +
      "at least one",
    ["unit", { slug: "e2e", shards: 4 }],
  ),
  ...origin,
  variables: v.pipe(
    v.optional(executionVariables),
    v.description("For mode run: variables of the tasks; they override the variables of the environment"),
  ),
  failFast: v.pipe(
    v.optional(integer(1, 1_000_000)),
    v.description(
      "For mode run: the number of failures, without quarantined ones, after which tasks that have not begun are " +
        "cancelled",
    ),
  ),
  priority: v.pipe(
    v.optional(integer(-100, 100)),
    v.description("For mode run: -100 to 100; tasks with the highest priority are handed to runners first. Default: 0"),
  ),
  supersede: described(
    v.optional(v.boolean("expected true or false")),
    "For mode run: cancels earlier executions of mode run of the same branch and pull request that run or wait",
    true,
  ),
  untrusted: described(
    v.optional(v.boolean("expected true or false")),
    "For mode report: whether the reports come from a fork. They are shown and compared, and count nowhere else. An " +
      "untrusted execution and a trusted one with the same key are two executions. Default: false",
    false,
  ),
  timeoutMinutes: described(
    v.optional(timeoutMinutes),
    "The time in minutes to wait for the next report, up to a week. Then the execution ends, as timed_out if a task " +
      "has not reported. Default: executionTimeoutMinutes of the project",
    45,
  ),
  dispatch: v.pipe(
    v.optional(dispatch),
    v.description("For mode report: the CI system that runs the tasks; used only if the execution is new"),
  ),
});
export const executionFilter = v.strictObject({
  ...pageQuery,
  status: described(v.optional(executionStatus), "Only executions with this status", "failed"),
  key: described(v.optional(text(200)), "Only executions with exactly this key", "4711"),
  branch: described(v.optional(branchName), "Only executions of this branch", "main"),
  commit: v.pipe(v.optional(text(200)), v.description("A hash prefix of 7 or more digits also matches longer hashes")),
  pull_request: described(v.optional(text(200)), "Only executions of this pull or merge request", "128"),
  environment: described(v.optional(text(200)), "Only executions of this environment", "staging"),
  untrusted: described(
    v.optional(booleanText),
    "true: only untrusted executions, which come from forks; false: only the others",
  ),
  probe: described(v.optional(booleanText), "true: only probes, which are left out otherwise"),
  task_slug: described(v.optional(slug), "Only executions with this task", "unit"),
  tag: tagParameter("Only executions with a task that has all of these tags"),
  created_after: described(v.optional(timestamp), "Only executions created after this time"),
  created_before: described(v.optional(timestamp), "Only executions created before this time"),
});
export const executionWait = v.strictObject({
  wait: described(
    v.optional(integerText(1, 30)),
    "The number of seconds to wait for the end of the execution. Default: answer at once",
    30,
  ),
});

export const rerunRequest = v.strictObject({
  failedOnly: v.pipe(
    v.optional(v.boolean("expected true or false"), false),
    v.description("Rerun only the tasks that failed or did not report"),
  ),
});
