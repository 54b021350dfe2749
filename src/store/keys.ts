/** API keys: looked up by digest, revoked by time stamp. */

import type { ApiKey, NamedKey, Scope } from "../schema/keys.ts";
import { compose } from "../database/compose.ts";
import { type Fragment, type Sql, toNumberArray, toTextArray, type Tx } from "../database/connect.ts";
import { deletePortion } from "../database/delete_portion.ts";
import { lockOf, numberOf, takeLock, takeLocks, type AdvisoryLock } from "../database/locks.ts";

export type LiveKey = {
  id: string;
  teamId: string;
  projectId: string | null;
  /** Null: the key may do everything that its kind may do. */
  scope: Scope | null;
  /** The name of a key, and of the runner that a runner's key belongs to. */
  name: string | null;
  /** The beginning of the key, which may be shown. */
  leading: string;
};

/** The text of a condition, for statements that are written as text: the key `k` is neither revoked nor expired. */
export const IS_LIVE = "(k.revoked_at is null and (k.expires_at is null or k.expires_at > now()))";
/** The same as a part of a statement. */
export const isLiveKey = (sql: Sql): Fragment => sql`
  (k.revoked_at is null and (k.expires_at is null or k.expires_at > now()))`;

/** The key with this digest (hexadecimal), unless it is revoked. */
export const selectLiveKey = async (sql: Sql, digest: string): Promise<LiveKey | undefined> => {
  const [key] = await sql<LiveKey[]>`
    select k.id, k.team_id as "teamId", k.project_id as "projectId", k.scope, k.name, k.leading_part as leading
    from api_key k where k.digest = decode(${digest}, 'hex') and ${isLiveKey(sql)}`;
  return key;
};

export const selectKeyIsLive = async (sql: Sql, key: LiveKey): Promise<boolean> =>
  (await sql`select from api_key k where k.team_id = ${key.teamId} and k.id = ${key.id} and ${isLiveKey(sql)}`)
    .length === 1;

const LOCK_LIVE_KEYS = compose<"teams" | "keys" | "locks" | "lockNumbers", { id: string }>(
  (sql, given) => sql`
    with live as materialized (
      select k.id
      from (
        select team_id, id, pg_advisory_xact_lock_shared(${lockOf(sql, "key", sql`id`)}) as locked
        from unnest(${given("teams")}::uuid[], ${given("keys")}::uuid[]) as asked (team_id, id) offset 0) asked
      cross join lateral (
        select k.id from api_key k
        where k.team_id = asked.team_id and k.id = asked.id and ${isLiveKey(sql)} for share of k) k),
    locked as materialized (
      select count(*) from (
        ${takeLocks(sql, { ids: given("locks"), numbers: given("lockNumbers") }, sql`live`)}) one)
    select live.id from live, locked`,
);

/** In a transaction: a key, and what it locks besides. */
export type KeyLocks = { key: Pick<LiveKey, "id" | "teamId">; locks: readonly AdvisoryLock[] };

/**
 * In a transaction: the ids of those keys that are live, and they stay so until the end of the transaction, because a
 * revocation waits for the lock. That makes revocation exact: what commits, commits before it. Row locks alone know no
 * turns: users would never let go. Takes the other `locks` in the same round trip, all in one order.
 */
export const lockLiveKeys = async (sql: Tx, all: readonly KeyLocks[]): Promise<Set<string>> => {
  const keys = [...new Map(all.map(({ key }) => [key.id, key])).values()].sort((a, b) => (a.id < b.id ? -1 : 1));
  const locks = [...new Map(all.flatMap(({ locks }) => locks.map((lock) => [lock.join(" "), lock]))).entries()]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, lock]) => lock);
  const rows = await LOCK_LIVE_KEYS(sql, {
    teams: toTextArray(keys.map(({ teamId }) => teamId)),
    keys: toTextArray(keys.map(({ id }) => id)),
    locks: toTextArray(locks.map(([, id]) => id)),
    lockNumbers: toNumberArray(locks.map(numberOf)),
  });
  return new Set(rows.map(({ id }) => id));
};

/** The same for one key. */
export const lockLiveKey = async (sql: Tx, key: KeyLocks["key"]): Promise<boolean> =>
  (await lockLiveKeys(sql, [{ key, locks: [] }])).size === 1;

/** In a transaction: those who use the key end what they are at, and who comes then waits for the end of this. */
const lockAgainstUse = (sql: Tx, id: string) => takeLock(sql, ["key", id]);

/** A runner that is not seen for so long loses its key; each use of the key begins the time anew. */
const RUNNER_KEY_MINUTES = 65;

/** The time at which a runner's key expires unless it is used again: no later than the key that it was made with. */
const runnerKeyEnd = (sql: Sql, parentId: Fragment): Fragment => sql`
  least(now() + ${RUNNER_KEY_MINUTES}::int * interval '1 minute', (select p.expires_at from api_key p where p.id = ${parentId}))`;

