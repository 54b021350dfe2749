/** Ends the quiet time after a restore. */

import type { Tx } from "../../database/connect.ts";
import { notSent } from "../../schema/integrations.ts";
import { refuse } from "../../schema/refusal.ts";
import { deleteQuiet, discardPending } from "../../store/restored.ts";

const DISCARDED = "Not sent: it waited when the backup was taken, and was discarded after the restore";

export type Resumed = { resumed: true; discardedDeliveries?: number; discardedEvents?: number };

/**
 * In a transaction. `discards`: what was pending when the backup was taken is given up, because the lost server has probably sent
 * it. Refuses if the server is not quiet.
 */
export async function resume(sql: Tx, { discards }: { discards: boolean }): Promise<Resumed> {
  if (!(await deleteQuiet(sql))) refuse("Cannot resume: the server is not quiet");
  if (!discards) return { resumed: true };
  const { deliveries, events } = await discardPending(sql, notSent(new Date(), DISCARDED));
  return { resumed: true, discardedDeliveries: deliveries, discardedEvents: events };
}
