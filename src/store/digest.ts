/** Figures of a project in a period and in the one before it, for a digest. */

import { numberOfTestCase } from "../rules/test_case_id.ts";
import type { Digest } from "../schema/digest.ts";
import type { EventData } from "../schema/events.ts";
import { type Fragment, type Sql, toNumberArray, type Tx } from "../database/connect.ts";
import { firstIdAt } from "../database/time_bounds.ts";
import { defaultBranchOf } from "./default_branch.ts";
import { isFlaky, isRemoved } from "./health.ts";
import { isOwnedBy } from "./owners.ts";
import { isLiveBug, isOnDefault, isTrustedBuild } from "./predicates.ts";

/** A project, the period from `since` to `until`, and the beginning of the one before. `owners` undefined: all. */
export type DigestQuery = {
  teamId: string;
  projectId: string;
  /** Milliseconds. */
  before: number;
  since: number;
  until: number;
  owners: readonly string[] | undefined;
};

type Without<Row> = Omit<Row, "url">;
type SlowerRow = Without<Digest["slower"][number]>;
type SlowestRow = Without<Digest["slowest"][number]>;

const MAX_EVENTS = 1_000;
const MAX_SLOWER_RESULTS = 10_000;
const MAX_BUILDS = 20_000;
/** Maximum number of the slowest tests that are searched for those of owners. */
const MAX_SLOWEST_READ = 5_000;
/** A test that took long once says little. */
const MIN_SLOWER_RUNS = 2;
/** Nobody waits for tests that are faster. */
const MIN_SLOW_MS = 1_000;
/** Ids have the time of a server, and rows that of the database. */
const CLOCK_TOLERANCE_MS = 3_600_000;

const time = (sql: Sql, ms: number): Fragment => sql`${new Date(ms).toISOString()}::text::timestamptz`;

/** A condition: the test case of this number, an expression, belongs to one of the owners, if there are any. */
const isTheirs = (sql: Sql, { projectId, owners }: DigestQuery, number: Fragment): Fragment =>
  owners === undefined
    ? sql`true`
    : sql`exists (
        select from test_case c
        where c.project_id = ${projectId} and c.number = ${number} and ${isOwnedBy(sql, projectId, sql`c`, owners)} offset 0)`;

type HealthEvent = { type: string; testCase: NonNullable<EventData["testCase"]>; isVerified: boolean };

/** Returns what happened to the health of tests, newest first. */
export async function selectHealthEvents(sql: Sql, query: DigestQuery): Promise<HealthEvent[]> {
  const { teamId, projectId, since, until } = query;
  const of = (type: string) => sql`(
    select id, type, data from event
    where team_id = ${teamId} and type = ${type} and id >= ${firstIdAt(since)} and id < ${firstIdAt(until)} and project_id = ${projectId}
    order by team_id, type, id desc limit ${MAX_EVENTS}::int)`;
  const rows = await sql<(HealthEvent & { id: string })[]>`
    select id, type, data->'testCase' as "testCase", coalesce(data->'verification'->>'status' = 'passed', false) as "isVerified"
    from (${of("test_case.became_flaky")} union all ${of("test_case.recovered")} union all ${of("test_case.verified")}) e
    order by id desc`;
  const numbers = [...new Set(rows.map(({ testCase }) => numberOfTestCase(testCase.id)))];
  const theirs = await sql<{ number: number }[]>`
    select n.number from unnest(${toNumberArray(numbers)}::int[]) as n (number)
    where exists (select from test_case where project_id = ${projectId} and number = n.number offset 0)
      and ${isTheirs(sql, query, sql`n.number`)}`;
  const wanted = new Set(theirs.map(({ number }) => number));
  return rows.filter(({ testCase }) => wanted.has(numberOfTestCase(testCase.id)));
}

/** Returns the number of flaky tests now, and of those that were flaky when they were removed in the period. */
export async function countFlakyTests(sql: Sql, query: DigestQuery): Promise<{ now: number; removed: number }> {
  const [row] = await sql<{ now: number; removed: number }[]>`
    select (count(*) filter (where ${isFlaky(sql)}))::int as now,
      (count(*) filter (where ${isRemoved(sql)} and removed_run_id >= ${firstIdAt(query.since)}))::int as removed
    from case_health h
    where project_id = ${query.projectId} and flaky and ${isTheirs(sql, query, sql`h.test_case`)}`;
  return row!;
}

type BugCountsOfPeriod = Record<"opened" | "openedBefore" | "resolved" | "resolvedBefore" | "open", number>;

