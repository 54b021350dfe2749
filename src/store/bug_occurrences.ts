/** The failures of test runs that are occurrences of bug reports. */

import type { Failure } from "../rules/fingerprint.ts";
import type { BugOccurrence, BugReport } from "../schema/bug_reports.ts";
import { type Fragment, type Sql, type Tx, toNumberArray, toTextArray } from "../database/connect.ts";
import { defaultBranchOf, isOvertaken } from "./default_branch.ts";
import { failedResultsOf } from "./packing.ts";
import { isOnDefault } from "./predicates.ts";
import { insertBugCases } from "./bug_cases.ts";

/** A run in which bugs occurred. */
export type OccurrenceRun = {
  id: string;
  executionId: string;
  branch: string | null;
  commit: string | null;
  onDefaultBranch: boolean;
  seenAt: string;
};

export type Occurrence = { run: OccurrenceRun; bugId: string; testCase: number; message: string | null };

/** The runs that a bug was seen in first and last, and last on the default branch. */
function toSighting(bugId: string, occurrences: readonly Occurrence[]) {
  const runs = occurrences
    .map(({ run }) => run)
    .toSorted((a, b) => (a.seenAt < b.seenAt ? -1 : Number(a.seenAt > b.seenAt)));
  const home = runs.findLast(({ onDefaultBranch }) => onDefaultBranch);
  return { bugId, first: runs[0]!, last: runs.at(-1)!, home };
}

/** Each test case of a run occurs once in a bug. The bugs' sums and last sightings follow. */
export async function insertOccurrences(sql: Tx, projectId: string, occurrences: readonly Occurrence[]): Promise<void> {
  const texts = <Row>(rows: readonly Row[], of: (row: Row) => string | null | undefined) =>
    toTextArray(rows.map((row) => of(row) ?? null));
  const sightings = [...Map.groupBy(occurrences, ({ bugId }) => bugId)].map(([bugId, own]) => toSighting(bugId, own));
  // A run that comes late is not the last one that a bug was seen in.
  const isOlder = sql`coalesce(b.last_seen_at > s.last_at, false)`;
  const isAway = sql`(s.home_id is null or (coalesce(b.last_seen_at > s.home_at, false) and b.home_execution_id is not null))`;
  const occur = sql`
    with added as (
      insert into bug_occurrence (project_id, bug_report_id, run_id, test_case, message, seen_at)
      select ${projectId}, o.bug, o.run, o.test_case, o.message, o.seen_at
      from unnest(${texts(occurrences, ({ bugId }) => bugId)}::uuid[], ${texts(occurrences, ({ run }) => run.id)}::uuid[],
        ${toNumberArray(occurrences.map(({ testCase }) => testCase))}::int[],
        ${texts(occurrences, ({ message }) => message)}::text[],
        ${texts(occurrences, ({ run }) => run.seenAt)}::timestamptz[]) as o (bug, run, test_case, message, seen_at)
      on conflict do nothing returning bug_report_id
    ), sums as (select bug_report_id, count(*)::int as count from added group by bug_report_id)
    update bug_report b set
      occurrences = b.occurrences + sums.count, impact_due_at = now(),
      first_seen_at = least(b.first_seen_at, s.first_at), last_seen_at = greatest(b.last_seen_at, s.last_at),
      first_execution_id = case when b.first_seen_at <= s.first_at
        then coalesce(b.first_execution_id, s.first_id) else s.first_id end,
      last_execution_id = case when ${isOlder} then b.last_execution_id else s.last_id end,
      branch = case when ${isOlder} then b.branch else s.last_branch end,
      commit = case when ${isOlder} then b.commit else s.last_commit end,
      home_execution_id = case when ${isAway} then b.home_execution_id else s.home_id end,
      home_branch = case when ${isAway} then b.home_branch else s.home_branch end,
      home_commit = case when ${isAway} then b.home_commit else s.home_commit end,
      updated_at = greatest(b.updated_at, s.last_at)
    from sums join unnest(
      ${texts(sightings, ({ bugId }) => bugId)}::uuid[],
      ${texts(sightings, ({ first }) => first.seenAt)}::timestamptz[], ${texts(sightings, ({ first }) => first.executionId)}::uuid[],
      ${texts(sightings, ({ last }) => last.seenAt)}::timestamptz[], ${texts(sightings, ({ last }) => last.executionId)}::uuid[],
      ${texts(sightings, ({ last }) => last.branch)}::text[], ${texts(sightings, ({ last }) => last.commit)}::text[],
      ${texts(sightings, ({ home }) => home?.seenAt)}::timestamptz[], ${texts(sightings, ({ home }) => home?.executionId)}::uuid[],
      ${texts(sightings, ({ home }) => home?.branch)}::text[], ${texts(sightings, ({ home }) => home?.commit)}::text[]
    ) as s (bug, first_at, first_id, last_at, last_id, last_branch, last_commit, home_at, home_id, home_branch, home_commit)
      on s.bug = sums.bug_report_id
    where b.project_id = ${projectId} and b.id = sums.bug_report_id`;
  // First, because a case begins to count anew unless its bug had been seen later.
  const cases = occurrences.map(({ run, bugId, testCase }) => ({ bugId, testCase, seenAt: run.seenAt }));
  await Promise.all([insertBugCases(sql, projectId, cases).execute(), occur.execute()]);
}

/**
 * Removes the failures of a run from their bugs, because the run now says something else of them, and deletes bugs that it had opened if
 * they were not changed since.
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
    update bug_report b set occurrences = b.occurrences - sums.count, impact_due_at = now() from sums
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

/** Whether a run is of a commit that its branch has left behind. */
export const selectIsOvertaken = async (sql: Sql, projectId: string, runId: string): Promise<boolean> => {
  const [row] = await sql<{ isSo: boolean }[]>`
    select ${isOvertaken(sql, projectId, { r: sql`r`, e: sql`e` })} as "isSo"
    from test_run r join execution e on e.project_id = r.project_id and e.id = r.execution_id
    where r.project_id = ${projectId} and r.id = ${runId}`;
  return row!.isSo;
};

/** The bugs that occurred in a run. */
export const selectBugsOfRun = (sql: Sql, projectId: string, runId: string) => sql<
  Pick<BugReport, "id" | "number" | "title" | "status">[]
>`
  select id, number, title, status from bug_report b
  where project_id = ${projectId} and id in (
    select bug_report_id from bug_occurrence where project_id = ${projectId} and run_id = ${runId})
  order by number limit 100`;

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

export type TrackedFailure = Failure & {
  testCase: number;
  /** It failed for a cause outside of the code. */
  isIncident: boolean;
  isQuarantined: boolean;
  /** Whether it is unclear: alone it opens no bug. */
  isUnclear: boolean;
  /** The infrastructure rule that it matches. */
  ruleId: string | null;
  ruleName: string | null;
  ruleUrl: string | null;
};

/** Returns the failed cases of runs with their texts, by run and test case; at most `limit` per run. */
export const selectRunFailures = (sql: Sql, projectId: string, runs: readonly { id: string; limit: number }[]) => sql<
  (TrackedFailure & { runId: string })[]
>`
  select f.run_id as "runId", f.number as "testCase", c.suite, c.name, c.file, d.kind, d.message,
    left(d.stack, 20000) as stack,
    coalesce(i.blame = 'incident', false) as "isIncident", coalesce(i.blame = 'quarantined', false) as "isQuarantined",
    coalesce(i.blame = 'unclear', false) as "isUnclear", i.rule_id as "ruleId", i.rule_name as "ruleName",
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
