/** Automations: when something happens or it is time, and the conditions hold, do these things. */

import * as v from "valibot";
import { severity } from "./bug_reports.ts";
import { EVENT_TYPES, type EventType } from "./events.ts";
import { branchName, integer, patchOf, slug, text, time, timeoutMinutes, uuid } from "./fields.ts";
import { executionMode, fewShards, givenTask } from "./executions.ts";
import { dispatch, pipeline } from "./integrations.ts";
import { page, pageQuery } from "./page.ts";

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
    event: v.optional(v.picklist(EVENT_TYPES, `expected one of ${names}`)),
    schedule: v.optional(
      v.pipe(
        text(200),
        v.check((value) => nextTime(value, "UTC", new Date()) !== undefined, EXPECTED_SCHEDULE),
      ),
    ),
    timezone: v.optional(v.pipe(text(100), v.check(isZone, EXPECTED_ZONE))),
  }),
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

const listOf = <const Item extends v.GenericSchema>(item: Item) =>
  v.pipe(
    v.array(item, "expected a list"),
    v.minLength(1, "expected a list that is not empty"),
    v.maxLength(100, "expected at most 100 of them"),
  );

const severities = v.union(
  [
    listOf(severity),
    v.pipe(
      severity,
      v.transform((one) => [one]),
    ),
  ],
  `expected "critical", "major", "minor" or "trivial", or a list of these`,
);

export const conditions = v.strictObject({
  projects: v.optional(listOf(uuid)),
  branches: v.pipe(
    v.optional(
      v.pipe(
        listOf(text(200)),
        // An empty list comes here as well.
        v.check(([first]) => !first?.startsWith("!"), "expected a pattern before the first one that excludes"),
      ),
    ),
    v.description(
      "Globs: * stays within a part of the name, ** does not, ! excludes of what stands before it; no branch counts as " +
        "the default one",
    ),
  ),
  environments: v.optional(listOf(text(200))),
  taskSlugs: v.optional(listOf(slug)),
  minFailed: v.optional(integer(1, 1_000_000)),
  severity: v.optional(severities),
});
export type Conditions = v.InferOutput<typeof conditions>;

const labels = v.optional(
  v.pipe(v.array(text(100), "expected a list of labels"), v.maxLength(20, "expected at most 20 labels")),
);

/** What each type of action says besides. */
const ACTIONS = [
  v.strictObject({ type: v.literal("notify"), integrationId: uuid }),
  v.strictObject({ type: v.literal("create_issue"), integrationId: uuid, labels }),
  v.strictObject({
    type: v.literal("set_commit_status"),
    integrationId: uuid,
    context: v.pipe(v.optional(text(100)), v.description(`Default: "assay", and the task where there is one`)),
  }),
  v.strictObject({
    type: v.literal("dispatch"),
    integrationId: uuid,
    ...pipeline,
  }),
  v.strictObject({
    type: v.literal("open_bug_report"),
    title: v.optional(text(300)),
    severity: v.optional(severity, "major"),
    labels,
    assignee: v.optional(text(200)),
  }),
  v.strictObject({
    type: v.literal("rerun_failed"),
    maximum: v.pipe(
      v.optional(integer(1, 5), 1),
      v.description("How many executions in a row may repeat the first one"),
    ),
  }),
  v.strictObject({
    type: v.literal("start_execution"),
    projectId: v.pipe(v.optional(uuid), v.description("Default: the project that it is about")),
    mode: v.pipe(v.optional(executionMode), v.description("Default: report")),
    tasks: v.pipe(listOf(givenTask), fewShards()),
    key: v.pipe(
      v.optional(text(150)),
      v.description(
        "{date} becomes the day, such as 2026-01-31, {time} the minute, such as 06-30: for CI to meet there",
      ),
    ),
    branch: v.optional(branchName),
    environment: v.optional(text(200)),
    timeoutMinutes: v.optional(timeoutMinutes),
    dispatch: v.pipe(v.optional(dispatch), v.description("Of mode report: the engine that is asked to run the tasks")),
  }),
] as const;

const ACTION_TYPES = ACTIONS.map(({ entries }) => entries.type.literal);
export type ActionType = (typeof ACTION_TYPES)[number];

export const action = v.variant(
  "type",
  ACTIONS,
  `expected one of ${ACTION_TYPES.map((type) => `"${type}"`).join(", ")}`,
);
export type Action = v.InferOutput<typeof action>;

const actions = v.pipe(
  v.array(action, "expected a list of actions"),
  v.minLength(1, "expected a list that is not empty"),
  v.maxLength(20, "expected at most 20 actions"),
);

