/** The comments that integrations keep on pull requests. */

import { type Fragment, type Sql, toTextArray, type Tx } from "../database/connect.ts";

export type CommentKey = { teamId: string; integrationId: string; projectId: string; pullRequest: string };

/** A comment that somebody is about to write. */
type BegunComment = {
  /** Null: it is not known whether there is one. */
  commentId: string | null;
  revision: number;
  /** When it was first requested; null: this is the first time. */
  since: string | null;
};

/** An expression: the first execution of the same commit in the same pull request, or the execution itself if that does not exist. */
const firstOfCommit = (sql: Sql, projectId: string, id: Fragment): Fragment => sql`coalesce((
  select first.id from execution e join execution first on first.project_id = e.project_id
    and lower(first.commit) = lower(e.commit) and first.pull_request = e.pull_request
  where e.project_id = ${projectId} and e.id = ${id} order by first.id limit 1), ${id})`;

/** A comment never returns to an older commit, in the order in which the pull request first had a build of each. Undefined: it would. */
export const beginComment = async (
  sql: Tx,
  { teamId, integrationId, projectId, pullRequest }: CommentKey,
  executionId: string,
): Promise<BegunComment | undefined> => {
  const [row] = await sql<BegunComment[]>`
    insert into pull_request_comment as c (team_id, integration_id, project_id, pull_request, execution_id)
    values (${teamId}, ${integrationId}, ${projectId}, ${pullRequest}, ${executionId})
    on conflict (team_id, integration_id, project_id, pull_request) do update
      set revision = c.revision + 1, execution_id = excluded.execution_id
      where (${firstOfCommit(sql, projectId, sql`c.execution_id`)}, c.execution_id)
        <= (${firstOfCommit(sql, projectId, sql`excluded.execution_id`)}, excluded.execution_id)
    returning comment_id as "commentId", revision, case when revision > 1 then created_at end as since`;
  return row;
};

/** Stores a comment and returns the revision, which differs if another writer has begun meanwhile. */
export const storeComment = async (
  sql: Sql,
  { teamId, integrationId, projectId, pullRequest }: CommentKey,
  commentId: string,
): Promise<number | undefined> => {
  const [row] = await sql<{ revision: number }[]>`
    update pull_request_comment set comment_id = ${commentId}
    where team_id = ${teamId} and integration_id = ${integrationId} and project_id = ${projectId}
      and pull_request = ${pullRequest}
    returning revision`;
  return row?.revision;
};

/** Returns those of the integrations that comment on pull requests, and whether they have commented on this one. */
export const selectCommentators = (
  sql: Sql,
  { teamId, projectId, pullRequest }: Omit<CommentKey, "integrationId">,
  integrationIds: readonly string[],
) => sql<{ id: string; hasCommented: boolean }[]>`
  select i.id, exists (
    select from pull_request_comment c where c.team_id = i.team_id and c.integration_id = i.id
      and c.project_id = ${projectId} and c.pull_request = ${pullRequest}) as "hasCommented"
  from integration i
  where i.team_id = ${teamId} and i.id = any(${toTextArray(integrationIds)}::uuid[]) and i.kind in ('github', 'gitlab')`;
