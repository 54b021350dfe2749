/** Transactions of one owner that wait for a lock leave connections to others. */

import { expect, test } from "bun:test";
import { connect } from "../../src/database/connect.ts";
import { createOwnerGate } from "../../src/database/owner_gate.ts";
import { createDatabase } from "../harness.ts";

test("transactions of one owner leave connections to others, and all of them run", async () => {
  const { connection } = await createDatabase();
  const database = connect(connection, 4);
  try {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    let ran = 0;
    const own = Array.from({ length: 10 }, () =>
      database.begin(async (sql) => {
        await sql`select 1`;
        await released;
        ran++;
      }, "one"),
    );
    const other = (owner?: string) => database.begin(async (sql) => (await sql`select 1 as one`)[0]!["one"], owner);
    expect([await other("another"), await other()]).toEqual([1, 1]);
    expect(await database.beginAhead(async (sql) => (await sql`select 2 as two`)[0]!["two"], "another")).toBe(2);
    expect([ran, database.load()["transactions"]!.inUse]).toEqual([0, 3]);
    release();
    await Promise.all(own);
    expect(ran).toBe(10);
  } finally {
    await database.close();
  }
});

test("work that fails lets the next in, in the order of arrival", async () => {
  const within = createOwnerGate(1);
  const order: string[] = [];
  const work = (name: string) => async () => {
    order.push(name);
    await Promise.resolve();
    if (name === "fails") throw new Error(name);
    return name;
  };
  const ends = await Promise.allSettled(["first", "fails", "third"].map((name) => within("owner", work(name))));
  expect(ends.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(order).toEqual(["first", "fails", "third"]);
  expect(await within(undefined, work("none"))).toBe("none");
});
