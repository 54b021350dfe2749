/** The records of test cases, and their changes by a run. */

import type { CaseHealth } from "../rules/health.ts";
import { type Fragment, type Sql, toIsoTime, toNumberArray, toNumbers, type Tx } from "../database/connect.ts";

/** Returns the records of cases that have had a result, by test_case.number. */
export async function selectCaseHealth(
  sql: Sql,
  projectId: string,
  testCases: readonly number[],
): Promise<Map<number, CaseHealth>> {
  // One text for each row: reading columns one by one would cost the driver more than the rest.
  const rows = await sql<{ row: string }[]>`
    select concat_ws('|', test_case, runs, failures, clean, main_runs, failing, broken, timed, total_ms, recent_ms,
      coalesce(p95_ms::text, ''), coalesce(last_status, ''), coalesce(last_run_id::text, ''),
      coalesce(last_run_at::text, ''), coalesce(last_passed_at::text, ''), coalesce(last_failed_at::text, '')) as row
    from unnest(${toNumberArray(testCases)}::int[]) as n (number), lateral (
      select * from case_health where project_id = ${projectId} and test_case = n.number offset 0) h`;
  // Neighbours ran last in one run.
  let known = { text: "", time: null as string | null };
  const toTime = (text: string) =>
    (text === known.text ? known : (known = { text, time: text === "" ? null : toIsoTime(text) })).time;
  return new Map(
    rows.map(({ row }): [number, CaseHealth] => {
      const values = row.split("|");
      const [number, runs, failures, clean, mainRuns, failing] = values.slice(0, 6).map(Number) as Six<number>;
      const [broken, timed, totalMs, recentMs, p95Ms, lastStatus] = values.slice(6, 12) as Six<string>;
      const [lastRunId, lastRunAt, lastPassedAt, lastFailedAt] = values.slice(12) as [string, string, string, string];
      const health = {
        ...{ runs, failures, clean, mainRuns, failing },
        broken: broken === "t",
        timed: Number(timed),
        totalMs: Number(totalMs),
        recentMs: toNumbers(recentMs) as number[],
        p95Ms: p95Ms === "" ? null : Number(p95Ms),
        lastStatus: lastStatus || null,
        lastRunId: lastRunId || null,
        lastRunAt: toTime(lastRunAt),
        lastPassedAt: toTime(lastPassedAt),
        lastFailedAt: toTime(lastFailedAt),
      };
      return [number, health];
    }),
  );
}

type Six<T> = [T, T, T, T, T, T];

/** The record of a test case, by its number; `isKnown`: it is stored already. */
type ChangedHealth = { testCase: number; isKnown: boolean; health: CaseHealth };

/** Stores each as it is now, written once. In a transaction that holds `lockHealth`. */
export async function storeCaseHealth(sql: Tx, projectId: string, rows: readonly ChangedHealth[]): Promise<void> {
  const [known, fresh] = [rows.filter(({ isKnown }) => isKnown), rows.filter(({ isKnown }) => !isKnown)];
  if (known.length > 0)
    await sql`
      update case_health h set (${sql.unsafe(COLUMNS.join(", "))}) = row(fresh.${sql.unsafe(COLUMNS.join(", fresh."))})
      from (${toRows(sql, known)}) fresh where h.project_id = ${projectId} and h.test_case = fresh.test_case`;
  if (fresh.length > 0)
    await sql`
      insert into case_health (project_id, test_case, ${sql.unsafe(COLUMNS.join(", "))})
      select ${projectId}, fresh.* from (${toRows(sql, fresh)}) fresh`;
}

/** Returns an array literal of values that need no quotes: numbers, times, ids. */
const toPlainArray = (values: readonly (string | number | boolean | null)[]): string =>
  `{${values.map((value) => value ?? "null").join(",")}}`;

const toNestedArray = (values: readonly (readonly number[])[]): string =>
  `{${values.map((numbers) => `"{${numbers.join(",")}}"`).join(",")}}`;

const COLUMNS = [
  ...["runs", "failures", "clean", "main_runs", "failing", "broken", "timed", "total_ms", "recent_ms", "p95_ms"],
  ...["last_status", "last_run_id", "last_run_at", "last_passed_at", "last_failed_at"],
];

/** Returns the number of each test case and its record; the last run, which neighbours share, is sent once. */
function toRows(sql: Sql, rows: readonly ChangedHealth[]): Fragment {
  const plain = (pick: (health: CaseHealth) => number | boolean | string | null) =>
    toPlainArray(rows.map(({ health }) => pick(health)));
  const lasts: CaseHealth[] = [];
  const places = rows.map(({ health }) => {
    const last = lasts.at(-1);
    const isSame =
      last !== undefined &&
      last.lastRunId === health.lastRunId &&
      last.lastRunAt === health.lastRunAt &&
      last.lastStatus === health.lastStatus &&
      last.lastPassedAt === health.lastPassedAt;
    return isSame ? lasts.length : lasts.push(health);
  });
  const last = (pick: (health: CaseHealth) => string | null) => toPlainArray(lasts.map(pick));
  return sql`
    select test_case, runs, failures, clean, main_runs, failing, broken, timed, total_ms, recent_ms::int[], p95_ms,
      (${last(({ lastStatus }) => lastStatus)}::text[])[last] as last_status,
      (${last(({ lastRunId }) => lastRunId)}::uuid[])[last] as last_run_id,
      (${last(({ lastRunAt }) => lastRunAt)}::timestamptz[])[last] as last_run_at,
      (${last(({ lastPassedAt }) => lastPassedAt)}::timestamptz[])[last] as last_passed_at, last_failed_at
    from unnest(
      ${toNumberArray(rows.map(({ testCase }) => testCase))}::int[], ${plain(({ runs }) => runs)}::int[],
      ${plain(({ failures }) => failures)}::int[], ${plain(({ clean }) => clean)}::int[],
      ${plain(({ mainRuns }) => mainRuns)}::int[], ${plain(({ failing }) => failing)}::int[],
      ${plain(({ broken }) => broken)}::boolean[], ${plain(({ timed }) => timed)}::int[],
      ${plain(({ totalMs }) => totalMs)}::bigint[],
      ${toNestedArray(rows.map(({ health }) => health.recentMs))}::text[], ${plain(({ p95Ms }) => p95Ms)}::int[],
      ${plain(({ lastFailedAt }) => lastFailedAt)}::timestamptz[], ${toNumberArray(places)}::int[]
    ) as fresh (test_case, runs, failures, clean, main_runs, failing, broken, timed, total_ms, recent_ms, p95_ms,
      last_failed_at, last)`;
}
