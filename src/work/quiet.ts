/** Writes to the log when the quiet time after a restore begins and ends: the commands that do this run in processes of their own. */

import type { Sql } from "../database/connect.ts";
import type { Log } from "../log.ts";
import { selectIsQuiet } from "../store/restored.ts";

const QUIET =
  "Quiet after a restore: nothing is sent, scheduled, handed to runners or deleted until assay admin resume";
const RESUMED = "Resumed by assay admin resume: what waited is sent, scheduled, handed to runners and deleted";

/** Returns the round of a loop, which logs changes since the previous round; the first round logs a quiet time. */
export function watchQuiet(sql: Sql, log: Log): () => Promise<void> {
  let isQuiet = false;
  return async () => {
    const was = isQuiet;
    isQuiet = await selectIsQuiet(sql);
    if (isQuiet && !was) log.warn(QUIET);
    if (was && !isQuiet) log.info(RESUMED);
  };
}
