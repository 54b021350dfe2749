/** Looks through the history of a test case for the results that a filter lets through. */

import type { Sql } from "../../database/connect.ts";
import { type HistoryPage, type HistoryQuery, type HistoryRow, selectHistory } from "../../store/test_cases.ts";

/** Maximum number of results that the first statement reads; each further statement reads ten times as many. */
const FIRST_READ_RESULTS = 200;
/** Maximum number of results that one statement reads, which takes a tenth of a second of the database. */
const MAX_READ_RESULTS = 20_000;
const TIME_LIMIT_MS = 1_000;

export type Looking = {
  /** Maximum number of results that one statement reads. */
  lookedAt?: number;
  /** Approximate maximum number of results that all statements read. */
  inAll?: number;
  /** No statement begins after so long. */
  patienceMs?: number;
};

/**
 * Returns a page, newest run first. It is full, or the last one, or what was found within the time limit: then the next page continues
 * where it stopped.
 */
export async function readHistory(
  sql: Sql,
  projectId: string,
  id: string,
  query: HistoryQuery,
  { lookedAt = MAX_READ_RESULTS, inAll = Infinity, patienceMs = TIME_LIMIT_MS }: Looking = {},
): Promise<HistoryPage> {
  const until = performance.now() + patienceMs;
  const rows: HistoryRow[] = [];
  let last = query.after;
  let portion = Math.min(FIRST_READ_RESULTS, lookedAt);
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
