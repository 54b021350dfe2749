/** Prepares restored data, and ends the quiet time after a restore. */

import { type Fragment, type Sql, toJson, type Tx } from "../database/connect.ts";
import type { DeliveryAttempt } from "../schema/deliveries.ts";
import { insertInstance } from "./instance.ts";

/** A condition: the server is quiet after a restore. */
export const isQuiet = (sql: Sql): Fragment => sql`exists (select from instance where quiet_since is not null)`;

export const selectIsQuiet = async (sql: Sql): Promise<boolean> => {
  const [row] = await sql<{ quiet: boolean }[]>`select ${isQuiet(sql)} as quiet`;
  return row!.quiet;
};

/** `takenAt`: when the backup was taken. */
export async function updateQuiet(sql: Tx, takenAt: string): Promise<void> {
  // No server has used the database of a backup without this row.
  await insertInstance(sql);
  await sql`update instance set quiet_since = now(), restored_to = ${takenAt}, backed_up_at = ${takenAt}`;
}

/** Returns false if the server was not quiet. */
export const deleteQuiet = async (sql: Tx): Promise<boolean> =>
  (await sql`update instance set quiet_since = null where quiet_since is not null returning 1`).length === 1;

export async function selectBackupKeyDigest(sql: Sql): Promise<string | null> {
  const [row] = await sql<{ digest: string | null }[]>`select secret_key_digest as digest from instance`;
  return row?.digest ?? null;
}

/** Returns when the transaction began, which is the time of the snapshot, and the major version of PostgreSQL. */
export async function selectBackupTime(sql: Sql): Promise<{ takenAt: string; postgres: number }> {
  const [row] = await sql<{ takenAt: string; postgres: number }[]>`
    select now()::timestamptz(3) as "takenAt", current_setting('server_version_num')::int / 10000 as postgres`;
  return row!;
}

/** Records when the last backup was taken, for monitoring. */
export async function updateBackedUp(sql: Sql, takenAt: string): Promise<void> {
  await sql`update instance set backed_up_at = ${takenAt}`;
}

/** Numbers of revoked credentials that grant access without a password. */
export type RevokedCredentials = { keys: number; sessions: number; invitations: number; shares: number };

/** Revokes all keys, ends all sessions, and removes all links for invitations, shares and the first account. */
export async function revokeAllCredentials(sql: Tx): Promise<RevokedCredentials> {
  const keys = await sql`
    update api_key set revoked_at = now() where revoked_at is null and (expires_at is null or expires_at > now())`;
  const sessions = await sql`delete from session`;
  const invitations = await sql`delete from invitation where used_at is null`;
  const shares = await sql`delete from share`;
  await sql`delete from setup_token`;
  return { keys: keys.count, sessions: sessions.count, invitations: invitations.count, shares: shares.count };
}

/** Gives up everything that waited to be sent or handled when the backup was taken. Returns the numbers. */
export async function discardPending(
  sql: Tx,
  attempt: DeliveryAttempt,
): Promise<{ deliveries: number; events: number }> {
  const deliveries = await sql`
    update delivery d set status = 'failed', due_at = null,
      attempts = (d.attempts::jsonb || ${toJson(sql, attempt)}::jsonb)::json
    where d.status = 'pending'`;
  const events = await sql`update event set due_at = null where due_at is not null`;
  return { deliveries: deliveries.count, events: events.count };
}

/** The content that attachments of the snapshot have, in portions. */
export async function* selectAttachedContents(sql: Tx): AsyncGenerator<{ projectId: string; sha256: string }> {
  let after: { projectId: string; sha256: string } | undefined;
  for (;;) {
    const rows: { projectId: string; sha256: string }[] = await sql`
      select distinct project_id as "projectId", encode(sha256, 'hex') as sha256 from attachment
      ${after ? sql`where (project_id, sha256) > (${after.projectId}::uuid, decode(${after.sha256}, 'hex'))` : sql``}
      order by 1, 2 limit 1000`;
    yield* rows;
    after = rows.at(-1);
    if (!after) return;
  }
}

export async function selectIsAttached(sql: Tx, { projectId, sha256 }: { projectId: string; sha256: string }) {
  const rows = await sql`
    select from attachment where project_id = ${projectId} and sha256 = decode(${sha256}, 'hex') limit 1`;
  return rows.length === 1;
}
