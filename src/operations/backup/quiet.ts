/** Begins and ends the time in which a server that was restored sends, starts and deletes nothing by itself. */

import type { Tx } from "../../database/connect.ts";
import { notSent } from "../../schema/deliveries.ts";
import { COMMAND_LINE } from "../../schema/audit.ts";
import { refuse } from "../../schema/refusal.ts";
import { insertAuditEntry } from "../../store/audit.ts";
import { selectTeams } from "../../store/projects.ts";
import {
  deleteQuiet,
  discardPending,
  type RevokedCredentials,
  revokeAllCredentials,
  updateQuiet,
} from "../../store/restored.ts";

/** `restoredTo`: the time whose data the database has now. */
type QuietOptions = { restoredTo: string; revokes: boolean };

/**
 * Makes the server quiet, and records the restore in the audit log of every team. Returns the revoked credentials; null: none were to be
 * revoked.
 */
export async function becomeQuiet(sql: Tx, { restoredTo, revokes }: QuietOptions): Promise<RevokedCredentials | null> {
  const revoked = revokes ? await revokeAllCredentials(sql) : null;
  await updateQuiet(sql, restoredTo);
  const details = { restoredTo, credentials: revokes ? "revoked" : "as of that time" };
  for (const { id, name } of await selectTeams(sql))
    await insertAuditEntry(sql, id, COMMAND_LINE, { action: "team.restored", subject: name, details });
  return revoked;
}

const DISCARDED = "Not sent: it waited when the backup was taken, and was discarded after the restore";

export type Resumed = { resumed: true; discardedDeliveries?: number; discardedEvents?: number };

/**
 * Ends the quiet time. `discards`: work that was pending when the backup was taken is given up, because the lost server has probably done
 * it. Refuses if the server is not quiet.
 */
export async function resume(sql: Tx, { discards }: { discards: boolean }): Promise<Resumed> {
  if (!(await deleteQuiet(sql))) refuse("Cannot resume: the server is not quiet");
  if (!discards) return { resumed: true };
  const { deliveries, events } = await discardPending(sql, notSent(new Date(), DISCARDED));
  return { resumed: true, discardedDeliveries: deliveries, discardedEvents: events };
}
