/** A server that is frozen within a transaction: what others wait for is given to them, and nothing else is taken. */

import { expect, test } from "bun:test";
import { createAbandonedWatch } from "../../src/database/abandoned.ts";
import { type Database, savepoint, type Tx } from "../../src/database/connect.ts";
import { BACKUP_LOCK, MIGRATION_LOCK, takeLock } from "../../src/database/locks.ts";
import { createDatabase, until } from "../harness.ts";

/** A transaction that does nothing any more once it has what `take` takes. */
async function freeze({ begin }: Database, take: (sql: Tx) => Promise<unknown>) {
  const [taken, thawed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const ended = begin(async (sql) => {
    await take(sql);
    taken.resolve();
    await thawed.promise;
    await sql`select 1`;
    return "whole";
  }).catch(() => "ended");
  await taken.promise;
  return { ended, thaw: thawed.resolve };
}

test("a transaction without a statement is ended when others wait for it, and no other", async () => {
  const { database } = await createDatabase();
  const project = crypto.randomUUID();
  const account = crypto.randomUUID();
  const { pool, begin } = database;
  await pool`insert into account (id, email, name) values (${account}, 'a@b.example', 'A')`;
  const change = (sql: Tx) => sql`update account set name = 'B' where id = ${account}`;
  const frozen = await freeze(database, async (sql) => {
    await takeLock(sql, ["naming", project]);
    await change(sql);
  });
  const unwanted = await freeze(database, (sql) => takeLock(sql, ["naming", crypto.randomUUID()]));
  const named = begin((sql) => takeLock(sql, ["naming", project]));
  const changed = pool`update account set name = name || '!' where id = ${account} returning name`;
  const watch = createAbandonedWatch({ sql: () => pool, patienceMs: 300 });
  let ended = 0;
  await until(() => (ended += watch.look()) > 0);
  await named;
  expect(await changed).toMatchObject([{ name: "A!" }]);
  frozen.thaw();
  unwanted.thaw();
  expect(await Promise.all([frozen.ended, unwanted.ended])).toEqual(["ended", "whole"]);
});

test("what a backup holds, and tables that are read, are waited for", async () => {
  const { database } = await createDatabase();
  const { pool, begin } = database;
  const locks = [BACKUP_LOCK, MIGRATION_LOCK];
  const frozen = await freeze(database, async (sql) => {
    for (const lock of locks) await sql`select pg_advisory_xact_lock(${lock})`;
    await sql`select from account`;
  });
  const waiting = [
    ...locks.map((lock) => (sql: Tx) => sql`select pg_advisory_xact_lock(${lock})`),
    (sql: Tx) => savepoint(sql, (sql) => sql`lock table account in access exclusive mode`),
  ].map((wait) => begin(wait));
  const countWaiting = async () =>
    (
      await pool`select from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'`
    ).length;
  await until(async () => (await countWaiting()) === waiting.length);
  let looks = 0;
  const watch = createAbandonedWatch({ sql: () => (looks++, pool), patienceMs: 0 });
  // The second look begins when the first one is over.
  let ended = 0;
  await until(() => {
    ended += watch.look();
    return looks > 1;
  });
  expect(ended).toBe(0);
  expect(await countWaiting()).toBe(waiting.length);
  frozen.thaw();
  expect(await frozen.ended).toBe("whole");
  await Promise.all(waiting);
});
