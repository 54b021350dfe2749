/** What every server of one database must agree on. */

import type { Database, Sql } from "./connect.ts";

/** The secret that signs page cursors: made by the first server, shared by all, so that a page may come from any. */
export async function selectCursorSecret(sql: Sql): Promise<Uint8Array> {
  const fresh = Buffer.from(crypto.getRandomValues(new Uint8Array(32)));
  await sql`insert into instance (cursor_secret) values (${fresh}) on conflict do nothing`;
  const [row] = await sql<{ secret: Uint8Array }[]>`select cursor_secret as secret from instance`;
  return row!.secret;
}

/** How many migrations the database has. */
export const selectSchemaVersion = async (sql: Sql): Promise<number> => {
  const [row] = await sql<{ version: number }[]>`select coalesce(max(number), 0) as version from migration`;
  return row!.version;
};

/** False on a replica, which a fail-over may have led us to. */
export const selectIsWritable = async (sql: Sql): Promise<boolean> => {
  const [row] = await sql<{ writable: boolean }[]>`select current_setting('transaction_read_only') = 'off' as writable`;
  return row!.writable;
};

/** A connection to the database that is open needs no file descriptor when there may be none left. */
export async function useAllConnections(database: Database, size: number): Promise<void> {
  const { pool, begin, fast, keys, pages } = database;
  const uses = Array.from({ length: size }, () => [selectSchemaVersion(pool), begin(selectSchemaVersion)]);
  await Promise.all([...uses.flat(), ...[fast, keys, pages].map(selectSchemaVersion)]);
}

/** How many connections the server of the database takes from anybody but its superuser, those that are open included. */
export const selectMaxConnections = async (sql: Sql): Promise<number> => {
  const [row] = await sql<{ max: number }[]>`
    select current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int as max`;
  return row!.max;
};