const isBugOfOwners = (sql: Sql, query: DigestQuery, b: Fragment): Fragment =>
  query.owners === undefined
    ? sql`true`
    : sql`exists (
        select from bug_case k where k.project_id = ${query.projectId} and k.bug_report_id = ${b}.id
          and ${isTheirs(sql, query, sql`k.test_case`)} offset 0)`;

export async function countBugs(sql: Sql, query: DigestQuery): Promise<BugCountsOfPeriod> {
  const { projectId, before, since } = query;
  const isCounted = sql`b.project_id = ${projectId} and b.merged_into is null and not b.sample and ${isBugOfOwners(sql, query, sql`b`)}`;
  const [row] = await sql<BugCountsOfPeriod[]>`
    select o.*, r.*, (select count(*)::int from bug_report b where ${isCounted} and ${isLiveBug(sql, sql`b`)}) as open
    from (
      select (count(*) filter (where id >= ${firstIdAt(since)}))::int as opened,
        (count(*) filter (where id < ${firstIdAt(since)}))::int as "openedBefore"
      from bug_report b where ${isCounted} and id >= ${firstIdAt(before)}) o, (
      select (count(*) filter (where resolved_at >= ${time(sql, since)}))::int as resolved,
        (count(*) filter (where resolved_at < ${time(sql, since)}))::int as "resolvedBefore"
      from bug_report b where ${isCounted} and resolved_at >= ${time(sql, before)}) r`;
  return row!;
}

type OldBug = { id: string; number: number; title: string; createdAt: string };

/** Returns the live bugs that were opened first. */
export const selectOldestBugs = (sql: Sql, query: DigestQuery, limit: number) => {
  const of = (status: string) => sql`(
    select id, number, title, created_at from bug_report b
    where project_id = ${query.projectId} and status = ${status} and merged_into is null and not sample and ${isBugOfOwners(sql, query, sql`b`)}
    order by status, number limit ${limit}::int)`;
  return sql<OldBug[]>`
    select id, number, title, created_at as "createdAt" from (${of("open")} union all ${of("in_progress")}) b
    order by number limit ${limit}::int`;
};

const names = (sql: Sql) => sql`c.id as "testCaseId", c.task_slug as "taskSlug", c.suite, c.name, c.file`;

/** Tests that took longer than usual in several runs of the default branch, those that lost most time first. */
export const selectSlowerInPeriod = (sql: Sql, query: DigestQuery, limit: number) => sql<SlowerRow[]>`
  with result as materialized (
    select run_id, test_case, duration_ms, usual_ms from slower_result
    where project_id = ${query.projectId} and run_id >= ${firstIdAt(query.since)} and run_id < ${firstIdAt(query.until)}
    order by run_id desc limit ${MAX_SLOWER_RESULTS}::int
  ), run as materialized (
    select r.id from (select distinct run_id as id from result) mine cross join lateral (
      select r.id from test_run r join execution e on e.project_id = ${query.projectId} and e.id = r.execution_id
      where r.project_id = ${query.projectId} and r.id = mine.id and not e.sample
        and ${isOnDefault(sql, sql`e`, defaultBranchOf(sql, query.projectId))} offset 0) r
  ), slower as (
    select test_case, count(*)::int as runs, percentile_disc(0.5) within group (order by duration_ms) as duration_ms,
      (array_agg(usual_ms order by run_id desc))[1] as usual_ms, sum(duration_ms - usual_ms) as lost
    from result where run_id in (select id from run)
    group by test_case having count(*) >= ${MIN_SLOWER_RUNS}::int
  )
  select ${names(sql)}, s.runs, s.duration_ms as "durationMs", s.usual_ms as "usualMs"
  from (
    select * from slower s where ${isTheirs(sql, query, sql`s.test_case`)} order by lost desc, test_case limit ${limit}::int
  ) s cross join lateral (
    select * from test_case where project_id = ${query.projectId} and number = s.test_case offset 0) c
  order by s.lost desc, s.test_case`;

/** The slowest tests by the 95th percentile of their last durations. */
export const selectSlowest = (sql: Sql, query: DigestQuery, limit: number) => sql<SlowestRow[]>`
  select ${names(sql)}, h.p95_ms as "p95Ms"
  from (
    select h.test_case, h.p95_ms from (
      select * from case_health where project_id = ${query.projectId} and p95_ms >= ${MIN_SLOW_MS}::int
      order by p95_ms desc, test_case desc limit ${MAX_SLOWEST_READ}::int) h
    where not ${isRemoved(sql)} and ${isTheirs(sql, query, sql`h.test_case`)}
    order by h.p95_ms desc, h.test_case desc limit ${limit}::int
  ) h cross join lateral (
    select * from test_case where project_id = ${query.projectId} and number = h.test_case and not sample offset 0) c
  order by h.p95_ms desc, h.test_case desc`;

