/** Deliveries: what is sent to an integration, with its attempts. */

import * as v from "valibot";
import { count, createdAt, described, time, uuid } from "./fields.ts";
import { listPage, pageQuery } from "./page.ts";
import { INTEGRATION_ACTIONS } from "./integration_configs.ts";

/** Maximum number of deliveries that wait for an integration. The oldest messages are dropped for newer ones. */
export const MAX_WAITING = 1_000;

const DELIVERY_STATUSES = ["pending", "sent", "inapplicable", "failed"] as const;
export const deliveryStatus = described(
  v.picklist(DELIVERY_STATUSES, `expected "pending", "sent", "inapplicable" or "failed"`),
  "pending: it is still being tried; sent: the receiver accepted it; inapplicable: there was nothing to send, for example because no pull " +
    "request contains the commit; failed: it was given up",
  "sent",
);
export type DeliveryStatus = v.InferOutput<typeof deliveryStatus>;

/** One try to deliver something. */
const deliveryAttempt = v.strictObject({
  attemptedAt: described(time, "The time of the attempt"),
  statusCode: described(
    v.nullable(count),
    "The HTTP status of the answer, or the reply code of a mail server; null: no answer",
    200,
  ),
  latencyMs: described(count, "The time until the answer, in milliseconds", 120),
  answer: v.pipe(v.nullable(v.string()), v.description("The first 1 KiB of the answer"), v.examples(["ok"])),
  error: v.pipe(v.nullable(v.string()), v.description("Why the attempt failed"), v.examples([null])),
});
export type DeliveryAttempt = v.InferOutput<typeof deliveryAttempt>;

/** Returns an attempt in which nothing was sent, with the reason. */
export const notSent = (now: Date, error: string): DeliveryAttempt => ({
  attemptedAt: now.toISOString(),
  statusCode: null,
  latencyMs: 0,
  answer: null,
  error,
});

export const delivery = v.strictObject({
  id: v.pipe(uuid, v.description("The webhook-id, the same for every attempt")),
  eventId: v.pipe(v.nullable(uuid), v.description("null: a test, or a schedule")),
  eventType: described(v.string(), "The subject: the type of an event, schedule, dispatch or test", "execution.failed"),
  action: described(v.picklist(INTEGRATION_ACTIONS), "The requested action", "notify"),
  title: described(v.string(), "The message in one line", "shop: main is red"),
  status: deliveryStatus,
  attempts: v.pipe(v.array(deliveryAttempt), v.description("The last 20")),
  nextAttemptAt: described(v.nullable(time), "The time of the next attempt; null: no further attempt"),
  createdAt,
});
export type Delivery = v.InferOutput<typeof delivery>;
export const deliveryPage = listPage(delivery);
export const deliveryFilter = v.strictObject({
  ...pageQuery,
  status: described(v.optional(deliveryStatus), "Only deliveries with this status", "failed"),
});
