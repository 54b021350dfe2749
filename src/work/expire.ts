/** Ends executions for which nothing has arrived in their time. */

import { settleExecution } from "../settle.ts";
import type { Database } from "../store/connect.ts";
import { always, type GoOn } from "./loop.ts";
import { lockExecution, lockExpiredExecutions } from "../store/executions.ts";

/**
 * How many have ended, each in a transaction of its own, so that none waits for another's rows while it holds some. Any
 * number of servers may do this at once: each takes what no other has.
 */
export async function expireExecutions({ begin }: Pick<Database, "begin">, goOn: GoOn = always): Promise<number> {
  for (let count = 0; ; count++) {
    if (!goOn()) return count;
    const found = await begin(async (sql) => {
      const [expired] = await lockExpiredExecutions(sql, 1);
      const execution = expired && (await lockExecution(sql, expired.projectId, expired.id));
      if (execution)
        await settleExecution(sql, expired.projectId, execution, "expired", { arrived: false, now: new Date() });
      return execution !== undefined;
    });
    if (!found) return count;
  }
}
