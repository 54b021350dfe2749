/** What complete runs tell of the health of their test cases: what is remembered, and what is not counted yet. */

import { type CommitGroup, COMPARED_RUNS, type ComparedRun } from "../rules/contradiction.ts";
import { toStatus } from "../rules/merge.ts";
import { type CaseHealth, type CountedRun, INCIDENT, NO_HEALTH } from "../rules/health.ts";
import { executionsOfCommit } from "./commits.ts";
import {
  type Fragment,
  type Sql,
  toIsoTime,
  toJsonTime,
  toNumberArray,
  toTextArray,
  type Tx,
} from "../database/connect.ts";
import { isOvertaken } from "./default_branch.ts";
import { isDue } from "../database/retry_backoff.ts";
import { takeLock } from "../database/locks.ts";
import { isFromOutsideCode, isOnDefault, isProject } from "./predicates.ts";

/** One server at a time counts for a project; whoever wants to read counts what is left first. */
export const lockHealth = (sql: Tx, projectId: string) => takeLock(sql, ["counting", projectId]);

export const selectHasPendingHealth = async (sql: Sql, projectId: string): Promise<boolean> =>
  (
    await sql`
      select from test_run r where project_id = ${projectId} and not remembered
        and ${isDue(sql, "counting", sql`r.id::text`)} limit 1`
  ).length === 1;

/** Projects with runs that are not counted yet. From one to the next: a flood in one of them costs no more than a run. */
export const selectProjectsWithPendingHealth = async (sql: Sql): Promise<string[]> => {
  const rows = await sql<{ id: string }[]>`
    with recursive waiting as (
      (select project_id from test_run where not remembered order by project_id limit 1)
      union all
      select (
        select project_id from test_run where not remembered and project_id > w.project_id order by project_id limit 1)
      from waiting w where w.project_id is not null)
    select project_id as id from waiting w
    where ${isProject(sql, sql`w.project_id`)} and ${isDue(sql, "counting", sql`w.project_id::text`)}
      and exists (
        select from test_run r where r.project_id = w.project_id and not r.remembered
          and ${isDue(sql, "counting", sql`r.id::text`)})
    limit 100`;
  return rows.map(({ id }) => id);
};

/** A run with the number of its results. */
export type WaitingRun = { id: string; results: number };

/** Some runs that are not counted yet, those that were completed first first. */
export const selectPendingRuns = (sql: Sql, projectId: string, limit: number) => sql<WaitingRun[]>`
  select id, passed + failed + skipped as results from test_run r where project_id = ${projectId} and not remembered
    and ${isDue(sql, "counting", sql`r.id::text`)}
  order by completed_at, id limit ${limit}::int`;

export type PendingRun = Omit<CountedRun, "disturbed"> & {
  taskSlug: string;
  commit: string | null;
  hasFailed: boolean;
  passed: number;
  failed: number;
  flaky: number;
  isPassed: boolean;
  /** Wall time. */
  durationMs: number;
};

/** Of these, locked, in that order; a run that an upload is changing right now comes the next time. */
export const lockPendingRuns = (sql: Tx, projectId: string, ids: readonly string[]) => sql<PendingRun[]>`
  select r.id, r.task_slug as "taskSlug", e.commit, r.completed_at as "completedAt", r.outage, r.was_outage as "wasOutage",
    ${isOnDefault(sql, sql`e`, sql`p.default_branch`)} and not ${isOvertaken(sql, projectId, { r: sql`r`, e: sql`e` })} as "onDefaultBranch", r.failed > 0 as "hasFailed",
    r.passed, r.failed, r.flaky, r.status = 'passed' as "isPassed", r.duration_ms as "durationMs"
  from test_run r
  join execution e on e.project_id = r.project_id and e.id = r.execution_id
  join project p on p.id = r.project_id
  where r.project_id = ${projectId} and r.id = any(${toTextArray(ids)}::uuid[]) and not r.remembered
  order by r.completed_at, r.id for no key update of r skip locked`;

export const markHealthApplied = (sql: Tx, projectId: string, ids: readonly string[]) => sql`
  update test_run set remembered = true where project_id = ${projectId} and id = any(${toTextArray(ids)}::uuid[])`;

/**
 * For each group, by the name it is given here, the last counted runs of its task and commit, newest first. Left out is a
 * group in which nothing has failed anywhere; outages say nothing.
 */
