/** Automations: when something happens or it is time, and the conditions hold, do these things. */

import * as v from "valibot";
import { listOf, someOf } from "./bounded.ts";
import { severity } from "./bug_reports.ts";
import { EVENT_TYPES, type EventType } from "./events.ts";
import { createdAt, described, integer, patchOf, slug, text, time, updatedAt, uuid } from "./fields.ts";
import { listPage, pageQuery } from "./page.ts";
import { type ActionType, automationAction } from "./automation_actions.ts";
import { runStatus } from "./automation_runs.ts";

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
    // An offset such as +02:00 is accepted by the engine, but has no daylight saving time.
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
      "The event that triggers the automation; set either this or schedule. execution.failed: messages are sent " +
        "only when a task of a branch turns red, other actions each time; execution.recovered: a passed execution after which a red task of its branch is green again; bug_report.culprit_found: a search has proven which commit broke the test of a bug; execution.changed: a report has arrived after its end, new tests were run again, or it was cancelled; task.missed: a scheduled task did not report; integration.disabled: " +
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
        // Empty lists also arrive here.
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

const actions = v.pipe(
  listOf(automationAction, { max: 20, expected: "expected a list of actions", tooMany: "expected at most 20 actions" }),
  v.minLength(1, "expected a non-empty list"),
);

/** The conditions that apply to each event; others would never or always hold. */
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

/** The actions that apply to each event. */
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
  schedule: [...ANY, "digest"],
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
