/** The bug reports that failures of an execution have joined, each with the commit that a search has proven. */

import { type Fragment, type Sql, toNumberArray, toTextArray } from "../database/connect.ts";
import type { CulpritSummary } from "../schema/culprit_searches.ts";
import type { JoinedBug, CountedBug } from "../schema/known_bugs.ts";
import type { BugCounts } from "./causes.ts";
import { newestVerdictOf } from "./culprit_searches.ts";
import { isLiveBug } from "./predicates.ts";

/** Maximum number of known bugs that a message or a comment names. */
const MAX_KNOWN_BUGS = 5;

type Row = Omit<CountedBug, "culprit"> & { search: CulpritSummary | null };

const toCulprit = (search: CulpritSummary | null): JoinedBug["culprit"] => {
  if (search?.verdict !== "culprit" || search.commit === null) return null;
  const { searchId, commit, author, summary } = search;
  return { searchId, commit, author: author ?? "", summary };
};

const toBug = ({ search, ...bug }: Row): CountedBug => ({ ...bug, culprit: toCulprit(search) });

/**
 * A statement: the bug reports that failures of the execution have joined, and whether they are known. An
 * execution has opened or reopened a bug if the change has the time of one of its occurrences, because both are stored with
 * the same time.
 */
const judgedBugs = (sql: Sql, projectId: string, executionId: string, bugCounts: BugCounts): Fragment => sql`
  with seen as materialized (
    select o.bug_report_id as id, array_agg(distinct o.seen_at) as times
    from test_run r cross join lateral (
      select bug_report_id, seen_at from bug_occurrence where project_id = ${projectId} and run_id = r.id offset 0) o
    where r.project_id = ${projectId} and r.execution_id = ${executionId} and r.failed > 0
    group by 1
  )
  select b.*, j.failed, ${isLiveBug(sql, sql`b`)} and not exists (
    select from bug_change c
    where c.project_id = ${projectId} and c.bug_report_id = b.id and c.cause in ('opened', 'regression')
      and c.changed_at = any(j.times)) as known
  from (select c.id, c.failed, seen.times from unnest(
      ${toTextArray(Object.keys(bugCounts))}::uuid[], ${toNumberArray(Object.values(bugCounts))}::int[]
    ) as c (id, failed) join seen on seen.id = c.id offset 0) j
  cross join lateral (select * from bug_report where project_id = ${projectId} and id = j.id offset 0) b`;

const bugColumns = (sql: Sql) => sql`
  b.id, b.number, b.title, b.status, b.known, b.failed, ${newestVerdictOf(sql, sql`b`)} as search`;

/** Returns the bug reports with the numbers of their failures. */
export async function selectJoinedBugs(
  sql: Sql,
  projectId: string,
  executionId: string,
  bugCounts: BugCounts,
): Promise<CountedBug[]> {
  if (Object.keys(bugCounts).length === 0) return [];
  const rows = await sql<Row[]>`
    select ${bugColumns(sql)} from (${judgedBugs(sql, projectId, executionId, bugCounts)}) b`;
  return rows.map(toBug);
}

/** Returns the first of the bug reports that are known, the ones with most failures first. `total` is the number of all that are known. */
export async function selectKnownBugs(
  sql: Sql,
  projectId: string,
  executionId: string,
  bugCounts: BugCounts,
): Promise<{ bugs: CountedBug[]; total: number }> {
  if (Object.keys(bugCounts).length === 0) return { bugs: [], total: 0 };
  const rows = await sql<(Row & { total: number })[]>`
    with shown as materialized (
      select *, count(*) over ()::int as total from (${judgedBugs(sql, projectId, executionId, bugCounts)}) judged
      where known order by failed desc, number limit ${MAX_KNOWN_BUGS}
    )
    select ${bugColumns(sql)}, b.total from shown b order by b.failed desc, b.number`;
  return { bugs: rows.map(({ total: _, ...row }) => toBug(row)), total: rows[0]?.total ?? 0 };
}
