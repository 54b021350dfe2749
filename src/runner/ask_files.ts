/** Asks the server which files a shard is to run. */

import { batchesPath, planPath } from "../rules/plan.ts";
import { keepAsking, type ServerConnection } from "./line.ts";
import type { RunnerLease, ServerAnswer } from "./protocol.ts";

const shardOf = ({ shard = { index: 1, total: 1 } }: RunnerLease) => ({ index: shard.index, of: shard.total });

/**
 * The plan of the shard; undefined where the task has no shards, or is to end. Without an answer a part of the shards would go by it, and
 * a part not: nothing would tell of the files that none of them ran.
 */
export async function askServerForPlan(
  line: ServerConnection,
  lease: RunnerLease,
  stop: AbortSignal,
): Promise<ServerAnswer | "no answer" | undefined> {
  if (!lease.shard) return undefined;
  const path = planPath(lease.execution.id, lease.taskSlug, shardOf(lease));
  const answer = await keepAsking(line, { method: "GET", path }, () => stop.aborted);
  return answer ?? (stop.aborted ? undefined : "no answer");
}

/** The plan of the shard, for the files that the task has; or its next files, when its files before these have been run. */
export async function askServerForFiles(
  line: ServerConnection,
  lease: RunnerLease,
  stop: AbortSignal,
  kind: "plan" | "batch",
  files: readonly string[],
): Promise<ServerAnswer | undefined> {
  const shard = shardOf(lease);
  const { execution, taskSlug, id: holder } = lease;
  const ofBatch = { shard: `${shard.index}/${shard.of}`, holder, files };
  const asking = {
    method: "POST" as const,
    path: kind === "plan" ? planPath(execution.id, taskSlug, shard) : batchesPath(execution.id, taskSlug),
    headers: { "Content-Type": "application/json", "Idempotency-Key": crypto.randomUUID() },
    body: JSON.stringify(kind === "plan" ? { holder, files } : ofBatch),
  };
  return await keepAsking(line, asking, () => stop.aborted);
}
