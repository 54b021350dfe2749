/** Finds tables whose statistics are outdated. Without statistics, the planner considers all indexes that begin with the project equal. */

import type { Sql } from "./connect.ts";

/** Statistics are outdated once this many times the known number of rows has changed. */
const OUTGROWN_FACTOR = 4;
/** Changes to a table with fewer rows do not make a plan worse. */
const MIN_ROWS = 10;

/**
 * Returns tables whose statistics are missing or count several times fewer rows than there are: autovacuum runs once a minute, and plans
 * made before it may read all rows of a project. Only committed rows count, because analysing a table while its rows are being written
 * would find none.
 */
export const selectOutgrownTables = async (sql: Sql): Promise<string[]> => {
  const rows = await sql<{ name: string }[]>`
    select c.oid::regclass::text as name from pg_class c
    where c.relkind = 'r' and c.relpersistence = 'p' and c.relnamespace = current_schema()::regnamespace
      and pg_has_role(c.relowner, 'usage')
      and pg_stat_get_mod_since_analyze(c.oid) > ${OUTGROWN_FACTOR}::int * greatest(c.reltuples, ${MIN_ROWS}::int)
    order by c.relname`;
  return rows.map(({ name }) => name);
};

/** Analyses a table of `selectOutgrownTables`, unless another session is analysing it. */
export const analyzeTable = (sql: Sql, name: string) => sql.unsafe(`analyze (skip_locked) ${name}`);
