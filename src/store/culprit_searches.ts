/** Searches for culprits as they are stored. */

import type { RangeCommit } from "../rules/culprit_range.ts";
import { numberOfTestCase } from "../rules/test_case_id.ts";
import type { OpenProbes, SearchReason, SearchStatus } from "../schema/culprit_searches.ts";
import { type Fragment, type Sql, toJson, toJsonTime, type Tx } from "../database/connect.ts";
import { takeLockIfFree } from "../database/locks.ts";
import { isDue } from "../database/retry_backoff.ts";
import { missingRunner } from "./leases.ts";
import { isProject } from "./predicates.ts";
import { isOpen } from "./runner_presence.ts";

export type CulpritSearchRow = {
  id: string;
  bugReportId: string;
  testCaseId: string;
  /** test_case.number */
  testCase: number;
  taskSlug: string;
  /** An execution in which the test failed because of the bug; null: none is stored. */
  badExecutionId: string | null;
  goodCommit: string;
  badCommit: string;
  /** The good commit first; null: not listed yet. */
  commits: RangeCommit[] | null;
  maxProbes: number;
  maxMinutes: number;
  status: SearchStatus;
  verdict: "culprit" | "environment" | "undecided" | null;
  reason: SearchReason | null;
  summary: string;
  suspects: { index: number; chance: number }[];
  /** The index of the culprit in `commits`. */
  culprit: number | null;
  depth: number;
  createdAt: string;
  endedAt: string | null;
};

export type NewestSearchRow = CulpritSearchRow & { open: OpenProbes | null };

const columns = (sql: Sql): Fragment => sql`
  s.id, s.bug_report_id as "bugReportId", c.id as "testCaseId", s.test_case as "testCase", s.task_slug as "taskSlug",
  s.bad_execution_id as "badExecutionId", s.good_commit as "goodCommit",
  s.bad_commit as "badCommit", s.commits, s.max_probes as "maxProbes", s.max_minutes as "maxMinutes", s.status, s.verdict,
  s.reason, s.summary, s.suspects, s.culprit, s.depth, s.created_at as "createdAt", s.ended_at as "endedAt"`;

const searches = (sql: Sql): Fragment => sql`
  culprit_search s cross join lateral (
    select id from test_case where project_id = s.project_id and number = s.test_case offset 0) c`;

type InsertCulpritSearch = Pick<
  CulpritSearchRow,
  | "id"
  | "bugReportId"
  | "testCaseId"
  | "taskSlug"
  | "badExecutionId"
  | "goodCommit"
  | "badCommit"
  | "maxProbes"
  | "maxMinutes"
  | "summary"
  | "depth"
>;

export const insertCulpritSearch = (sql: Tx, projectId: string, search: InsertCulpritSearch, now: string) => sql`
  insert into culprit_search (project_id, id, bug_report_id, test_case, task_slug, bad_execution_id,
    good_commit, bad_commit, max_probes, max_minutes, summary, depth, created_at, due_at)
  values (${projectId}, ${search.id}, ${search.bugReportId}, ${numberOfTestCase(search.testCaseId)}, ${search.taskSlug},
    ${search.badExecutionId}, ${search.goodCommit}, ${search.badCommit}, ${search.maxProbes},
    ${search.maxMinutes}, ${search.summary}, ${search.depth}, ${now}, now())`;

/** An expression: the open probes of the search `s`, an alias, as JSON; null: there are none. */
const openProbesOf = (sql: Sql, s: Fragment): Fragment => sql`(
  select json_build_object('kind', min(p.kind), 'running', count(*) filter (where l.status <> 'queued'),
    'queued', count(*) filter (where l.status = 'queued'),
    'missingRunner', min(case when l.status = 'queued' then (${missingRunner(sql, sql`run`)})::text end)::json)
  from probe p
  join lease l on l.project_id = p.project_id and l.execution_id = p.execution_id and ${isOpen(sql, sql`l`)}
  join test_run run on run.project_id = l.project_id and run.id = l.run_id
  where p.project_id = ${s}.project_id and p.culprit_search_id = ${s}.id and p.ended_at is null
  having count(*) > 0)`;

