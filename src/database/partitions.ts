/** The months that results are kept by: made ahead of time, dropped as a whole. */

import type { Sql } from "./connect.ts";
import { firstIdAt } from "./time_bounds.ts";

const TABLES = ["case_result", "case_detail"] as const;

/** Makes the partitions of this month and the next one; where rows of a month have come before it, it stays as it is. */
export async function createPartitions(sql: Sql, now: Date): Promise<void> {
  for (const table of TABLES) {
    for (const ahead of [0, 1]) {
      const from = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + ahead));
      const to = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + ahead + 1));
      const [lower, upper] = [firstIdAt(from.getTime()), firstIdAt(to.getTime())];
      const name = `${table}_${from.toISOString().slice(0, 7).replace("-", "_")}`;
      const [state] = await sql<{ there: boolean; early: boolean }[]>`
        select to_regclass(${name}) is not null as there,
          exists (select from ${sql(`${table}_default`)} where run_id >= ${lower}::uuid and run_id < ${upper}::uuid) as early`;
      if (state!.there || state!.early) continue;
      // Names and bounds are ours; a statement of this kind takes no parameters. Several servers may be here at once.
      await sql
        .unsafe(`create table if not exists ${name} partition of ${table} for values from ('${lower}') to ('${upper}')`)
        .catch((error: unknown) => {
          if (!/already exists|would overlap/.test(String(error))) throw error;
        });
    }
  }
}

/** Drops the months whose runs are all older than `floor`, a UUID; answers how many. */
export async function dropPartitions(sql: Sql, floor: string): Promise<number> {
  let dropped = 0;
  for (const table of TABLES) {
    const partitions = await sql<{ name: string; upper: string }[]>`
      select c.relname as name, substring(pg_get_expr(c.relpartbound, c.oid) from 'TO \\(''([^'']+)''') as upper
      from pg_inherits i join pg_class c on c.oid = i.inhrelid
      where i.inhparent = to_regclass(${table}) and pg_get_expr(c.relpartbound, c.oid) <> 'DEFAULT'`;
    for (const { name, upper } of partitions) {
      if (upper > floor) continue;
      await sql`drop table if exists ${sql(name)}`;
      dropped++;
    }
  }
  return dropped;
}

const BATCH = 5_000;

/**
 * A portion of a project's results with what explained its failures, and where its bugs occurred, of runs before `floor`,
 * a UUID; answers how many rows.
 */
export async function deleteOldResults(sql: Sql, projectId: string, floor: string): Promise<number> {
  let deleted = 0;
  for (const table of [...TABLES, "failure", "bug_occurrence"]) {
    const { count } = await sql`
      delete from ${sql(table)} where project_id = ${projectId} and run_id in (
        select run_id from ${sql(table)} where project_id = ${projectId} and run_id < ${floor} limit ${BATCH})`;
    deleted += count;
  }
  return deleted;
}
