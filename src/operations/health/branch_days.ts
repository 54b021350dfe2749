/** Daily figures of a project's default branch. */

import {
  type DayFigures,
  keepDays,
  lockDays,
  selectDays,
  selectKeptDays,
  SETTLED_MS,
} from "../../store/branch_days.ts";
import type { Database, Sql } from "../../database/connect.ts";
import type { Branch } from "../../store/state.ts";

const DAY_MS = 86_400_000;
const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10);

/**
 * Returns figures of the last days in UTC up to today on which an execution ended. Figures of past days are computed once, by the first
 * reader.
 */
export async function getBranchDays(
  sql: Sql,
  begin: Database["begin"],
  projectId: string,
  branch: Branch,
  { now, count }: { now: Date; count: number },
): Promise<DayFigures[]> {
  const days = Array.from({ length: count }, (_, index) => dayOf(now.getTime() - (count - 1 - index) * DAY_MS));
  const kept = await selectKeptDays(sql, projectId, branch, days);
  const known = new Set(kept.map(({ day }) => day));
  const missing = days.filter((day) => !known.has(day));
  const open = dayOf(now.getTime() - SETTLED_MS);
  const fresh = missing.some((day) => day < open)
    ? await begin(async (tx) => {
        const select = (await lockDays(tx, projectId)) ? keepDays : selectDays;
        return await select(tx, projectId, branch, missing);
      })
    : await selectDays(sql, projectId, branch, missing);
  return [...kept, ...fresh].filter(({ executions }) => executions > 0).sort((a, b) => (a.day < b.day ? -1 : 1));
}
