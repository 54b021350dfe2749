/** Lets PostgreSQL analyse tables that have outgrown their statistics, before it plans with them. */

import type { Log } from "../log.ts";
import type { Database } from "../database/connect.ts";
import { analyzeTable, selectOutgrownTables } from "../database/statistics.ts";
import { always, eachOf, type GoOn, standardLog } from "./loop.ts";

/** Returns the number of analysed tables. */
export async function analyzeOutgrown(
  { pool }: Pick<Database, "pool">,
  goOn: GoOn = always,
  log: Log = standardLog,
): Promise<number> {
  const tables = await selectOutgrownTables(pool);
  const analyzing = { failing: "Cannot analyse a table", about: (table: string) => ({ table }) };
  await eachOf(tables, analyzing, (table) => analyzeTable(pool, table), log, goOn);
  return tables.length;
}
