/** The months that results are kept by: made ahead of time, dropped as a whole. */

import type { Database, Sql } from "./connect.ts";
import { type ExclusiveOptions, withExclusiveLocks } from "./exclusive.ts";
import { firstIdAt } from "./time_bounds.ts";

const TABLES = ["case_result", "case_detail"] as const;

/** The next hour tries again. */
const MAX_TRIES = 3;

type Servers = Pick<Database, "pool" | "begin">;
type Month = { name: string; lower: string; upper: string };

/** The partition of `table` for the month that begins `ahead` months after that of `now`. */
function monthOf(table: string, now: Date, ahead: number): Month {
  const from = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + ahead));
  const to = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + ahead + 1));
  const name = `${table}_${from.toISOString().slice(0, 7).replace("-", "_")}`;
  return { name, lower: firstIdAt(from.getTime()), upper: firstIdAt(to.getTime()) };
}

/** `early`: rows of the month have come before the partition. */
async function selectMonthState(sql: Sql, table: string, { name, lower, upper }: Month) {
  const [state] = await sql<{ there: boolean; early: boolean }[]>`
    select to_regclass(${name}) is not null as there,
      exists (select from ${sql(`${table}_default`)} where run_id >= ${lower}::uuid and run_id < ${upper}::uuid) as early`;
  return state!;
}

/** Makes the partitions of this month and the next one; where rows of a month have come before it, it stays as it is. */
export async function createPartitions(
  database: Servers,
  now: Date,
  say: ExclusiveOptions["say"] = () => {},
): Promise<void> {
  for (const table of TABLES) {
    for (const ahead of [0, 1]) {
      const month = monthOf(table, now, ahead);
      const { there, early } = await selectMonthState(database.pool, table, month);
      if (there || early) continue;
      const { name, lower, upper } = month;
      // Names and bounds are ours; a statement of this kind takes no parameters. Several servers may be here at once.
      const text = `create table if not exists ${name} partition of ${table} for values from ('${lower}') to ('${upper}')`;
      const options = { what: `The partition ${name}, which is to be created,`, say, tries: MAX_TRIES };
      await withExclusiveLocks(database, options, async (sql) => void (await sql.unsafe(text))).catch(
        (error: unknown) => {
          // The last of them: rows of the month have come since it was looked at.
          if (!/already exists|would overlap|default partition .* would be violated/.test(String(error))) throw error;
        },
      );
    }
  }
}

/** Drops the months whose runs are all older than `floor`, a UUID. */
export async function dropPartitions(
  database: Servers,
  floor: string,
  say: ExclusiveOptions["say"] = () => {},
): Promise<{ name: string; rows: number }[]> {
  const dropped: { name: string; rows: number }[] = [];
  for (const table of TABLES) {
    const partitions = await database.pool<{ name: string; upper: string }[]>`
      select c.relname as name, substring(pg_get_expr(c.relpartbound, c.oid) from 'TO \\(''([^'']+)''') as upper
      from pg_inherits i join pg_class c on c.oid = i.inhrelid
      where i.inhparent = to_regclass(${table}) and pg_get_expr(c.relpartbound, c.oid) <> 'DEFAULT'`;
    for (const { name, upper } of partitions) {
      if (upper > floor) continue;
      const [count] = await database.pool<{ rows: number }[]>`select count(*) as rows from ${database.pool(name)}`;
      const options = { what: `The partition ${name}, which is to be dropped,`, say, tries: MAX_TRIES };
      await withExclusiveLocks(database, options, async (sql) => void (await sql`drop table if exists ${sql(name)}`));
      dropped.push({ name, rows: count!.rows });
    }
  }
  return dropped;
}
