/** Leases: tasks that are handed out to runners, one to one. */

import * as v from "valibot";
import { listOf } from "./bounded.ts";
import { executionOrigin, taskLabel } from "./executions.ts";
import { caseNames } from "./case_ref.ts";
import { count, described, distinct, executionId, integer, machineNames, slug, text, time, uuid } from "./fields.ts";
import { listPage, pageQuery } from "./page.ts";

/** Of a log, in one call; in UTF-16 units, which no text has more of than bytes. */
const MAX_LOG_PART = 262_144;
/** How many leases a runner may hold. */
export const MAX_HELD = 256;
const MAX_FREE = 64;

/** A part of a log, from a byte offset on; of whatever a program prints. */
const logPart = v.strictObject({
  offset: v.pipe(
    integer(0, 2 ** 40),
    v.description("The place of the first byte of the text, as UTF-8, in the whole log; a gap before it is left out"),
  ),
  text: v.pipe(
    v.string("expected a text"),
    v.maxLength(MAX_LOG_PART, `expected a text of at most ${MAX_LOG_PART} characters`),
    v.description("What was printed from there on, at most 262,144 characters; secrets masked by the runner"),
    v.examples(["ok 1 adds an item\n"]),
  ),
});
export type LogPart = v.InferOutput<typeof logPart>;

const heldLease = v.strictObject({
  id: described(uuid, "The lease"),
  log: described(v.optional(logPart), "What its task has printed since the last call"),
});

const shardPlace = {
  index: described(count, "Which of them, from 1", 2),
  total: described(count, "How many there are", 4),
};

export const leaseSync = v.strictObject({
  runner: described(text(200), "Its name: no two processes have the same", "build-3/1"),
  labels: described(
    v.optional(
      listOf(taskLabel, { max: 50, expected: "expected a list of labels", tooMany: "expected at most 50 labels" }),
      [],
    ),
    "What it has: it is only given tasks whose labels are all among these; at most 50",
    ["linux"],
  ),
  taskSlugs: v.pipe(
    v.optional(
      listOf(slug, {
        max: 2_000,
        expected: "expected a list of task slugs",
        tooMany: "expected at most 2,000 task slugs",
      }),
    ),
    v.description("What it can run; default: every task"),
    v.examples([["unit"]]),
  ),
  free: v.pipe(v.optional(integer(0, MAX_FREE), 1), v.description("How many tasks it could begin now")),
  held: v.pipe(
    v.optional(
      v.pipe(
        listOf(heldLease, {
          max: MAX_HELD,
          expected: "expected a list",
          tooMany: `expected at most ${MAX_HELD} leases`,
        }),
        v.check((leases) => new Set(leases.map(({ id }) => id)).size === leases.length, "expected each lease once"),
      ),
      [],
    ),
    v.description("The leases that it has: they last 90 s from now, and new ones are known to have arrived"),
  ),
  returned: v.pipe(
    v.optional(
      v.pipe(
        listOf(uuid, {
          max: MAX_HELD,
          expected: "expected a list of leases",
          tooMany: `expected at most ${MAX_HELD} leases`,
        }),
        distinct("expected each lease once"),
      ),
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
  id: described(uuid, "The id of the lease: named in held from now on, and in lease_id of its report"),
  expiresAt: v.pipe(time, v.description("Until then it is to be named in held, or it goes to another runner")),
  timeoutSeconds: described(count, "After so long its command is to be ended", 2700),
  execution: described(
    v.strictObject({
      id: described(uuid, "The id of the execution"),
      key: executionOrigin.key,
      branch: executionOrigin.branch,
      commit: executionOrigin.commit,
      pullRequest: executionOrigin.pullRequest,
      environment: executionOrigin.environment,
      baseUrl: described(v.nullable(v.string()), "Of the environment", "https://staging.shop.example"),
    }),
    "What the task belongs to",
  ),
  taskSlug: slug,
  attempt: v.pipe(count, v.description("2: another runner had it and was lost"), v.examples([1])),
  shard: described(v.optional(v.strictObject(shardPlace)), "Which slice of the task it is; absent: the whole task"),
  only: v.pipe(
    v.optional(v.array(v.strictObject(caseNames))),
    v.description("Of a rerun: the test cases that failed; absent: the whole task"),
  ),
  variables: v.pipe(
    v.record(v.string(), v.string()),
    v.description("Of the environment, and of the execution, which win"),
    v.examples([{ BASE_URL: "https://staging.shop.example" }]),
  ),
  secretNames: v.pipe(
    v.array(v.string()),
    v.description("Those whose values belong in no log"),
    v.examples([["API_TOKEN"]]),
  ),
  executionNames: described(
    v.array(v.string()),
    "Those that the execution itself has set: whoever has the project's key can, so a runner takes none that it was not told to",
    ["BROWSER"],
  ),
});
export type Lease = v.InferOutput<typeof lease>;

const leaseState = v.strictObject({
  id: described(uuid, "The lease"),
  expiresAt: described(
    v.nullable(time),
    "Until then it is to be named in held again; null: it is not this runner's any more",
  ),
  cancelled: v.pipe(v.boolean(), v.description("To be ended: cancelled, out of time, or not this runner's any more")),
  reason: described(v.nullable(v.string()), "Why it is to be ended; null: it is not", "The execution was cancelled"),
  logOffset: v.pipe(
    count,
    v.description("How many bytes of the log there have been: it goes on from here"),
    v.examples([18]),
  ),
});
export type LeaseState = v.InferOutput<typeof leaseState>;

export const leaseAnswer = v.strictObject({
  leases: described(v.array(lease), "What the runner is to begin now"),
  held: described(v.array(leaseState), "What has become of the leases that it has named"),
  nextSeconds: v.pipe(count, v.description("When the runner should come again if it holds anything"), v.examples([20])),
});

export const leaseFailure = v.strictObject({
  exitCode: described(v.optional(integer(-2_147_483_648, 4_294_967_295)), "How the command ended, if it did", 137),
  message: described(
    v.pipe(
      v.string("expected a text"),
      v.minLength(1, "expected a text"),
      v.maxLength(65_536, "expected at most 65536 characters"),
    ),
    "Why there is no report, at most 65,536 characters: it becomes the message of a failed test case",
    "The command left no report",
  ),
  infrastructure: described(
    v.optional(v.boolean("expected true or false"), false),
    "The runner could not run the task, which says nothing about the tests: another runner gets it, twice at most, and nothing is blamed",
    false,
  ),
  log: described(v.optional(logPart), "The rest of what the task has printed; its end goes with the failure"),
  ...machineNames,
});

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
    v.description("Where to go on, in bytes of UTF-8: nextOffset of the answer before"),
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
    "Of a task in shards: whose log. Default: the one that was begun last",
    2,
  ),
  lease_id: described(v.optional(uuid), "The log of this lease, such as one that was lost. Default: the newest one"),
});