/** Coarse, and never in the way of a writer that holds the key's lock. */
export const updateLastUsed = (sql: Sql, key: LiveKey) => sql`
  update api_key k set last_used_at = now(),
    expires_at = case when k.scope = 'runner' then ${runnerKeyEnd(sql, sql`k.parent_id`)} else k.expires_at end
  where team_id = ${key.teamId} and id in (
    select id from api_key where team_id = ${key.teamId} and id = ${key.id} for no key update skip locked)`;

/** Locks a project, so that its key is not generated twice at once, and returns its team. */
export const lockProjectForKey = async (sql: Tx, projectId: string): Promise<string | undefined> => {
  // Uploads that a revocation waits for may still refer to the project.
  const [project] = await sql<{ teamId: string }[]>`
    select team_id as "teamId" from project where id = ${projectId} for no key update`;
  return project?.teamId;
};

/** Locks a team, so that two keys are not added at once. */
export const lockTeamForKey = async (sql: Tx, teamId: string): Promise<{ newestKeyId: string | null } | undefined> => {
  if ((await sql`select from team where id = ${teamId} for no key update`).length === 0) return undefined;
  const [newest] = await sql<{ id: string }[]>`
    select id from api_key where team_id = ${teamId} and project_id is null order by id desc limit 1`;
  return { newestKeyId: newest?.id ?? null };
};

export const selectIsTeamKey = async (sql: Sql, teamId: string, id: string): Promise<boolean> =>
  (await sql`select from api_key where team_id = ${teamId} and id = ${id} and project_id is null`).length === 1;

export const selectLiveKeyIds = async (sql: Sql, projectId: string): Promise<string[]> => {
  const rows = await sql<{ id: string }[]>`
    select id from api_key where project_id = ${projectId} and revoked_at is null and scope is null`;
  return rows.map(({ id }) => id);
};

/** The keys of a project, or of a team and its projects, without those of runners, in the order in which they are locked. */
export const selectUnrevokedKeyIds = async (
  sql: Sql,
  { teamId, projectId }: { teamId: string; projectId?: string },
): Promise<string[]> => {
  const rows = await sql<{ id: string }[]>`
    select id from api_key where team_id = ${teamId} and revoked_at is null and scope is distinct from 'runner'
      ${projectId === undefined ? sql`` : sql`and project_id = ${projectId}`}
    order by id`;
  return rows.map(({ id }) => id);
};

/** The keys of runners that were made with this key, in the order in which they are locked. */
export const selectChildKeyIds = async (sql: Sql, parentId: string): Promise<string[]> => {
  const rows = await sql<{ id: string }[]>`
    select id from api_key where parent_id = ${parentId} and revoked_at is null order by id`;
  return rows.map(({ id }) => id);
};

/** The key `k` was generated by people: it is neither a runner's nor a CI job's, nor the project's own. */
const isNamedKey = (sql: Sql): Fragment => sql`k.scope <> 'runner' and k.trust_rule_id is null`;

/** The live named keys of a project, newest first; at most `limit` + 1. `after`: the id of the last one of the page before. */
export const selectNamedKeys = (
  sql: Sql,
  projectId: string,
  { limit, after, id }: { limit: number; after?: string | undefined; id?: string },
) => sql<NamedKey[]>`
  select k.id, k.name, k.scope, k.leading_part as leading, k.created_at as "createdAt", k.last_used_at as "lastUsedAt",
    k.expires_at as "expiresAt"
  from api_key k
  where k.project_id = ${projectId} and ${isNamedKey(sql)} and ${isLiveKey(sql)}
    ${after === undefined ? sql`` : sql`and k.id < ${after}::uuid`} ${id === undefined ? sql`` : sql`and k.id = ${id}::uuid`}
  order by k.id desc limit ${limit + 1}`;

/** Returns the id of the newest named key that the project ever had, or null. */
export const selectNewestNamedKeyId = async (sql: Sql, projectId: string): Promise<string | null> => {
  const [newest] = await sql<{ id: string }[]>`
    select k.id from api_key k where k.project_id = ${projectId} and ${isNamedKey(sql)} order by k.id desc limit 1`;
  return newest?.id ?? null;
};

export const selectIsNamedKey = async (sql: Sql, projectId: string, id: string): Promise<boolean> =>
  (await sql`select from api_key k where k.project_id = ${projectId} and k.id = ${id} and ${isNamedKey(sql)}`)
    .length === 1;

/** Deletes a page of keys of CI jobs that expired at least `hours` ago; returns their number. */
export const deleteEndedCiKeys = (sql: Sql, hours: number, limit: number): Promise<number> => {
  const isEnded = sql`trust_rule_id is not null and expires_at < now() - ${hours}::int * interval '1 hour'`;
  return deletePortion(sql, "api_key", isEnded, { limit });
};

/** The live keys that a rule has made for CI jobs, in the order in which they are locked. */
export const selectCiKeyIds = async (sql: Sql, projectId: string, trustRuleId: string): Promise<string[]> => {
  const rows = await sql<{ id: string }[]>`
    select k.id from api_key k
    where k.project_id = ${projectId} and k.trust_rule_id = ${trustRuleId} and ${isLiveKey(sql)} order by k.id`;
  return rows.map(({ id }) => id);
};