/** The newest search of a bug. */
export const selectNewestSearch = async (
  sql: Sql,
  projectId: string,
  bugReportId: string,
): Promise<NewestSearchRow | undefined> => {
  const [row] = await sql<NewestSearchRow[]>`
    select ${columns(sql)}, ${openProbesOf(sql, sql`s`)} as open from ${searches(sql)}
    where s.project_id = ${projectId} and s.bug_report_id = ${bugReportId} order by s.id desc limit 1`;
  return row;
};

/**
 * An expression: the result of the newest search `s` of the bug report `b`, an alias, that meets the condition, as JSON; null: there is
 * none.
 */
const searchOf = (sql: Sql, b: Fragment, condition: Fragment): Fragment => sql`(
  select json_build_object('searchId', s.id, 'status', s.status, 'verdict', s.verdict, 'reason', s.reason,
    'summary', s.summary, 'commit', s.commits -> s.culprit ->> 'hash', 'author', s.commits -> s.culprit ->> 'author',
    'createdAt', ${toJsonTime(sql, sql`s.created_at`)}, 'endedAt', ${toJsonTime(sql, sql`s.ended_at`)})
  from culprit_search s where s.project_id = ${b}.project_id and s.bug_report_id = ${b}.id and ${condition}
  order by s.id desc limit 1)`;

export const newestSearchOf = (sql: Sql, b: Fragment): Fragment => searchOf(sql, b, sql`true`);

/** A search that is running or was cancelled does not withdraw the verdict of an earlier one. */
export const newestVerdictOf = (sql: Sql, b: Fragment): Fragment => searchOf(sql, b, sql`s.verdict is not null`);

/** A text that is different after each change of the newest search of a bug; undefined: there is none. */
export const selectSearchState = async (
  sql: Sql,
  projectId: string,
  bugReportId: string,
): Promise<string | undefined> => {
  const [row] = await sql<{ state: string }[]>`
    select concat_ws(' ', s.id, s.status, s.commits is not null, count(p), count(p.ended_at), ${openProbesOf(sql, sql`s`)}) as state
    from (
      select * from culprit_search where project_id = ${projectId} and bug_report_id = ${bugReportId}
      order by id desc limit 1) s
    left join probe p on p.project_id = ${projectId} and p.culprit_search_id = s.id
    group by s.project_id, s.id, s.status, s.commits is not null`;
  return row?.state;
};

/** Whether a search of the bug is running. */
export const selectIsSearched = async (sql: Sql, projectId: string, bugReportId: string): Promise<boolean> =>
  (
    await sql`
      select from culprit_search
      where project_id = ${projectId} and bug_report_id = ${bugReportId} and status = 'running' limit 1`
  ).length === 1;

/** The search of a bug that is running, locked until the commit. */
export const lockRunningSearch = async (
  sql: Tx,
  projectId: string,
  bugReportId: string,
): Promise<CulpritSearchRow | undefined> => {
  const [row] = await sql<CulpritSearchRow[]>`
    select ${columns(sql)} from ${searches(sql)}
    where s.project_id = ${projectId} and s.bug_report_id = ${bugReportId} and s.status = 'running' for update of s`;
  return row;
};

/** A condition: the bug report of the search `s` was merged into another one. */
const isMerged = (sql: Sql): Fragment => sql`exists (
  select from bug_report b where b.project_id = s.project_id and b.id = s.bug_report_id and b.merged_into is not null)`;

/** A condition: the search `s` can continue: its probes have ended, its time is over, or its bug was merged into another one. */
const canGoOn = (sql: Sql): Fragment => sql`
  s.due_at <= now() and ${isProject(sql, sql`s.project_id`)} and ${isDue(sql, "culprit", sql`s.id::text`)}
  and (s.created_at + s.max_minutes * interval '1 minute' <= now() or ${isMerged(sql)} or not exists (
      select from probe p where p.project_id = s.project_id and p.culprit_search_id = s.id and p.ended_at is null))`;

