/** Answers to requests with an Idempotency-Key, kept for a day. */

import type { Sql } from "./connect.ts";

export type StoredAnswer = { digest: string; status: number; contentType: string | null; body: string | null };
export type IdempotencyScope = { teamId: string; scopeId: string; key: string };

/**
 * In the transaction of the request: claims the key, or answers what was stored under it. While another request with
 * the same key is running, this waits for its end.
 */
export async function claimIdempotencyKey(
  sql: Sql,
  { teamId, scopeId, key }: IdempotencyScope,
  digest: string,
): Promise<StoredAnswer | undefined> {
  const claimed = await sql`
    insert into idempotency (team_id, scope_id, key, digest, status)
    values (${teamId}, ${scopeId}, ${key}, decode(${digest}, 'hex'), 0)
    on conflict (team_id, scope_id, key) do update
      set digest = excluded.digest, status = 0, created_at = now()
      where idempotency.created_at < now() - interval '24 hours'
    returning key`;
  if (claimed.length === 1) return undefined;
  const [stored] = await sql<StoredAnswer[]>`
    select encode(digest, 'hex') as digest, status, content_type as "contentType", body
    from idempotency where team_id = ${teamId} and scope_id = ${scopeId} and key = ${key}`;
  return stored;
}

export const updateStoredAnswer = (
  sql: Sql,
  { teamId, scopeId, key }: IdempotencyScope,
  answer: Omit<StoredAnswer, "digest">,
) => sql`
  update idempotency set status = ${answer.status}, content_type = ${answer.contentType}, body = ${answer.body}
  where team_id = ${teamId} and scope_id = ${scopeId} and key = ${key}`;

export const deleteOldAnswers = (sql: Sql) => sql`
  delete from idempotency where created_at < now() - interval '24 hours'`;
