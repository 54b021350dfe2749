/** Counts the results of complete runs in the health of their test cases. */

import type { Log } from "../log.ts";
import { countSome } from "../operations/health/case_health.ts";
import { fitFlakyRates } from "../operations/health/flaky_rates.ts";
import { selectProjectsWithPendingHealth } from "../store/pending_health.ts";
import type { Database } from "../database/connect.ts";
import { always, type GoOn, standardLog, takeAll } from "./loop.ts";

/** Runs while `goOn` allows, because a burst of uploads takes time. A run that fails does not delay the others. */
export async function countAll(
  { pool, begin }: Pick<Database, "pool" | "begin">,
  goOn: GoOn = always,
  log: Log = standardLog,
): Promise<void> {
  for (const projectId of await selectProjectsWithPendingHealth(pool)) {
    await takeAll(
      pool,
      {
        failing: "Cannot count a run",
        async next(take) {
          take({ loop: "counting", id: projectId, about: { projectId } });
          return await countSome(begin, projectId, (runId) =>
            take({ loop: "counting", id: runId, about: { projectId, runId } }),
          );
        },
      },
      log,
      goOn,
    );
    await fitFlakyRates(pool, projectId);
  }
}