type DueSearch = CulpritSearchRow & {
  projectId: string;
  /** The number of the bug report into which its own was merged; null: it was not. */
  mergedInto: number | null;
};

/** Maximum number of projects that are searched for a due search. */
const MAX_PROJECTS_TRIED = 20;

/**
 * Returns and locks a running search that can continue. The searches of a project may share probes, so they make their steps one after the
 * other: projects in which another server makes one are skipped.
 */
export const lockDueSearch = async (sql: Tx): Promise<DueSearch | undefined> => {
  const projects = await sql<{ id: string }[]>`
    select s.project_id as id from culprit_search s where ${canGoOn(sql)}
    group by s.project_id order by min(s.due_at) limit ${MAX_PROJECTS_TRIED}`;
  for (const { id } of projects) {
    if (!(await takeLockIfFree(sql, ["searches", id]))) continue;
    const [row] = await sql<DueSearch[]>`
      select s.project_id as "projectId", ${columns(sql)}, (
        select i.number from bug_report b join bug_report i on i.project_id = b.project_id and i.id = b.merged_into
        where b.project_id = s.project_id and b.id = s.bug_report_id) as "mergedInto"
      from ${searches(sql)}
      where s.project_id = ${id} and ${canGoOn(sql)} order by s.due_at, s.id limit 1
      for update of s skip locked`;
    if (row) return row;
  }
  return undefined;
};

/** Maximum number of searches that may join the probes of a step. */
const MAX_JOINING_SEARCHES = 8;

/** A search whose commits are known. */
export type ListedSearch = CulpritSearchRow & { commits: RangeCommit[] };

/**
 * Returns and locks other running searches of the same task. Those that wait for no probe, which would create their own, come first, then
 * those of the same range. Searches that are being cancelled are skipped.
 */
export const lockOtherSearches = async (
  sql: Tx,
  projectId: string,
  { id, taskSlug, goodCommit, badCommit }: CulpritSearchRow,
): Promise<ListedSearch[]> => sql<ListedSearch[]>`
  select ${columns(sql)} from ${searches(sql)}
  where s.project_id = ${projectId} and s.status = 'running' and s.id <> ${id} and s.task_slug = ${taskSlug}
    and s.commits is not null and s.created_at + s.max_minutes * interval '1 minute' > now()
    and not ${isMerged(sql)} and ${isDue(sql, "culprit", sql`s.id::text`)}
  order by exists (
      select from probe p where p.project_id = s.project_id and p.culprit_search_id = s.id and p.ended_at is null),
    (s.good_commit = ${goodCommit} and s.bad_commit = ${badCommit}) desc, s.id limit ${MAX_JOINING_SEARCHES}
  for update of s skip locked`;

/**
 * Locks the bug report of a search that ends, so that it is not merged before the commit. Returns the number of the bug report into which
 * it was merged since the step began; null: it was not.
 */
export const lockMergedInto = async (sql: Tx, projectId: string, bugReportId: string): Promise<number | null> => {
  const [row] = await sql<{ into: number | null }[]>`
    select (select number from bug_report i where i.project_id = b.project_id and i.id = b.merged_into) as into
    from bug_report b where b.project_id = ${projectId} and b.id = ${bugReportId} for no key update of b`;
  return row?.into ?? null;
};

/** Stores the suspects of a locked search after a step. */
export const updateProgress = (
  sql: Tx,
  projectId: string,
  id: string,
  { summary, suspects }: Pick<CulpritSearchRow, "summary" | "suspects">,
) => sql`
  update culprit_search set summary = ${summary}, suspects = ${toJson(sql, suspects)}, due_at = now()
  where project_id = ${projectId} and id = ${id}`;

