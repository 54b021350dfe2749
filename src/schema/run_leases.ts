/** The leases of a task that has run, and their logs. */

import * as v from "valibot";
import { count, described, time, uuid } from "./fields.ts";
import { listPage } from "./page.ts";
import { shardPlace } from "./leases.ts";

const EXPECTED_SHARD = `expected the number of a shard, such as "2", or "2/4"`;

export const logQuery = v.strictObject({
  offset: v.pipe(
    v.optional(
      v.pipe(
        v.string("expected a byte offset"),
        v.regex(/^\d{1,15}$/, "expected a byte offset"),
        v.transform(Number),
        v.metadata({ openapi: { type: "integer", minimum: 0 } }),
      ),
      "0",
    ),
    v.description("The offset to read from, in bytes of UTF-8: nextOffset of the previous answer"),
  ),
  shard: described(
    v.optional(
      v.pipe(
        v.string(EXPECTED_SHARD),
        v.regex(/^[1-9]\d{0,3}(?:\/[1-9]\d{0,3})?$/, EXPECTED_SHARD),
        v.transform((text) => Number.parseInt(text, 10)),
        v.metadata({ openapi: { type: "integer", minimum: 1, maximum: 9999 } }),
      ),
    ),
    "For a task with shards: the shard of the log. Default: the shard that began last",
    2,
  ),
  lease_id: described(v.optional(uuid), "The lease of the log, such as one that was lost. Default: the newest lease"),
});

export const leaseLog = v.strictObject({
  leaseId: v.pipe(v.nullable(uuid), v.description("The lease of the log; null: nothing has run yet")),
  offset: v.pipe(
    count,
    v.description("The offset of the first byte of the text; the last mebibyte of a log is kept"),
    v.examples([0]),
  ),
  text: described(v.string(), "The output", "ok 1 adds an item\n"),
  nextOffset: described(count, "The offset for the next request", 18),
  ended: v.pipe(v.boolean(), v.description("Whether the log is complete")),
});

/**
 * lost: there was no more contact with its runner; returned: its runner gave it back, or never confirmed it; infrastructure: its runner
 * could not run it.
 */
const LEASE_STATUSES = [
  ...(["queued", "offered", "running", "reported", "failed", "cancelled"] as const),
  ...(["lost", "returned", "infrastructure", "timed_out"] as const),
] as const;
export type LeaseStatus = (typeof LEASE_STATUSES)[number];

const runLease = v.strictObject({
  id: described(uuid, "The id of the lease, for lease_id of the log"),
  shard: described(v.nullable(v.strictObject(shardPlace)), "The slice of the task; null: the whole task"),
  attempt: described(count, "The number of times that the task was handed out, without returned leases", 1),
  runner: described(v.string(), "The runner that held it", "build-3/1"),
  status: described(
    v.picklist(LEASE_STATUSES),
    "lost: the runner no longer called; returned: the runner gave the task back; infrastructure: the runner could " +
      "not run the task",
    "lost",
  ),
  reason: described(v.nullable(v.string()), "Why it ended", "The runner build-3/1 was lost"),
  exitCode: described(v.nullable(v.number()), "The exit code of the command, if there was no report", null),
  startedAt: described(v.nullable(time), "When the runner began; null: it did not begin"),
  endedAt: described(v.nullable(time), "When it ended; null: not yet"),
});
export type RunLease = v.InferOutput<typeof runLease>;
export const runLeasePage = listPage(runLease);
