/** The comments that integrations keep on pull requests. */

import type { Sql, Tx } from "../database/connect.ts";

export type CommentPlace = { teamId: string; integrationId: string; projectId: string; pullRequest: string };

/** A comment that somebody is about to write. */
export type BegunComment = {
  /** Null: it is not known whether there is one. */
  commentId: string | null;
  revision: number;
  /** When it was first asked for; null: this is the first time. */
  since: string | null;
};

/** Undefined where the comment shows a newer execution. */
export const beginComment = async (
  sql: Tx,
  { teamId, integrationId, projectId, pullRequest }: CommentPlace,
  executionId: string,
): Promise<BegunComment | undefined> => {
  const [row] = await sql<BegunComment[]>`
    insert into pull_request_comment as c (team_id, integration_id, project_id, pull_request, execution_id)
    values (${teamId}, ${integrationId}, ${projectId}, ${pullRequest}, ${executionId})
    on conflict (team_id, integration_id, project_id, pull_request) do update
      set revision = c.revision + 1, execution_id = excluded.execution_id
      where c.execution_id <= excluded.execution_id
    returning comment_id as "commentId", revision, case when revision > 1 then created_at end as since`;
  return row;
};

/** Answers the revision: it is another one where somebody has begun to write the comment meanwhile. */
export const storeComment = async (
  sql: Sql,
  { teamId, integrationId, projectId, pullRequest }: CommentPlace,
  commentId: string,
): Promise<number | undefined> => {
  const [row] = await sql<{ revision: number }[]>`
    update pull_request_comment set comment_id = ${commentId}
    where team_id = ${teamId} and integration_id = ${integrationId} and project_id = ${projectId}
      and pull_request = ${pullRequest}
    returning revision`;
  return row?.revision;
};
