/** Plans: which files of a task one of its shards is to run. */

import * as v from "valibot";
import { count, described, shard } from "./fields.ts";

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
