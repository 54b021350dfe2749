/** Automations: when something happens or it is time, and the conditions hold, do these things. */

import * as v from "valibot";
import { listOf } from "./bounded.ts";
import { severity } from "./bug_reports.ts";
import { EVENT_TYPES, type EventType } from "./events.ts";
import {
  branchName,
  createdAt,
  described,
  executionId,
  integer,
  patchOf,
  slug,
  text,
  time,
  timeoutMinutes,
  updatedAt,
  uuid,
} from "./fields.ts";
import { gateMode } from "./gate.ts";
import { executionMode } from "./executions.ts";
import { fewShards, givenTask } from "./planned_tasks.ts";
import { searchBudget } from "./culprit_searches.ts";
import { dispatch, pipeline } from "./integration_configs.ts";
import { listPage, pageQuery } from "./page.ts";

const EXPECTED_SCHEDULE = `expected five cron fields, such as "30 6 * * 1-5", or @hourly, @daily, @weekly, @monthly`;
const EXPECTED_ZONE = `expected a time zone such as "Europe/Berlin"`;

/** The next time strictly after `from`; undefined: never, or it cannot be read. */
export function nextTime(schedule: string, timezone: string, from: Date): Date | undefined {
  try {
    return Bun.cron.parse(schedule, from, { tz: timezone } as never) ?? undefined;
  } catch {
    return undefined;
  }
}

const isZone = (zone: string): boolean => {
  try {
    // An offset such as +02:00 would be one as well, and knows no summer time.
    return /^[A-Za-z]/.test(zone) && Boolean(new Intl.DateTimeFormat("en", { timeZone: zone }));
  } catch {
    return false;
  }
};

const EXPECTED_TRIGGER = `expected either an "event", or a "schedule" and its "timezone"`;
const names = EVENT_TYPES.map((type) => `"${type}"`).join(", ");

export const trigger = v.pipe(
  v.strictObject({
    event: described(
      v.optional(v.picklist(EVENT_TYPES, `expected one of ${names}`)),
      "The event that triggers the automation; set either this or schedule. execution.recovered: the first passed " +
        "execution of a branch after a failed one; bug_report.culprit_found: a search has proven which commit broke the test of a bug; execution.changed: a report has arrived after its end, or new tests were run again; task.missed: a scheduled task did not report; integration.disabled: " +
        "Assay has disabled an integration",
      "execution.failed",
    ),
    schedule: described(
      v.optional(
        v.pipe(
          text(200),
          v.check((value) => nextTime(value, "UTC", new Date()) !== undefined, EXPECTED_SCHEDULE),
          v.metadata({ format: "cron" }),
        ),
      ),
      "The times at which the automation runs: five cron fields (minute, hour, day of the month, month, day of the week), or @hourly, @daily, " +
        "@weekly, @monthly",
      "30 6 * * 1-5",
    ),
    timezone: described(
      v.optional(v.pipe(text(100), v.check(isZone, EXPECTED_ZONE), v.metadata({ format: "iana-time-zone" }))),
      "The IANA time zone of the schedule, including daylight saving time. Default: UTC",
      "Europe/Berlin",
    ),
  }),
  v.description("The trigger: either an event, or a schedule with its timezone"),
  v.examples([{ event: "execution.failed" }]),
  v.check(
    ({ event, schedule, timezone }) =>
      (event === undefined) !== (schedule === undefined) && (timezone === undefined || event === undefined),
    EXPECTED_TRIGGER,
  ),
  v.transform(({ event, schedule, timezone }): Trigger =>
    event === undefined ? { schedule: schedule!, timezone: timezone ?? "UTC" } : { event },
  ),
);
export type Trigger = { event: EventType } | { schedule: string; timezone: string };

const someOf = <const Item extends v.GenericSchema>(item: Item) =>
  v.pipe(
    listOf(item, { max: 100, expected: "expected a list", tooMany: "expected at most 100 elements" }),
    v.minLength(1, "expected a non-empty list"),
  );

const severities = v.union(
  [
    someOf(severity),
    v.pipe(
      severity,
      v.transform((one) => [one]),
    ),
  ],
  `expected "critical", "major", "minor" or "trivial", or a list of these`,
);

