/** Begins verifications of new tests, and advances verifications: begins their next runs, and ends finished ones. */

import type { Log } from "../log.ts";
import { checkNewTests } from "../operations/probes/new_tests.ts";
import { advanceDueVerification } from "../operations/probes/verifications.ts";
import type { Database } from "../database/connect.ts";
import { always, type GoOn, standardLog, takeAll } from "./loop.ts";

/** Returns the number of verifications processed, each in a transaction of its own. Several servers may run this at once. */
export async function advanceVerifications(
  { pool, begin }: Pick<Database, "pool" | "begin">,
  goOn: GoOn = always,
  log: Log = standardLog,
): Promise<number> {
  return await takeAll(
    pool,
    {
      failing: "Cannot advance a verification",
      next: (take) =>
        begin((sql) =>
          advanceDueVerification(sql, ({ id, projectId }) =>
            take({ loop: "verification", id, about: { verificationId: id, projectId } }),
          ),
        ),
    },
    log,
    goOn,
  );
}

/** Returns the number of tasks with new tests processed, each in a transaction of its own. */
export async function verifyNewTests(
  database: Pick<Database, "pool" | "begin">,
  goOn: GoOn = always,
  log: Log = standardLog,
): Promise<number> {
  return await takeAll(
    database.pool,
    {
      failing: "Cannot run new tests again",
      next: (take) =>
        checkNewTests(database, ({ projectId, executionId, runId }) =>
          take({ loop: "new_tests", id: runId, about: { executionId, projectId } }),
        ),
    },
    log,
    goOn,
  );
}
