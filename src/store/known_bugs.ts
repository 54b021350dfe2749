/** The bug reports that failures of an execution have joined, each with the commit that a search has proven. */

import { type Sql, toTextArray } from "../database/connect.ts";
import type { CulpritSummary } from "../schema/culprit_searches.ts";
import type { JoinedBug, CountedBug } from "../schema/known_bugs.ts";
import { newestSearchOf } from "./culprit_searches.ts";
import { isOwnedBy } from "./owners.ts";
import { isLiveBug } from "./predicates.ts";

export type JoinedBugQuery = {
  /** Maximum number of bugs. */
  limit: number;
  /** Only these bugs; undefined: all that are known. */
  ids?: readonly string[] | undefined;
  /** Only bugs with failures of this task, which are counted. */
  taskSlug?: string | null | undefined;
  /** Only bugs with failures of test cases of these owners, which are counted. */
  owners?: readonly string[] | undefined;
};

type Row = Omit<CountedBug, "culprit"> & { search: CulpritSummary | null; total: number };

const toCulprit = (search: CulpritSummary | null): JoinedBug["culprit"] => {
  if (search?.verdict !== "culprit" || search.commit === null) return null;
  const { searchId, commit, author, summary } = search;
  return { searchId, commit, author: author ?? "", summary };
};

/**
 * The bugs with most failures first. `total` is the number of all that match the query. An execution has opened or reopened a bug if
 * the change has the time of one of its occurrences, because both are stored with the same time.
 */
export async function selectJoinedBugs(
  sql: Sql,
  projectId: string,
  executionId: string,
  { limit, ids, taskSlug = null, owners }: JoinedBugQuery,
): Promise<{ bugs: CountedBug[]; total: number }> {
  const isWanted = sql`(
    ${taskSlug === null ? sql`true` : sql`r.task_slug = ${taskSlug}`}
    ${
      owners === undefined
        ? sql``
        : sql`and (
            select ${isOwnedBy(sql, projectId, sql`c`, owners)} from test_case c
            where c.project_id = ${projectId} and c.number = o.test_case)`
    })`;
  const rows = await sql<Row[]>`
    with joined as materialized (
      select o.bug_report_id as id, (count(*) filter (where ${isWanted}))::int as failed, array_agg(distinct o.seen_at) as seen
      from test_run r cross join lateral (
        select bug_report_id, test_case, seen_at from bug_occurrence
        where project_id = ${projectId} and run_id = r.id offset 0) o
      where r.project_id = ${projectId} and r.execution_id = ${executionId} and r.failed > 0
        ${ids === undefined ? sql`` : sql`and o.bug_report_id = any(${toTextArray(ids)}::uuid[])`}
      group by 1
    ), judged as materialized (
      select b.*, j.failed, ${isLiveBug(sql, sql`b`)} and not exists (
        select from bug_change c
        where c.project_id = ${projectId} and c.bug_report_id = b.id and c.cause in ('opened', 'regression')
          and c.changed_at = any(j.seen)) as known
      from joined j cross join lateral (
        select * from bug_report where project_id = ${projectId} and id = j.id offset 0) b
      where j.failed > 0
    ), shown as materialized (
      select *, count(*) over ()::int as total from judged ${ids === undefined ? sql`where known` : sql``}
      order by failed desc, number limit ${limit}
    )
    select b.id, b.number, b.title, b.status, b.known, b.failed, b.total, ${newestSearchOf(sql, sql`b`)} as search
    from shown b order by b.failed desc, b.number`;
  return {
    bugs: rows.map(({ search, total: _, ...bug }) => ({ ...bug, culprit: toCulprit(search) })),
    total: rows[0]?.total ?? 0,
  };
}
