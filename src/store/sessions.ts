/** Sessions of people, looked up by the digest of their token. */

import type { Client, Role, Session } from "../schema/accounts.ts";
import type { Sql, Tx } from "../database/connect.ts";
import type { PlannedDeletionRow } from "../rules/retention.ts";
import { isQuiet } from "./restored.ts";

/** A session ends IDLE_DAYS after it was last seen, and SESSION_DAYS after it began. */
const IDLE_DAYS = 14;
export const SESSION_DAYS = 90;
const SEEN_EVERY_MINUTES = 5;

/** Who a session belongs to, and where he may go. */
type SessionOwner = {
  accountId: string;
  email: string;
  name: string;
  sessionId: string;
  teams: { teamId: string; teamName: string; role: Role }[];
  /** Whether the time of the last visit must be updated. */
  isStale: boolean;
  /** The server was restored from a backup and is quiet. */
  isQuiet: boolean;
  /** Planned deletions in teams that the account owns. */
  plannedDeletions: PlannedDeletionRow[];
};

/** Returns the owner of a session by the digest (hexadecimal) of its token; undefined if the session has ended. Teams by name. */
export const selectSessionOwner = async (sql: Sql, digest: string): Promise<SessionOwner | undefined> => {
  const [owner] = await sql<SessionOwner[]>`
    select a.id as "accountId", a.email, a.name, s.id as "sessionId",
      s.last_seen_at < now() - ${SEEN_EVERY_MINUTES}::int * interval '1 minute' as "isStale",
      ${isQuiet(sql)} as "isQuiet",
      coalesce((
        select json_agg(json_build_object('projectId', p.id, 'projectName', p.name, 'kind', d.kind, 'objects', d.objects,
          'days', d.days, 'before', d.before, 'beginsAt', d.begins_at) order by p.name, p.id, d.kind)
        from planned_deletion d join project p on p.id = d.project_id join membership m on m.team_id = p.team_id
        where d.begins_at is not null and m.account_id = a.id and m.role = 'owner'), '[]') as "plannedDeletions",
      coalesce((
        select json_agg(json_build_object('teamId', t.id, 'teamName', t.name, 'role', m.role) order by t.name, t.id)
        from membership m join team t on t.id = m.team_id where m.account_id = a.id), '[]') as teams
    from session s join account a on a.id = s.account_id
    where s.digest = decode(${digest}, 'hex') and s.expires_at > now()`;
  return owner;
};

/** Skips a row that another transaction has locked to end the session. */
export const updateSessionSeen = (sql: Sql, sessionId: string) => sql`
  update session set last_seen_at = now(), expires_at = least(
    created_at + ${SESSION_DAYS}::int * interval '1 day', now() + ${IDLE_DAYS}::int * interval '1 day')
  where id in (select id from session where id = ${sessionId} and expires_at > now() for no key update skip locked)`;

/** The id of the new session. */
export const insertSession = async (
  sql: Tx,
  accountId: string,
  digest: string,
  { address, userAgent }: Client,
): Promise<string> => {
  const id = Bun.randomUUIDv7();
  await sql`
    insert into session (id, account_id, digest, expires_at, user_agent, address)
    values (${id}, ${accountId}, decode(${digest}, 'hex'), now() + ${IDLE_DAYS}::int * interval '1 day',
      ${userAgent}, ${address})`;
  return id;
};

/** Returns the sessions that have not ended, last seen first. */
export const selectSessions = (sql: Sql, accountId: string) => sql<Session[]>`
  select id, created_at as "createdAt", last_seen_at as "lastSeenAt", expires_at as "expiresAt",
    user_agent as "userAgent", address
  from session where account_id = ${accountId} and expires_at > now() order by last_seen_at desc, id desc`;

/** Whether the session has not ended; it does not end before the transaction. */
export const lockSession = async (sql: Tx, accountId: string, id: string): Promise<boolean> =>
  (
    await sql`
      select from session where id = ${id} and account_id = ${accountId} and expires_at > now() for share`
  ).length === 1;

export const deleteSession = async (sql: Sql, accountId: string, id: string): Promise<boolean> =>
  (await sql`delete from session where id = ${id} and account_id = ${accountId} returning id`).length === 1;

export const deleteSessionByDigest = (sql: Sql, digest: string) =>
  sql`delete from session where digest = decode(${digest}, 'hex')`;

/** All of an account, but perhaps one. */
export const deleteSessions = (sql: Sql, accountId: string, except: string | null) =>
  sql`delete from session where account_id = ${accountId} and id is distinct from ${except}::uuid`;

/** Deletes all sessions of an account except the `keep` last seen. */
export const deleteManySessions = (sql: Sql, accountId: string, keep: number) => sql`
  delete from session where account_id = ${accountId} and id in (
    select id from session where account_id = ${accountId} order by last_seen_at desc, id desc offset ${keep})`;

export const deleteEndedSessions = (sql: Sql) => sql`delete from session where expires_at < now() - interval '1 day'`;
