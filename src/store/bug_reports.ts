/** Bug reports, their lists, states and changes. */

import type { BugCondition } from "../rules/bug_search.ts";
import {
  BUG_STATUSES,
  type BugReport,
  type BugReportDetail,
  type BugReportPatch,
  type BugReportSort,
  type BugStatus,
  type Severity,
} from "../schema/bug_reports.ts";
import { type Fragment, type Sql, type Tx, toJsonTime, toTextArray } from "../database/connect.ts";
import { matchBugs } from "./bug_filter.ts";
import { newestSearchOf } from "./culprit_searches.ts";
import { takeLock } from "../database/locks.ts";
import { ownersOfBug } from "./owners.ts";
import { isLiveBug } from "./predicates.ts";
import { fingerprintText, telling } from "./bug_fingerprints.ts";

/** Serialises everything that opens, reopens, resolves or merges bugs of a project, so numbers have no gaps and a bug regresses once. */
export const lockBugs = (sql: Tx, projectId: string) => takeLock(sql, ["bugs", projectId]);
/** Maximum number of fingerprints in the details of a bug. A bug of many test cases has one for each. */
const MAX_FINGERPRINTS = 100;

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

type BugReportQuery = {
  limit: number;
  /** All of them must be met. Default: none. */
  conditions?: readonly BugCondition[] | undefined;
  sort?: BugReportSort | undefined;
  /** The place of the page before: the last bug's key and number. */
  after?: readonly string[] | undefined;
};

/** `key` is the sort key, as a text of full precision. */
export type BugReportRow = BugReport & { key: string };

/** The order of the indexes, greatest first; bugs that never occurred come last. */
const SORT_KEYS = {
  newest: { key: "b.number", type: "int" },
  occurrences: { key: "b.occurrences", type: "int" },
  impact: { key: "b.impact", type: "int" },
  lastSeenAt: { key: "coalesce(b.last_seen_at, '-infinity')", type: "timestamptz" },
  severity: { key: "array_position(array['trivial', 'minor', 'major', 'critical'], b.severity)", type: "int" },
} as const;
/** Numbers of rows that are looked up per status. A literal limit makes a plan that is cached, so there are few of them. */
const ENOUGH = [21, 101];

/** Returns one row more than `limit`; equal keys are sorted newest first. */
export async function selectBugReports(sql: Sql, projectId: string, query: BugReportQuery): Promise<BugReportRow[]> {
  const { sort = "newest", after, limit, conditions = [] } = query;
  const isStatus = (one: BugCondition) => one.field === "status";
  const wanted = conditions.filter(isStatus);
  const statuses = BUG_STATUSES.filter((status) => wanted.every(({ is }) => is.includes(status)));
  if (statuses.length === 0) return [];
  const matches = matchBugs(
    sql,
    projectId,
    conditions.filter((one) => !isStatus(one)),
  );
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
      ${matches}
    order by ${order(key)} limit ${enough})`;
  // Reads each status separately, in the order of an index. One query over all statuses would have to sort.
  const [first, ...others] = wanted.length === 0 && sort === "newest" ? [undefined] : statuses;
  const all = others.reduce((before, status) => sql`${before} union all ${firstOf(status)}`, firstOf(first));
  const rows = await sql<(Flat<BugReport> & { key: string })[]>`
    select ${columns(sql)}, b.key::text as key
    from (select * from (${all}) b order by ${order(sql`b.key`)} limit ${limit + 1}) b
    order by ${order(sql`b.key`)}`;
  return rows.map(unflagged);
}

/** Maximum number of open bugs, and of those in progress, that are searched. */
const MAX_LIVE_BUGS_READ = 100;

export type UrgentBug = Pick<BugReport, "id" | "number" | "title" | "occurrences" | "assignee" | "lastSeenAt"> & {
  isMine: boolean;
  isRegressed: boolean;
};

/**
 * Returns those of the most recently seen live bugs that are assigned to one of these names or are open regressions; assigned ones first,
 * then the last seen. At most `limit` of each.
 */
export const selectUrgentBugs = (sql: Sql, projectId: string, names: readonly string[], limit: number) => {
  const newest = (status: BugStatus) => sql`(
    select *, ${sql.unsafe(SORT_KEYS.lastSeenAt.key)} as key from bug_report b
    where project_id = ${projectId} and merged_into is null and status = ${status}
    order by key desc, number desc limit ${MAX_LIVE_BUGS_READ}::int)`;
  return sql<UrgentBug[]>`
    select id, number, title, occurrences, assignee, last_seen_at as "lastSeenAt", is_mine as "isMine", is_regressed as "isRegressed"
    from (
      select *, row_number() over (partition by is_mine order by key desc, number desc) as place
      from (
        select *, coalesce(assignee = any(${toTextArray(names)}::text[]), false) as is_mine,
          status = 'open' and regressed as is_regressed
        from (${newest("open")} union all ${newest("in_progress")}) b) b
      where is_mine or is_regressed) b
    where place <= ${limit}::int order by is_mine desc, place`;
};

export async function selectBugReport(sql: Sql, projectId: string, id: string): Promise<BugReportDetail | undefined> {
  const [row] = await sql<Flat<BugReportDetail>[]>`
    select ${columns(sql)}, b.merged_into as "mergedInto", ${newestSearchOf(sql, sql`b`)} as culprit,
      (select coalesce(json_agg(json_build_object('fingerprint', ${fingerprintText(sql)}, 'version', f.version,
        'kind', f.kind, 'exceptionType', f.exception_type, 'message', f.message, 'frames', f.frames, 'test', f.test)
        order by ${telling(sql)}), '[]')
        from (select * from bug_fingerprint f where f.project_id = b.project_id and f.bug_report_id = b.id
          order by ${telling(sql)} limit ${MAX_FINGERPRINTS}) f) as grouping,
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

/** Counts open bugs by severity. */
export const countOpenBugs = (sql: Sql, projectId: string) => sql<
  { severity: Severity; open: number; regressed: number }[]
>`
  select severity, count(*)::int as open, (count(*) filter (where regressed))::int as regressed from bug_report b
  where project_id = ${projectId} and ${isLiveBug(sql, sql`b`)} group by severity`;

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

/** Inserts a bug, in a transaction that holds the lock. */
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

type ChangeCause = BugReportDetail["history"][number]["cause"];

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

/** Sets the status and `resolvedAt`, and adds the change to the history. */
export async function updateStatus(sql: Tx, projectId: string, change: StatusChange): Promise<void> {
  const { id, to, cause, now } = change;
  await sql`
    update bug_report set status = ${to}, updated_at = greatest(updated_at, ${now}::timestamptz),
      resolved_at = case when ${to} = 'resolved' then ${now}::timestamptz end, impact_due_at = now(),
      regressed = ${cause === "regression"} or (regressed and ${to} <> 'resolved')
    where project_id = ${projectId} and id = ${id}`;
  await insertChange(sql, projectId, change);
}

/** Updates everything but the status, in a transaction that holds the lock. */
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

/** Sets the address of the external issue, unless the bug has one. */
export const setExternalUrl = (sql: Sql, projectId: string, id: string, url: string) => sql`
  update bug_report set external_url = ${url}, updated_at = now()
  where project_id = ${projectId} and id = ${id} and external_url is null`;

/** Moves all fingerprints and cases of `from` to `into`, in a transaction that holds the lock. */
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
      occurrences = i.occurrences + f.occurrences - ${both!.count}::int, impact_due_at = now(),
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
    update bug_report set merged_into = ${into.id}, occurrences = 0, impact_due_at = now() where project_id = ${projectId} and id = ${from.id}`;
}
