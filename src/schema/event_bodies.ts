/** The bodies of webhooks and the events of live streams, as the OpenAPI document describes them. */

import * as v from "valibot";
import { EVENT_TYPES, eventDataOf, type EventType, eventParts } from "./events.ts";
import { count, described, time, uuid } from "./fields.ts";
import { liveExecution, liveTask } from "./live.ts";
import { joinedBug } from "./known_bugs.ts";

const url = described(
  v.string(),
  "Its page",
  "https://assay.example.com/projects/0199b2c4-7c1e-7a54-9f0d-3b1c5a7e8d21",
);

const project = described(
  v.strictObject({ id: described(uuid, "The project"), name: described(v.string(), "Its name", "Shop"), url }),
  "The project",
);

const failures = described(
  v.array(
    v.strictObject({
      suite: described(v.string(), "The suites, outermost first", "checkout > cart"),
      name: described(v.string(), "The name of the test", "adds an item"),
      file: described(v.nullable(v.string()), "Its file", "test/cart.test.ts"),
      message: described(v.nullable(v.string()), "Why it failed", "expected 2 items, got 1"),
      owners: described(v.array(v.string()), "Its owners", ["@acme/cart"]),
      blame: described(
        v.nullable(v.string()),
        "The list of the comparison that it is in; null: it is part of an outage",
        "new",
      ),
      reason: described(v.nullable(v.string()), "The reason for the list, in one sentence", null),
      knownBug: described(v.nullable(count), "The number of the known bug that it belongs to", null),
    }),
  ),
  "The first failed test cases",
);

const knownBugs = described(
  v.array(
    v.strictObject({
      ...v.omit(joinedBug, ["known"]).entries,
      failed: described(count, "The number of its failures in the execution", 1),
      url,
    }),
  ),
  "The first known bugs that failures belong to",
);

const person = (description: string, example: string) => described(v.nullable(v.string()), description, example);

/** Parts that have more fields in a webhook. */
const webhookParts = {
  execution: described(
    v.strictObject({
      ...eventParts.execution.entries,
      commitAuthor: person("The author of the commit; null: unknown", "Ada"),
      commitSubject: person("The first line of its message; null: unknown", "Round prices"),
      url,
    }),
    "The execution",
  ),
  bugReport: described(v.strictObject({ ...eventParts.bugReport.entries, url }), "The bug report"),
  testCase: described(v.strictObject({ ...eventParts.testCase.entries, url }), "The test case"),
};

/** Parts of bodies that have a name of their own in the document. */
export const namedEventParts: Record<string, v.GenericSchema> = {
  EventExecution: eventParts.execution,
  EventTestRun: eventParts.testRun,
  EventBugReport: eventParts.bugReport,
  EventCulprit: eventParts.culprit,
  EventTestCase: eventParts.testCase,
  EventVerification: eventParts.verification,
  WebhookExecution: webhookParts.execution,
  WebhookBugReport: webhookParts.bugReport,
  WebhookTestCase: webhookParts.testCase,
  WebhookProject: project,
  WebhookFailures: failures,
  WebhookKnownBugs: knownBugs,
};

const truncated = v.exactOptional(
  described(v.literal(true), "Lists and texts were shortened, because a body has at most 20,000 bytes", true),
);

const bodyOf = (type: string, data: v.GenericSchema) =>
  v.strictObject({
    type: described(v.literal(type), "The type of the event", type),
    timestamp: described(time, "When it happened", "2026-01-31T12:00:00.000Z"),
    data: described(data, "What happened"),
  });

/** The body of the webhook of each type: events, the summary of a schedule, and the test message. */
export const webhookBodies: Record<string, v.GenericSchema> = {
  ...Object.fromEntries(
    EVENT_TYPES.map((type) => [
      type,
      bodyOf(
        type,
        eventDataOf(type, webhookParts, {
          ...(type === "integration.disabled" ? {} : { project }),
          failures: v.exactOptional(failures),
          knownBugs: v.exactOptional(knownBugs),
          truncated,
        }),
      ),
    ]),
  ),
  schedule: bodyOf(
    "schedule",
    v.strictObject({
      project,
      summary: described(
        v.strictObject({
          executions: described(count, "Executions", 212),
          failedExecutions: described(count, "Failed executions", 9),
          openBugs: described(count, "Open bug reports", 4),
          flakyCases: described(count, "Flaky test cases", 7),
          since: described(v.string(), "The beginning of the figures", "2026-01-24T12:00:00.000Z"),
        }),
        "The figures since the last summary",
      ),
    }),
  ),
  test: bodyOf(
    "test",
    v.strictObject({
      integration: described(
        v.strictObject({ name: described(v.string(), "Its name", "Team channel") }),
        "The integration",
      ),
    }),
  ),
};

const reasonOf = (description: string, example: string) =>
  v.strictObject({ reason: described(v.string(), description, example) });

/** The data of each event of a live stream, by its name. */
export const streamEvents: Record<string, v.GenericSchema> = {
  execution: v.strictObject({
    ...liveExecution.entries,
    url,
    tasks: v.exactOptional(described(v.array(liveTask), "Its tasks; only in the first event of an execution")),
  }),
  task: v.strictObject({ executionId: described(uuid, "The execution"), ...liveTask.entries }),
  ...Object.fromEntries(
    EVENT_TYPES.map((type: EventType) => [
      type,
      eventDataOf(
        type,
        {},
        {
          id: described(uuid, "The event"),
          occurredAt: described(time, "When it happened", "2026-01-31T12:00:00.000Z"),
        },
      ),
    ]),
  ),
  log: v.strictObject({
    executionId: described(uuid, "The execution"),
    taskSlug: described(v.string(), "The task", "unit"),
    shard: described(count, "The shard; 0: the whole task", 0),
    leaseId: described(uuid, "The lease"),
    offset: described(count, "The position of the first byte of the text in the log of the lease", 1024),
    text: described(v.string(), "The output", "3 tests passed\n"),
  }),
  gap: reasonOf("Why events before the next one may be missing or repeated", "The events are older than 7 days"),
  end: reasonOf("ended, deleted, revoked, stopping or failed", "ended"),
};