export const conditions = v.strictObject({
  projects: described(v.optional(someOf(uuid)), "The event belongs to one of these projects of the team"),
  branches: v.pipe(
    v.optional(
      v.pipe(
        someOf(text(200)),
        // An empty list comes here as well.
        v.check(
          ([first]) => !first?.startsWith("!"),
          "expected a pattern that includes branches before the first one that excludes",
        ),
      ),
    ),
    v.description(
      "Glob patterns: * matches within one path segment, ** across segments, and a leading ! excludes branches that " +
        "earlier patterns match. An event without a branch counts as the default branch. A pull request from a fork " +
        "whose branch has the name of the default branch counts as pull/ and its number",
    ),
    v.examples([["main", "release/*"]]),
  ),
  environments: described(v.optional(someOf(text(200))), "The tests ran against one of these environments", [
    "staging",
  ]),
  taskSlugs: described(v.optional(someOf(slug)), "The event belongs to one of these tasks", ["e2e"]),
  owners: described(
    v.optional(someOf(text(200))),
    "The owner of a failed test, or of the test or bug that the event is about, is one of these; the message then names no other failures",
    ["@acme/cart"],
  ),
  minFailed: described(v.optional(integer(1, 1_000_000)), "The minimum number of failed test cases", 5),
  severity: described(v.optional(severities), "The severity of the bug report, one or several", ["critical", "major"]),
});
export type Conditions = v.InferOutput<typeof conditions>;

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

/** What each type of action says besides. */
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

const ACTION_TYPES = ACTIONS.map(({ entries }) => entries.type.literal);
export type ActionType = (typeof ACTION_TYPES)[number];

export const automationAction = v.variant(
  "type",
  ACTIONS,
  `expected one of ${ACTION_TYPES.map((type) => `"${type}"`).join(", ")}`,
);
export type Action = v.InferOutput<typeof automationAction>;

const actions = v.pipe(
  listOf(automationAction, { max: 20, expected: "expected a list of actions", tooMany: "expected at most 20 actions" }),
  v.minLength(1, "expected a non-empty list"),
);

/** Which conditions an event can meet at all; others would never hold, or always. */
export const CONDITIONS_OF: Record<EventType | "schedule", readonly (keyof Conditions)[]> = {
  "execution.completed": ["projects", "branches", "environments", "taskSlugs", "owners", "minFailed"],
  "execution.failed": ["projects", "branches", "environments", "taskSlugs", "owners", "minFailed"],
  "execution.changed": ["projects", "branches", "environments", "taskSlugs", "owners", "minFailed"],
  "execution.recovered": ["projects", "branches", "environments", "taskSlugs"],
  "test_run.completed": ["projects", "branches", "environments", "taskSlugs", "owners", "minFailed"],
  "bug_report.opened": ["projects", "branches", "taskSlugs", "owners", "severity"],
  "bug_report.regressed": ["projects", "branches", "taskSlugs", "owners", "severity"],
  "bug_report.resolved": ["projects", "branches", "taskSlugs", "owners", "severity"],
  "bug_report.culprit_found": ["projects", "branches", "taskSlugs", "owners", "severity"],
  "test_case.became_flaky": ["projects", "branches", "environments", "taskSlugs", "owners"],
  "test_case.recovered": ["projects", "branches", "environments", "taskSlugs", "owners"],
  "test_case.verified": ["projects", "taskSlugs", "owners"],
  "task.missed": ["projects", "branches", "environments", "taskSlugs"],
  "integration.disabled": [],
  schedule: ["projects"],
};

const ANY: readonly ActionType[] = ["notify", "dispatch", "start_execution"];
const ISSUES: readonly ActionType[] = [...ANY, "create_issue"];

/** Which actions make sense of an event. */
export const ACTIONS_OF: Record<EventType | "schedule", readonly ActionType[]> = {
  "execution.completed": [...ISSUES, "set_commit_status", "open_bug_report", "rerun_failed"],
  "execution.failed": [...ISSUES, "set_commit_status", "open_bug_report", "rerun_failed"],
  "execution.recovered": [...ANY, "set_commit_status"],
  "execution.changed": [...ANY, "set_commit_status"],
  "test_run.completed": [...ISSUES, "set_commit_status", "open_bug_report"],
  "bug_report.opened": [...ISSUES, "find_culprit"],
  "bug_report.regressed": [...ISSUES, "find_culprit"],
  "bug_report.resolved": ANY,
  "bug_report.culprit_found": ISSUES,
  "test_case.became_flaky": [...ISSUES, "open_bug_report", "quarantine"],
  "test_case.recovered": [...ANY, "release"],
  "test_case.verified": ANY,
  "task.missed": [...ISSUES, "open_bug_report"],
  "integration.disabled": ["notify", "create_issue"],
  schedule: ANY,
};

const TOLD_CONDITIONS =
  "Additional conditions, which must all hold. A condition that the event can never meet, or always meets, is " +
  "answered 400";
const TOLD_ACTIONS = "The actions, 1 to 20. An action that the event does not support is answered 400";

export const newAutomation = v.strictObject({
  name: described(text(200), "The display name", "main is red"),
  enabled: described(v.optional(v.boolean("expected true or false"), true), "Whether the automation is enabled"),
  trigger,
  conditions: described(v.optional(conditions, {}), TOLD_CONDITIONS),
  actions: described(actions, TOLD_ACTIONS),
});
export type NewAutomation = v.InferOutput<typeof newAutomation>;

