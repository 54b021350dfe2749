/** Reads from the catalog and the statistics of PostgreSQL how a database is operated. */

import type { Sql } from "./connect.ts";

export type ServerSettings = {
  version: number;
  versionText: string;
  encoding: string;
  inRecovery: boolean;
  isReadOnly: boolean;
  fsync: string;
  fullPageWrites: string;
  synchronousCommit: string;
  autovacuum: string;
  trackCounts: string;
  idleSessionTimeoutMs: number;
  sharedBuffersBytes: number;
  maxConnections: number;
  connections: number;
  databaseBytes: number;
};

export const selectServerSettings = async (sql: Sql): Promise<ServerSettings> => {
  const [row] = await sql<ServerSettings[]>`
    select current_setting('server_version_num')::int as version, current_setting('server_version') as "versionText",
      (select pg_encoding_to_char(encoding) from pg_database where datname = current_database()) as encoding,
      pg_is_in_recovery() as "inRecovery", current_setting('transaction_read_only') = 'on' as "isReadOnly",
      current_setting('fsync') as fsync, current_setting('full_page_writes') as "fullPageWrites",
      current_setting('synchronous_commit') as "synchronousCommit", current_setting('autovacuum') as autovacuum,
      current_setting('track_counts') as "trackCounts",
      (select setting::int from pg_settings where name = 'idle_session_timeout') as "idleSessionTimeoutMs",
      (select setting::float * 8192 from pg_settings where name = 'shared_buffers') as "sharedBuffersBytes",
      current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
        as "maxConnections",
      (select count(*)::int from pg_stat_activity where backend_type = 'client backend') as connections,
      pg_database_size(current_database())::float as "databaseBytes"`;
  return row!;
};

/** The clock of the database, in milliseconds since 1970. */
export const selectClockMs = async (sql: Sql): Promise<number> => {
  const [row] = await sql<{ ms: number }[]>`select extract(epoch from clock_timestamp())::float * 1000 as ms`;
  return row!.ms;
};

export type RolePrivileges = {
  role: string;
  isSuperuser: boolean;
  canCreate: boolean;
  /** Tables that the role may not change because they belong to somebody else. */
  foreignTables: string[];
};

export const selectRolePrivileges = async (sql: Sql): Promise<RolePrivileges> => {
  const [row] = await sql<RolePrivileges[]>`
    select current_user as role, (select rolsuper from pg_roles where rolname = current_user) as "isSuperuser",
      has_schema_privilege(current_schema(), 'create') as "canCreate", (
        select coalesce(json_agg(c.relname order by c.relname), '[]') from pg_class c
        where c.relkind in ('r', 'p') and c.relnamespace = current_schema()::regnamespace
          and not pg_has_role(c.relowner, 'usage')) as "foreignTables"`;
  return row!;
};

/** Dead rows of which autovacuum should have removed most. In a smaller table they take no space that matters. */
const [MANY_DEAD_ROWS, DEAD_PART, LARGE_TABLE_BYTES] = [10_000, 0.3, 64 * 2 ** 20];

export type BloatedTable = { name: string; live: number; dead: number };

/** Returns tables with many rows that were updated or deleted and take space, the worst first. */
export const selectBloatedTables = (sql: Sql, minBytes = LARGE_TABLE_BYTES) => sql<BloatedTable[]>`
  select relname as name, n_live_tup::float as live, n_dead_tup::float as dead from pg_stat_user_tables
  where schemaname = current_schema() and n_dead_tup > ${MANY_DEAD_ROWS}::int
    and n_dead_tup > ${DEAD_PART}::float * (n_live_tup + n_dead_tup) and pg_table_size(relid) >= ${minBytes}::bigint
  order by n_dead_tup desc limit 10`;

/** Returns the names of indexes that PostgreSQL does not use, because their creation has failed. */
export const selectInvalidIndexes = async (sql: Sql): Promise<string[]> => {
  const rows = await sql<{ name: string }[]>`
    select c.relname as name from pg_index i join pg_class c on c.oid = i.indexrelid
    where not i.indisvalid and c.relnamespace = current_schema()::regnamespace order by c.relname`;
  return rows.map(({ name }) => name);
};

const LONG_SECONDS = 300;

export type LongTransaction = { pid: number; application: string; state: string; seconds: number };

/** Returns transactions that have been open for five minutes or longer by default, the oldest first; dead rows are kept for them. */
export const selectLongTransactions = (sql: Sql, longSeconds = LONG_SECONDS) => sql<LongTransaction[]>`
  select pid, coalesce(application_name, '') as application, coalesce(state, 'unknown') as state,
    extract(epoch from now() - xact_start)::float as seconds
  from pg_stat_activity
  where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'
    and xact_start < now() - ${longSeconds}::int * interval '1 second'
  order by xact_start limit 10`;

/** Returns the replication slots that nobody reads and for which PostgreSQL keeps its log of writes. */
export const selectUnusedSlots = async (sql: Sql): Promise<string[]> => {
  const rows = await sql<{ name: string }[]>`select slot_name as name from pg_replication_slots where not active`;
  return rows.map(({ name }) => name);
};

/** Returns the size of the partitions of each month that results are kept in, the oldest first. */
export const selectMonthSizes = (sql: Sql) => sql<{ month: string; bytes: number }[]>`
  select right(c.relname, 7) as month, sum(pg_total_relation_size(c.oid))::float as bytes
  from pg_inherits i join pg_class c on c.oid = i.inhrelid
  where i.inhparent in (to_regclass('case_result'), to_regclass('case_detail')) and c.relname ~ '_\d{4}_\d{2}$'
  group by 1 order by 1`;

/** Whether another process of Assay, of whatever version, is connected to the database. */
export async function selectIsShared(sql: Sql): Promise<boolean> {
  const others = await sql`
    select from pg_stat_activity
    where datname = current_database() and application_name = current_setting('application_name') and pid <> pg_backend_pid()
    limit 1`;
  return others.length > 0;
}
