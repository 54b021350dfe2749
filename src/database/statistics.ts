/** Finds tables whose statistics are outdated. Without statistics, the planner considers all indexes that begin with the project equal. */

import type { Sql } from "./connect.ts";

/** Statistics are outdated once this many times the known number of rows has changed. */
const OUTGROWN_FACTOR = 4;
/** Changes to a table with fewer rows do not make a plan worse. */
const MIN_ROWS = 10;

/**
 * Tables with rows that statistics know nothing of, or of which several times as many have come as they know: autovacuum
 * comes once a minute, and what is planned meanwhile may read all rows of a project. By what has been committed: to look at
 * a table whose rows are still being written would tell that there are none.
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

/** `name` as `selectOutgrownTables` has it; one that somebody else is looking at is left to him. */
export const analyzeTable = (sql: Sql, name: string) => sql.unsafe(`analyze (skip_locked) ${name}`);
