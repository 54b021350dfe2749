/** A server that is frozen within a transaction: what others wait for is given to them, and nothing else is taken. */

import { expect, test } from "bun:test";
import { createAbandonedWatch } from "../../src/database/abandoned.ts";
import { connect, type Database, savepoint, type Tx } from "../../src/database/connect.ts";
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
  await Promise.race([taken.promise, ended]);
  return { ended, thaw: thawed.resolve };
}

test("transactions of a process that says nothing are ended when those of another one wait for them, and no others", async () => {
  const { database, connection } = await createDatabase();
  const other = connect(connection, 4);
  const [project, account] = [crypto.randomUUID(), crypto.randomUUID()];
  await other.pool`insert into account (id, email, name) values (${account}, 'a@b.example', 'A')`;
  const frozen = await freeze(database, async (sql) => {
    await takeLock(sql, ["naming", project]);
    await sql`update account set name = 'B' where id = ${account}`;
  });
  const next = freeze(database, (sql) => takeLock(sql, ["naming", project])).then(({ ended }) => ended);
  const unwanted = await freeze(database, (sql) => takeLock(sql, ["naming", crypto.randomUUID()]));
  const waits = (count: number) => async () =>
    (
      await other.pool`select from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`
    ).length === count;
  await until(waits(1));
  const named = other.begin((sql) => takeLock(sql, ["naming", project]));
  const changed = other.begin((sql) => sql`update account set name = name || '!' where id = ${account} returning name`);
  await until(waits(3));
  const watch = createAbandonedWatch({ sql: () => other.pool, patienceMs: 300 });
  let ended = 0;
  await until(() => (ended += watch.look()) > 1);
  await named;
  expect(await changed).toMatchObject([{ name: "A!" }]);
  frozen.thaw();
  unwanted.thaw();
  expect(await Promise.all([frozen.ended, next, unwanted.ended])).toEqual(["ended", "ended", "whole"]);
  expect(ended).toBe(2);
  await other.close();
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
