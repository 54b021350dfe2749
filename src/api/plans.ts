/** Plans: which files of a task one of its shards is to run, decided when the first of them asks. */

import { absent } from "../http/problem.ts";
import { route, type Route } from "../request/route.ts";
import { planShards, longestShard } from "../rules/plan.ts";
import { plan, type Plan, planQuery } from "../schema/plans.ts";
import { insertPlan, putOffExpiry, selectFileTimings, selectPlan, type StoredPlan } from "../store/plans.ts";

const toPlan = ({ runs, files }: StoredPlan, index: number): Plan => ({
  files: files.flatMap(({ file, shard }) => (shard === index ? [file] : [])),
  timings: Object.fromEntries(files.map(({ file, ms }) => [file, ms])),
  runs,
});

/** What an execution waits for its first report, beside its time-out, whatever its shards took before. */
const MAX_WAIT_MS = 24 * 3_600_000;

export const plans: Route[] = [
  route(
    "GET /projects/:projectId/executions/:executionId/test-runs/:taskSlug/plan",
    {
      isForRunners: true,
      summary: "The files of one shard of a task, by what they took before; the same for ever once made",
      description:
        "Spreads the files over so many shards that all end at about the same time, by what they took in the last " +
        "runs. It is made once for each task and number of shards: a shard that asks again gets its own slice again, " +
        "and the slices are a whole. A file that timings does not name is to be given to a shard by its hash.",
      example: { query: { shard: "2/4" } },
      query: planQuery,
      answer: plan,
    },
    async ({ sql, params, query, transact }) => {
      const { index, of } = query.shard;
      const stored = await selectPlan(sql, params, of);
      if (stored) return toPlan(stored, index);
      const { runs, timings } = (await selectFileTimings(sql, params)) ?? absent();
      const fresh = { runs, files: planShards(timings, of) };
      // Shards ask at the same moment: all are answered what the first of them has stored.
      const kept = await transact(async (sql) => {
        await insertPlan(sql, params, of, fresh);
        await putOffExpiry(sql, params, Math.min(longestShard(fresh.files), MAX_WAIT_MS));
        return await selectPlan(sql, params, of);
      });
      return toPlan(kept ?? absent(), index);
    },
  ),
];
