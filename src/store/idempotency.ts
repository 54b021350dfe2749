/** Requests with an Idempotency-Key, their claimants, and their answers, which are stored for a day. */

import { claimEnd } from "../database/claims.ts";
import type { Sql, Tx } from "../database/connect.ts";
import { deletePortion } from "../database/delete_portion.ts";

/** A request that only this server processes, until the claim expires. */
export type RequestClaim = { teamId: string; scopeId: string; key: string; claim: string };

export type StoredAnswer = { status: number; contentType: string | null; body: string | null };

export type StoredRequest = StoredAnswer & {
  /** Hexadecimal, of the whole request. */
  digest: string;
  /** `answered`; `running`; `lost`: its server died after side effects had begun, so it is unknown whether they took place. */
  state: "answered" | "running" | "lost";
};

const place = (sql: Sql, { teamId, scopeId, key }: Omit<RequestClaim, "claim">) =>
  sql`team_id = ${teamId} and scope_id = ${scopeId} and key = ${key}`;

/** Status 0: there is no answer yet. */
const running = (sql: Sql, claim: RequestClaim) => sql`${place(sql, claim)} and claim = ${claim.claim} and status = 0`;

/** Claims the request if it is unclaimed, or if its claimant died without effect; otherwise returns the stored one. */
export async function claimRequest(sql: Sql, claim: RequestClaim, digest: string): Promise<StoredRequest | undefined> {
  const claimed = await sql`
    insert into idempotency (team_id, scope_id, key, digest, status, claim, claimed_until)
    values (${claim.teamId}, ${claim.scopeId}, ${claim.key}, decode(${digest}, 'hex'), 0, ${claim.claim}, ${claimEnd(sql)})
    on conflict (team_id, scope_id, key) do update
      set digest = excluded.digest, status = 0, content_type = null, body = null, acting = false,
        claim = excluded.claim, claimed_until = excluded.claimed_until, created_at = now()
      where idempotency.created_at < now() - interval '24 hours'
        or (idempotency.status = 0 and not idempotency.acting and idempotency.claimed_until < now())
    returning key`;
  if (claimed.length === 1) return undefined;
  const [stored] = await sql<StoredRequest[]>`
    select encode(digest, 'hex') as digest, status, content_type as "contentType", body,
      case when status <> 0 then 'answered' when acting and claimed_until < now() then 'lost' else 'running' end as state
    from idempotency where ${place(sql, claim)}`;
  // If it was refused meanwhile, it can be claimed again.
  return stored ?? (await claimRequest(sql, claim, digest));
}

/** Whether a claimant is processing the request, or its claim has not expired yet. */
export const selectIsRunning = async (sql: Sql, claim: Omit<RequestClaim, "claim">): Promise<boolean> =>
  (await sql`select from idempotency where ${place(sql, claim)} and status = 0 and claimed_until > now()`).length === 1;

export const extendRequest = (sql: Sql, claim: RequestClaim) =>
  sql`update idempotency set claimed_until = ${claimEnd(sql)} where ${running(sql, claim)}`;

/** Marks the request in the transaction after which it must not run again. Returns false if the claim is lost. */
export const markActing = async (sql: Tx, claim: RequestClaim): Promise<boolean> =>
  (await sql`update idempotency set acting = true where ${running(sql, claim)} returning key`).length === 1;

/** False when the claim is lost. */
export const storeAnswer = async (sql: Sql, claim: RequestClaim, { status, contentType, body }: StoredAnswer) =>
  (
    await sql`
      update idempotency set status = ${status}, content_type = ${contentType}, body = ${body}
      where ${running(sql, claim)} returning key`
  ).length === 1;

/** A request that was refused, or has failed without effect, may be sent again with the same key. */
export const releaseRequest = (sql: Sql, claim: RequestClaim) =>
  sql`delete from idempotency where ${running(sql, claim)} and not acting`;

export const deleteOldAnswers = (sql: Sql) => sql`
  delete from idempotency where created_at < now() - interval '24 hours'`;

/** Deletes at most `limit` answers to keys of a project or team; returns their number. */
export const deleteAnswersOf = (
  sql: Tx,
  { teamId, scopeId }: { teamId: string; scopeId: string },
  limit: number,
): Promise<number> => deletePortion(sql, "idempotency", sql`team_id = ${teamId} and scope_id = ${scopeId}`, { limit });
