/** Reads from the catalog what the schema holds, so that no list of tables has to be maintained by hand. */

import type { Fragment, Sql, Tx } from "./connect.ts";

export type Table = { name: string; columns: string[] };
/** `bound` as PostgreSQL prints it: FOR VALUES FROM … TO …, or DEFAULT. */
type Partition = { name: string; parent: string; bound: string };
type Sequence = { name: string; value: number; isCalled: boolean };

export const toNameList = (sql: Sql, names: readonly string[]): Fragment =>
  sql.unsafe(names.map((name) => `"${name.replaceAll('"', '""')}"`).join(", ")) as unknown as Fragment;

/** A condition: the object `c` of pg_class is in our schema, and does not belong to an extension. */
const isOurs = (sql: Sql) => sql`
  c.relnamespace = current_schema()::regnamespace
  and not exists (select from pg_depend d where d.objid = c.oid and d.classid = 'pg_class'::regclass and d.deptype = 'e')`;

/** Returns all tables that hold rows, partitions instead of the tables that they are parts of, with the columns that are stored. */
export const selectTables = (sql: Sql) => sql<Table[]>`
  select c.relname as name, (
    select json_agg(a.attname order by a.attnum) from pg_attribute a
    where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = '') as columns
  from pg_class c where c.relkind = 'r' and ${isOurs(sql)} order by c.relname`;

export const selectPartitions = (sql: Sql) => sql<Partition[]>`
  select c.relname as name, p.relname as parent, pg_get_expr(c.relpartbound, c.oid) as bound
  from pg_class c join pg_inherits i on i.inhrelid = c.oid join pg_class p on p.oid = i.inhparent
  where c.relispartition and c.relkind = 'r' and ${isOurs(sql)} order by c.relname`;

/** Sequences do not belong to a snapshot: read after it was taken, a sequence is at least as far as the rows of the snapshot are. */
export async function selectSequences(sql: Sql): Promise<Sequence[]> {
  const names = await sql<{ name: string }[]>`
    select c.relname as name from pg_class c where c.relkind = 'S' and ${isOurs(sql)} order by c.relname`;
  const sequences: Sequence[] = [];
  for (const { name } of names) {
    const [row] = await sql<Omit<Sequence, "name">[]>`
      select last_value as value, is_called as "isCalled" from ${sql(name)}`;
    sequences.push({ name, ...row! });
  }
  return sequences;
}

export const updateSequence = (sql: Tx, { name, value, isCalled }: Sequence) =>
  sql`select setval(quote_ident(${name})::regclass, ${value}::bigint, ${isCalled})`;

/** Returns the number of tables, views and sequences in our schema. */
export const selectRelationCount = async (sql: Sql): Promise<number> => {
  const [row] = await sql<{ count: number }[]>`
    select count(*)::int as count from pg_class c where c.relkind in ('r', 'p', 'v', 'm', 'f', 'S') and ${isOurs(sql)}`;
  return row!.count;
};

/** `bound` becomes part of the statement as it is. */
export const createPartition = (sql: Tx, { name, parent, bound }: Partition) =>
  sql`create table if not exists ${sql(name)} partition of ${sql(parent)} ${sql.unsafe(bound)}`;

export async function selectRowCount(sql: Sql, table: string): Promise<number> {
  const [row] = await sql<{ rows: number }[]>`select count(*)::float8 as rows from ${sql(table)}`;
  return row!.rows;
}

/**
 * Empties the tables and calls `load`, in a transaction. `load` may fill them in any order, because foreign keys and triggers are dropped
 * meanwhile. Afterwards all rows are checked against the foreign keys. Ownership of the tables suffices.
 */
export async function loadTables(sql: Tx, tables: readonly string[], load: () => Promise<void>): Promise<void> {
  const keys = await sql<{ table: string; name: string; definition: string }[]>`
    select c.relname as table, k.conname as name, pg_get_constraintdef(k.oid) as definition
    from pg_constraint k join pg_class c on c.oid = k.conrelid
    where k.contype = 'f' and k.conparentid = 0 and ${isOurs(sql)} order by 1, 2`;
  const triggered = await sql<{ name: string }[]>`
    select c.relname as name from pg_class c
    where ${isOurs(sql)} and exists (
      select from pg_trigger t where t.tgrelid = c.oid and not t.tgisinternal and t.tgparentid = 0 and t.tgenabled = 'O')`;
  for (const { table, name } of keys) await sql`alter table ${sql(table)} drop constraint ${sql(name)}`;
  for (const { name } of triggered) await sql`alter table ${sql(name)} disable trigger user`;
  await sql`truncate ${toNameList(sql, tables)}`;
  await load();
  for (const { name } of triggered) await sql`alter table ${sql(name)} enable trigger user`;
  for (const { table, name, definition } of keys)
    await sql`alter table ${sql(table)} add constraint ${sql(name)} ${sql.unsafe(definition)}`;
}
