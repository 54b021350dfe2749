/** Reclaims leases of lost runners, and ends tasks that take too long. */

import type { Log } from "../log.ts";
import { endOverdue } from "../operations/executions/lease_ends.ts";
import type { Database } from "../database/connect.ts";
import { selectOverdueLease } from "../store/leases.ts";
import { always, type GoOn, standardLog, takeAll } from "./loop.ts";

/** Returns the number of leases processed, each in a transaction of its own. Several servers may run this at once. */
export async function reclaimLeases(
  { pool, begin }: Pick<Database, "pool" | "begin">,
  goOn: GoOn = always,
  log: Log = standardLog,
): Promise<number> {
  return await takeAll(
    pool,
    {
      failing: "Cannot reclaim an expired lease",
      async next(take) {
        const lease = await selectOverdueLease(pool);
        if (!lease) return false;
        const { projectId, id, executionId } = lease;
        take({ loop: "lease", id, about: { leaseId: id, executionId, projectId } });
        return await begin((sql) => endOverdue(sql, projectId, { id, executionId }));
      },
    },
    log,
    goOn,
  );
}
