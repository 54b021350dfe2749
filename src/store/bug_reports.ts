/** Bug reports, their fingerprints, test cases, occurrences and changes. */

import type { Fingerprint } from "../rules/fingerprint.ts";
import { numberOfTestCase } from "../rules/test_case_id.ts";
import type {
  BugOccurrence,
  BugReport,
  BugReportDetail,
  BugReportPatch,
  BugReportSort,
  BugStatus,
  Severity,
} from "../schema/bug_reports.ts";
import { toStorable } from "../schema/fields.ts";
import { compose } from "../database/compose.ts";
import { type Fragment, type Sql, type Tx, toJsonTime, toNumberArray, toTextArray } from "../database/connect.ts";
import { newestSearchOf } from "./culprit_searches.ts";
import { defaultBranchOf, isOvertaken } from "./default_branch.ts";
import { healthOf, isFlaky } from "./health.ts";
import { lockOf, takeLock } from "../database/locks.ts";
import { blockOfCase, failedResultsOf } from "./packing.ts";
import { isOwnedBy, ownersOfBug } from "./owners.ts";
import { isLiveBug, isOnDefault } from "./predicates.ts";

/** Whoever opens, reopens, resolves or merges bugs of a project takes turns: numbers without gaps, one regression. */
export const lockBugs = (sql: Tx, projectId: string) => takeLock(sql, ["bugs", projectId]);

const fingerprintText = (sql: Sql) => sql`'v' || f.version || ':' || replace(f.digest::text, '-', '')`;

/** What says most of a bug first: what its failures say, then what they are, then where they happen. */
const telling = (sql: Sql) => sql`
  array_position(array['message', 'outage', 'infrastructure', 'flaky', 'automation', 'case'], f.kind), f.created_at, f.digest`;
/** A bug of many test cases has one for each. */
const MAX_GROUPING = 100;

const columns = (sql: Sql) => sql`
  b.id, b.number, b.title, b.description, b.status, b.severity, b.source,
  (select ${fingerprintText(sql)} from bug_fingerprint f
    where f.project_id = b.project_id and f.bug_report_id = b.id order by ${telling(sql)} limit 1) as fingerprint,
  b.occurrences, b.impact, b.first_seen_at as "firstSeenAt", b.last_seen_at as "lastSeenAt",
  b.first_execution_id as "firstExecutionId", b.last_execution_id as "lastExecutionId",
  (select coalesce(json_agg(distinct c.task_slug), '[]') from bug_case k
    cross join lateral (
      select task_slug from test_case where project_id = k.project_id and number = k.test_case offset 0) c
    where k.project_id = b.project_id and k.bug_report_id = b.id) as "taskSlugs",
  ${ownersOfBug(sql, sql`b`)} as owners,
  (select coalesce(json_agg(id), '[]') from (
    select c.id from bug_case k
    cross join lateral (select id from test_case where project_id = k.project_id and number = k.test_case offset 0) c
    where k.project_id = b.project_id and k.bug_report_id = b.id order by k.test_case limit 100) ids) as "testCaseIds",
  b.branch, b.commit, b.assignee, to_json(b.labels) as labels, b.external_url as "externalUrl", b.regressed,
  b.fixed_in_commit as "fixedInCommit", b.created_at as "createdAt", b.updated_at as "updatedAt",
  b.resolved_at as "resolvedAt", b.sample`;

type Flat<Row> = Omit<Row, "sample"> & { sample: boolean };

const unflagged = <Row extends { sample: boolean }>({ sample, ...row }: Row) =>
  (sample ? { ...row, sample } : row) as Omit<Row, "sample"> & { sample?: true };

export type BugReportQuery = {
  limit: number;
  status?: readonly BugStatus[] | undefined;
  severity?: Severity | undefined;
  source?: string | undefined;
  task_slug?: string | undefined;
  test_case_id?: string | undefined;
  assignee?: string | undefined;
  owner?: string | undefined;
  q?: string | undefined;
  sort?: BugReportSort | undefined;
  regressed?: boolean | undefined;
  /** The place of the page before: the last bug's key and number. */
  after?: readonly string[] | undefined;
};

/** `key` is what the list is sorted by, as a text of full precision. */
export type BugReportRow = BugReport & { key: string };

/** As in the indexes, greatest first; what never occurred comes last. */
const SORT_KEYS = {
  newest: { key: "b.number", type: "int" },
  occurrences: { key: "b.occurrences", type: "int" },
  impact: { key: "b.impact", type: "int" },
  lastSeenAt: { key: "coalesce(b.last_seen_at, '-infinity')", type: "timestamptz" },
  severity: { key: "array_position(array['trivial', 'minor', 'major', 'critical'], b.severity)", type: "int" },
} as const;
/** Rows that are looked up of each status: a limit that is written out makes a plan that is kept, so there are few of them. */
const ENOUGH = [21, 101];
const STATUSES: readonly BugStatus[] = ["open", "in_progress", "resolved", "ignored"];

