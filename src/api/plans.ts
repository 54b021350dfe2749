/** Plans: the files of a task that one of its shards runs, decided at the first request of a shard. */

import { absent } from "../http/problem.ts";
import { route, type Route } from "../request/route.ts";
import { readTimings, requireHeldLease, takeBatch } from "../operations/executions/file_queues.ts";
import { longestShard, matchTimings, planShards } from "../rules/plan.ts";
import type { Shard } from "../schema/fields.ts";
import { batch, batchRequest, plan, type Plan, planQuery, planRequest } from "../schema/plans.ts";
import type { Sql, Tx } from "../database/connect.ts";
import { selectHoldsShard } from "../store/leases.ts";
import {
  insertPlan,
  type PlanKey,
  postponeExpiry,
  selectFileTimings,
  selectPlan,
  type StoredPlan,
  addPlanFiles,
} from "../store/plans.ts";

const toPlan = ({ runs, files }: StoredPlan, index: number): Plan => ({
  files: files.flatMap(({ file, shard }) => (shard === index ? [file] : [])),
  timings: Object.fromEntries(files.map(({ file, ms }) => [file, ms])),
  runs,
});

/** Maximum time that the first report may be expected after the timeout, however long the shards took before. */
const MAX_WAIT_MS = 24 * 3_600_000;

/** Creates the plan of concurrent shards: all get the one that the first of them has stored. */
async function preparePlan(sql: Sql, key: PlanKey, { index, of }: Shard, names?: readonly string[]) {
  const { runs, timings } = (await selectFileTimings(sql, key)) ?? absent();
  const matched = names && matchTimings(timings, names);
  // If reports name other files than the job, their durations do not apply.
  const isKnown = matched?.some(({ ms }) => ms !== null) === true;
  const fresh = {
    runs,
    files: planShards(isKnown ? matched! : timings, of),
    given: names === undefined ? null : [...new Set(names)],
  };
  return async (sql: Tx): Promise<Plan> => {
    await insertPlan(sql, key, of, fresh);
    await postponeExpiry(sql, key, Math.min(longestShard(fresh.files), MAX_WAIT_MS));
    return toPlan((await selectPlan(sql, key, of)) ?? absent(), index);
  };
}

export const plans: Route[] = [
  route(
    "GET /projects/:projectId/executions/:executionId/test-runs/:taskSlug/plan",
    {
      isForRunners: true,
      summary: "Get the files of one shard, balanced by duration",
      description:
        "Distributes the files over the shards so that all shards end at about the same time, using the durations of the " +
        "last runs. The plan is created once for each task and number of shards: a repeated request returns the same " +
        "files, and the shards together contain every file. Assign a file that timings does not name by its hash.",
      example: { query: { shard: "2/4" } },
      query: planQuery,
      answer: plan,
    },
    async ({ sql, params, query: { shard }, caller, transact }) => {
      if (caller.scope === "runner" && !(await selectHoldsShard(sql, params, { shard, runner: caller.name! })))
        absent();
      const stored = await selectPlan(sql, params, shard.of);
      return stored ? toPlan(stored, shard.index) : await transact(await preparePlan(sql, params, shard));
    },
  ),

  route(
    "POST /projects/:projectId/executions/:executionId/test-runs/:taskSlug/plan",
    {
      scope: "upload",
      isForRunners: true,
      summary: "Get the files of one shard from a list of existing files",
      description:
        "Like GET, but the first list of files becomes part of the plan: a new file is assumed to take as long as the " +
        "median of the others, and a known file that does not exist is ignored.",
      example: { query: { shard: "2/4" }, body: { files: ["test/cart.test.ts", "test/pay.test.ts"] } },
      query: planQuery,
      body: planRequest,
      answer: plan,
    },
    async ({ sql, params, query: { shard }, body: { files, holder }, caller, conclude }) => {
      const stored = await selectPlan(sql, params, shard.of);
      const prepared = stored ? () => toPlan(stored, shard.index) : await preparePlan(sql, params, shard, files);
      return await conclude(async (sql) => {
        if (caller.scope === "runner") await requireHeldLease(sql, params, { shard, holder }, caller.name!);
        const plan = await prepared(sql);
        await addPlanFiles(sql, params, shard.of, [...new Set(files)]);
        return plan;
      });
    },
  ),

  route(
    "POST /projects/:projectId/executions/:executionId/test-runs/:taskSlug/batches",
    {
      scope: "upload",
      isForRunners: true,
      summary: "Get the next batch of files for a shard",
      description:
        "Faster jobs get more files. The first list of files creates the queue, longest first by earlier durations. Each " +
        "call hands out the next batch and confirms that the previous one has run. All jobs are done when the answer has " +
        "no files. If an answer was lost, repeat the call with the same Idempotency-Key.",
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
