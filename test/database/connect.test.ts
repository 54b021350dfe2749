import { expect, test } from "bun:test";
import { lockBugs } from "../../src/store/bug_reports.ts";
import type { Tx } from "../../src/database/connect.ts";
import { createDatabase } from "../harness.ts";

test("what must run in a transaction takes nothing else, and the compiler says so", async () => {
  const { database } = await createDatabase();
  const project = crypto.randomUUID();
  // @ts-expect-error The pool is no transaction: the lock would be gone with the statement.
  await lockBugs(database.pool, project);
  const inside = async (sql: Tx) => (await lockBugs(sql, project)).length;
  expect(await database.begin(inside)).toBe(1);
});
