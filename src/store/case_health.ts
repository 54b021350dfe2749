/** What is remembered of the health of test cases, and what a run changes of it. */

import { type CaseHealth, NO_HEALTH } from "../rules/health.ts";
import {
  type Fragment,
  type Sql,
  toIsoTime,
  toJsonTime,
  toNumberArray,
  toNumbers,
  type Tx,
} from "../database/connect.ts";

/** What is the same for all cases that have never failed, and needs not be read for them. */
type Past = Pick<
  CaseHealth,
  | "failures"
  | "flaky"
  | "flakyAt"
  | "flakySince"
  | "flakySigns"
  | "recoversAfter"
  | "flakeRate"
  | "flakiness"
  | "episodes"
  | "episodeAt"
  | "longEpisodeEnd"
  | "broken"
  | "lastFailedAt"
>;

type Twelve = [...Six, ...Six];
type Six = [string, string, string, string, string, string];

/** How many of the cases that passed in a retry of the run, or are among `others`, were known as flaky before. */
export async function countKnownFlaky(
  sql: Tx,
  projectId: string,
  runId: string,
  others: readonly number[],
): Promise<number> {
  const [row] = await sql<{ count: number }[]>`
    with evidence as (
      select r.number from case_result b, lateral unnest(b.test_cases, string_to_array(b.statuses, null)) as r (number, letter)
      where b.project_id = ${projectId} and b.run_id = ${runId} and b.statuses ~ 'P' and r.letter = 'P'
      union
      select unnest(${toNumberArray(others)}::int[]))
    select count(*)::int as count from evidence e
    join case_health h on h.project_id = ${projectId} and h.test_case = e.number
    where h.flaky`;
  return row!.count;
}

/** Of those that have had a result, by test_case.number. */
export async function selectCaseHealth(
  sql: Tx,
  projectId: string,
  testCases: readonly number[],
): Promise<Map<number, CaseHealth>> {
  const time = (column: Fragment) => toJsonTime(sql, column);
  // One text of each row: what the driver does for each column would cost more than all the kept.
  const rows = await sql<{ row: string; past: Past | null }[]>`
    select
      concat_ws('|', test_case, runs, recent, clean, main_runs, timed, total_ms, recent_ms, coalesce(p95_ms::text, ''),
        coalesce(last_status, ''), coalesce(last_run_id::text, ''), coalesce(last_run_at::text, ''),
        coalesce(last_passed_at::text, '')) as row,
      case when failures > 0 or flaky_at is not null or last_failed_at is not null then json_build_object(
        'failures', failures, 'flaky', flaky, 'flakyAt', ${time(sql`flaky_at`)}, 'flakySince', ${time(sql`flaky_since`)},
        'flakySigns', flaky_signs, 'recoversAfter', recovers_after, 'flakeRate', flake_rate, 'flakiness', flakiness,
        'episodes', episodes, 'episodeAt', ${time(sql`episode_at`)}, 'longEpisodeEnd', long_episode_end, 'broken', broken,
        'lastFailedAt', ${time(sql`last_failed_at`)}) end as past
    from unnest(${toNumberArray(testCases)}::int[]) as n (number), lateral (
      select * from case_health where project_id = ${projectId} and test_case = n.number offset 0) h`;
  // Neighbours ran last in one run.
  let known = { text: "", time: null as string | null };
  const toTime = (text: string) =>
    (text === known.text ? known : (known = { text, time: text === "" ? null : toIsoTime(text) })).time;
  const found = new Map<number, CaseHealth>();
  for (const { row, past } of rows) {
    const [number, runs, recent, clean, mainRuns, timed, totalMs, recentMs, p95Ms, status, run, ranAt, passedAt] =
      row.split("|") as [...Twelve, string];
    const kept = past ?? NO_HEALTH;
    found.set(Number(number), {
      runs: Number(runs),
      failures: kept.failures,
      recent,
      flaky: kept.flaky,
      flakyAt: kept.flakyAt,
      flakySince: kept.flakySince,
      flakySigns: kept.flakySigns,
      recoversAfter: kept.recoversAfter,
      flakeRate: Math.fround(kept.flakeRate),
      clean: Number(clean),
      flakiness: Math.fround(kept.flakiness),
      mainRuns: Number(mainRuns),
      episodes: kept.episodes,
      episodeAt: kept.episodeAt,
      longEpisodeEnd: kept.longEpisodeEnd,
      broken: kept.broken,
      timed: Number(timed),
      totalMs: Number(totalMs),
      recentMs: toNumbers(recentMs) as number[],
      p95Ms: p95Ms === "" ? null : Number(p95Ms),
      lastStatus: status === "" ? null : status,
      lastRunId: run === "" ? null : run,
      lastRunAt: toTime(ranAt),
      lastPassedAt: toTime(passedAt),
      lastFailedAt: kept.lastFailedAt,
    });
  }
  return found;
}