export async function selectCountedOnCommits(
  sql: Sql,
  projectId: string,
  groups: ReadonlyMap<string, CommitGroup>,
): Promise<Map<string, ComparedRun[]>> {
  if (groups.size === 0) return new Map();
  const [names, given] = [[...groups.keys()], [...groups.values()]];
  const rows = await sql<{ place: number; runs: ComparedRun[] }[]>`
    select g.place::int, c.runs
    from unnest(${toTextArray(given.map(({ taskSlug }) => taskSlug))}::text[],
      ${toTextArray(given.map(({ commit }) => commit))}::text[],
      ${toTextArray(given.map(({ hasFailed }) => String(hasFailed)))}::boolean[])
      with ordinality as g (task_slug, commit, has_failed, place),
    lateral (
      select coalesce(json_agg(json_build_object('id', id, 'hasFailed', has_failed) order by id desc), '[]') as runs,
        bool_or(has_failed) as has_failed
      from (
        -- From the commit to its executions, and from each to its run: as a join it would be left to the planner, which
        -- reads whole tables where its statistics are old.
        select r.id, r.has_failed from (${executionsOfCommit(sql, projectId, sql`g.commit`)}) e,
        lateral (
          select r.id, r.failed > 0 as has_failed, r.remembered and not r.outage as is_counted from test_run r
          where r.project_id = ${projectId} and r.execution_id = e.id and r.task_slug = g.task_slug offset 0) r
        where r.is_counted
        order by r.id desc limit ${COMPARED_RUNS}::int) last) c
    where g.has_failed or c.has_failed`;
  return new Map(rows.map(({ place, runs }) => [names[place - 1]!, runs]));
}

/** Results of up to 128 neighbouring test cases of a run, in step. */
export type CountedBlock = {
  /** The place of the run among those asked for, from 0. */
  run: number;
  block: number;
  /** test_case.number, ascending. */
  testCases: number[];
  /** A letter per case; `INCIDENT` for one that failed in an incident. */
  statuses: string;
  durations: (number | null)[];
};

type Packed = Pick<CountedBlock, "run" | "block" | "statuses"> & {
  testCases: string;
  durations: string;
  incidents: string | null;
};

/** Of each run at most `limit` blocks, those that follow the block `after`. */
export async function selectRunBlocks(
  sql: Sql,
  projectId: string,
  runIds: readonly string[],
  after: number,
  limit: number,
): Promise<CountedBlock[]> {
  // One look at an index for each run: a join would be left to what the planner knows of the table.
  const rows = await sql<Packed[]>`
    select run.place::int - 1 as run, b.*
    from unnest(${toTextArray(runIds)}::uuid[]) with ordinality as run (id, place), lateral (
      select block, test_cases as "testCases", statuses, durations, ${incidentsIn(sql)} as incidents from case_result
      where project_id = ${projectId} and run_id = run.id and block > ${after} order by block limit ${limit}::int) b`;
  return rows.map(toRunBlock);
}

/** Those of these blocks that there are; `run` is the place of the block asked for, from 0. */
export async function selectBlocksOfRuns(
  sql: Sql,
  projectId: string,
  wanted: readonly { runId: string; block: number }[],
): Promise<CountedBlock[]> {
  const rows = await sql<Packed[]>`
    select wanted.place::int - 1 as run, b.*
    from unnest(${toTextArray(wanted.map(({ runId }) => runId))}::uuid[],
      ${toNumberArray(wanted.map(({ block }) => block))}::int[]) with ordinality as wanted (run_id, block, place),
    lateral (
      select block, test_cases as "testCases", statuses, durations, ${incidentsIn(sql)} as incidents from case_result
      where project_id = ${projectId} and run_id = wanted.run_id and block = wanted.block offset 0) b`;
  return rows.map(toRunBlock);
}

/**
 * The test cases of a row of `case_result` whose failures, also those that a retry has undone, have a cause outside of the code;
 * null where nothing in it has failed.
 */
const incidentsIn = (sql: Sql) => sql`
  case when case_result.statuses ~ '[fFP]' then (
    select array_agg(f.test_case) || (
      select infrastructure_retries from test_run
      where project_id = case_result.project_id and id = case_result.run_id)
    from failure f
    where f.project_id = case_result.project_id and f.run_id = case_result.run_id and ${isFromOutsideCode(sql, sql`f`)}
      and f.test_case between case_result.test_cases[1] and case_result.test_cases[cardinality(case_result.test_cases)]) end`;

function toRunBlock({ testCases: given, durations, incidents, ...row }: Packed): CountedBlock {
  const testCases = toNumbers(given) as number[];
  const isOfIncident = new Set(incidents === null ? [] : toNumbers(incidents));
  const statuses = incidents
    ? testCases.map((testCase, at) => toCounted(row.statuses[at]!, isOfIncident.has(testCase))).join("")
    : row.statuses;
  return { ...row, testCases, statuses, durations: toNumbers(durations) };
}

/** A failure with a cause outside of the code is not counted, and a pass after one is no sign of a flaky test. */
const toCounted = (letter: string, isOfIncident: boolean): string =>
  !isOfIncident ? letter : letter === "P" ? "p" : toStatus(letter) === "failed" ? INCIDENT : letter;