type BuildFigures = { isCurrent: boolean; builds: number; passed: number; timesRed: number; redMs: number };

/** Returns a row for each of the two periods in which builds of the default branch ended, or in which it was red. */
export async function selectBuildFigures(
  sql: Sql,
  { projectId, before, since, until }: DigestQuery,
): Promise<BuildFigures[]> {
  const endedOn = (isBranch: Fragment) => sql`(
    select id, coalesce(repeated_status, status) = 'passed' as is_passed, completed_at as at from execution
    where project_id = ${projectId} and branch ${isBranch} and not sample and build_id is null
      and pull_request is null and ${isTrustedBuild(sql, sql`execution`)}
      and status in ('passed', 'failed', 'timed_out')
      and completed_at >= ${time(sql, before)} and completed_at < ${time(sql, until)}
    order by project_id, branch, completed_at desc limit ${MAX_BUILDS}::int)`;
  const rows = await sql<BuildFigures[]>`
    with build as materialized (
      select is_passed, at, lead(at, 1, ${time(sql, until)}) over w as next, lag(is_passed) over w as was_passed
      from (${endedOn(sql`= ${defaultBranchOf(sql, projectId)}`)} union all ${endedOn(sql`is null`)}) e
      window w as (order by at, id)
    )
    select p.is_current as "isCurrent", (count(*) filter (where at >= p.from_at and at < p.to_at))::int as builds,
      (count(*) filter (where at >= p.from_at and at < p.to_at and is_passed))::int as passed,
      (count(*) filter (where at >= p.from_at and at < p.to_at and not is_passed and was_passed is distinct from false))::int as "timesRed",
      coalesce(sum(extract(epoch from least(next, p.to_at) - greatest(at, p.from_at)) * 1000)
        filter (where not is_passed and next > p.from_at and at < p.to_at), 0)::bigint as "redMs"
    from (values (true, ${time(sql, since)}, ${time(sql, until)}), (false, ${time(sql, before)}, ${time(sql, since)}))
      as p (is_current, from_at, to_at), build
    group by p.is_current`;
  return rows.map((row) => ({ ...row, redMs: Number(row.redMs) }));
}

/** Returns the number of builds all of whose gates passed although tests had failed, in the period and in the one before. */
export async function countRescued(sql: Sql, { projectId, before, since, until }: DigestQuery) {
  const [row] = await sql<{ count: number; before: number }[]>`
    select (count(*) filter (where at >= ${time(sql, since)}))::int as count, (count(*) filter (where at < ${time(sql, since)}))::int as before
    from (
      select r.execution_id, max(r.completed_at) as at
      from test_run r cross join lateral (
        select coalesce(bool_and(a.gate->>'pass' = 'true'), false) as is_passed from attempt a
        where a.project_id = ${projectId} and a.run_id = r.id and a.gate is not null offset 0) g
      where r.project_id = ${projectId} and r.forgiven > 0 and ${isTrustedBuild(sql, sql`r`)}
        and r.completed_at >= ${time(sql, before)} and r.completed_at < ${time(sql, until)}
      group by r.execution_id having bool_and(g.is_passed)) e`;
  return row!;
}

/**
 * Returns the period of the next digest in milliseconds: it begins where the last one of the automation ended, at most `longest` ago, and ends with
 * the time of this transaction, which its run gets as well.
 */
export async function selectDigestPeriod(
  sql: Tx,
  teamId: string,
  automationId: string,
  longest: number,
): Promise<{ since: number; until: number }> {
  const [row] = await sql<{ now: string; last: string | null }[]>`
    select now()::timestamptz(3) as now, (
      select created_at from automation_run r
      where team_id = ${teamId} and automation_id = ${automationId} and status = 'done'
        and id >= ${firstIdAt(Date.now() - longest - CLOCK_TOLERANCE_MS)} and created_at > now() - ${longest}::int * interval '1 millisecond' and exists (
          select from json_array_elements(actions) a where a->>'type' = 'digest' and a->>'status' = 'done')
      order by id desc limit 1) as last`;
  const until = Date.parse(row!.now);
  return { since: row!.last === null ? until - longest : Date.parse(row!.last), until };
}
