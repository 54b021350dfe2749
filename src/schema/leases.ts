/** Leases: tasks that are handed out to runners, one to one. */

import * as v from "valibot";
import { listOf } from "./bounded.ts";
import { executionOrigin } from "./executions.ts";
import { taskLabel } from "./planned_tasks.ts";
import { caseNames } from "./case_ref.ts";
import { count, described, distinct, executionId, integer, machineNames, slug, text, time, uuid } from "./fields.ts";

/** Maximum length of a log part in one call, in UTF-16 units; a text has at most as many of them as bytes. */
const MAX_LOG_PART = 262_144;
/** How many leases a runner may hold. */
const MAX_HELD = 256;
const MAX_FREE = 64;

/** A part of a log, from a byte offset on; of whatever a program prints. */
const logPart = v.strictObject({
  offset: v.pipe(
    integer(0, 2 ** 40),
    v.description(
      "The offset of the first byte of the text in the whole log, in bytes of UTF-8; bytes missing before it are " +
        "skipped",
    ),
  ),
  text: v.pipe(
    v.string("expected a text"),
    v.maxLength(MAX_LOG_PART, `expected a text of at most ${MAX_LOG_PART} characters`),
    v.description("The output from this offset, at most 262,144 characters; the runner has masked secrets"),
    v.examples(["ok 1 adds an item\n"]),
  ),
});

const heldLease = v.strictObject({
  id: described(uuid, "The lease"),
  log: described(v.optional(logPart), "The output of the task since the last call"),
});

export const shardPlace = {
  index: described(count, "The number of the shard, from 1", 2),
  total: described(count, "The number of shards", 4),
};

export const leaseSync = v.strictObject({
  runner: described(
    v.optional(text(200)),
    "The name of the runner, unique for each process. Default for the key of a runner: its own",
    "build-3/1",
  ),
  labels: described(
    v.optional(
      listOf(taskLabel, { max: 50, expected: "expected a list of labels", tooMany: "expected at most 50 labels" }),
      [],
    ),
    "The labels of the runner, at most 50; it gets only tasks whose labels it all has",
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
    v.description("The tasks that the runner can run. Default: every task"),
    v.examples([["unit"]]),
  ),
  probeSlugs: described(
    v.optional(
      listOf(slug, {
        max: 2_000,
        expected: "expected a list of task slugs",
        tooMany: "expected at most 2,000 task slugs",
      }),
      [],
    ),
    "The tasks of which the runner can run one test case at any commit, because its configuration has checkout and " +
      "rerun for them. It gets probes only of these",
    ["unit"],
  ),
  free: v.pipe(v.optional(integer(0, MAX_FREE), 1), v.description("The number of tasks that it can begin now")),
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
    v.description(
      "The leases that the runner holds: each is extended to 90 s from now, and receipt of new ones is confirmed",
    ),
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
    v.description(
      "Leases that the runner returns without having begun them; they are queued again without using an attempt",
    ),
  ),
  stopping: described(
    v.optional(v.boolean("expected true or false"), false),
    "Whether this is the last request of the runner: it is offline from now on",
    false,
  ),
  waitSeconds: v.pipe(
    v.optional(integer(0, 55), 0),
    v.description("The maximum time in seconds to wait for a change; proxies usually time out after 60 s"),
  ),
});
export type LeaseSync = v.InferOutput<typeof leaseSync>;

