/** Writes to the log when the quiet time after a restore begins and ends: the commands that do this run in processes of their own. */

import type { Sql } from "../database/connect.ts";
import type { Log } from "../log.ts";
import { selectIsQuiet } from "../store/restored.ts";

const QUIET =
  "Restored from a backup and quiet: nothing is sent, scheduled, handed to runners or deleted until assay admin resume";
const RESUMED = "Resumed by assay admin resume: what waited is sent, scheduled, handed to runners and deleted";

export const logQuiet = (log: Log): void => log.warn(QUIET);

/** Returns the round of a loop, which logs what has changed since the round before. */
export function watchQuiet(sql: Sql, log: Log): () => Promise<void> {
  let isQuiet: boolean | undefined;
  return async () => {
    const was = isQuiet;
    isQuiet = await selectIsQuiet(sql);
    if (was === false && isQuiet) logQuiet(log);
    if (was === true && !isQuiet) log.info(RESUMED);
  };
}
