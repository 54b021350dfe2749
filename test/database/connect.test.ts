import { expect, test } from "bun:test";
import { lockBugs } from "../../src/store/bug_reports.ts";
import type { Sql, Tx } from "../../src/database/connect.ts";
import { createDatabase } from "../harness.ts";

test("what must run in a transaction takes nothing else, and the compiler says so", async () => {
  const { database } = await createDatabase();
  const project = crypto.randomUUID();
  // @ts-expect-error The pool is no transaction: the lock would be gone with the statement.
  await lockBugs(database.pool, project);
  const inside = async (sql: Tx) => (await lockBugs(sql, project)).length;
  expect(await database.begin(inside)).toBe(1);
});

test("no session changes how durable commits are", async () => {
  const { database } = await createDatabase();
  const read = (sql: Sql) => sql<{ name: string }[]>`
    select name from pg_settings
    where name in ('synchronous_commit', 'fsync', 'full_page_writes') and source in ('client', 'session', 'user', 'database')`;
  const { pool, fast, keys, pages } = database;
  for (const sql of [pool, fast, keys, pages]) expect([...(await read(sql))]).toEqual([]);
  expect(await database.begin(async (sql) => [...(await read(sql))])).toEqual([]);
  expect(await database.beginAhead(async (sql) => [...(await read(sql))])).toEqual([]);
});
