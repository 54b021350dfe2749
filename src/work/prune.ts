/** Forgets what nobody asks for any more: old events, deliveries and runs of automations. */

import { deleteOldAutomationRuns } from "../store/automations.ts";
import type { Sql } from "../store/connect.ts";
import { deleteOldEvents } from "../store/events.ts";
import { deleteOldDeliveries } from "../store/integrations.ts";

const KEEP_DAYS = 30;
/** Of what is written with every upload. */
const KEEP_MANY_DAYS = 7;
/** The last try of a delivery comes within a day; an integration that is disabled may be enabled again until then. */
const GIVE_UP_DAYS = 5;

export async function prune(sql: Sql): Promise<void> {
  await deleteOldEvents(sql, KEEP_MANY_DAYS);
  await deleteOldDeliveries(sql, GIVE_UP_DAYS, KEEP_DAYS);
  await deleteOldAutomationRuns(sql, KEEP_MANY_DAYS, KEEP_DAYS);
}
