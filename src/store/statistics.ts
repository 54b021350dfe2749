/** What PostgreSQL knows of tables when it plans: where it knows nothing, every index that begins with the project looks alike. */

import type { Sql } from "./connect.ts";

/** A table that has grown so many times since it was looked at last is another one. */
const OUTGROWN = 4;

/**
 * Tables with rows that statistics know nothing of, or that have grown to several times what they know of: autovacuum comes
 * once a minute, and what is planned meanwhile may read all rows of a project. Costs a look at the size of each file.
 */
export const selectOutgrownTables = async (sql: Sql): Promise<string[]> => {
  const rows = await sql<{ name: string }[]>`
    select c.oid::regclass::text as name from pg_class c
    where c.relkind = 'r' and c.relpersistence = 'p' and c.relnamespace = current_schema()::regnamespace
      and pg_has_role(c.relowner, 'usage')
      and pg_relation_size(c.oid) > ${OUTGROWN}::int * c.relpages::bigint * current_setting('block_size')::int
    order by c.relname`;
  return rows.map(({ name }) => name);
};

/** `name` as `selectOutgrownTables` has it; one that somebody else is looking at is left to him. */
export const analyzeTable = (sql: Sql, name: string) => sql.unsafe(`analyze (skip_locked) ${name}`);
