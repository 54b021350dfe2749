/** Makes room: deletes the results of runs that are older than their project keeps them. The runs keep their counts. */

import type { Log } from "../log.ts";
import type { Database } from "../database/connect.ts";
import { always, eachOf, type GoOn, standardLog } from "./loop.ts";
import { firstIdAt } from "../database/time_bounds.ts";
import { deleteOldLeases } from "../store/leases.ts";
import { deleteOldFileQueues } from "../store/file_queues.ts";
import { deleteOldPlans } from "../store/plans.ts";
import { createPartitions, deleteOldResults, dropPartitions } from "../database/partitions.ts";
import { selectIsBackupRunning } from "../database/snapshot.ts";
import { selectRetentions } from "../store/projects.ts";

const DAY = 86_400_000;

/** `retentionDays` is for projects that say nothing themselves; 0: for ever. A project that fails keeps no other waiting. */
export async function retainResults(
  { pool }: Pick<Database, "pool">,
  retentionDays: number,
  now: Date,
  goOn: GoOn = always,
  log: Log = standardLog,
): Promise<void> {
  // Partitions are made and dropped under locks that a backup holds up, and that would hold up uploads meanwhile.
  if (await selectIsBackupRunning(pool)) return;
  const months = { failing: "Cannot make or drop the months of results", about: () => ({}) };
  await eachOf([now], months, (now) => createPartitions(pool, now), log);
  const projects = (await selectRetentions(pool)).map(({ id, days }) => ({ id, days: days ?? retentionDays }));
  const floorOf = (days: number) => firstIdAt(now.getTime() - days * DAY);
  // A month that nobody keeps goes as a whole, and its disk space with it; what is left of others goes row by row.
  const longest = projects.some(({ days }) => days === 0) ? 0 : Math.max(0, ...projects.map(({ days }) => days));
  if (longest > 0) await eachOf([floorOf(longest)], months, (floor) => dropPartitions(pool, floor), log);
  await eachOf(
    projects.filter(({ days }) => days > 0),
    { failing: "Cannot delete the old results of a project", about: ({ id }) => ({ projectId: id }) },
    async ({ id, days }) => {
      while (goOn() && (await deleteOldResults(pool, id, floorOf(days))) > 0);
      while (goOn() && (await deleteOldLeases(pool, id, floorOf(days))) > 0);
      while (goOn() && (await deleteOldPlans(pool, id, floorOf(days))) > 0);
      while (goOn() && (await deleteOldFileQueues(pool, id, floorOf(days))) > 0);
    },
    log,
    goOn,
  );
}