/** One row more than `limit`; equal keys stand newest first. */
export async function selectBugReports(sql: Sql, projectId: string, query: BugReportQuery): Promise<BugReportRow[]> {
  const { sort = "newest", after, limit } = query;
  const key = sql`${sql.unsafe(SORT_KEYS[sort].key)}`;
  const type = sql.unsafe(SORT_KEYS[sort].type);
  const enough = sql.unsafe(String(ENOUGH.find((rows) => rows > limit) ?? limit + 1));
  const order = (keyed: Fragment) => (sort === "newest" ? sql`b.number desc` : sql`${keyed} desc, b.number desc`);
  const firstOf = (status: BugStatus | undefined) => sql`
    (select b.*, ${key} as key from bug_report b
    where b.project_id = ${projectId} and b.merged_into is null
      ${status === undefined ? sql`` : sql`and b.status = ${status}`}
      ${
        after === undefined
          ? sql``
          : sort === "newest"
            ? sql`and b.number < ${Number(after.at(-1))}`
            : sql`and (${key}, b.number) < (${after[0]!}::text::${type}, ${Number(after[1])})`
      }
      ${query.severity === undefined ? sql`` : sql`and b.severity = ${query.severity}`}
      ${query.source === undefined ? sql`` : sql`and b.source = ${query.source}`}
      ${query.assignee === undefined ? sql`` : sql`and b.assignee = ${query.assignee}`}
      ${query.regressed === undefined ? sql`` : sql`and b.regressed = ${query.regressed}`}
      ${
        query.task_slug === undefined
          ? sql``
          : sql`and exists (
              select from bug_case k join test_case c on c.project_id = k.project_id and c.number = k.test_case
              where k.project_id = b.project_id and k.bug_report_id = b.id and c.task_slug = ${query.task_slug})`
      }
      ${
        query.test_case_id === undefined
          ? sql``
          : sql`and exists (
              select from bug_case k
              where k.project_id = b.project_id and k.bug_report_id = b.id
                and k.test_case = ${numberOfTestCase(query.test_case_id)})`
      }
      ${
        query.owner === undefined
          ? sql``
          : sql`and exists (
              select from bug_case k join test_case c on c.project_id = k.project_id and c.number = k.test_case
              where k.project_id = b.project_id and k.bug_report_id = b.id
                and ${isOwnedBy(sql, projectId, sql`c`, [query.owner])})`
      }
      ${
        query.q === undefined
          ? sql``
          : sql`and position(lower(${query.q}) in lower(b.title || ' ' || b.description)) > 0`
      }
    order by ${order(key)} limit ${enough})`;
  // Of each status the first, which an index has in order: of all at once they would be sorted.
  const [first, ...others] = query.status ?? (sort === "newest" ? [undefined] : STATUSES);
  const all = others.reduce((before, status) => sql`${before} union all ${firstOf(status)}`, firstOf(first));
  const rows = await sql<(Flat<BugReport> & { key: string })[]>`
    select ${columns(sql)}, b.key::text as key
    from (select * from (${all}) b order by ${order(sql`b.key`)} limit ${limit + 1}) b
    order by ${order(sql`b.key`)}`;
  return rows.map(unflagged);
}

const LOOKED_AT = 50;

export type RegressedBug = Pick<BugReport, "id" | "number" | "title" | "occurrences" | "assignee" | "lastSeenAt">;

/** Of the open ones that were seen last, those that came back, at most `limit`; the last seen first. */
export const selectRegressedBugs = (sql: Sql, projectId: string, limit: number) => sql<RegressedBug[]>`
  select id, number, title, occurrences, assignee, last_seen_at as "lastSeenAt" from (
    select *, ${sql.unsafe(SORT_KEYS.lastSeenAt.key)} as key from bug_report b
    where project_id = ${projectId} and merged_into is null and status = 'open'
    order by key desc, number desc limit ${LOOKED_AT}::int) b
  where regressed order by key desc, number desc limit ${limit}::int`;

export async function selectBugReport(sql: Sql, projectId: string, id: string): Promise<BugReportDetail | undefined> {
  const [row] = await sql<Flat<BugReportDetail>[]>`
    select ${columns(sql)}, b.merged_into as "mergedInto", ${newestSearchOf(sql, sql`b`)} as culprit,
      (select coalesce(json_agg(json_build_object('fingerprint', ${fingerprintText(sql)}, 'version', f.version,
        'kind', f.kind, 'exceptionType', f.exception_type, 'message', f.message, 'frames', f.frames, 'test', f.test)
        order by ${telling(sql)}), '[]')
        from (select * from bug_fingerprint f where f.project_id = b.project_id and f.bug_report_id = b.id
          order by ${telling(sql)} limit ${MAX_GROUPING}) f) as grouping,
      (select coalesce(json_agg(json_build_object('from', c.from_status, 'to', c.to_status, 'cause', c.cause,
        'changedAt', ${toJsonTime(sql, sql`c.changed_at`)}) order by c.id), '[]')
        from bug_change c where c.project_id = b.project_id and c.bug_report_id = b.id) as history
    from bug_report b where b.project_id = ${projectId} and b.id = ${id}`;
  return row && unflagged(row);
}

