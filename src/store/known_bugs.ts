/** The bug reports that failures of an execution have joined, each with the commit that a search has proven. */

import { type Fragment, type Sql, toTextArray } from "../database/connect.ts";
import type { CulpritSummary } from "../schema/culprit_searches.ts";
import type { JoinedBug, CountedBug } from "../schema/known_bugs.ts";
import { failuresWithBugs, isWanted, type WantedFailures } from "./causes.ts";
import { newestSearchOf } from "./culprit_searches.ts";
import { isLiveBug } from "./predicates.ts";

/** Only bugs with failures that are wanted; only these failures are counted. */
export type KnownBugQuery = WantedFailures & {
  /** Maximum number of bugs. */
  limit: number;
};

type Row = Omit<CountedBug, "culprit"> & { search: CulpritSummary | null };

const toCulprit = (search: CulpritSummary | null): JoinedBug["culprit"] => {
  if (search?.verdict !== "culprit" || search.commit === null) return null;
  const { searchId, commit, author, summary } = search;
  return { searchId, commit, author: author ?? "", summary };
};

const toBug = <T extends { search: CulpritSummary | null }>({ search, ...bug }: T) => ({
  ...bug,
  culprit: toCulprit(search),
});

/**
 * A statement: the bug reports of `counted`, a statement that selects `id` and `failed`, and whether they are known. An
 * execution has opened or reopened a bug if the change has the time of one of its occurrences, because both are stored with
 * the same time.
 */
const judgedBugs = (sql: Sql, projectId: string, executionId: string, counted: Fragment): Fragment => sql`
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
  from (select c.id, c.failed, seen.times from (${counted}) c join seen on seen.id = c.id offset 0) j
  cross join lateral (select * from bug_report where project_id = ${projectId} and id = j.id offset 0) b`;

const bugColumns = (sql: Sql) => sql`
  b.id, b.number, b.title, b.status, b.known, b.failed, ${newestSearchOf(sql, sql`b`)} as search`;

/** Returns the bug reports with these ids; failures of the execution have joined them. */
export async function selectJoinedBugs(
  sql: Sql,
  projectId: string,
  executionId: string,
  ids: readonly string[],
): Promise<JoinedBug[]> {
  const counted = sql`select id, null::int as failed from unnest(${toTextArray(ids)}::uuid[]) as wanted (id)`;
  const rows = await sql<Row[]>`
    select ${bugColumns(sql)} from (${judgedBugs(sql, projectId, executionId, counted)}) b`;
  return rows.map(({ failed: _, ...row }) => toBug(row));
}

/** Returns the known bugs of an execution, those with most failures first. `total` is the number of all that match the query. */
export async function selectKnownBugs(
  sql: Sql,
  projectId: string,
  executionId: string,
  { limit, ...wanted }: KnownBugQuery,
): Promise<{ bugs: CountedBug[]; total: number }> {
  const counted = sql`
    select f.bug_id as id, count(*)::int as failed from (${failuresWithBugs(sql, projectId, executionId)}) f
    where f.bug_id is not null and ${isWanted(sql, projectId, executionId, wanted)}
    group by 1`;
  const rows = await sql<(Row & { total: number })[]>`
    with shown as materialized (
      select *, count(*) over ()::int as total from (${judgedBugs(sql, projectId, executionId, counted)}) judged
      where known order by failed desc, number limit ${limit}
    )
    select ${bugColumns(sql)}, b.total from shown b order by b.failed desc, b.number`;
  return { bugs: rows.map(({ total: _, ...row }) => toBug(row)), total: rows[0]?.total ?? 0 };
}
