/** Reads from the catalog of PostgreSQL how a database is operated. */

import { isSession, type Sql, toTextArray } from "./connect.ts";

export type ServerFacts = {
  version: number;
  versionText: string;
  databaseBytes: number;
  encoding: string;
  isReadOnly: boolean;
  maxConnections: number;
  connections: number;
  role: string;
  isSuperuser: boolean;
  canCreate: boolean;
  /** Tables that the role cannot change because another role owns them. */
  foreignTables: string[];
  /** The values in this session, by name. */
  settings: Record<string, string>;
};

export const selectServerFacts = async (sql: Sql, settings: readonly string[]): Promise<ServerFacts> => {
  const [row] = await sql<ServerFacts[]>`
    select current_setting('server_version_num')::int as version, current_setting('server_version') as "versionText",
      pg_database_size(current_database())::float as "databaseBytes",
      (select pg_encoding_to_char(encoding) from pg_database where datname = current_database()) as encoding,
      pg_is_in_recovery() or current_setting('transaction_read_only') = 'on' as "isReadOnly",
      current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
        as "maxConnections",
      (select count(*)::int from pg_stat_activity where backend_type = 'client backend') as connections,
      current_user as role, (select rolsuper from pg_roles where rolname = current_user) as "isSuperuser",
      has_schema_privilege(current_schema(), 'create') as "canCreate", (
        select coalesce(json_agg(c.relname order by c.relname), '[]') from pg_class c
        where c.relkind in ('r', 'p') and c.relnamespace = current_schema()::regnamespace
          and not pg_has_role(c.relowner, 'usage')) as "foreignTables",
      (select json_object_agg(name, current_setting(name)) from unnest(${toTextArray(settings)}::text[]) name) as settings`;
  return row!;
};

/** The clock of the database, in milliseconds since 1970. */
export const selectClockMs = async (sql: Sql): Promise<number> => {
  const [row] = await sql<{ ms: number }[]>`select extract(epoch from clock_timestamp())::float * 1000 as ms`;
  return row!.ms;
};

/** Returns how far the clock of the database is ahead of this machine, which reads it at an unknown moment between two readings here. */
export async function selectClockSkewMs(sql: Sql, clock: () => number = Date.now): Promise<number> {
  const before = clock();
  const time = await selectClockMs(sql);
  const after = clock();
  return time > after ? time - after : time < before ? time - before : 0;
}

/** Whether another process of Assay, of whatever version, is connected to the database. */
export async function selectIsShared(sql: Sql): Promise<boolean> {
  const others = await sql`
    select from pg_stat_activity
    where ${isSession(sql)} and pid <> pg_backend_pid()
    limit 1`;
  return others.length > 0;
}
