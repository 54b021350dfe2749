/** Transactions and statements of one owner that wait for a lock leave connections to others. */

import { describe, expect, test } from "bun:test";
import { connect } from "../../src/database/connect.ts";
import { createOwnerGate } from "../../src/database/owner_gate.ts";
import { createDatabase, until } from "../harness.ts";

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
    // A connection is free a moment after the answer of its transaction.
    await until(() => database.load()["transactions"]!.inUse === 3);
    expect(ran).toBe(0);
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

describe("statements of one owner", () => {
  test("leave connections to others, and all of them get through", async () => {
    const { connection } = await createDatabase();
    const [database, holder] = [connect(connection, 4), connect(connection, 1)];
    try {
      let ended = 0;
      const sql = database.poolOf("one", () => false);
      const { promise: held, resolve: release } = Promise.withResolvers<void>();
      const { promise: isHeld, resolve: hold } = Promise.withResolvers<void>();
      const holding = holder.begin(async (sql) => {
        await sql`select pg_advisory_xact_lock(1)`;
        hold();
        await held;
      });
      await isHeld;
      const waits = Array.from({ length: 10 }, async (_, at) => {
        const [row] = await sql`select pg_advisory_xact_lock_shared(1)::text, ${sql.unsafe(String(at))} as at`;
        ended++;
        return row!["at"];
      });
      for (const other of [database.poolOf("another", () => false), database.pool])
        expect([...(await other`select 1 as one`)]).toEqual([{ one: 1 }]);
      const waiting = () => holder.pool`select from pg_locks where locktype = 'advisory' and not granted`;
      await until(async () => (await waiting()).length === 3);
      expect(ended).toBe(0);
      release();
      await holding;
      expect(await Promise.all(waits)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    } finally {
      await Promise.all([database.close(), holder.close()]);
    }
  });

  test("that fail let the next in, and none is sent for whom nobody waits", async () => {
    const { connection } = await createDatabase();
    const database = connect(connection, 1);
    try {
      let isOver = false;
      const sql = database.poolOf("one", () => isOver);
      const wrong = Array.from({ length: 3 }, () => sql.unsafe("select 1 / 0").execute());
      const last = sql`select 2 as two`.then(([row]) => ((isOver = true), row));
      const late = sql`create table made_late ()`;
      const ends = await Promise.allSettled([...wrong, last, late]);
      expect(ends.map((end) => (end.status === "fulfilled" ? end.value : end.reason.message))).toEqual([
        ...Array(3).fill("division by zero"),
        { two: 2 },
        "Nobody waits for the statement any more",
      ]);
      expect(await database.pool`select from pg_class where relname = 'made_late'`).toHaveLength(0);
    } finally {
      await database.close();
    }
  });
});