export type BugState = { id: string; number: number; title: string; status: BugStatus; mergedInto: string | null };

export const selectBugState = async (sql: Sql, projectId: string, id: string): Promise<BugState | undefined> => {
  const [row] = await sql<BugState[]>`
    select id, number, title, status, merged_into as "mergedInto" from bug_report
    where project_id = ${projectId} and id = ${id}`;
  return row;
};

export type TriagedBug = BugState & { severity: Severity; assignee: string | null };

/** Returns merged bugs as well. */
export const selectBugByNumber = async (
  sql: Sql,
  projectId: string,
  number: number,
): Promise<TriagedBug | undefined> => {
  const [row] = await sql<TriagedBug[]>`
    select id, number, title, status, merged_into as "mergedInto", severity, assignee from bug_report
    where project_id = ${projectId} and number = ${number}::int`;
  return row;
};

/** How many are open, by severity. */
export const countOpenBugs = (sql: Sql, projectId: string) => sql<
  { severity: Severity; open: number; regressed: number }[]
>`
  select severity, count(*)::int as open, (count(*) filter (where regressed))::int as regressed from bug_report b
  where project_id = ${projectId} and ${isLiveBug(sql, sql`b`)} group by severity`;

export type BugCaseRow = {
  number: number;
  id: string;
  taskSlug: string;
  suite: string;
  name: string;
  file: string | null;
  health: string;
  lastStatus: string | null;
  /** Passed so often in a row on the default branch since the bug was seen last. */
  clean: number;
};

/** The test cases of a bug, in the order in which they were first seen; one row more than `limit`. */
export const selectBugCases = (sql: Sql, projectId: string, bugId: string, limit: number, after = 0) => sql<
  BugCaseRow[]
>`
  select c.number, c.id, c.task_slug as "taskSlug", c.suite, c.name, c.file, ${healthOf(sql)} as health,
    h.last_status as "lastStatus", k.clean
  from (
    select test_case, clean from bug_case
    where project_id = ${projectId} and bug_report_id = ${bugId} and test_case > ${after}
    order by test_case limit ${limit + 1}
  ) k
  join test_case c on c.project_id = ${projectId} and c.number = k.test_case
  left join case_health h on h.project_id = ${projectId} and h.test_case = k.test_case
  order by c.number`;

export type BugOfCase = {
  id: string;
  number: number;
  title: string;
  status: BugStatus;
  severity: Severity;
  regressed: boolean;
};

/** The open bugs that a test case belongs to, newest first. */
export const selectOpenBugsOfCase = (sql: Sql, projectId: string, testCaseId: string, limit: number) => sql<
  BugOfCase[]
>`
  select b.id, b.number, b.title, b.status, b.severity, b.regressed
  from bug_case k join bug_report b on b.project_id = k.project_id and b.id = k.bug_report_id
  where k.project_id = ${projectId} and k.test_case = ${numberOfTestCase(testCaseId)}
    and ${isLiveBug(sql, sql`b`)}
  order by b.number desc limit ${limit}`;

export type MatchedBug = Omit<BugState, "mergedInto"> & { resolvedAt: string | null };

const knownColumns = (sql: Sql) => sql`b.id, b.number, b.title, b.status, b.resolved_at as "resolvedAt"`;

/** The bugs that have these fingerprints. */
export const selectBugsByFingerprint = (sql: Sql, projectId: string, digests: readonly string[]) =>
  sql<(MatchedBug & { digest: string })[]>`
  select replace(f.digest::text, '-', '') as digest, ${knownColumns(sql)}
  from bug_fingerprint f
  join bug_report b on b.project_id = f.project_id and b.id = f.bug_report_id
  where f.project_id = ${projectId} and f.digest = any(${toTextArray(digests)}::uuid[])`;

export type OldMark = MatchedBug & {
  testCase: number;
  exceptionType: string | null;
  message: string;
  frames: string[];
};

/** What bugs of these test cases are known by from before the fingerprints were of `version`; the newest bugs first. */
export const selectOldMarks = (sql: Sql, projectId: string, testCases: readonly number[], version: number) =>
  sql<OldMark[]>`
  select k.test_case as "testCase", f.exception_type as "exceptionType", f.message, to_json(f.frames) as frames,
    ${knownColumns(sql)}
  from bug_case k
  join bug_fingerprint f on f.project_id = k.project_id and f.bug_report_id = k.bug_report_id
  join bug_report b on b.project_id = k.project_id and b.id = k.bug_report_id
  where k.project_id = ${projectId} and k.test_case = any(${toNumberArray(testCases)}::int[])
    and f.kind = 'message' and f.version < ${version}::int
  order by b.number desc`;