/** ISO 8601; for a key that expires. */
export const selectKeyExpiry = async (sql: Sql, teamId: string, id: string): Promise<string> => {
  const [key] = await sql<[{ expiresAt: string }]>`
    select expires_at as "expiresAt" from api_key where team_id = ${teamId} and id = ${id}`;
  return key.expiresAt;
};

/** Whether the project has at least `count` live keys of CI jobs. */
export const selectHasCiKeys = async (sql: Sql, projectId: string, count: number): Promise<boolean> =>
  (
    await sql`
      select from api_key k where k.project_id = ${projectId} and k.trust_rule_id is not null and ${isLiveKey(sql)}
      limit ${count}`
  ).length >= count;

/** Deletes a page of keys of runners that ended long ago; returns their number. */
export const deleteEndedRunnerKeys = (sql: Sql, days: number, limit: number): Promise<number> => {
  const isEnded = sql`
    scope = 'runner' and coalesce(revoked_at, expires_at) < now() - ${days}::int * interval '1 day'`;
  return deletePortion(sql, "api_key", isEnded, { limit });
};

type NewKeyRow = {
  id: string;
  projectId: string | null;
  name: string | null;
  leading: string;
  /** Hexadecimal. */
  digest: string;
  scope?: Scope;
  parentId?: string;
  /** The trust rule, for the key of a CI job. */
  trustRuleId?: string;
  /** An interval such as "30 days"; undefined: no expiry, or that of the parent. */
  expiresIn?: string | undefined;
};

/** False when there is no such team. */
export const insertKey = async (
  sql: Sql,
  teamId: string,
  { id, projectId, name, leading, digest, scope, parentId, trustRuleId, expiresIn }: NewKeyRow,
): Promise<boolean> =>
  (
    await sql`
      insert into api_key (team_id, id, project_id, name, leading_part, digest, scope, parent_id, trust_rule_id, expires_at)
      select id, ${id}, ${projectId}, ${name}, ${leading}, decode(${digest}, 'hex'), ${scope ?? null}, ${parentId ?? null},
        ${trustRuleId ?? null}, ${parentId === undefined ? sql`now() + ${expiresIn ?? null}::interval` : runnerKeyEnd(sql, sql`${parentId}::uuid`)}
      from team where id = ${teamId}
      returning id`
  ).length === 1;

/** All keys of the team and of its projects, newest first, revoked ones included; without those of runners and CI jobs. */
export const selectKeys = (sql: Sql, teamId: string) => sql<ApiKey[]>`
  select id, case when project_id is null then 'team' else 'project' end as kind, scope, name, project_id as "projectId",
    leading_part as "leading", created_at as "createdAt", last_used_at as "lastUsedAt", expires_at as "expiresAt",
    revoked_at as "revokedAt"
  from api_key where team_id = ${teamId} and scope is distinct from 'runner' and trust_rule_id is null
  order by id desc`;

export type ShownKey = Pick<ApiKey, "id" | "name" | "leading" | "createdAt" | "lastUsedAt" | "revokedAt"> & {
  /** The creator's name in the audit log; null: the key is older than the log. */
  madeBy: string | null;
};

/** The entry of the audit log was written right after the key. */
const shownColumns = (sql: Sql) => sql`
  k.id, k.name, k.leading_part as "leading", k.created_at as "createdAt", k.last_used_at as "lastUsedAt",
  k.revoked_at as "revokedAt", (
    select a.actor from (
      select * from audit_entry a where a.team_id = k.team_id and a.id > k.id order by a.id limit 20) a
    where a.action = 'key.generated' and a.subject = k.leading_part limit 1) as "madeBy"`;

/** Returns the live key of the project. */
export const selectProjectKey = async (sql: Sql, projectId: string): Promise<ShownKey | undefined> => {
  const [key] = await sql<ShownKey[]>`
    select ${shownColumns(sql)} from api_key k where project_id = ${projectId} and revoked_at is null and scope is null`;
  return key;
};

/** Without those of its projects: live ones first, newest first; at most `limit`. */
export const selectTeamKeys = (sql: Sql, teamId: string, limit: number) => sql<ShownKey[]>`
  select ${shownColumns(sql)} from api_key k where team_id = ${teamId} and project_id is null
  order by revoked_at is not null, id desc limit ${limit}`;

export type RevokedKey = Omit<LiveKey, "id"> & {
  revokedAt: string;
  /** False: it was revoked before. */
  isNew: boolean;
};

/** Revokes a key; undefined if there is no such key. */
export const revokeKey = async (sql: Tx, id: string): Promise<RevokedKey | undefined> => {
  await lockAgainstUse(sql, id);
  const [key] = await sql<RevokedKey[]>`
    update api_key k set revoked_at = coalesce(k.revoked_at, now())
    from (select team_id, id, revoked_at from api_key where id = ${id} for no key update) before
    where k.team_id = before.team_id and k.id = before.id
    returning k.team_id as "teamId", k.project_id as "projectId", k.scope, k.name, k.leading_part as "leading",
      k.revoked_at as "revokedAt", before.revoked_at is null as "isNew"`;
  return key;
};
