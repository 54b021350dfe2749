/** Executions that somebody looks at: their runners send what they print more often. */

import type { Tx } from "../../database/connect.ts";
import { notifyLeases } from "../../database/signals.ts";
import { updateWatched } from "../../store/live.ts";

/** In a transaction, for so many seconds. Runners that wait are notified at once when somebody begins to look. */
export async function watchExecutions(
  sql: Tx,
  projectId: string,
  ids: readonly string[],
  seconds: number,
): Promise<void> {
  if (await updateWatched(sql, projectId, ids, seconds)) await notifyLeases(sql, projectId);
}