/** Those of the test cases that are known to be flaky. */
export const selectFlakyCases = async (
  sql: Sql,
  projectId: string,
  testCases: readonly number[],
): Promise<Set<number>> => {
  const rows = await sql<{ testCase: number }[]>`
    select h.test_case as "testCase" from case_health h
    where h.project_id = ${projectId} and h.test_case = any(${toNumberArray(testCases)}::int[])
      and ${isFlaky(sql)}`;
  return new Set(rows.map(({ testCase }) => testCase));
};

/** Of each test case the newest bug that failures have opened and that is of no other case. */
export const selectOwnBugs = (sql: Sql, projectId: string, testCases: readonly number[]) =>
  sql<(MatchedBug & { testCase: number })[]>`
  select distinct on (k.test_case) k.test_case as "testCase", ${knownColumns(sql)}
  from bug_case k
  join bug_report b on b.project_id = k.project_id and b.id = k.bug_report_id
  where k.project_id = ${projectId} and k.test_case = any(${toNumberArray(testCases)}::int[])
    and b.source = 'automatic' and b.merged_into is null
    and not exists (
      select from bug_case o
      where o.project_id = k.project_id and o.bug_report_id = k.bug_report_id and o.test_case <> k.test_case)
    and not exists (
      select from bug_fingerprint f
      where f.project_id = b.project_id and f.bug_report_id = b.id and f.kind in ('outage', 'automation', 'infrastructure'))
  order by k.test_case, b.number desc`;

export type InsertBug = {
  title: string;
  severity: Severity;
  source: "automatic" | "manual";
  description?: string | undefined;
  assignee?: string | null | undefined;
  labels?: readonly string[] | undefined;
  externalUrl?: string | null | undefined;
  fixedInCommit?: string | null | undefined;
  now: string;
};

/** In a transaction that holds the lock. */
export async function insertBug(sql: Tx, projectId: string, bug: InsertBug): Promise<{ id: string; number: number }> {
  const id = Bun.randomUUIDv7();
  const [row] = await sql<{ number: number }[]>`
    insert into bug_report (project_id, id, number, title, description, status, severity, source, assignee, labels,
      external_url, fixed_in_commit, created_at, updated_at)
    select ${projectId}, ${id}, coalesce(max(number), 0) + 1, ${bug.title}, ${bug.description ?? ""}, 'open',
      ${bug.severity}, ${bug.source}, ${bug.assignee ?? null}, ${toTextArray(bug.labels ?? [])}::text[],
      ${bug.externalUrl ?? null}, ${bug.fixedInCommit ?? null}, ${bug.now}::timestamptz, ${bug.now}::timestamptz
    from bug_report where project_id = ${projectId} returning number`;
  await insertChange(sql, projectId, { id, from: null, to: "open", cause: "opened", now: bug.now });
  return { id, number: row!.number };
}

export type BugMark = { bugId: string; fingerprint: Fingerprint };

/** What is known by one of them already stays with its bug. */
export async function insertFingerprints(
  sql: Tx,
  projectId: string,
  marks: readonly BugMark[],
  { version, now }: { version: number; now: string },
): Promise<void> {
  if (marks.length === 0) return;
  const texts = (of: (mark: BugMark) => string | null) => sql`${toTextArray(marks.map(of))}::text[]`;
  await sql`
    insert into bug_fingerprint (project_id, digest, bug_report_id, version, kind, exception_type, message, frames, test,
      created_at)
    select ${projectId}, m.digest::uuid, m.bug::uuid, ${version}, m.kind, m.exception_type, m.message,
      array(select json_array_elements_text(m.frames::json)), m.test, ${now}
    from unnest(${texts(({ fingerprint }) => fingerprint.digest)}, ${texts(({ bugId }) => bugId)},
      ${texts(({ fingerprint }) => fingerprint.kind)}, ${texts(({ fingerprint }) => fingerprint.exceptionType)},
      ${texts(({ fingerprint }) => toStorable(fingerprint.message))},
      ${texts(({ fingerprint }) => JSON.stringify(fingerprint.frames.map(toStorable)))},
      ${texts(({ fingerprint }) => fingerprint.test && toStorable(fingerprint.test))})
      as m (digest, bug, kind, exception_type, message, frames, test)
    on conflict (project_id, digest) do nothing`;
}

export type ChangeCause = BugReportDetail["history"][number]["cause"];

export type StatusChange = {
  id: string;
  from: BugStatus;
  to: BugStatus;
  cause: ChangeCause;
  /** ISO 8601. */
  now: string;
};

const insertChange = (
  sql: Tx,
  projectId: string,
  { id, from, to, cause, now }: Omit<StatusChange, "from"> & { from: BugStatus | null },
) => sql`
  insert into bug_change (project_id, bug_report_id, id, from_status, to_status, cause, changed_at)
  values (${projectId}, ${id}, ${Bun.randomUUIDv7()}, ${from}, ${to}, ${cause}, ${now})`;

