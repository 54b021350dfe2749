/** Dynamic splitting: shards take batches of a task's files while they run. */

import { countUnrun, newQueue, nextBatch, orderFiles, releaseShard } from "../../rules/batches.ts";
import { matchTimings } from "../../rules/plan.ts";
import { refuse, refuseAbsent } from "../../schema/refusal.ts";
import type { Shard } from "../../schema/fields.ts";
import type { Sql, Tx } from "../../database/connect.ts";
import { insertFileQueue, lockFileQueue, updateFileQueue } from "../../store/file_queues.ts";
import { lockLease } from "../../store/leases.ts";
import { type FileTimings, type PlanKey, selectFileTimings } from "../../store/plans.ts";

/** Of files whose durations are known: starting a tool takes some seconds, so that smaller batches cost more than they bring. */
const MIN_BATCH_MS = 4_000;

export type BatchRequest = {
  shard: Shard;
  /** The lease or CI job that asks: another one has not the results of the one before it. */
  holder: string;
  files: readonly string[];
};

export type FileBatch = { files: string[]; left: number };

/** What a task's files took, for a transaction that makes the queue: looked up before, because that takes its time. */
export const readTimings = async (sql: Sql, key: PlanKey): Promise<FileTimings> =>
  (await selectFileTimings(sql, key)) ?? refuseAbsent();

/** In a transaction: the next batch of a shard, whose batch before this one has been run. The first list of files makes the queue. */
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

/** In a transaction: refuses a runner that has not, or has no more, the lease for which it asks. */
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

/** In the transaction that takes a lease from its runner: the files that the shard has run are run again, by whoever is free. */
export async function releaseFiles(sql: Tx, key: PlanKey, shard: Shard): Promise<void> {
  const queue = await lockFileQueue(sql, key, shard.of);
  if (queue) await updateFileQueue(sql, key, releaseShard(queue, shard.index));
}

/**
 * In the transaction that takes the report of a shard: what of the task's files nobody has run, in words for people; undefined: all
 * have been run, or shards that have not reported may still run them, or the task is not split so.
 */
export async function findUnrunFiles(
  sql: Tx,
  key: PlanKey,
  shard: Shard,
  hasAllOthers: boolean,
): Promise<string | undefined> {
  const queue = await lockFileQueue(sql, key, shard.of);
  if (!queue) return undefined;
  const { own, waiting } = countUnrun(queue, shard.index);
  const files = (count: number) => `${count} ${count === 1 ? "file" : "files"} of the split`;
  if (own > 0) return `${files(own)} went to this shard, which has not said that it has run them`;
  if (hasAllOthers && waiting > 0) return `${files(waiting)} went to no shard`;
  return undefined;
}
