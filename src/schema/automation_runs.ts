/** Runs of an automation, with what each of its actions did. */

import * as v from "valibot";
import { createdAt, described, executionId, uuid } from "./fields.ts";
import { listPage, pageQuery } from "./page.ts";
import { ACTION_TYPES } from "./automation_actions.ts";

const RUN_STATUSES = ["done", "skipped", "failed"] as const;
export const runStatus = v.pipe(
  v.picklist(RUN_STATUSES, `expected "done", "skipped" or "failed"`),
  v.description(
    "done: the actions were started; skipped: a condition did not hold; failed: an action could not be started",
  ),
  v.examples(["done"]),
);
export type RunStatus = v.InferOutput<typeof runStatus>;

/** The result of one action. */
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