/** Sets the status and tells the history; `resolvedAt` follows. */
export async function updateStatus(sql: Tx, projectId: string, change: StatusChange): Promise<void> {
  const { id, to, cause, now } = change;
  await sql`
    update bug_report set status = ${to}, updated_at = greatest(updated_at, ${now}::timestamptz),
      resolved_at = case when ${to} = 'resolved' then ${now}::timestamptz end,
      regressed = ${cause === "regression"} or (regressed and ${to} <> 'resolved')
    where project_id = ${projectId} and id = ${id}`;
  await insertChange(sql, projectId, change);
}

export type Occurrence = { bugId: string; testCase: number; message: string | null };

/** Of one run: each test case occurs once in a bug. The bugs' sums and last sightings follow. */
export async function insertOccurrences(
  sql: Tx,
  projectId: string,
  run: {
    id: string;
    executionId: string;
    branch: string | null;
    commit: string | null;
    onDefaultBranch: boolean;
    seenAt: string;
  },
  occurrences: readonly Occurrence[],
): Promise<void> {
  const bugIds = toTextArray(occurrences.map(({ bugId }) => bugId));
  const testCases = toNumberArray(occurrences.map(({ testCase }) => testCase));
  // A run that comes late is not the last one that a bug was seen in.
  const isOlder = sql`coalesce(b.last_seen_at > ${run.seenAt}::timestamptz, false)`;
  const occur = sql`
    with added as (
      insert into bug_occurrence (project_id, bug_report_id, run_id, test_case, message, seen_at)
      select ${projectId}, bug, ${run.id}, test_case, message, ${run.seenAt}
      from unnest(${bugIds}::uuid[], ${testCases}::int[],
        ${toTextArray(occurrences.map(({ message }) => message))}::text[]) as o (bug, test_case, message)
      on conflict do nothing returning bug_report_id
    ), sums as (select bug_report_id, count(*)::int as count from added group by bug_report_id)
    update bug_report b set
      occurrences = b.occurrences + sums.count,
      first_seen_at = least(b.first_seen_at, ${run.seenAt}::timestamptz),
      last_seen_at = greatest(b.last_seen_at, ${run.seenAt}::timestamptz),
      first_execution_id = case when b.first_seen_at <= ${run.seenAt}::timestamptz
        then coalesce(b.first_execution_id, ${run.executionId}) else ${run.executionId} end,
      last_execution_id = case when ${isOlder} then b.last_execution_id else ${run.executionId} end,
      branch = case when ${isOlder} then b.branch else ${run.branch} end,
      commit = case when ${isOlder} then b.commit else ${run.commit} end,
      ${
        run.onDefaultBranch
          ? sql`
              home_execution_id = case when ${isOlder} and b.home_execution_id is not null then b.home_execution_id else ${run.executionId} end,
              home_branch = case when ${isOlder} and b.home_execution_id is not null then b.home_branch else ${run.branch} end,
              home_commit = case when ${isOlder} and b.home_execution_id is not null then b.home_commit else ${run.commit} end,`
          : sql``
      }
      updated_at = greatest(b.updated_at, ${run.seenAt}::timestamptz)
    from sums where b.project_id = ${projectId} and b.id = sums.bug_report_id`;
  await Promise.all([occur, insertBugCases(sql, projectId, occurrences, run.seenAt)]);
}

/**
 * A run says something else of its failures than it did: they are taken out of their bugs, and bugs that it had opened, and
 * nobody has touched since, are gone.
 */
export async function withdrawOccurrences(
  sql: Tx,
  projectId: string,
  { id, executionId }: { id: string; executionId: string },
): Promise<void> {
  const bugs = await sql<{ id: string }[]>`
    with withdrawn as (
      delete from bug_occurrence where project_id = ${projectId} and run_id = ${id} returning bug_report_id),
    sums as (select bug_report_id, count(*)::int as count from withdrawn group by 1)
    update bug_report b set occurrences = b.occurrences - sums.count from sums
    where b.project_id = ${projectId} and b.id = sums.bug_report_id returning b.id`;
  if (bugs.length === 0) return;
  const ids = toTextArray(bugs.map((bug) => bug.id));
  await sql`
    delete from bug_report b
    where b.project_id = ${projectId} and b.id = any(${ids}::uuid[]) and b.source = 'automatic' and b.status = 'open'
      and b.first_execution_id = ${executionId} and b.assignee is null and b.external_url is null
      and not exists (select from bug_occurrence o where o.project_id = b.project_id and o.bug_report_id = b.id)
      and not exists (
        select from bug_change c where c.project_id = b.project_id and c.bug_report_id = b.id and c.cause <> 'opened')`;
  // The bugs that stay were last seen in an earlier run.
  const last = (home: Fragment) => sql`
    select o.seen_at, r.execution_id, e.branch, e.commit from bug_occurrence o
    join test_run r on r.project_id = o.project_id and r.id = o.run_id
    join execution e on e.project_id = r.project_id and e.id = r.execution_id
    where o.project_id = b.project_id and o.bug_report_id = b.id ${home}
    order by o.seen_at desc limit 1`;
  const atHome = sql`and ${isOnDefault(sql, sql`e`, defaultBranchOf(sql, projectId))}`;
  await sql`
    update bug_report b set
      (last_seen_at, last_execution_id, branch, commit) = (
        select l.seen_at, l.execution_id, l.branch, l.commit from (select) one left join lateral (${last(sql``)}) l on true),
      (home_execution_id, home_branch, home_commit) = (
        select l.execution_id, l.branch, l.commit from (select) one left join lateral (${last(atHome)}) l on true)
    where b.project_id = ${projectId} and b.id = any(${ids}::uuid[]) and b.last_execution_id = ${executionId}`;
}

