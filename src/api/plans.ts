/** Plans: which files of a task one of its shards is to run, decided when the first of them asks. */

import { absent } from "../http/problem.ts";
import { route, type Route } from "../request/route.ts";
import { readTimings, requireHeldLease, takeBatch } from "../operations/executions/file_queues.ts";
import { longestShard, matchTimings, planShards } from "../rules/plan.ts";
import type { Shard } from "../schema/fields.ts";
import { batch, batchRequest, plan, type Plan, planQuery, planRequest } from "../schema/plans.ts";
import type { Sql, Tx } from "../database/connect.ts";
import {
  insertPlan,
  type PlanKey,
  putOffExpiry,
  selectFileTimings,
  selectPlan,
  type StoredPlan,
} from "../store/plans.ts";

const toPlan = ({ runs, files }: StoredPlan, index: number): Plan => ({
  files: files.flatMap(({ file, shard }) => (shard === index ? [file] : [])),
  timings: Object.fromEntries(files.map(({ file, ms }) => [file, ms])),
  runs,
});

/** What an execution waits for its first report, beside its time-out, whatever its shards took before. */
const MAX_WAIT_MS = 24 * 3_600_000;

/** Shards ask at the same moment: all are answered what the first of them has stored. */
async function preparePlan(sql: Sql, key: PlanKey, { index, of }: Shard, names?: readonly string[]) {
  const { runs, timings } = (await selectFileTimings(sql, key)) ?? absent();
  const matched = names && matchTimings(timings, names);
  // Where reports name other files than the job does, their durations say nothing of it.
  const isKnown = matched?.some(({ ms }) => ms !== null) === true;
  const fresh = { runs, files: planShards(isKnown ? matched! : timings, of) };
  return async (sql: Tx): Promise<Plan> => {
    await insertPlan(sql, key, of, fresh);
    await putOffExpiry(sql, key, Math.min(longestShard(fresh.files), MAX_WAIT_MS));
    return toPlan((await selectPlan(sql, key, of)) ?? absent(), index);
  };
}

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
    async ({ sql, params, query: { shard }, transact }) => {
      const stored = await selectPlan(sql, params, shard.of);
      return stored ? toPlan(stored, shard.index) : await transact(await preparePlan(sql, params, shard));
    },
  ),

  route(
    "POST /projects/:projectId/executions/:executionId/test-runs/:taskSlug/plan",
    {
      scope: "upload",
      summary: "The files of one shard of a task, of those that there are: new files are planned as well",
      description:
        "As GET, and the first list of files becomes part of the plan: a file that no run has told of is taken for as long as the " +
        "median of the others, and a known one that is not there takes nobody's time.",
      example: { query: { shard: "2/4" }, body: { files: ["test/cart.test.ts", "test/pay.test.ts"] } },
      query: planQuery,
      body: planRequest,
      answer: plan,
    },
    async ({ sql, params, query: { shard }, body, conclude }) => {
      const stored = await selectPlan(sql, params, shard.of);
      const prepared = stored ? () => toPlan(stored, shard.index) : await preparePlan(sql, params, shard, body.files);
      return await conclude(async (sql) => await prepared(sql));
    },
  ),

  route(
    "POST /projects/:projectId/executions/:executionId/test-runs/:taskSlug/batches",
    {
      scope: "upload",
      isForRunners: true,
      summary:
        "The next files of a shard, whose files before these have been run: a split that goes by how fast each job is",
      description:
        "The first list of files makes the queue, longest first by what they took before. Each call hands out the next batch and says that the one " +
        "before it has been run. All jobs are done when the answer has no files. Repeat a call with the same " +
        "Idempotency-Key where its answer was lost.",
      example: {
        body: { shard: "2/4", holder: "8123-1", files: ["test/cart.test.ts", "test/pay.test.ts", "test/user.test.ts"] },
      },
      body: batchRequest,
      answer: batch,
    },
    async ({ sql, params, body, caller, conclude }) => {
      const timings = await readTimings(sql, params);
      return await conclude(async (sql) => {
        if (caller.scope === "runner") await requireHeldLease(sql, params, body, caller.name!);
        return await takeBatch(sql, params, body, timings);
      });
    },
  ),
];
