/** Removes the rows of deleted projects and teams, in batches. It may be interrupted at any time: the next round continues. */

import type { Log } from "../log.ts";
import type { Database } from "../database/connect.ts";
import { deleteOwnedRows, selectOwnedTables } from "../database/owned_rows.ts";
import { deleteTombstone, lockTombstone, selectTombstone, type Tombstone } from "../store/deletion.ts";
import { deleteAnswersOf } from "../store/idempotency.ts";
import { always, type GoOn, standardLog, takeAll } from "./loop.ts";

const BATCH_ROWS = 2_000;

type Servers = Pick<Database, "pool" | "begin">;

/**
 * Returns the number of removed projects and teams. Each batch is a transaction that has locked the tombstone, so concurrent servers skip
 * it and never wait for each other.
 */
export async function purgeDeleted(
  database: Servers,
  log: Log = standardLog,
  goOn: GoOn = always,
  batchRows = BATCH_ROWS,
): Promise<number> {
  return await takeAll(
    database.pool,
    {
      failing: "Cannot remove the rows of what was deleted",
      async next(take) {
        const tombstone = await selectTombstone(database.pool);
        if (!tombstone) return false;
        const { kind, id, teamId } = tombstone;
        take({ loop: "deletion", id, about: kind === "project" ? { teamId, projectId: id } : { teamId } });
        if (!(await purge(database, tombstone, goOn, batchRows))) return false;
        const { name, deletedAt, deletedBy } = tombstone;
        log.info(`Removed all rows of a deleted ${kind}`, { id, teamId, name, deletedAt, deletedBy });
        return true;
      },
    },
    log,
    goOn,
  );
}

/** False if it was interrupted, or if another server is at it. */
async function purge({ pool, begin }: Servers, tombstone: Tombstone, goOn: GoOn, limit: number): Promise<boolean> {
  const { kind, id: ownerId, teamId } = tombstone;
  const column = `${kind}_id` as const;
  const tables = await selectOwnedTables(pool, column);
  const removals = tables.map((table) => (sql: Parameters<typeof deleteOwnedRows>[0]) => {
    return deleteOwnedRows(sql, { table, column, ownerId, limit });
  });
  removals.push((sql) => deleteAnswersOf(sql, { teamId, scopeId: ownerId }, limit));
  for (const remove of removals) {
    let count: number | undefined = limit;
    while (count === limit) {
      if (!goOn()) return false;
      count = await begin(async (sql) => ((await lockTombstone(sql, tombstone)) ? await remove(sql) : undefined));
    }
    if (count === undefined) return false;
  }
  return await begin(async (sql) => {
    if (!(await lockTombstone(sql, tombstone))) return false;
    // A transaction that was under way during the deletion may have written more since its table was emptied.
    for (const remove of removals) if ((await remove(sql)) === limit) return false;
    await deleteTombstone(sql, tombstone);
    return true;
  });
}