/** A case that fails again begins to count anew, unless its bug has been seen after `seenAt`. */
export const insertBugCases = (
  sql: Tx,
  projectId: string,
  cases: readonly { bugId: string; testCase: number }[],
  seenAt: string | null = null,
) => sql`
  insert into bug_case (project_id, bug_report_id, test_case)
  select distinct ${projectId}::uuid, bug, test_case
  from unnest(${toTextArray(cases.map(({ bugId }) => bugId))}::uuid[],
    ${toNumberArray(cases.map(({ testCase }) => testCase))}::int[]) as o (bug, test_case)
  on conflict (project_id, bug_report_id, test_case) do update set clean = case
    when exists (select from bug_report b where b.project_id = ${projectId} and b.id = bug_case.bug_report_id
      and b.last_seen_at > ${seenAt}::timestamptz)
    then bug_case.clean else 0 end`;

/** Whether a run is of a commit that its branch has left behind. */
export const selectIsOvertaken = async (sql: Sql, projectId: string, runId: string): Promise<boolean> => {
  const [row] = await sql<{ isSo: boolean }[]>`
    select ${isOvertaken(sql, projectId, { r: sql`r`, e: sql`e` })} as "isSo"
    from test_run r join execution e on e.project_id = r.project_id and e.id = r.execution_id
    where r.project_id = ${projectId} and r.id = ${runId}`;
  return row!.isSo;
};

/** The bugs that occurred in a run. */
export const selectBugsOfRun = (sql: Sql, projectId: string, runId: string) => sql<Omit<BugState, "mergedInto">[]>`
  select id, number, title, status from bug_report b
  where project_id = ${projectId} and id in (
    select bug_report_id from bug_occurrence where project_id = ${projectId} and run_id = ${runId})
  order by number limit 100`;

const RUNS_TO_RESOLVE = 3;
/** A run of no more rows of results asks for the bugs of its cases; one of more for its results of the cases of bugs. */
const FEW_BLOCKS = 16;

/**
 * A run of the default branch, completed at `at`: its passed cases count towards the end of the bugs that have not been
 * seen since. Answers the bugs whose cases have all passed often enough in a row.
 */
export async function countCleanCases(
  sql: Tx,
  projectId: string,
  runId: string,
  at: string,
): Promise<{ id: string; status: BugStatus }[]> {
  const hasFew = sql`(
    select count(*) from case_result where project_id = ${projectId} and run_id = ${runId}) <= ${FEW_BLOCKS}::int`;
  const isCounted = sql`
    ${isLiveBug(sql, sql`b`)} and (b.last_seen_at is null or b.last_seen_at <= ${at}::timestamptz)`;
  return await sql<{ id: string; status: BugStatus }[]>`
    with counted as (
      update bug_case k set clean = case when n.letter = 'p' then k.clean + 1 else 0 end
      from (
        select k.bug_report_id, k.test_case, n.letter
        from case_result r
        cross join lateral unnest(r.test_cases, string_to_array(r.statuses, null)) as n (test_case, letter)
        cross join lateral (
          select * from bug_case where project_id = ${projectId} and test_case = n.test_case offset 0) k
        cross join lateral (
          select from bug_report b where project_id = ${projectId} and id = k.bug_report_id and ${isCounted} offset 0) b
        where ${hasFew} and r.project_id = ${projectId} and r.run_id = ${runId}
        union all
        select k.bug_report_id, k.test_case, substr(r.statuses, array_position(r.test_cases, k.test_case), 1)
        from bug_report b
        join bug_case k on k.project_id = b.project_id and k.bug_report_id = b.id
        join case_result r on r.project_id = k.project_id and r.run_id = ${runId}
          and r.block = ${blockOfCase(sql, sql`k.test_case`)}
        where not ${hasFew} and b.project_id = ${projectId} and ${isCounted}
      ) n
      where k.project_id = ${projectId} and k.bug_report_id = n.bug_report_id and k.test_case = n.test_case
        and lower(n.letter) in ('p', 'f')
      returning k.bug_report_id, k.test_case, k.clean
    )
    select b.id, b.status from bug_report b
    where b.project_id = ${projectId} and ${isLiveBug(sql, sql`b`)}
      and b.id in (select bug_report_id from counted where clean >= ${RUNS_TO_RESOLVE})
      and not exists (
        select from bug_case k left join counted c using (bug_report_id, test_case)
        where k.project_id = ${projectId} and k.bug_report_id = b.id and coalesce(c.clean, k.clean) < ${RUNS_TO_RESOLVE})
      -- Three passes say nothing of flaky cases: a bug of theirs alone waits until one of them has recovered.
      and exists (
        select from bug_case k
        left join case_health h on h.project_id = k.project_id and h.test_case = k.test_case
        where k.project_id = ${projectId} and k.bug_report_id = b.id and not coalesce(${isFlaky(sql)}, false))`;
}

