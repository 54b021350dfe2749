/** Dynamic splitting: shards take batches of a task's files while they run. */

import { newQueue, nextBatch, orderFiles, releaseShard } from "../../rules/batches.ts";
import { matchTimings } from "../../rules/plan.ts";
import { refuse, refuseAbsent } from "../../schema/refusal.ts";
import type { Shard } from "../../schema/fields.ts";
import type { Sql, Tx } from "../../database/connect.ts";
import { insertFileQueue, lockFileQueue, updateFileQueue } from "../../store/file_queues.ts";
import { lockLease } from "../../store/leases.ts";
import { type FileTimings, type PlanKey, selectFileTimings } from "../../store/plans.ts";

/** Minimum duration of a batch of files with known durations. Starting a tool takes some seconds, so smaller batches do not pay off. */
const MIN_BATCH_MS = 4_000;

export type BatchRequest = {
  shard: Shard;
  /** The lease or CI job that requests the batch. A new holder does not have the results of the previous one. */
  holder: string;
  files: readonly string[];
};

export type FileBatch = { files: string[]; left: number };

/** Reads the durations of a task's files before the transaction that creates the queue, because the query is slow. */
export const readTimings = async (sql: Sql, key: PlanKey): Promise<FileTimings> =>
  (await selectFileTimings(sql, key)) ?? refuseAbsent();

/**
 * Returns the next batch of a shard, which has run its previous one, in a transaction. The first request with a list of files creates the
 * queue.
 */
export async function takeBatch(
  sql: Tx,
  key: PlanKey,
  { shard, holder, files }: BatchRequest,
  { runs, timings }: FileTimings,
): Promise<FileBatch> {
  let stored = await lockFileQueue(sql, key, shard.of);
  if (!stored) {
    const ordered = orderFiles(matchTimings(timings, files));
    const fresh = newQueue(
      ordered.map(({ ms }) => ms),
      shard.of,
    );
    await insertFileQueue(sql, key, { ...fresh, runs, files: ordered.map(({ file }) => file) });
    stored = (await lockFileQueue(sql, key, shard.of)) ?? refuseAbsent();
  }
  const next = nextBatch(stored, { shard: shard.index, holder, minMs: stored.runs > 0 ? MIN_BATCH_MS : 0 });
  await updateFileQueue(sql, key, next.queue);
  return {
    files: next.files.map((at) => stored.files[at]!),
    left: next.queue.places.filter((place) => place === 0).length,
  };
}

/** Refuses a runner that does not hold, or no longer holds, the lease that it names; in a transaction. */
export async function requireHeldLease(
  sql: Tx,
  { projectId, executionId, taskSlug }: PlanKey,
  { shard, holder }: { shard: Shard; holder?: string | undefined },
  runner: string,
): Promise<void> {
  const lease = holder === undefined ? undefined : await lockLease(sql, projectId, holder);
  const isIts =
    lease?.runner === runner &&
    (lease.status === "offered" || lease.status === "running") &&
    lease.executionId === executionId &&
    lease.taskSlug === taskSlug &&
    (lease.shard || 1) === shard.index &&
    lease.shards === shard.of;
  if (!isIts) refuse(`Cannot read "holder": expected a lease that this runner holds, of this task and shard`);
}

/** Returns the files of a shard to the queue, in the transaction that revokes its lease, so that any free shard runs them again. */
export async function releaseFiles(sql: Tx, key: PlanKey, shard: Shard): Promise<void> {
  const queue = await lockFileQueue(sql, key, shard.of);
  if (queue) await updateFileQueue(sql, key, releaseShard(queue, shard.index));
}
