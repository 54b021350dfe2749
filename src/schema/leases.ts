/** Leases: tasks that are handed out to runners, one to one. */

import * as v from "valibot";
import { taskLabel } from "./executions.ts";
import { count, distinct, integer, slug, text, time, uuid } from "./fields.ts";
import { page, pageQuery } from "./page.ts";

/** Of a log, in one call; in UTF-16 units, which no text has more of than bytes. */
const MAX_LOG_PART = 262_144;
/** How many leases a runner may hold. */
export const MAX_HELD = 256;
const MAX_FREE = 64;

/** A part of a log, from a byte offset on; of whatever a program prints. */
const logPart = v.strictObject({
  offset: v.pipe(
    integer(0, Number.MAX_SAFE_INTEGER),
    v.description("The place of the first byte of the text, as UTF-8, in the whole log; a gap before it is left out"),
  ),
  text: v.pipe(
    v.string("expected a text"),
    v.maxLength(MAX_LOG_PART, `expected a text of at most ${MAX_LOG_PART} characters`),
  ),
});
export type LogPart = v.InferOutput<typeof logPart>;

const heldLease = v.strictObject({ id: uuid, log: v.optional(logPart) });

export const leaseSync = v.strictObject({
  runner: v.pipe(text(200), v.description("Its name: no two processes have the same")),
  labels: v.optional(v.pipe(v.array(taskLabel, "expected a list of labels"), v.maxLength(50)), []),
  taskSlugs: v.pipe(
    v.optional(v.pipe(v.array(slug, "expected a list of task slugs"), v.maxLength(500))),
    v.description("What it can run; default: every task"),
  ),
  free: v.pipe(v.optional(integer(0, MAX_FREE), 1), v.description("How many tasks it could begin now")),
  held: v.pipe(
    v.optional(
      v.pipe(
        v.array(heldLease, "expected a list"),
        v.maxLength(MAX_HELD, `expected at most ${MAX_HELD} leases`),
        v.check((leases) => new Set(leases.map(({ id }) => id)).size === leases.length, "expected each lease once"),
      ),
      [],
    ),
    v.description("The leases that it has: they last 90 s from now, and new ones are known to have arrived"),
  ),
  returned: v.pipe(
    v.optional(
      v.pipe(v.array(uuid, "expected a list of leases"), v.maxLength(MAX_HELD), distinct("expected each lease once")),
      [],
    ),
    v.description("What it has not begun and gives back: it is queued again, and that costs no attempt"),
  ),
  waitSeconds: v.pipe(
    v.optional(integer(0, 55), 0),
    v.description("For so long the answer may wait for news; proxies cut after 60 s"),
  ),
});
export type LeaseSync = v.InferOutput<typeof leaseSync>;

const lease = v.strictObject({
  id: uuid,
  expiresAt: v.pipe(time, v.description("Until then it is to be named in held, or it goes to another runner")),
  timeoutSeconds: count,
  execution: v.strictObject({
    id: uuid,
    key: v.nullable(v.string()),
    branch: v.nullable(v.string()),
    commit: v.nullable(v.string()),
    pullRequest: v.nullable(v.string()),
    environment: v.nullable(v.string()),
    baseUrl: v.pipe(v.nullable(v.string()), v.description("Of the environment")),
  }),
  taskSlug: slug,
  attempt: v.pipe(count, v.description("2: another runner had it and was lost")),
  shard: v.optional(v.strictObject({ index: count, total: count })),
  only: v.pipe(
    v.optional(v.array(v.strictObject({ suite: v.string(), name: v.string(), file: v.nullable(v.string()) }))),
    v.description("Of a rerun: the test cases that failed; absent: the whole task"),
  ),
  variables: v.pipe(
    v.record(v.string(), v.string()),
    v.description("Of the environment, and of the execution, which win"),
  ),
  secretNames: v.pipe(v.array(v.string()), v.description("Those whose values belong in no log")),
});
export type Lease = v.InferOutput<typeof lease>;

const leaseState = v.strictObject({
  id: uuid,
  expiresAt: v.nullable(time),
  cancelled: v.pipe(v.boolean(), v.description("To be ended: cancelled, out of time, or not this runner's any more")),
  reason: v.nullable(v.string()),
  logOffset: v.pipe(count, v.description("How many bytes of the log there have been: it goes on from here")),
});
export type LeaseState = v.InferOutput<typeof leaseState>;

export const leaseAnswer = v.strictObject({
  leases: v.array(lease),
  held: v.array(leaseState),
  nextSeconds: v.pipe(count, v.description("When the runner should come again if it holds anything")),
});

export const leaseFailure = v.strictObject({
  exitCode: v.optional(integer(-2_147_483_648, 4_294_967_295)),
  message: v.pipe(v.string("expected a text"), v.minLength(1, "expected a text"), v.maxLength(65_536)),
  log: v.optional(logPart),
});
export type LeaseFailure = v.InferOutput<typeof leaseFailure>;

export const logQuery = v.strictObject({
  offset: v.pipe(
    v.optional(
      v.pipe(v.string("expected a byte offset"), v.regex(/^\d{1,15}$/, "expected a byte offset"), v.transform(Number)),
      "0",
    ),
  ),
  shard: v.optional(
    v.pipe(
      v.string("expected the number of a shard"),
      v.regex(/^[1-9]\d{0,3}$/, "expected the number of a shard"),
      v.transform(Number),
    ),
  ),
});

export const leaseLog = v.strictObject({
  leaseId: v.pipe(v.nullable(uuid), v.description("null: nothing has run yet")),
  offset: v.pipe(count, v.description("Of the first byte of the text: the last mebibyte is kept")),
  text: v.string(),
  nextOffset: count,
  ended: v.pipe(v.boolean(), v.description("Nothing more will come")),
});

/** What became of a lease that ended without a report. */
export const leaseEnd = v.strictObject({
  id: uuid,
  executionId: uuid,
  taskSlug: slug,
  status: v.pipe(v.picklist(["failed", "cancelled"]), v.description("cancelled: it was to be ended, nothing failed")),
});

const runner = v.strictObject({
  name: v.string(),
  labels: v.array(v.string()),
  taskSlugs: v.pipe(v.nullable(v.array(v.string())), v.description("null: it runs every task")),
  free: v.pipe(count, v.description("How many tasks it could begin when it last asked")),
  seenAt: time,
  leases: v.pipe(
    v.array(
      v.strictObject({
        id: uuid,
        executionId: uuid,
        taskSlug: slug,
        shard: v.nullable(v.strictObject({ index: count, total: count })),
        startedAt: v.nullable(time),
      }),
    ),
    v.description("What it has been handed and has not ended"),
  ),
});
export type Runner = v.InferOutput<typeof runner>;
export const runnerPage = page(runner);
export const runnerFilter = v.strictObject(pageQuery);