export type BugsOfCases = {
  /** By their numbers those whose passes count towards the end of a bug. */
  testCases: ReadonlySet<number>;
  /** Whether the transaction has the turn of `lockBugs`, if there are any. */
  areHeld: boolean;
};

const BUGS_OF_CASES = compose<"project" | "testCases" | "isNeeded", { testCases: number[] | null; areHeld: boolean }>(
  (sql, given) => sql`
    with watched as materialized (
      select number from unnest(${given("testCases")}::int[]) as asked (number)
      where exists (
        select from (
          select bug_report_id from bug_case where project_id = ${given("project")} and test_case = asked.number offset 0) k
        cross join lateral (
          select from bug_report b
          where project_id = ${given("project")} and id = k.bug_report_id and ${isLiveBug(sql, sql`b`)} offset 0) b))
    select (select json_agg(number) from watched) as "testCases",
      case when ${given("isNeeded")}::boolean or exists (select from watched) then pg_try_advisory_xact_lock(${lockOf(sql, "bugs", given("project"))})
        else true end as "areHeld"`,
);

/**
 * Those of these test cases, by their numbers, that live bugs have, and the lock of `lockBugs` unless another transaction has
 * it. It is taken if there are such cases, or `isNeeded`.
 */
export const tryBugsOfCases = async (
  sql: Tx,
  projectId: string,
  testCases: readonly number[],
  isNeeded: boolean,
): Promise<BugsOfCases> => {
  const [row] = await BUGS_OF_CASES(sql, {
    project: projectId,
    testCases: toNumberArray(testCases),
    isNeeded: String(isNeeded),
  });
  return { testCases: new Set(row!.testCases), areHeld: row!.areHeld };
};

/** In a transaction that holds the lock: all but the status. */
export async function updateBugReport(
  sql: Tx,
  projectId: string,
  id: string,
  patch: Omit<BugReportPatch, "status">,
  now: string,
): Promise<void> {
  const or = <T>(value: T | undefined, column: string) =>
    value === undefined ? sql`${sql(column)}` : sql`${value as never}`;
  await sql`
    update bug_report set
      title = ${or(patch.title, "title")}, description = ${or(patch.description, "description")},
      severity = ${or(patch.severity, "severity")}, assignee = ${or(patch.assignee, "assignee")},
      labels = ${patch.labels === undefined ? sql`labels` : sql`${toTextArray(patch.labels)}::text[]`},
      external_url = ${or(patch.externalUrl, "external_url")},
      fixed_in_commit = ${or(patch.fixedInCommit, "fixed_in_commit")}, updated_at = ${now}
    where project_id = ${projectId} and id = ${id}`;
}

/** Clean runs count from now on. */
export const resetCleanCases = (sql: Tx, projectId: string, id: string) =>
  sql`update bug_case set clean = 0 where project_id = ${projectId} and bug_report_id = ${id}`;

/** Where it is followed up elsewhere, unless somebody has said so already. */
export const setExternalUrl = (sql: Sql, projectId: string, id: string, url: string) => sql`
  update bug_report set external_url = ${url}, updated_at = now()
  where project_id = ${projectId} and id = ${id} and external_url is null`;

