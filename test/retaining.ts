/** Deletes what is too old at once: what is more than a day's worth is announced first, and confirmed here. */

import type { Database } from "../src/database/connect.ts";
import { createLog } from "../src/log.ts";
import type { RetentionSettings } from "../src/rules/retention.ts";
import { retain } from "../src/work/retain.ts";

/** Kinds that are not named are kept forever. */
export async function retainNow(
  database: Pick<Database, "pool" | "begin">,
  settings: Partial<RetentionSettings>,
  now = new Date(),
  log = createLog("error"),
): Promise<void> {
  const all = { results: 0, attachments: 0, executions: 0, ...settings };
  await retain(database, all, now, undefined, log);
  await database.pool`update planned_deletion set begins_at = '2000-01-01' where begins_at is not null`;
  await retain(database, all, now, undefined, log);
}
