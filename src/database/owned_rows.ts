/** Removes the rows that belong to one project or team, whichever tables have them: the tables are read from the catalog. */

import type { Sql, Tx } from "./connect.ts";
import { deletePortion } from "./delete_portion.ts";

type OwnerColumn = "project_id" | "team_id";

/**
 * Returns all tables that have the column, partitions instead of the tables that they are parts of. A table comes after those that
 * refer to it, so that rows are removed before what they refer to, and nothing cascades.
 */
export const selectOwnedTables = async (sql: Sql, column: OwnerColumn): Promise<string[]> => {
  const rows = await sql<{ name: string }[]>`
    with recursive owned as materialized (
      select c.oid from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = ${column} and not a.attisdropped
      where c.relkind = 'r' and c.relnamespace = current_schema()::regnamespace),
    reference as materialized (
      select distinct conrelid as child, confrelid as parent from pg_constraint
      where contype = 'f' and conrelid <> confrelid and conrelid in (select oid from owned)),
    chain as (
      select oid, 0 as depth from owned
      union
      select r.child, c.depth + 1 from chain c join reference r on r.parent = c.oid where c.depth < 20)
    select oid::regclass::text as name from chain group by oid order by max(depth) desc, name`;
  return rows.map(({ name }) => name);
};

/**
 * Deletes at most `limit` rows of an owner; returns how many. `table` is a name from `selectOwnedTables`. Throws if the table was
 * dropped since, as months of results are.
 */
export const deleteOwnedRows = async (
  sql: Tx,
  { table, column, ownerId, limit }: { table: string; column: OwnerColumn; ownerId: string; limit: number },
): Promise<number> => {
  // A sequential scan would pass all the rows that the batches before have deleted; an index forgets them as it is read.
  await sql`select set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true)`;
  return await deletePortion(sql, table, sql`${sql(column)} = ${ownerId}`, { limit });
};