/** Which conditions an event can meet at all; others would never hold, or always. */
export const CONDITIONS_OF: Record<EventType | "schedule", readonly (keyof Conditions)[]> = {
  "execution.completed": ["projects", "branches", "environments", "taskSlugs", "minFailed"],
  "execution.failed": ["projects", "branches", "environments", "taskSlugs", "minFailed"],
  "execution.recovered": ["projects", "branches", "environments", "taskSlugs"],
  "test_run.completed": ["projects", "branches", "environments", "taskSlugs", "minFailed"],
  "bug_report.opened": ["projects", "branches", "taskSlugs", "severity"],
  "bug_report.regressed": ["projects", "branches", "taskSlugs", "severity"],
  "bug_report.resolved": ["projects", "branches", "taskSlugs", "severity"],
  "test_case.became_flaky": ["projects", "branches", "environments", "taskSlugs"],
  "test_case.recovered": ["projects", "branches", "environments", "taskSlugs"],
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
  "test_run.completed": [...ISSUES, "set_commit_status", "open_bug_report"],
  "bug_report.opened": ISSUES,
  "bug_report.regressed": ISSUES,
  "bug_report.resolved": ANY,
  "test_case.became_flaky": [...ISSUES, "open_bug_report"],
  "test_case.recovered": ANY,
  "task.missed": [...ISSUES, "open_bug_report"],
  "integration.disabled": ["notify", "create_issue"],
  schedule: ANY,
};

export const newAutomation = v.strictObject({
  name: text(200),
  enabled: v.optional(v.boolean("expected true or false"), true),
  trigger,
  conditions: v.optional(conditions, {}),
  actions,
});
export type NewAutomation = v.InferOutput<typeof newAutomation>;

export const automationPatch = patchOf({
  name: v.optional(text(200)),
  enabled: v.optional(v.boolean("expected true or false")),
  trigger: v.optional(trigger),
  conditions: v.optional(conditions),
  actions: v.optional(actions),
});
export type AutomationPatch = v.InferOutput<typeof automationPatch>;

const RUN_STATUSES = ["done", "skipped", "failed"] as const;
export const runStatus = v.pipe(
  v.picklist(RUN_STATUSES, `expected "done", "skipped" or "failed"`),
  v.description("skipped: a condition did not hold; failed: an action could not be begun"),
);
export type RunStatus = v.InferOutput<typeof runStatus>;

/** What became of one action. */
const actionResult = v.strictObject({
  type: v.picklist(ACTION_TYPES),
  status: v.pipe(
    v.picklist(["done", "skipped", "failed", "planned"]),
    v.description("done: a message is on its way, an execution or a bug report is there; planned: in a dry run"),
  ),
  reason: v.string(),
  integrationId: v.optional(uuid),
  deliveryId: v.optional(uuid),
  executionId: v.optional(uuid),
  bugReportId: v.optional(uuid),
});
export type ActionResult = v.InferOutput<typeof actionResult>;

export const automationRun = v.strictObject({
  id: v.pipe(v.nullable(uuid), v.description("null: a dry run, which is not kept")),
  cause: v.picklist(["event", "schedule", "manual"]),
  eventId: v.nullable(uuid),
  eventType: v.nullable(v.string()),
  projectId: v.nullable(uuid),
  status: runStatus,
  reason: v.string(),
  actions: v.array(actionResult),
  createdAt: time,
});
export type AutomationRun = v.InferOutput<typeof automationRun>;
export const automationRunPage = page(automationRun);
export const automationRunFilter = v.strictObject({ ...pageQuery, status: v.optional(runStatus) });

export const runRequest = v.strictObject({
  dryRun: v.pipe(
    v.optional(v.boolean("expected true or false"), false),
    v.description("Only say what would happen and why"),
  ),
});

const plainTrigger = v.strictObject({
  event: v.optional(v.string()),
  schedule: v.optional(v.string()),
  timezone: v.optional(v.string()),
});

export const automation = v.strictObject({
  id: uuid,
  name: v.string(),
  enabled: v.boolean(),
  trigger: plainTrigger,
  conditions: v.record(v.string(), v.unknown()),
  actions: v.array(v.looseObject({ type: v.string() })),
  lastRun: v.nullable(v.strictObject({ id: uuid, status: runStatus, reason: v.string(), createdAt: time })),
  nextRunAt: v.pipe(v.nullable(time), v.description("Of a schedule")),
  createdAt: time,
  updatedAt: time,
});
export type Automation = v.InferOutput<typeof automation>;
export const automationPage = page(automation);
export const automationFilter = v.strictObject(pageQuery);
