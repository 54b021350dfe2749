/** Backups that are stopped while they are written. */

import { expect } from "bun:test";
import { existsSync } from "node:fs";
import type { Started, StartedProgram } from "./commands.ts";
import { type createDatabase, until } from "./harness.ts";

type TestDatabase = Awaited<ReturnType<typeof createDatabase>>;

/** Starts a backup, which waits halfway for a lock until `release` is called. */
export async function backUpHalfway<Command extends Started | StartedProgram>(
  { database, connection }: TestDatabase,
  file: string,
  start: () => Command,
) {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const { promise: halfway, resolve: arrive } = Promise.withResolvers<Command>();
  const isRunning = async (condition: string) => {
    const name = `datname = '${connection["database"]}' and query like 'copy%' and ${condition}`;
    return (await database.pool.unsafe(`select from pg_stat_activity where ${name}`)).length > 0;
  };
  const locking = database.begin(async (sql) => {
    // The backup writes the tables before this one and waits here.
    await sql`lock table test_run in access exclusive mode`;
    const command = start();
    await until(() => isRunning("wait_event_type = 'Lock'"), 30);
    expect(existsSync(`${file}.partial`)).toBe(true);
    arrive(command);
    await released;
  });
  const command = await Promise.race([halfway, locking.then(() => halfway)]);
  return {
    ...command,
    release,
    /** Waits until the statement of the backup has ended as well. */
    settled: async () => {
      await locking;
      await until(async () => !(await isRunning("state = 'active'")));
    },
  };
}