export const updateRange = (sql: Tx, projectId: string, id: string, commits: readonly RangeCommit[]) => sql`
  update culprit_search set commits = ${toJson(sql, commits)}, due_at = now()
  where project_id = ${projectId} and id = ${id}`;

/** Ends a locked search with a result. */
export const updateEndedSearch = (
  sql: Tx,
  projectId: string,
  id: string,
  end: Pick<CulpritSearchRow, "verdict" | "reason" | "summary" | "suspects" | "culprit"> & { now: string },
) => sql`
  update culprit_search set status = 'completed', verdict = ${end.verdict}, reason = ${end.reason},
    summary = ${end.summary}, suspects = ${toJson(sql, end.suspects)}, culprit = ${end.culprit}, ended_at = ${end.now},
    due_at = null
  where project_id = ${projectId} and id = ${id}`;

/** Ends a locked search without a result. It keeps the suspects of its last step. */
export const updateCancelledSearch = (sql: Tx, projectId: string, id: string, summary: string, now: Date) => sql`
  update culprit_search set status = 'cancelled', summary = ${summary}, ended_at = ${now.toISOString()}, due_at = null
  where project_id = ${projectId} and id = ${id}`;

/** The commits of the same range, if another search of the project has them; undefined: none has. */
export const selectKnownRange = async (
  sql: Sql,
  projectId: string,
  { goodCommit, badCommit }: Pick<CulpritSearchRow, "goodCommit" | "badCommit">,
): Promise<RangeCommit[] | undefined> => {
  const [row] = await sql<{ commits: RangeCommit[] }[]>`
    select commits from culprit_search
    where project_id = ${projectId} and good_commit = ${goodCommit} and bad_commit = ${badCommit} and commits is not null
    order by id desc limit 1`;
  return row?.commits;
};

/** Returns the indexes of the commits that searches of the same range have proven to have broken other test cases. */
export const selectProvenCulprits = async (
  sql: Sql,
  projectId: string,
  { testCase, goodCommit, badCommit }: Pick<CulpritSearchRow, "testCase" | "goodCommit" | "badCommit">,
): Promise<number[]> => {
  const rows = await sql<{ culprit: number }[]>`
    select distinct culprit from culprit_search
    where project_id = ${projectId} and good_commit = ${goodCommit} and bad_commit = ${badCommit}
      and culprit is not null and test_case <> ${testCase}`;
  return rows.map(({ culprit }) => culprit);
};

/** Whether another search of the bug has proven the same commit. */
export const selectIsProven = async (
  sql: Sql,
  projectId: string,
  { id, bugReportId }: Pick<CulpritSearchRow, "id" | "bugReportId">,
  hash: string,
): Promise<boolean> =>
  (
    await sql`
      select from culprit_search
      where project_id = ${projectId} and bug_report_id = ${bugReportId} and id <> ${id} and culprit is not null
        and commits -> culprit ->> 'hash' = ${hash} limit 1`
  ).length === 1;

/**
 * Moves searches, in a transaction that merges bugs: results about one bug belong to the other if that one was never searched for. If only
 * the last search of the first one has proven a commit, the searches of both are exchanged, because a bug shows its newest search. A
 * running search stays.
 */
export const moveSearches = async (
  sql: Tx,
  projectId: string,
  { from, into }: { from: string; into: string },
): Promise<void> => {
  const lastOf = (bug: string) => sql`(
    select culprit from culprit_search
    where project_id = ${projectId} and bug_report_id = ${bug} and status = 'completed' order by id desc limit 1)`;
  await sql`
    update culprit_search set bug_report_id = case when bug_report_id = ${from} then ${into} else ${from} end::uuid
    where project_id = ${projectId} and (bug_report_id = ${from} and status = 'completed'
        or bug_report_id = ${into} and status <> 'running')
      and (${lastOf(from)} is not null and ${lastOf(into)} is null or not exists (
        select from culprit_search own where own.project_id = ${projectId} and own.bug_report_id = ${into}))`;
};