/** From the literal of an array: JSON would be made of it by the database only to be read again. */
const toNumbers = (literal: string): (number | null)[] =>
  JSON.parse(`[${literal.slice(1, -1).replaceAll("NULL", "null")}]`);

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
  | "mended"
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

/**
 * In a transaction that holds `lockHealth`: cases of which only these runs have shown that they are flaky, by themselves or because
 * another run on their commit had the other outcome, are so no longer. Answers their numbers.
 */
export async function takeBackFlaky(sql: Tx, projectId: string, runIds: readonly string[]): Promise<number[]> {
  const rows = await sql<{ number: number }[]>`
    with shown as materialized (
      select r.id, r.task_slug, r.completed_at, e.commit
      from test_run r join execution e on e.project_id = ${projectId} and e.id = r.execution_id
      where r.project_id = ${projectId} and r.id = any(${toTextArray(runIds)}::uuid[]) and r.remembered
    ), contradicted as materialized (
      select s.id, r.completed_at
      from shown s, lateral (${executionsOfCommit(sql, projectId, sql`s.commit`)}) e, lateral (
        select completed_at from test_run
        where project_id = ${projectId} and execution_id = e.id and task_slug = s.task_slug offset 0) r
      where s.commit is not null
    )
    update case_health h set flaky = false, flaky_at = null, flaky_since = null, flaky_signs = '', flake_rate = 0,
      flakiness = 0, recent = translate(recent, 'PF', 'pf')
    where project_id = ${projectId} and flaky and (
      flaky_since in (select completed_at from shown) and flaky_at in (select completed_at from shown)
      or flaky_signs = 'c' and flaky_since = flaky_at and exists (
        select from contradicted c
        join failure f on f.project_id = ${projectId} and f.run_id = c.id and f.test_case = h.test_case
        where c.completed_at = h.flaky_at))
    returning test_case as number`;
  return rows.map(({ number }) => number);
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
        'episodes', episodes, 'episodeAt', ${time(sql`episode_at`)}, 'mended', mended, 'broken', broken,
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
      mended: kept.mended,
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
    before.mended === health.mended &&
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
  ...["flake_rate", "clean", "flakiness", "main_runs", "episodes", "episode_at", "mended", "broken", "timed"],
  ...["total_ms", "recent_ms", "p95_ms", "last_status", "last_run_id", "last_run_at", "last_passed_at"],
  "last_failed_at",
];

/** The number of the test case, and all that is remembered of it. */
function toAllRows(sql: Sql, rows: readonly ChangedHealth[]): Fragment {
  const { plain, nested } = arraysOf(rows);
  return sql`
    select test_case, runs, failures, recent, flaky, flaky_at, flaky_since, flaky_signs, recovers_after, flake_rate,
      clean, flakiness, main_runs, episodes::int[], episode_at, mended, broken, timed, total_ms, recent_ms::int[], p95_ms,
      last_status, last_run_id, last_run_at, last_passed_at, last_failed_at
    from unnest(
      ${toNumberArray(rows.map(({ testCase }) => testCase))}::int[], ${plain(({ runs }) => runs)}::int[],
      ${plain(({ failures }) => failures)}::int[], ${plain(({ recent }) => recent || '""')}::text[],
      ${plain(({ flaky }) => flaky)}::boolean[], ${plain(({ flakyAt }) => flakyAt)}::timestamptz[],
      ${plain(({ flakySince }) => flakySince)}::timestamptz[], ${plain(({ flakySigns }) => flakySigns || '""')}::text[],
      ${plain(({ recoversAfter }) => recoversAfter)}::int[], ${plain(({ flakeRate }) => flakeRate)}::real[],
      ${plain(({ clean }) => clean)}::int[], ${plain(({ flakiness }) => flakiness)}::real[],
      ${plain(({ mainRuns }) => mainRuns)}::int[], ${nested(({ episodes }) => episodes)}::text[],
      ${plain(({ episodeAt }) => episodeAt)}::timestamptz[], ${plain(({ mended }) => mended)}::int[],
      ${plain(({ broken }) => broken)}::int[], ${plain(({ timed }) => timed)}::int[],
      ${plain(({ totalMs }) => totalMs)}::bigint[], ${nested(({ recentMs }) => recentMs)}::text[],
      ${plain(({ p95Ms }) => p95Ms)}::int[], ${plain(({ lastStatus }) => lastStatus)}::text[],
      ${plain(({ lastRunId }) => lastRunId)}::uuid[], ${plain(({ lastRunAt }) => lastRunAt)}::timestamptz[],
      ${plain(({ lastPassedAt }) => lastPassedAt)}::timestamptz[], ${plain(({ lastFailedAt }) => lastFailedAt)}::timestamptz[]
    ) as fresh (test_case, ${sql.unsafe(ALL.join(", "))})`;
}
