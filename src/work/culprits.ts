/** Makes the next steps of searches for culprits. */

import type { Log } from "../log.ts";
import { advanceSearch } from "../operations/bugs/culprit_steps.ts";
import type { Database } from "../database/connect.ts";
import { always, type GoOn, standardLog, takeAll } from "./loop.ts";

/** Returns the number of steps, each in a transaction of its own; any number of servers may do this at once. */
export async function advanceSearches(
  { pool, begin }: Pick<Database, "pool" | "begin">,
  now = () => new Date(),
  goOn: GoOn = always,
  log: Log = standardLog,
): Promise<number> {
  return await takeAll(
    pool,
    {
      failing: "Cannot advance a search for a culprit",
      next: (take) =>
        begin((sql) =>
          advanceSearch(sql, now(), ({ projectId, id }) =>
            take({ loop: "culprit", id, about: { projectId, searchId: id } }),
          ),
        ),
    },
    log,
    goOn,
  );
}