const lease = v.strictObject({
  id: described(uuid, "The id of the lease, to send in held from now on and as lease_id of the report"),
  expiresAt: v.pipe(
    time,
    v.description("The lease must be sent in held before this time, or the task goes to another runner"),
  ),
  timeoutSeconds: described(count, "The time limit of the command, in seconds", 2700),
  execution: described(
    v.strictObject({
      id: described(uuid, "The id of the execution"),
      key: executionOrigin.key,
      branch: executionOrigin.branch,
      commit: executionOrigin.commit,
      pullRequest: executionOrigin.pullRequest,
      environment: executionOrigin.environment,
      baseUrl: described(v.nullable(v.string()), "The base address of the environment", "https://staging.shop.example"),
    }),
    "The execution of the task",
  ),
  taskSlug: slug,
  attempt: v.pipe(count, v.description("2: an earlier runner was lost"), v.examples([1])),
  shard: described(v.optional(v.strictObject(shardPlace)), "The slice of the task; absent: the whole task"),
  only: v.pipe(
    v.optional(v.array(v.strictObject(caseNames))),
    v.description(
      "For a rerun: the test cases that failed; for a probe: the test case that it is about, or those of the searches that share " +
        "it; absent: the whole task",
    ),
  ),
  probe: described(
    v.optional(v.literal(true)),
    "Present for a probe: only the test cases in only are run, and the end of a commit that cannot be checked out or " +
      "built is reported with the reason no_build",
  ),
  commits: described(
    v.optional(
      v.strictObject({
        good: described(v.string(), "The commit before the range", "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567"),
        bad: described(v.string(), "The last commit of the range", "c4d5e6f0127a8b9c0d1e2f3a4b5c6d7e8f901234"),
      }),
    ),
    "Present for a probe that runs no command: the runner lists the commits of this range and sends them to POST " +
      "…/leases/{leaseId}/commits",
  ),
  variables: v.pipe(
    v.record(v.string(), v.string()),
    v.description("The variables of the environment, overridden by those of the execution"),
    v.examples([{ BASE_URL: "https://staging.shop.example" }]),
  ),
  secretNames: v.pipe(
    v.array(v.string()),
    v.description("The names of variables whose values must be masked in logs"),
    v.examples([["API_TOKEN"]]),
  ),
  executionNames: described(
    v.array(v.string()),
    "The names of variables that the execution itself has set. Anyone with the project's key can set them, so a " +
      "runner accepts only those that its configuration names",
    ["BROWSER"],
  ),
});
export type Lease = v.InferOutput<typeof lease>;

const leaseState = v.strictObject({
  id: described(uuid, "The lease"),
  expiresAt: described(
    v.nullable(time),
    "The lease must be sent in held again before this time; null: it no longer belongs to this runner",
  ),
  cancelled: v.pipe(
    v.boolean(),
    v.description(
      "The task must be ended: it was cancelled, reached its time limit, or no longer belongs to this runner",
    ),
  ),
  reason: described(
    v.nullable(v.string()),
    "Why the runner must end the task; null: it need not",
    "The execution was cancelled",
  ),
  logOffset: v.pipe(
    count,
    v.description("The length of the log so far in bytes, which is the next offset"),
    v.examples([18]),
  ),
});
export type LeaseState = v.InferOutput<typeof leaseState>;

export const leaseAnswer = v.strictObject({
  leases: described(v.array(lease), "The tasks to begin now"),
  held: described(v.array(leaseState), "The state of the leases that were sent in held"),
  nextSeconds: v.pipe(
    count,
    v.description("The number of seconds until the next call if the runner holds leases"),
    v.examples([20]),
  ),
});

export const leaseFailure = v.strictObject({
  exitCode: described(
    v.optional(integer(-2_147_483_648, 4_294_967_295)),
    "The exit code of the command, if it ended",
    137,
  ),
  message: described(
    v.pipe(
      v.string("expected a text"),
      v.minLength(1, "expected a text"),
      v.maxLength(65_536, "expected at most 65536 characters"),
    ),
    "Why there is no report, at most 65,536 characters; used as the message of a failed test case",
    "The command wrote no report",
  ),
  infrastructure: described(
    v.optional(v.boolean("expected true or false"), false),
    "The runner could not run the task for reasons outside the tests: another runner gets it, at most twice, and no " +
      "test is blamed",
    false,
  ),
  reason: described(
    v.optional(v.picklist(["no_build"], 'expected "no_build"')),
    "For a probe: no_build if the commit cannot be checked out, or its build command failed",
    "no_build",
  ),
  log: described(v.optional(logPart), "The remaining output of the task; its end is stored with the failure"),
  ...machineNames,
});

export const leaseCommit = v.strictObject({
  commit: described(
    v.pipe(v.string("expected a text"), v.regex(/^([0-9a-f]{40}|[0-9a-f]{64})$/, "expected a full commit hash")),
    "The full hash of a commit",
    "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567",
  ),
});

export const settledCommit = v.strictObject({
  commit: described(
    v.string(),
    "The commit that every task of the execution tests",
    "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567",
  ),
});

/** What became of a lease that ended without a report. */
export const leaseEnd = v.strictObject({
  id: described(uuid, "The lease"),
  executionId,
  taskSlug: slug,
  status: v.pipe(
    v.picklist(["failed", "cancelled", "queued", "incomplete", "passed"]),
    v.description(
      "passed: the commits were accepted; cancelled: the task had to be ended, nothing failed. For an infrastructure failure: queued: another runner gets " +
        "the task; incomplete: no runner could run it",
    ),
  ),
});

/** Why no runner will take a queued task: none is online, all are paused, or none that is online has the task, its labels, or probes. */
export type MissingRunner = {
  cause: "none_online" | "all_paused" | "no_task" | "no_labels" | "no_probes";
  taskSlug: string;
  /** Labels that a runner must have. */
  labels: string[];
};
