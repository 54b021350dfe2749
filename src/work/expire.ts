/** Ends executions for which nothing has arrived in their time. */

import { settleExecution } from "../settle.ts";
import type { Database } from "../store/connect.ts";
import { lockExecution, lockExpiredExecutions } from "../store/executions.ts";

const BATCH = 100;

/** How many have ended. Any number of servers may do this at once: each takes what no other has. */
export async function expireExecutions({ begin }: Pick<Database, "begin">): Promise<number> {
  return await begin(async (sql) => {
    const expired = await lockExpiredExecutions(sql, BATCH);
    for (const { projectId, id } of expired) {
      const execution = await lockExecution(sql, projectId, id);
      if (execution) await settleExecution(sql, projectId, execution, "expired", { arrived: false, now: new Date() });
    }
    return expired.length;
  });
}
