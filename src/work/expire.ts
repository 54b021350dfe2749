/** Ends executions for which nothing has arrived in their time. */

import type { Log } from "../log.ts";
import { reasonOfSilence } from "../operations/automation/dispatch.ts";
import { advanceExecution } from "../operations/executions/advance.ts";
import type { Database } from "../database/connect.ts";
import { always, type GoOn, standardLog, takeAll } from "./loop.ts";
import { lockExecution, lockExpiredExecutions } from "../store/executions.ts";

/**
 * Ends expired executions and returns their number. Each is a transaction of its own, so that none waits for another's rows while it holds
 * some. Several servers may run this at once: each skips those that another is processing.
 */
export async function expireExecutions(
  { pool, begin }: Pick<Database, "pool" | "begin">,
  goOn: GoOn = always,
  log: Log = standardLog,
): Promise<number> {
  return await takeAll(
    pool,
    {
      failing: "Cannot end an expired execution",
      async next(take) {
        return await begin(async (sql) => {
          const [expired] = await lockExpiredExecutions(sql, 1);
          if (!expired) return false;
          const { projectId, id, timeoutMinutes } = expired;
          take({ loop: "expiry", id, about: { executionId: id, projectId } });
          const execution = await lockExecution(sql, projectId, id);
          if (!execution) return false;
          const reason = await reasonOfSilence(sql, projectId, id);
          await advanceExecution(sql, projectId, execution, "expired", {
            arrived: false,
            now: new Date(),
            reason,
            timeoutMinutes,
          });
          return true;
        });
      },
    },
    log,
    goOn,
  );
}
