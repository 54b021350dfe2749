/** Counts the impact of bugs. */

import type { Sql } from "../database/connect.ts";
import { countDueImpacts } from "../store/bug_evidence.ts";
import { always, type GoOn } from "./loop.ts";

/** Counts all that are due; a batch that is not full is the last one. */
export async function countImpacts(sql: Sql, now: Date, goOn: GoOn = always): Promise<void> {
  while (goOn() && (await countDueImpacts(sql, now)) > 0);
}
