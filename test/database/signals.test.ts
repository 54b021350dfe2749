/** Waiting for what happens on any server. */

import { expect, test } from "bun:test";
import { createDatabase, until } from "../harness.ts";
import { createSignals, notifyExecutionEnded, notifyLeases } from "../../src/database/signals.ts";

const LONG = 60_000;

async function open() {
  const { database } = await createDatabase();
  const signals = createSignals(database.openListener);
  return { database, signals };
}

test("what a transaction tells wakes who watches it, and nobody else", async () => {
  const { database, signals } = await open();
  const [mine, other] = [signals.watch([["lease", "a"]]), signals.watch([["lease", "b"]])];
  // Listening has begun when everybody has been sent to look.
  expect([await mine.next(LONG), await other.next(LONG)]).toEqual(["lease", "lease"]);
  await database.begin(async (sql) => {
    await notifyLeases(sql, "a");
    await notifyExecutionEnded(sql, "b");
  });
  expect(await mine.next(LONG)).toBe("lease");
  signals.close();
  expect(await other.next(LONG)).toBe("closed");
});

test("what happens between two waits is not missed", async () => {
  const { signals } = await open();
  const watch = signals.watch([["sync", "x"]]);
  signals.tell("sync", "x");
  expect(await watch.next(LONG)).toBe("sync");
  watch.end();
  signals.close();
});

test("what ends a wait is not forgotten for what comes after it", async () => {
  const { signals } = await open();
  const things = [
    ["lease", "a"],
    ["sync", "b"],
    ["key_revoked", "c"],
  ] as const;
  const watch = signals.watch(things);
  expect(await watch.next(LONG)).toBe("lease");
  for (const [topic, id] of things.slice(1)) {
    signals.tell(topic, id);
    signals.tell("lease", "a");
    expect(await watch.next(LONG)).toBe(topic);
  }
  watch.end();
  signals.close();
});

test("a connection that comes back displaces nobody", async () => {
  const { signals } = await open();
  const [told, displaced] = [signals.watch([["lease", "a"]]), signals.watch([["sync", "a"]])];
  expect(await told.next(LONG)).toBe("lease");
  expect(await displaced.next(1)).toBe("time");
  signals.close();
});

test("a connection that ends is replaced, and who waits looks again", async () => {
  const { database, signals } = await open();
  const watch = signals.watch([["lease", "a"]]);
  expect(await watch.next(LONG)).toBe("lease");
  const end = () => database.pool`
    select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and query like 'listen %'`;
  await until(async () => (await end()).length > 0);
  expect(await watch.next(LONG)).toBe("lease");
  await database.begin((sql) => notifyLeases(sql, "a"));
  expect(await watch.next(LONG)).toBe("lease");
  signals.close();
});