/** In a transaction that holds the lock: everything that `from` is known by becomes that of `into`. */
export async function moveBug(
  sql: Tx,
  projectId: string,
  { from, into, now }: { from: Pick<BugState, "id">; into: Pick<BugState, "id">; now: string },
): Promise<void> {
  await sql`
    update bug_fingerprint set bug_report_id = ${into.id} where project_id = ${projectId} and bug_report_id = ${from.id}`;
  // A case that had both bugs in one run occurs once in what they become.
  const [both] = await sql<{ count: number }[]>`
    with moved as (
      delete from bug_occurrence where project_id = ${projectId} and bug_report_id = ${from.id}
      returning run_id, test_case, message, seen_at
    ), added as (
      insert into bug_occurrence (project_id, bug_report_id, run_id, test_case, message, seen_at)
      select ${projectId}, ${into.id}, run_id, test_case, message, seen_at from moved on conflict do nothing
      returning run_id)
    select ((select count(*) from moved) - (select count(*) from added))::int as count`;
  await sql`
    with moved as (
      delete from bug_case where project_id = ${projectId} and bug_report_id = ${from.id} returning test_case, clean)
    insert into bug_case (project_id, bug_report_id, test_case, clean)
    select ${projectId}, ${into.id}, test_case, clean from moved
    on conflict (project_id, bug_report_id, test_case) do update set clean = least(bug_case.clean, excluded.clean)`;
  await sql`
    update bug_report i set
      occurrences = i.occurrences + f.occurrences - ${both!.count}::int,
      first_seen_at = least(i.first_seen_at, f.first_seen_at), last_seen_at = greatest(i.last_seen_at, f.last_seen_at),
      first_execution_id = case when i.first_seen_at is null or f.first_seen_at < i.first_seen_at
        then f.first_execution_id else i.first_execution_id end,
      last_execution_id = case when i.last_seen_at is null or f.last_seen_at > i.last_seen_at
        then f.last_execution_id else i.last_execution_id end,
      (home_branch, home_commit, home_execution_id) = (
        select h.home_branch, h.home_commit, h.home_execution_id from bug_report h
        where h.project_id = i.project_id and h.id in (i.id, f.id)
        order by h.home_execution_id desc nulls last limit 1),
      updated_at = ${now}
    from bug_report f
    where i.project_id = ${projectId} and i.id = ${into.id} and f.project_id = ${projectId} and f.id = ${from.id}`;
  await sql`
    update bug_report set merged_into = ${into.id}, occurrences = 0 where project_id = ${projectId} and id = ${from.id}`;
}

export type OccurrenceRow = BugOccurrence & { runId: string; testCase: number };

/** Newest run first; one row more than `limit`. `after` is the run and the test case of the last one. */
export const selectOccurrences = (
  sql: Sql,
  projectId: string,
  bugId: string,
  limit: number,
  after: [runId: string, testCase: string] | undefined,
) => sql<OccurrenceRow[]>`
  select o.run_id as "runId", o.test_case as "testCase", r.execution_id as "executionId", r.task_slug as "taskSlug",
    c.id as "testCaseId", e.branch, e.commit, o.message, o.seen_at as "seenAt"
  from (
    select * from bug_occurrence
    where project_id = ${projectId} and bug_report_id = ${bugId}
      ${after ? sql`and (run_id, test_case) < (${after[0]}::uuid, ${Number(after[1])}::int)` : sql``}
    order by run_id desc, test_case desc limit ${limit + 1}
  ) o
  join test_run r on r.project_id = o.project_id and r.id = o.run_id
  join execution e on e.project_id = r.project_id and e.id = r.execution_id
  join test_case c on c.project_id = o.project_id and c.number = o.test_case
  order by o.run_id desc, o.test_case desc`;

/** The numbers of those of the ids that are test cases of the project. */
export const selectTestCasesById = async (sql: Sql, projectId: string, ids: readonly string[]): Promise<number[]> => {
  const rows = await sql<{ number: number }[]>`
    select number from test_case
    where project_id = ${projectId} and number = any(${toNumberArray(ids.map(numberOfTestCase))}::int[])
      and id = any(${toTextArray(ids)}::uuid[])`;
  return rows.map(({ number }) => number);
};

export type TrackedFailure = {
  testCase: number;
  suite: string;
  name: string;
  file: string | null;
  kind: string | null;
  message: string | null;
  stack: string | null;
  /** See rules/incident.ts. */
  isIncident: boolean;
  /** The infrastructure rule that it matches. */
  ruleId: string | null;
  ruleName: string | null;
  ruleUrl: string | null;
};

/** The failed cases of runs with what they tell, by run and test case; of each run at most its `limit`. */
export const selectRunFailures = (sql: Sql, projectId: string, runs: readonly { id: string; limit: number }[]) => sql<
  (TrackedFailure & { runId: string })[]
>`
  select f.run_id as "runId", f.number as "testCase", c.suite, c.name, c.file, d.kind, d.message,
    left(d.stack, 20000) as stack,
    coalesce(i.blame = 'incident', false) as "isIncident", i.rule_id as "ruleId", i.rule_name as "ruleName",
    i.rule_url as "ruleUrl"
  from (
    select first.* from unnest(
      ${toTextArray(runs.map(({ id }) => id))}::uuid[], ${toNumberArray(runs.map(({ limit }) => limit))}::int[]
    ) as run (id, most), lateral (
      select r.run_id, r.number, r.attempt from ${failedResultsOf(sql, projectId, sql`select run.id as id`)} r
      order by r.number limit run.most) first
  ) f
  cross join lateral (select * from test_case where project_id = ${projectId} and number = f.number offset 0) c
  left join lateral (
    select * from case_detail
    where project_id = ${projectId} and run_id = f.run_id and test_case = f.number and attempt = f.attempt offset 0) d on true
  left join lateral (
    select blame, rule_id, rule_name, rule_url from failure
    where project_id = ${projectId} and run_id = f.run_id and test_case = f.number offset 0) i on true
  order by f.run_id, f.number`;
