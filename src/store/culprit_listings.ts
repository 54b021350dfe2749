/** Probes that list the commits of a range, for the searches that wait for them. */

import type { Sql, Tx } from "../database/connect.ts";

/** The range whose commits the probe of an execution lists; undefined: it lists none. */
export const selectListedRange = async (
  sql: Sql,
  projectId: string,
  executionId: string,
): Promise<{ good: string; bad: string } | undefined> => {
  const [row] = await sql<{ good: string; bad: string }[]>`
    select s.good_commit as good, s.bad_commit as bad from probe p
    join culprit_search s on s.project_id = p.project_id and s.id = p.culprit_search_id
    where p.project_id = ${projectId} and p.execution_id = ${executionId} and p.kind = 'commits'`;
  return row;
};

/** The searches that wait for the commits which the probe of an execution lists, locked. */
export const lockListedSearches = async (sql: Tx, projectId: string, executionId: string): Promise<string[]> => {
  const rows = await sql<{ id: string }[]>`
    select s.id from probe p join culprit_search s on s.project_id = p.project_id and s.id = p.culprit_search_id
    where p.project_id = ${projectId} and p.execution_id = ${executionId} and p.kind = 'commits'
      and s.status = 'running' and s.commits is null
    order by s.id for update of s`;
  return rows.map(({ id }) => id);
};

/** Why the last listing of the commits of a search failed for every runner; undefined: another one may list them. */
export const selectListingFailure = async (
  sql: Sql,
  projectId: string,
  searchId: string,
): Promise<string | undefined> => {
  const [row] = await sql<{ status: string; message: string | null }[]>`
    select l.status, l.message from probe p
    join lease l on l.project_id = p.project_id and l.execution_id = p.execution_id
    where p.project_id = ${projectId} and p.culprit_search_id = ${searchId} and p.kind = 'commits'
    order by l.id desc limit 1`;
  return row?.status === "failed" ? (row.message ?? undefined) : undefined;
};

/** The execution that lists the commits of the same range for another search; undefined: there is none. */
export const selectOpenListing = async (
  sql: Tx,
  projectId: string,
  { id, taskSlug, goodCommit, badCommit }: { id: string; taskSlug: string; goodCommit: string; badCommit: string },
): Promise<string | undefined> => {
  const [row] = await sql<{ id: string }[]>`
    select p.execution_id as id from culprit_search s
    join probe p on p.project_id = s.project_id and p.culprit_search_id = s.id and p.kind = 'commits' and p.ended_at is null
    where s.project_id = ${projectId} and s.status = 'running' and s.id <> ${id} and s.task_slug = ${taskSlug}
      and s.good_commit = ${goodCommit} and s.bad_commit = ${badCommit}
    order by p.execution_id limit 1`;
  return row?.id;
};