/** What is remembered of a test case, by its number; `before`: as it is stored. */
export type ChangedHealth = { testCase: number; before: CaseHealth | undefined; health: CaseHealth };

/** Of cases that pass as they use to all else stays as it was: most rows, and half of what there is to write of them. */
function isSteady({ before = NO_HEALTH, health }: ChangedHealth): boolean {
  return (
    before.failures === health.failures &&
    before.flaky === health.flaky &&
    before.flakyAt === health.flakyAt &&
    before.flakySince === health.flakySince &&
    before.flakySigns === health.flakySigns &&
    before.recoversAfter === health.recoversAfter &&
    before.flakeRate === health.flakeRate &&
    before.flakiness === health.flakiness &&
    before.episodes === health.episodes &&
    before.episodeAt === health.episodeAt &&
    before.longEpisodeEnd === health.longEpisodeEnd &&
    before.broken === health.broken &&
    before.lastFailedAt === health.lastFailedAt
  );
}

/** Stores each as it is now, written once. In a transaction that holds `lockHealth`. */
export async function storeCaseHealth(sql: Tx, projectId: string, rows: readonly ChangedHealth[]): Promise<void> {
  const { true: steady = [], false: others = [] } = Object.groupBy(rows, (row) => `${isSteady(row)}` as const);
  for (const [group, columns, toRows] of [
    [steady, STEADY, toSteadyRows],
    [others, ALL, toAllRows],
  ] as const) {
    const [known, fresh] = [group.filter(({ before }) => before), group.filter(({ before }) => !before)];
    if (known.length > 0)
      await sql`
        update case_health h set (${sql.unsafe(columns.join(", "))}) = row(fresh.${sql.unsafe(columns.join(", fresh."))})
        from (${toRows(sql, known)}) fresh where h.project_id = ${projectId} and h.test_case = fresh.test_case`;
    if (fresh.length > 0)
      await sql`
        insert into case_health (project_id, test_case, ${sql.unsafe(columns.join(", "))})
        select ${projectId}, fresh.* from (${toRows(sql, fresh)}) fresh`;
  }
}

/** A literal of an array of what needs no quotes: numbers, times, ids. */
const toPlainArray = (values: readonly (string | number | boolean | null)[]): string =>
  `{${values.map((value) => value ?? "null").join(",")}}`;

const toNestedArray = (values: readonly (readonly number[])[]): string =>
  `{${values.map((numbers) => `"{${numbers.join(",")}}"`).join(",")}}`;

type Value = number | string | boolean | null;
const arraysOf = (rows: readonly ChangedHealth[]) => ({
  plain: (pick: (health: CaseHealth) => Value) => toPlainArray(rows.map(({ health }) => pick(health))),
  nested: (pick: (health: CaseHealth) => readonly number[]) => toNestedArray(rows.map(({ health }) => pick(health))),
});

const STEADY = [
  ...["runs", "recent", "clean", "main_runs", "timed", "total_ms", "recent_ms", "p95_ms"],
  ...["last_status", "last_run_id", "last_run_at", "last_passed_at"],
];

