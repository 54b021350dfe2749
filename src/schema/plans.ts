/** Plans: which files of a task one of its shards is to run. */

import * as v from "valibot";
import { listOf } from "./bounded.ts";
import { count, described, shard, text } from "./fields.ts";

export const planQuery = v.strictObject({ shard: described(shard, "Which slice of how many", "2/4") });

export const plan = v.strictObject({
  files: v.pipe(
    v.array(v.string()),
    v.description("Of this shard, as reports have named them; by name"),
    v.examples([["test/cart.test.ts", "test/pay.test.ts"]]),
  ),
  timings: v.pipe(
    v.record(v.string(), count),
    v.examples([{ "test/cart.test.ts": 5200, "test/pay.test.ts": 4800, "test/user.test.ts": 9900 }]),
    v.description(
      "What each file of the whole task took, in milliseconds, the same for all shards: a file that is not in here is one " +
        "that the plan does not know",
    ),
  ),
  runs: v.pipe(
    count,
    v.examples([12]),
    v.description(
      "How many runs the timings are from; 0: the task has none yet, and its files are to be spread by hash, as those are " +
        "that the plan does not know",
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
  "The files that there are, as the job names them; at most 10,000",
  ["test/cart.test.ts", "test/pay.test.ts", "test/user.test.ts"],
);

export const planRequest = v.strictObject({ files: splitFiles });

export const batchRequest = v.strictObject({
  shard: described(shard, "Which of how many jobs asks", "2/4"),
  holder: described(
    text(200),
    "Who asks: the id of the lease, or of the CI job. What another holder of the shard has had before is handed out again",
    "8123-1",
  ),
  files: splitFiles,
});

export const batch = v.strictObject({
  files: v.pipe(
    v.array(v.string()),
    v.description(
      "To be run now, longest first, as the first job that asked or reports have named them; empty: all are taken",
    ),
    v.examples([["test/cart.test.ts"]]),
  ),
  left: described(count, "How many files nobody has taken yet", 41),
});
