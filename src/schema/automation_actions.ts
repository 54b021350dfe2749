/** The actions of an automation. */

import * as v from "valibot";
import { listOf, someOf } from "./bounded.ts";
import { severity } from "./bug_reports.ts";
import { branchName, described, integer, text, timeoutMinutes, uuid } from "./fields.ts";
import { gateMode } from "./gate.ts";
import { executionMode } from "./executions.ts";
import { fewShards, givenTask } from "./planned_tasks.ts";
import { searchBudget } from "./culprit_searches.ts";
import { dispatch, pipeline } from "./integration_configs.ts";

const EXPECTED_PERCENT = "expected a number from 0.1 to 100";
const percent = v.pipe(
  v.number(EXPECTED_PERCENT),
  v.minValue(0.1, EXPECTED_PERCENT),
  v.maxValue(100, EXPECTED_PERCENT),
);

const labels = described(
  v.optional(
    listOf(text(100), { max: 20, expected: "expected a list of labels", tooMany: "expected at most 20 labels" }),
  ),
  "The labels, at most 20. Default: for an issue the labels of the integration, otherwise none",
  ["assay"],
);

const integrationId = described(uuid, "An integration of the team that can do this");
const type = <const Type extends string>(type: Type, what: string) => described(v.literal(type), what);

/** Each type of action has fields of its own. */
const ACTIONS = [
  v.strictObject({
    type: type("notify", "Sends a message to a chat or a webhook, an alert, or a comment on the pull request"),
    integrationId,
    owners: described(
      v.optional(someOf(text(200))),
      "Only failures, tests and bugs of these owners: the message names no others, and is not sent if there are none",
      ["@acme/cart"],
    ),
  }),
  v.strictObject({
    type: type(
      "digest",
      "Sends a digest of each project: what changed since the last digest of this automation, within a week, compared with the period " +
        "before. Nothing is sent if nothing changed. Chats, e-mail and webhooks",
    ),
    integrationId,
    owners: described(
      v.optional(someOf(text(200))),
      "Only tests and bugs of these owners, and nothing about builds. Default: everything",
      ["@acme/cart"],
    ),
  }),
  v.strictObject({
    type: type("create_issue", "Opens an issue: GitHub, GitLab, Jira, Linear"),
    integrationId,
    labels,
  }),
  v.strictObject({
    type: type("set_commit_status", "Marks the commit as passed or failed: GitHub, GitLab"),
    integrationId,
    context: v.pipe(
      v.optional(text(100)),
      v.description(`Default: "assay", or "assay/gate" with gate; followed by the task if the event has one`),
    ),
    gate: described(
      v.optional(gateMode),
      "Sets the status to the decision of this gate, once it is final. It is updated when a later report or a rerun " +
        "changes the decision. Default: the outcome of the tests",
      "new",
    ),
  }),
  v.strictObject({
    type: type("dispatch", "Starts a pipeline and passes it the execution of the event: GitHub, GitLab"),
    integrationId,
    ...pipeline,
  }),
  v.strictObject({
    type: type("open_bug_report", "Opens a bug report, or reopens the one that it opened before for the same subject"),
    title: described(v.optional(text(300)), "The title. Default: a description of the event", "The nightly run is red"),
    severity: v.optional(severity, "major"),
    labels,
    assignee: described(v.optional(text(200)), "The assignee, any name. Default: none", "ada"),
  }),
  v.strictObject({
    type: type("rerun_failed", "Runs the failed tasks again in a new execution"),
    maximum: v.pipe(
      v.optional(integer(1, 5), 1),
      v.description("The maximum number of consecutive reruns of an execution"),
    ),
  }),
  v.strictObject({
    type: type(
      "find_culprit",
      "Searches for the commit that broke the test of the bug, by running the test on runners. A bug of a flaky test, an outage, and a bug " +
        "without a range of commits are left out",
    ),
    ...searchBudget,
  }),
  v.strictObject({
    type: type("start_execution", "Starts an execution of these tasks"),
    projectId: v.pipe(v.optional(uuid), v.description("Default: the project of the event")),
    mode: v.pipe(v.optional(executionMode), v.description("Default: report")),
    tasks: described(
      v.pipe(someOf(givenTask), fewShards()),
      "The tasks, each as a slug or an object, as in POST executions",
      ["unit"],
    ),
    key: v.pipe(
      v.optional(text(150)),
      v.description(
        "{date} is replaced by the day, such as 2026-01-31, and {time} by the minute, such as 06-30, so that CI can use " +
          "the same key",
      ),
    ),
    branch: described(v.optional(branchName), "The branch that is tested. Default: that of the event", "main"),
    environment: described(
      v.optional(text(200)),
      "The environment of the tests. Default: that of the event",
      "staging",
    ),
    timeoutMinutes: v.optional(timeoutMinutes),
    dispatch: v.pipe(v.optional(dispatch), v.description("For mode report: the CI system that runs the tasks")),
  }),
  v.strictObject({
    type: type(
      "quarantine",
      "Quarantines the test that became flaky, with the evidence as the reason. A broken test, and one that is quarantined " +
        "already, is left as it is. A quarantine ends early when the test breaks on the default branch",
    ),
    maxTests: v.pipe(
      v.optional(integer(1, 1_000), 20),
      v.description("The maximum number of tests of the project that automations quarantine at the same time"),
    ),
    maxShare: v.pipe(
      v.optional(percent, 1),
      v.description(
        "The maximum share of the project's tests that automations quarantine at the same time, in percent. The tests on the " +
          "default branch count: of each task those of the largest of its last 20 runs in 30 days",
      ),
    ),
    days: v.pipe(v.optional(integer(1, 30), 30), v.description("The days after which the quarantine ends")),
  }),
  v.strictObject({
    type: type(
      "release",
      "Ends the quarantine of the test that has recovered, if an automation began it. A quarantine that a person began stays",
    ),
  }),
] as const;

export const ACTION_TYPES = ACTIONS.map(({ entries }) => entries.type.literal);
export type ActionType = (typeof ACTION_TYPES)[number];

export const automationAction = v.variant(
  "type",
  ACTIONS,
  `expected one of ${ACTION_TYPES.map((type) => `"${type}"`).join(", ")}`,
);
export type Action = v.InferOutput<typeof automationAction>;