export const leaseLog = v.strictObject({
  leaseId: v.pipe(v.nullable(uuid), v.description("The lease whose log it is; null: nothing has run yet")),
  offset: v.pipe(count, v.description("Of the first byte of the text: the last mebibyte is kept"), v.examples([0])),
  text: described(v.string(), "What was printed", "ok 1 adds an item\n"),
  nextOffset: described(count, "What the next request takes as offset", 18),
  ended: v.pipe(v.boolean(), v.description("Nothing more will come")),
});

/**
 * lost: its runner was not heard of any more; returned: its runner gave it back, or never said that it has it; infrastructure: its
 * runner could not run it.
 */
const LEASE_STATUSES = [
  ...(["queued", "offered", "running", "reported", "failed", "cancelled"] as const),
  ...(["lost", "returned", "infrastructure", "timed_out"] as const),
] as const;
export type LeaseStatus = (typeof LEASE_STATUSES)[number];

const runLease = v.strictObject({
  id: described(uuid, "The lease: lease_id of the log"),
  shard: described(v.nullable(v.strictObject(shardPlace)), "Which slice of the task; null: the whole task"),
  attempt: described(count, "How often it was handed out, without those that were given back", 1),
  runner: described(v.string(), "Who had it", "build-3/1"),
  status: described(
    v.picklist(LEASE_STATUSES),
    "lost: its runner was not heard of any more; returned: it gave the task back; infrastructure: it could not run the task",
    "lost",
  ),
  reason: described(v.nullable(v.string()), "Why it ended so", "The runner build-3/1 was lost"),
  exitCode: described(v.nullable(v.number()), "How the command ended, where there was no report", null),
  startedAt: described(v.nullable(time), "When the runner began; null: it never said so"),
  endedAt: described(v.nullable(time), "When it was over; null: it is not"),
});
export type RunLease = v.InferOutput<typeof runLease>;
export const runLeasePage = listPage(runLease);

/** What became of a lease that ended without a report. */
export const leaseEnd = v.strictObject({
  id: described(uuid, "The lease"),
  executionId,
  taskSlug: slug,
  status: v.pipe(
    v.picklist(["failed", "cancelled", "queued", "incomplete"]),
    v.description(
      "cancelled: it was to be ended, nothing failed. Of a failure of the infrastructure queued: another runner gets it; incomplete: nobody could run it",
    ),
  ),
});

const runner = v.strictObject({
  name: described(v.string(), "Its name, as it gives it", "build-3/1"),
  labels: described(v.array(v.string()), "What it has", ["linux"]),
  taskSlugs: v.pipe(v.nullable(v.array(v.string())), v.description("null: it runs every task"), v.examples([["unit"]])),
  free: v.pipe(count, v.description("How many tasks it could begin when it last asked"), v.examples([1])),
  seenAt: described(time, "When it last asked for tasks"),
  version: described(
    v.nullable(v.string()),
    "Its version of Assay, as it said when it started; null: unknown",
    "1.4.0",
  ),
  paused: described(
    v.nullable(
      v.strictObject({
        reason: described(v.string(), "Why", "Paused by Ann"),
        until: described(v.nullable(time), "When it gets tasks again; null: when somebody resumes it"),
      }),
    ),
    "It gets no new tasks, and goes on with what it has; null: it is not paused",
  ),
  leases: v.pipe(
    v.array(
      v.strictObject({
        id: described(uuid, "The lease"),
        executionId,
        taskSlug: slug,
        shard: described(v.nullable(v.strictObject(shardPlace)), "Which slice of the task; null: the whole task"),
        startedAt: described(v.nullable(time), "When the runner began it; null: not yet"),
      }),
    ),
    v.description("What it has been handed and has not ended"),
  ),
});
export type Runner = v.InferOutput<typeof runner>;
/** Pauses a runner, or resumes it. */
export const runnerPause = v.strictObject({
  runner: described(text(200), "Its name", "build-3/1"),
  paused: described(v.boolean("expected true or false"), "false: it gets tasks again", true),
  reason: described(v.optional(text(200)), "Why, for people", "The disk is exchanged"),
});
export const runnerPage = listPage(runner);
export const runnerFilter = v.strictObject(pageQuery);