export const automationPatch = patchOf({
  name: described(v.optional(text(200)), "The display name", "main is red"),
  enabled: described(v.optional(v.boolean("expected true or false")), "Whether the automation is enabled", false),
  trigger: described(v.optional(trigger), "The trigger: an event or a schedule"),
  conditions: described(v.optional(conditions), `${TOLD_CONDITIONS}. They replace the previous ones`),
  actions: described(v.optional(actions), `${TOLD_ACTIONS}. They replace the previous ones`),
});
export type AutomationPatch = v.InferOutput<typeof automationPatch>;

const RUN_STATUSES = ["done", "skipped", "failed"] as const;
export const runStatus = v.pipe(
  v.picklist(RUN_STATUSES, `expected "done", "skipped" or "failed"`),
  v.description(
    "done: the actions were started; skipped: a condition did not hold; failed: an action could not be started",
  ),
  v.examples(["done"]),
);
export type RunStatus = v.InferOutput<typeof runStatus>;

/** What became of one action. */
const actionResult = v.strictObject({
  type: described(v.picklist(ACTION_TYPES), "The type of the action", "notify"),
  status: v.pipe(
    v.picklist(["done", "skipped", "failed", "planned"]),
    v.description("done: the message was queued, or the execution or bug report exists; planned: in a dry run"),
  ),
  reason: described(v.string(), "What was done, or why not, as text", "The message was queued"),
  integrationId: described(v.optional(uuid), "The integration of the action"),
  deliveryId: described(v.optional(uuid), "The delivery of the message"),
  executionId: described(v.optional(executionId), "The execution that was started"),
  bugReportId: described(v.optional(uuid), "The bug report that was opened or that existed already"),
  testCaseId: described(v.optional(uuid), "The test case that was quarantined or released, or was not"),
});
export type ActionResult = v.InferOutput<typeof actionResult>;

export const automationRun = v.strictObject({
  id: v.pipe(v.nullable(uuid), v.description("null: a dry run, which is not stored")),
  cause: described(v.picklist(["event", "schedule", "manual"]), "What triggered the run; manual: a request", "event"),
  eventId: described(v.nullable(uuid), "The event that triggered the run; null: a schedule"),
  eventType: described(v.nullable(v.string()), "The type of that event", "execution.failed"),
  projectId: described(v.nullable(uuid), "The project of the event; null: none"),
  status: runStatus,
  reason: described(
    v.string(),
    "The condition that did not hold, or all conditions that held",
    'The branch "main" matches "main"',
  ),
  actions: described(v.array(actionResult), "The result of each action"),
  createdAt: described(createdAt, "When it ran"),
});
export type AutomationRun = v.InferOutput<typeof automationRun>;
export const automationRunPage = listPage(automationRun);
export const automationRunFilter = v.strictObject({
  ...pageQuery,
  status: described(v.optional(runStatus), "Only runs with this status: done, skipped or failed", "failed"),
});

export const runRequest = v.strictObject({
  dryRun: v.pipe(
    v.optional(v.boolean("expected true or false"), false),
    v.description("Return what would happen and why, without doing it"),
    v.examples([true]),
  ),
});

const plainTrigger = v.strictObject({
  event: described(v.optional(v.string()), "The event that triggers the automation", "execution.failed"),
  schedule: described(v.optional(v.string()), "The schedule as a cron expression", "30 6 * * 1-5"),
  timezone: described(v.optional(v.string()), "The time zone of the schedule", "Europe/Berlin"),
});

export const automation = v.strictObject({
  id: described(uuid, "The id of the automation"),
  name: described(v.string(), "The display name", "main is red"),
  enabled: described(v.boolean(), "Whether the automation is enabled", true),
  trigger: described(plainTrigger, "The trigger: either an event, or a schedule with its timezone", {
    event: "execution.failed",
  }),
  conditions: described(v.record(v.string(), v.unknown()), "The additional conditions, as they were sent", {
    branches: ["main"],
  }),
  actions: described(
    v.array(
      v.looseObject({
        type: described(v.string(), "The type of the action; the other fields are as they were sent", "notify"),
      }),
    ),
    "The actions, as they were sent",
  ),
  lastRun: described(
    v.nullable(
      v.strictObject({
        id: described(uuid, "The id of the run"),
        status: runStatus,
        reason: described(
          v.string(),
          "The condition that did not hold, or all conditions that held",
          'The branch "main" matches "main"',
        ),
        createdAt: described(createdAt, "When it ran"),
      }),
    ),
    "The last run; null: none yet",
  ),
  nextRunAt: described(v.nullable(time), "The next run of a schedule; null: never, or the trigger is an event"),
  createdAt,
  updatedAt,
});
export type Automation = v.InferOutput<typeof automation>;
export const automationPage = listPage(automation);
export const automationFilter = v.strictObject(pageQuery);
