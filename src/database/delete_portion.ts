/** Deletes rows a portion at a time, so that no statement holds others up for long. */

import type { Fragment, Sql } from "./connect.ts";

/**
 * Deletes at most `limit` rows of a table that fulfil a condition on its columns; returns how many. The table must not be
 * partitioned, because a ctid is of one partition. With `skipsLocked`, rows that another transaction has locked are left to it.
 */
export const deletePortion = async (
  sql: Sql,
  table: string,
  where: Fragment,
  { limit, skipsLocked = false }: { limit: number; skipsLocked?: boolean },
): Promise<number> => {
  // An array is evaluated once. A join may search again for every row of the table while the planner does not know its size.
  const { count } = await sql`
    delete from ${sql(table)} where ctid = any(array(
      select ctid from ${sql(table)} where ${where} limit ${limit} ${skipsLocked ? sql`for update skip locked` : sql``}))`;
  return count;
};
