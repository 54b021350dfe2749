/** Looks through the history of a test case for the results that a filter lets through. */

import type { Sql } from "../../database/connect.ts";
import { type HistoryPage, type HistoryQuery, type HistoryRow, selectHistory } from "../../store/test_cases.ts";

/** How many results the first statement looks at; what is not there is looked for in ten times as many, and so on. */
const FIRST_LOOKED_AT = 200;
/** Never more: a tenth of a second of the database. */
const LOOKED_AT = 20_000;
const PATIENCE_MS = 1_000;

export type Looking = {
  /** At most, by a statement. */
  lookedAt?: number;
  /** By all together, roughly. */
  inAll?: number;
  /** No statement begins after so long. */
  patienceMs?: number;
};

/**
 * A page, newest run first. It is full, or the last one, or what has been found when patience was over: then the next one
 * goes on where this one has stopped.
 */
export async function readHistory(
  sql: Sql,
  projectId: string,
  id: string,
  query: HistoryQuery,
  { lookedAt = LOOKED_AT, inAll = Infinity, patienceMs = PATIENCE_MS }: Looking = {},
): Promise<HistoryPage> {
  const until = performance.now() + patienceMs;
  const rows: HistoryRow[] = [];
  let last = query.after;
  let portion = Math.min(FIRST_LOOKED_AT, lookedAt);
  let looked = 0;
  do {
    const left = { ...query, limit: query.limit - rows.length, after: last };
    const found = await selectHistory(sql, projectId, id, left, portion);
    rows.push(...found.rows);
    last = found.last;
    looked += portion;
    portion = Math.min(10 * portion, lookedAt);
  } while (last !== undefined && rows.length < query.limit && looked < inAll && performance.now() < until);
  return { rows, last };
}
