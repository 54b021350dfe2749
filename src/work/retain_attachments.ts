/** Deletes attachments that are old, and content that no attachment has any more. */

import type { AttachmentServices } from "../attachments/store.ts";
import type { Log } from "../log.ts";
import type { Database } from "../database/connect.ts";
import { firstIdAt } from "../database/time_bounds.ts";
import { sweepContents } from "../operations/attachments/contents.ts";
import { deleteOldAttachments } from "../store/attachments.ts";
import { selectRetentions } from "../store/projects.ts";
import { always, eachOf, type GoOn, standardLog } from "./loop.ts";

const DAY = 86_400_000;

/** `retentionDays` 0: attachments are kept for as long as their execution. */
export async function retainAttachments(
  { pool }: Pick<Database, "pool">,
  retentionDays: number,
  now: Date,
  goOn: GoOn = always,
  log: Log = standardLog,
): Promise<void> {
  if (retentionDays === 0) return;
  const floor = firstIdAt(now.getTime() - retentionDays * DAY);
  await eachOf(
    await selectRetentions(pool),
    { failing: "Cannot delete the old attachments of a project", about: ({ id }) => ({ projectId: id }) },
    async ({ id }) => {
      while (goOn() && (await deleteOldAttachments(pool, id, floor)) > 0);
    },
    log,
    goOn,
  );
}

/** Any number of servers may do this at once. */
export async function sweepAttachments(
  database: Pick<Database, "pool" | "begin">,
  attachments: Pick<AttachmentServices, "store" | "spool">,
  now: Date,
  goOn: GoOn = always,
): Promise<void> {
  await attachments.spool.sweep(now);
  await sweepContents(database, attachments, goOn);
}