/** The number of the test case, and what is steady of it; what neighbours have in common, their last run, is sent once. */
function toSteadyRows(sql: Sql, rows: readonly ChangedHealth[]): Fragment {
  const { plain, nested } = arraysOf(rows);
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
    select test_case, runs, recent, clean, main_runs, timed, total_ms, recent_ms::int[], p95_ms,
      (${last(({ lastStatus }) => lastStatus)}::text[])[last] as last_status,
      (${last(({ lastRunId }) => lastRunId)}::uuid[])[last] as last_run_id,
      (${last(({ lastRunAt }) => lastRunAt)}::timestamptz[])[last] as last_run_at,
      (${last(({ lastPassedAt }) => lastPassedAt)}::timestamptz[])[last] as last_passed_at
    from unnest(
      ${toNumberArray(rows.map(({ testCase }) => testCase))}::int[], ${plain(({ runs }) => runs)}::int[],
      ${plain(({ recent }) => recent || '""')}::text[], ${plain(({ clean }) => clean)}::int[],
      ${plain(({ mainRuns }) => mainRuns)}::int[], ${plain(({ timed }) => timed)}::int[],
      ${plain(({ totalMs }) => totalMs)}::bigint[], ${nested(({ recentMs }) => recentMs)}::text[],
      ${plain(({ p95Ms }) => p95Ms)}::int[], ${toNumberArray(places)}::int[]
    ) as steady (test_case, runs, recent, clean, main_runs, timed, total_ms, recent_ms, p95_ms, last)`;
}

const ALL = [
  ...["runs", "failures", "recent", "flaky", "flaky_at", "flaky_since", "flaky_signs", "recovers_after"],
  ...["flake_rate", "clean", "flakiness", "main_runs", "episodes", "episode_at", "long_episode_end", "broken", "timed"],
  ...["total_ms", "recent_ms", "p95_ms", "last_status", "last_run_id", "last_run_at", "last_passed_at"],
  "last_failed_at",
];

/** The number of the test case, and all that is remembered of it. */
function toAllRows(sql: Sql, rows: readonly ChangedHealth[]): Fragment {
  const { plain, nested } = arraysOf(rows);
  return sql`
    select test_case, runs, failures, recent, flaky, flaky_at, flaky_since, flaky_signs, recovers_after, flake_rate,
      clean, flakiness, main_runs, episodes::int[], episode_at, long_episode_end, broken, timed, total_ms, recent_ms::int[], p95_ms,
      last_status, last_run_id, last_run_at, last_passed_at, last_failed_at
    from unnest(
      ${toNumberArray(rows.map(({ testCase }) => testCase))}::int[], ${plain(({ runs }) => runs)}::int[],
      ${plain(({ failures }) => failures)}::int[], ${plain(({ recent }) => recent || '""')}::text[],
      ${plain(({ flaky }) => flaky)}::boolean[], ${plain(({ flakyAt }) => flakyAt)}::timestamptz[],
      ${plain(({ flakySince }) => flakySince)}::timestamptz[], ${plain(({ flakySigns }) => flakySigns || '""')}::text[],
      ${plain(({ recoversAfter }) => recoversAfter)}::int[], ${plain(({ flakeRate }) => flakeRate)}::real[],
      ${plain(({ clean }) => clean)}::int[], ${plain(({ flakiness }) => flakiness)}::real[],
      ${plain(({ mainRuns }) => mainRuns)}::int[], ${nested(({ episodes }) => episodes)}::text[],
      ${plain(({ episodeAt }) => episodeAt)}::timestamptz[], ${plain(({ longEpisodeEnd }) => longEpisodeEnd)}::int[],
      ${plain(({ broken }) => broken)}::int[], ${plain(({ timed }) => timed)}::int[],
      ${plain(({ totalMs }) => totalMs)}::bigint[], ${nested(({ recentMs }) => recentMs)}::text[],
      ${plain(({ p95Ms }) => p95Ms)}::int[], ${plain(({ lastStatus }) => lastStatus)}::text[],
      ${plain(({ lastRunId }) => lastRunId)}::uuid[], ${plain(({ lastRunAt }) => lastRunAt)}::timestamptz[],
      ${plain(({ lastPassedAt }) => lastPassedAt)}::timestamptz[], ${plain(({ lastFailedAt }) => lastFailedAt)}::timestamptz[]
    ) as fresh (test_case, ${sql.unsafe(ALL.join(", "))})`;
}
