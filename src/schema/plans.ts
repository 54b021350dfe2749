/** Plans: which files of a task one of its shards is to run. */

import * as v from "valibot";
import { listOf } from "./bounded.ts";
import { count, described, shard, text } from "./fields.ts";

export const planQuery = v.strictObject({ shard: described(shard, "The shard, such as 2/4", "2/4") });

export const plan = v.strictObject({
  files: v.pipe(
    v.array(v.string()),
    v.description("The files of this shard, as reports name them, sorted by name"),
    v.examples([["test/cart.test.ts", "test/pay.test.ts"]]),
  ),
  timings: v.pipe(
    v.record(v.string(), count),
    v.examples([{ "test/cart.test.ts": 5200, "test/pay.test.ts": 4800, "test/user.test.ts": 9900 }]),
    v.description(
      "The duration of each file of the whole task in milliseconds, the same for all shards. A file that is missing " +
        "here is unknown to the plan",
    ),
  ),
  runs: v.pipe(
    count,
    v.examples([12]),
    v.description(
      "The number of runs that the timings come from; 0: the task has no runs yet, so assign its files by hash, as " +
        "unknown files",
    ),
  ),
});
export type Plan = v.InferOutput<typeof plan>;

/** A body has no room for more with long names. */
export const MAX_SPLIT_FILES = 10_000;
const splitFiles = described(
  listOf(text(1_000), {
    max: MAX_SPLIT_FILES,
    expected: "expected a list of files",
    tooMany: "expected at most 10,000 files",
  }),
  "The existing files, as the job names them; at most 10,000",
  ["test/cart.test.ts", "test/pay.test.ts", "test/user.test.ts"],
);

export const planRequest = v.strictObject({
  files: splitFiles,
  holder: described(
    v.optional(text(200)),
    "For a runner: the lease of the shard",
    "0192f3a4-0000-7000-8000-000000000000",
  ),
});

export const batchRequest = v.strictObject({
  shard: described(shard, "The shard of the requesting job", "2/4"),
  holder: described(
    text(200),
    "The requesting job: the id of the lease or of the CI job. Files that an earlier holder of the shard had are " +
      "handed out again",
    "8123-1",
  ),
  files: splitFiles,
});

export const batch = v.strictObject({
  files: v.pipe(
    v.array(v.string()),
    v.description(
      "The files to run now, longest first, as the first job or the reports name them; empty: no files are left",
    ),
    v.examples([["test/cart.test.ts"]]),
  ),
  left: described(count, "The number of files that no job has taken yet", 41),
});
