/** Finds executions by their key, commit, branch or pull request. */

import { beginsWith, isCommit } from "./commits.ts";
import type { Fragment, Sql } from "../database/connect.ts";
import { type ExecutionSummary, summariesOf } from "./execution_list.ts";

/** Maximum number of the newest executions that are searched for parts of names. Whole names are found in all executions. */
const MAX_EXECUTIONS_SEARCHED = 2_000;

const withoutSign = (q: string): string => q.replace(/^#(?=.)/, "");

/** Executions whose key is `q`, be it with a sign of numbers or without. */
const keyed = (projectId: string, q: string, sql: Sql): Fragment => {
  const bare = withoutSign(q);
  return sql`project_id = ${projectId} and key in (${bare}::text, ${`#${bare}`}::text)`;
};

/** The beginning of a hash; shorter ones are of a length that names no commit. */
const isHash = (q: string): boolean => /^[0-9a-f]{4,64}$/i.test(q);

/** Newest first, one row more than `limit`. */
export async function searchBuilds(sql: Sql, projectId: string, q: string, limit: number): Promise<ExecutionSummary[]> {
  const first = (condition: Fragment) => sql`
    (select id from execution where ${condition} and not probe order by id desc limit ${limit + 1})`;
  const hash = q.toLowerCase();
  const ways = [
    first(keyed(projectId, q, sql)),
    first(sql`project_id = ${projectId} and pull_request = ${withoutSign(q)}`),
    first(sql`project_id = ${projectId} and branch = ${q}`),
    first(
      isHash(q) && q.length < 7
        ? sql`project_id = ${projectId} and commit is not null and ${beginsWith(sql, sql`${hash}::text`)}`
        : sql`project_id = ${projectId} and ${isCommit(sql, q)}`,
    ),
    sql`(
      select id from (
        select id, key, branch from execution where project_id = ${projectId} and not probe order by id desc limit ${MAX_EXECUTIONS_SEARCHED}) newest
      where position(lower(${q}) in lower(concat_ws(' ', key, branch))) > 0 order by id desc limit ${limit + 1})`,
  ];
  const all = ways.reduce((before, way) => sql`${before} union ${way}`);
  return [...(await summariesOf(sql, projectId, sql`select id from (${all}) ids order by id desc limit ${limit + 1}`))];
}

/** The one execution that has this key, or is of this commit; undefined where there are none or several. */
export async function selectExactBuild(sql: Sql, projectId: string, q: string): Promise<string | undefined> {
  const isCommitName = /^[0-9a-f]{7,64}$/i.test(q);
  if (!isCommitName && !/^#\S+$/.test(q)) return undefined;
  const rows = await sql<{ id: string }[]>`
    select id from execution where ${isCommitName ? sql`project_id = ${projectId} and ${isCommit(sql, q)}` : keyed(projectId, q, sql)}
    order by id desc limit 2`;
  return rows.length === 1 ? rows[0]!.id : undefined;
}
