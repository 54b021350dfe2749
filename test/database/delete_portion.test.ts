/** Rows are deleted a portion at a time, each of which reads no more than it has to. */

import { expect, test } from "bun:test";
import { deletePortion } from "../../src/database/delete_portion.ts";
import { createBareDatabase } from "../harness.ts";

const { database } = await createBareDatabase();
const { pool, begin } = database;

/** Creates a table whose statistics are from when it had one row. */
async function fillTable(name: string, rows: number): Promise<void> {
  await pool`create table ${pool(name)} (shop int default 1, id int, color text not null, primary key (shop, id))`;
  await pool`insert into ${pool(name)} (id, color) values (0, 'blue')`;
  await pool`analyze ${pool(name)}`;
  await pool`insert into ${pool(name)} (id, color) select n, 'red' from generate_series(1, ${rows}::int) n`;
}
const left = async (name: string) =>
  (await pool`select color, count(*)::int from ${pool(name)} group by 1 order by 1`).map(({ color, count }) => [
    color,
    count,
  ]);

test("a portion has at most so many rows, and only those that fulfil the condition", async () => {
  await fillTable("paint", 250);
  const isRed = pool`color = 'red'`;
  expect(await deletePortion(pool, "paint", isRed, { limit: 100 })).toBe(100);
  expect(await left("paint")).toEqual([
    ["blue", 1],
    ["red", 150],
  ]);
  expect(await deletePortion(pool, "paint", isRed, { limit: 200 })).toBe(150);
  expect(await deletePortion(pool, "paint", isRed, { limit: 200 })).toBe(0);
  expect(await left("paint")).toEqual([["blue", 1]]);
});

test("the rows are looked for once, also where the planner takes the table for a small one", async () => {
  await fillTable("grown", 5_000);
  const read = await begin(async (sql) => {
    expect(
      await deletePortion(sql, "grown", sql`shop = 1 and color = 'red'`, { limit: 1_000, skipsLocked: true }),
    ).toBe(1_000);
    const [row] = await sql<{ rows: number }[]>`
      select (seq_tup_read + coalesce(idx_tup_fetch, 0))::int as rows
      from pg_stat_xact_user_tables where relname = 'grown'`;
    return row!.rows;
  });
  expect(read).toBeLessThan(5_000);
});

test("what another transaction has locked is left to it, if that is asked for", async () => {
  await fillTable("held", 10);
  await begin(async (sql) => {
    await sql`select from held where id <= 4 for update`;
    const isAny = pool`color <> 'green'`;
    expect(await deletePortion(pool, "held", isAny, { limit: 100, skipsLocked: true })).toBe(6);
  });
  expect(await left("held")).toEqual([
    ["blue", 1],
    ["red", 4],
  ]);
});
