/** Events of a project or a team that automations, webhooks and pages may need. */

import * as v from "valibot";
import { bugStatus, severity } from "./bug_reports.ts";
import { caseNames, caseRef } from "./case_ref.ts";
import { executionStatus, taskStatus } from "./executions.ts";
import { blameCounts } from "./failures.ts";
import { count, described, uuid, verdict } from "./fields.ts";

export const EVENT_TYPES = [
  "execution.completed",
  "execution.failed",
  "execution.recovered",
  "execution.changed",
  "test_run.completed",
  "bug_report.opened",
  "bug_report.regressed",
  "bug_report.resolved",
  "bug_report.culprit_found",
  "test_case.became_flaky",
  "test_case.recovered",
  "test_case.verified",
  "task.missed",
  "integration.disabled",
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

const nullableText = (description: string, example: string | null) =>
  described(v.nullable(v.string()), description, example);

const counts = {
  passed: described(count, "Passed test cases", 41),
  failed: described(count, "Failed test cases", 1),
  skipped: described(count, "Skipped test cases", 0),
};
const countsData = v.strictObject({
  ...counts,
  total: described(count, "All test cases", 42),
  flaky: described(count, "Test cases that passed only after a failure", 0),
});

const outage = v.exactOptional(described(v.literal(true), "Most tests failed at once, so no failure is judged", true));
const redReason = v.exactOptional(
  described(v.string(), "Why it is red besides its failed tests, in one line", "unit: shard 2 of 3 missing"),
);

/** The origin of an execution. */
const executionData = v.strictObject({
  id: described(uuid, "The execution"),
  key: nullableText("The key that all jobs of the build share", "4711"),
  status: executionStatus,
  branch: nullableText("The branch", "main"),
  commit: nullableText("The hash of the commit", "c4d5e6f0127a"),
  pullRequest: nullableText("The pull or merge request", "17"),
  baseBranch: nullableText("The branch that the pull request or the merge queue merges into; null: unknown", null),
  queueRef: nullableText("The ref that a merge queue has made for the build; null for any other build", null),
  buildUrl: nullableText("The page of the build", "https://ci.example/builds/4711"),
  environment: nullableText("The environment that the tests ran against", "staging"),
});
export type ExecutionData = v.InferOutput<typeof executionData>;

const taskData = v.strictObject({
  slug: described(v.string(), "The task", "unit"),
  status: described(taskStatus, "Its status", "failed"),
  ...counts,
  verdict: described(v.nullable(verdict), "Its verdict; null: none yet", "failed"),
});
export type TaskData = v.InferOutput<typeof taskData>;

const endedExecution = v.strictObject({
  ...executionData.entries,
  ...v.partial(countsData).entries,
  ...v.partial(blameCounts).entries,
  outage,
  tasks: v.exactOptional(described(v.array(taskData), "The first 20 tasks, red ones before others")),
  taskCount: v.exactOptional(described(count, "The number of its tasks", 3)),
  redTaskCount: v.exactOptional(described(count, "The number of its red tasks", 1)),
  reason: redReason,
  redTasks: v.exactOptional(
    described(
      v.array(v.string()),
      "Only in execution.failed: its tasks that are red on its branch by their newest results; at most 100",
      ["unit"],
    ),
  ),
  stillRed: v.exactOptional(
    described(v.array(v.string()), "Only in execution.recovered: tasks of its branch that are still red; at most 20", [
      "e2e",
    ]),
  ),
});

const testRunData = v.strictObject({
  ...countsData.entries,
  ...v.partial(blameCounts).entries,
  outage,
  taskSlug: described(v.string(), "The task", "unit"),
  attempt: described(count, "The attempt of the task", 1),
  verdict,
  durationMs: described(v.number(), "The duration in milliseconds", 252_000),
  reason: redReason,
});

const owners = v.exactOptional(
  described(v.array(v.string()), "All owners; missing in events of servers that did not know them", ["@acme/cart"]),
);

const bugReportData = v.strictObject({
  id: described(uuid, "The bug report"),
  number: described(count, "Its number in the project", 7),
  title: described(v.string(), "Its title", "expected # items, got #"),
  status: described(bugStatus, "Its status", "open"),
  severity,
  source: described(v.string(), "manual: a person opened it; automatic: failures did", "automatic"),
  occurrences: described(count, "The number of its failures", 3),
  taskSlugs: described(v.array(v.string()), "The tasks in which it occurs", ["unit"]),
  branch: nullableText("The branch of its last occurrence on the default branch", "main"),
  commit: nullableText("The commit of that occurrence", "c4d5e6f0127a"),
  lastExecutionId: described(v.nullable(uuid), "The execution of that occurrence"),
  assignee: nullableText("Who works on it", "ada"),
  owners,
  labels: described(v.array(v.string()), "Its labels", ["cart"]),
  externalUrl: nullableText("The issue in another tracker", null),
});

/** The commit that broke the test of a bug, which was confirmed. */
const culpritData = v.strictObject({
  searchId: described(uuid, "The search"),
  summary: described(
    v.string(),
    "One sentence that names the commit and states the proof",
    "c4d5e6f012 by Ada broke it: it failed there 2 of 2 times",
  ),
  proof: described(
    v.string(),
    "The second half of summary",
    "it failed there 2 of 2 times, on its parent 0a1b2c3d4e it passed 2 of 2 times",
  ),
  testCase: described(caseRef, "The test that it broke"),
  commit: described(v.string(), "The hash", "c4d5e6f0127a"),
  author: described(v.string(), "The author", "Ada"),
  date: described(v.string(), "When it was committed", "2026-01-31T12:00:00.000Z"),
  subject: described(v.string(), "The first line of its message", "Round prices"),
  files: described(v.array(v.string()), "The first files that it changes", ["src/cart.ts"]),
});
export type CulpritData = v.InferOutput<typeof culpritData>;

const verificationData = v.strictObject({
  id: described(uuid, "The verification"),
  commit: described(v.string(), "The commit", "c4d5e6f0127a"),
  status: described(
    v.picklist(["passed", "flaky", "failed", "inconclusive"]),
    "passed: no run failed; flaky: some failed; failed: all failed; inconclusive: too few runs have a result",
    "passed",
  ),
  passed: described(count, "Runs that passed", 60),
  failed: described(count, "Runs that failed", 0),
  statement: described(v.string(), "The result in words", "60 of 60 runs passed"),
  released: described(v.boolean(), "Whether it ended a quarantine", false),
});
export type VerificationData = v.InferOutput<typeof verificationData>;

const testCaseData = v.strictObject({
  id: described(uuid, "The test case"),
  taskSlug: described(v.string(), "Its task", "unit"),
  ...caseNames,
  owner: nullableText("The first of its owners", "@acme/cart"),
  owners,
  flakeRate: described(v.number(), "How often it fails by itself: flakeFailures divided by flakeResults", 0.12),
  flakeFailures: described(count, "Failures by itself", 3),
  flakeResults: described(count, "The results that are counted, at most 200", 25),
});

export const eventParts = {
  execution: described(endedExecution, "The execution"),
  testRun: described(testRunData, "The test run"),
  bugReport: described(bugReportData, "The bug report"),
  quarantined: described(
    v.literal(true),
    "Only failures of quarantined tests belong to the bug, so that no message is sent",
    true,
  ),
  culprit: described(culpritData, "The commit that broke its test"),
  testCase: described(testCaseData, "The test case"),
  verification: described(verificationData, "The verification"),
  taskSlug: described(v.string(), "The task that did not report", "nightly"),
  reason: described(v.string(), "Why it did not report", "its runners were lost"),
  integration: described(
    v.strictObject({
      id: described(uuid, "The integration"),
      kind: described(v.string(), "Its kind", "webhook"),
      name: described(v.string(), "Its name", "Team channel"),
      reason: described(v.string(), "Why it was disabled", "Answered 410: the receiver no longer accepts messages"),
    }),
    "The integration",
  ),
};
type Parts = { [Name in keyof typeof eventParts]: v.InferOutput<(typeof eventParts)[Name]> };
type PartName = keyof Parts;

/** The parts of the data of an event: those that it always has, then others. */
const PARTS: Record<EventType, [always: PartName[], sometimes?: PartName[]]> = {
  "execution.completed": [["execution"]],
  "execution.failed": [["execution"]],
  "execution.recovered": [["execution"]],
  "execution.changed": [["execution"]],
  "test_run.completed": [["execution", "testRun"]],
  "bug_report.opened": [["bugReport"], ["quarantined"]],
  "bug_report.regressed": [["bugReport"], ["quarantined"]],
  "bug_report.resolved": [["bugReport"], ["quarantined"]],
  "bug_report.culprit_found": [["bugReport", "culprit"], ["quarantined"]],
  "test_case.became_flaky": [["testCase", "execution"]],
  "test_case.recovered": [["testCase", "execution"]],
  "test_case.verified": [["testCase", "verification"]],
  "task.missed": [["taskSlug"], ["execution", "reason"]],
  "integration.disabled": [["integration"]],
};

/** The schema of the data of an event of a type. `change` replaces parts, and `more` are further fields. */
export function eventDataOf(
  type: EventType,
  change: Partial<Record<PartName, v.GenericSchema>> = {},
  more: v.ObjectEntries = {},
): v.GenericSchema {
  const [always, sometimes = []] = PARTS[type];
  const partOf = (name: PartName): v.GenericSchema => change[name] ?? eventParts[name];
  return v.strictObject({
    ...Object.fromEntries(always.map((name) => [name, partOf(name)])),
    ...Object.fromEntries(sometimes.map((name) => [name, v.exactOptional(partOf(name))])),
    ...more,
  });
}

/** The data of an event, as of when it happened. Its type determines which parts are present. */
export type EventData = Partial<Parts>;

export type NewEvent = { type: EventType; data: EventData; depth: number };

/** A test case, by its number, that has just become flaky, or has recovered. */
export type FlakinessChange = { testCase: number; flaky: boolean };
