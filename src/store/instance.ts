/** Settings that all servers of one database share. */

import { type Database, type Fragment, type Sql, toTextArray, type Tx } from "../database/connect.ts";
import { isHeld } from "./runner_presence.ts";

/** The secret that signs page cursors: made by the first server, shared by all, so that a page may come from any. */
export async function selectCursorSecret(sql: Sql): Promise<Uint8Array> {
  await insertInstance(sql);
  const [row] = await sql<{ secret: Uint8Array }[]>`select cursor_secret as secret from instance`;
  return row!.secret;
}

/** Inserts the row of the instance, unless it exists. */
export async function insertInstance(sql: Sql): Promise<void> {
  const fresh = Buffer.from(crypto.getRandomValues(new Uint8Array(32)));
  await sql`insert into instance (cursor_secret) values (${fresh}) on conflict do nothing`;
}

/** A longer time without a note is an outage of all servers, or of the database. */
const OUTAGE_SECONDS = 20;
/** Minimum time between two records of service. */
const NOTE_SECONDS = 5;

/**
 * Notes that a server reaches the database. After an outage the time of service begins anew, and leases last longer by its duration: what
 * is left of their time is the same as before, however many outages there are.
 */
export const noteServing = (sql: Sql) => sql`
  with before as materialized (
    select now() - serving_at as away from instance
    where serving_at is null or serving_at < now() - ${NOTE_SECONDS}::int * interval '1 second' for update
  ), held as materialized (
    select l.project_id, l.id, b.away from before b, lease l
    where b.away > ${OUTAGE_SECONDS}::int * interval '1 second' and ${isHeld(sql, sql`l`)}
    order by l.id for update of l
  ), extended as (
    update lease l set expires_at = l.expires_at + held.away from held
    where l.project_id = held.project_id and l.id = held.id
  )
  update instance set serving_at = now(),
    serving_since = case when before.away <= ${OUTAGE_SECONDS}::int * interval '1 second' then serving_since else now() end
  from before`;

/** A condition: the service has been available for `seconds` without an outage, or its start is unknown. */
export const hasServedFor = (sql: Sql, seconds: number): Fragment => sql`not exists (
  select from instance where serving_since > now() - ${seconds}::int * interval '1 second')`;

/** Identifies the SECRET_KEY of the database, hexadecimal; null before the first server has started. */
export const selectSecretKeyDigest = async (sql: Sql): Promise<string | null> => {
  const [row] = await sql<{ digest: string | null }[]>`select secret_key_digest as digest from instance`;
  return row?.digest ?? null;
};

/**
 * Stores `digest` if there is none or one of `replaceable`. Returns whether the database has it afterwards: if several servers start at
 * once, the database chooses one key.
 */
export async function claimSecretKeyDigest(sql: Sql, digest: string, replaceable: readonly string[]): Promise<boolean> {
  await insertInstance(sql);
  await sql`
    update instance set secret_key_digest = ${digest}
    where secret_key_digest is null or secret_key_digest = any(${toTextArray(replaceable)}::text[])`;
  return (await selectSecretKeyDigest(sql)) === digest;
}

export const deleteSecretKeyDigest = (sql: Tx) => sql`update instance set secret_key_digest = null`;

/** Returns the number of migrations of the database. */
export const selectSchemaVersion = async (sql: Sql): Promise<number> => {
  const [row] = await sql<{ version: number }[]>`select coalesce(max(number), 0) as version from migration`;
  return row!.version;
};

/** False on a replica, which a fail-over may have led us to. */
export const selectIsWritable = async (sql: Sql): Promise<boolean> => {
  const [row] = await sql<{ writable: boolean }[]>`select current_setting('transaction_read_only') = 'off' as writable`;
  return row!.writable;
};

/**
 * Writes more than a megabyte to a temporary file of PostgreSQL, which is removed afterwards. Nothing is written to a table or to the WAL.
 * Fails if the disk is full.
 */
export const writeToDisk = async (sql: Tx): Promise<void> => {
  await sql`select set_config('work_mem', '64kB', true)`;
  await sql`select count(*) from generate_series(1, 100000)`;
};

/** A connection to the database that is open needs no file descriptor when there may be none left. */
export async function useAllConnections(database: Database, size: number): Promise<void> {
  const { pool, begin, fast, keys, pages } = database;
  const uses = Array.from({ length: size }, () => [selectSchemaVersion(pool), begin(selectSchemaVersion)]);
  await Promise.all([...uses.flat(), ...[fast, keys, pages].map(selectSchemaVersion)]);
}
