/** Exclusive locks: whoever waits for one gives way, and says for whom it waits. */

import { expect, test } from "bun:test";
import { withExclusiveLocks } from "../../src/database/exclusive.ts";
import { createDatabase, until } from "../harness.ts";
import { isFull } from "../depth.ts";

const waitingFor = (query: string) => `
  select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like '${query}%'`;

test.skipIf(!isFull)(
  "a change of a table gives way to others while somebody reads, names the session, and is made afterwards",
  async () => {
    const { database } = await createDatabase();
    const { pool } = database;
    const reader = database.openReader();
    const [reading, read] = [Promise.withResolvers<number>(), Promise.withResolvers<void>()];
    const transaction = reader.begin(async (sql) => {
      const [session] = await sql<{ pid: number }[]>`select pg_backend_pid() as pid, (select count(*) from account)`;
      reading.resolve(session!.pid);
      await read.promise;
    });
    const pid = await reading.promise;
    const said = Promise.withResolvers<string>();
    const changed = withExclusiveLocks(database, { what: "The test", say: said.resolve }, async (sql) => {
      await sql`alter table account add column later int`;
      return "changed";
    });
    expect(await said.promise).toMatch(
      new RegExp(
        `^The test waits for a lock of session ${pid} of assay, user \\w+, (.+, )?idle in transaction for \\d+ s$`,
      ),
    );
    // It gets through before the reader ends, although it stands behind the change.
    await until(async () => (await pool.unsafe(waitingFor("alter table account"))).length === 1);
    await pool`update account set name = name`;
    read.resolve();
    await transaction;
    await reader.end();
    expect(await changed).toBe("changed");
    expect((await pool.unsafe(waitingFor("alter"))).length).toBe(0);
  },
);
