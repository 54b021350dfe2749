/** The files of tasks that are split while they run. */

import type { FileQueue } from "../rules/batches.ts";
import { toNumberArray, toTextArray, type Tx } from "../database/connect.ts";
import type { PlanKey } from "./plans.ts";

type StoredQueue = FileQueue & { runs: number; files: string[] };

/** The queue, locked: shards take their batches one after the other. */
export const lockFileQueue = async (
  sql: Tx,
  { projectId, executionId, taskSlug }: PlanKey,
  shards: number,
): Promise<StoredQueue | undefined> => {
  const [row] = await sql<StoredQueue[]>`
    select runs, to_json(files) as files, to_json(durations) as durations, to_json(file_shards) as places, to_json(file_batches) as batches,
      to_json(holders) as holders, to_json(acknowledged) as acknowledged
    from file_queue
    where project_id = ${projectId} and execution_id = ${executionId} and task_slug = ${taskSlug} and shards = ${shards}
    for update`;
  return row;
};

/** Inserts the first queue; concurrent requests, also on other servers, find it. */
export const insertFileQueue = (
  sql: Tx,
  { projectId, executionId, taskSlug }: PlanKey,
  { runs, files, ...queue }: StoredQueue,
) => sql`
  insert into file_queue (project_id, execution_id, task_slug, shards, runs, files, durations, file_shards, file_batches, holders, acknowledged)
  select ${projectId}, id, ${taskSlug}, ${queue.holders.length}, ${runs}, ${toTextArray(files)}::text[],
    ${toNumberArray(queue.durations)}::int[], ${toNumberArray(queue.places)}::smallint[],
    ${toNumberArray(queue.batches)}::smallint[], ${toTextArray(queue.holders)}::text[],
    ${toNumberArray(queue.acknowledged)}::smallint[]
  from execution where project_id = ${projectId} and id = ${executionId} for key share
  on conflict do nothing`;

export const updateFileQueue = (sql: Tx, { projectId, executionId, taskSlug }: PlanKey, queue: FileQueue) => sql`
  update file_queue set file_shards = ${toNumberArray(queue.places)}::smallint[],
    file_batches = ${toNumberArray(queue.batches)}::smallint[], holders = ${toTextArray(queue.holders)}::text[],
    acknowledged = ${toNumberArray(queue.acknowledged)}::smallint[]
  where project_id = ${projectId} and execution_id = ${executionId} and task_slug = ${taskSlug}
    and shards = ${queue.holders.length}`;
