/** Removes content that no attachment has any more. */

import type { AttachmentServices } from "../attachments/store.ts";
import type { Database } from "../database/connect.ts";
import { sweepContents } from "../operations/attachments/contents.ts";
import { always, type GoOn } from "./loop.ts";

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
