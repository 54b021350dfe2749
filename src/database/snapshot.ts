/** Reads a consistent snapshot of the whole database while a backup runs, and holds the lock that announces the backup. */

import { type Database, isTimeout, type Sql, type Tx } from "./connect.ts";
import { BACKUP_LOCK, MIGRATION_LOCK } from "./locks.ts";

/** Lifts the time limits of a transaction: it takes as long as its data is large. */
export async function liftTimeLimits(sql: Tx): Promise<void> {
  await sql`
    select set_config('statement_timeout', '0', true), set_config('lock_timeout', '0', true),
      set_config('idle_in_transaction_session_timeout', '0', true)`;
}

/**
 * Calls `work` in a transaction that sees the database as it was at one moment, and changes nothing. Meanwhile no migration begins,
 * and no content of attachments is removed. Throws an Error if another backup is running. Needs two connections.
 */
export async function withSnapshot<T>({ begin }: Pick<Database, "begin">, work: (sql: Tx) => Promise<T>): Promise<T> {
  return await begin(async (lock) => {
    // A lock in the snapshot's own transaction would be too late, because the waiting statement already has its snapshot.
    await takeBackupLock(lock);
    await liftTimeLimits(lock);
    await lock`select pg_advisory_xact_lock_shared(${MIGRATION_LOCK})`;
    const result = await readOnly(begin, work);
    // The statement fails if the connection, and with it the lock, was lost.
    await lock`select`;
    return result;
  });
}

async function readOnly<T>(begin: Database["begin"], work: (sql: Tx) => Promise<T>): Promise<T> {
  let cause: { error: unknown } | undefined;
  try {
    return await begin(async (sql) => {
      await sql`set transaction isolation level repeatable read, read only`;
      await liftTimeLimits(sql);
      try {
        return await work(sql);
      } catch (error) {
        cause = { error };
        throw error;
      }
    });
  } catch (error) {
    // In the middle of a COPY the rollback fails as well, with a less useful error.
    throw cause ? cause.error : error;
  }
}

async function takeBackupLock(sql: Tx): Promise<void> {
  const running = new Error("Another backup of this database is running: wait until it ends");
  if (await selectIsBackupRunning(sql)) throw running;
  try {
    // Waits for transactions that are removing attachments.
    await sql`select pg_advisory_xact_lock(${BACKUP_LOCK})`;
  } catch (error) {
    throw isTimeout(error) ? running : error;
  }
}

/** Returns whether no backup is running. None begins before the end of the transaction. */
export const lockAgainstBackup = async (sql: Tx): Promise<boolean> => {
  const [row] = await sql<{ held: boolean }[]>`select pg_try_advisory_xact_lock_shared(${BACKUP_LOCK}) as held`;
  return row!.held;
};

/** Whether a backup is running at this moment. It may begin at any time. */
export const selectIsBackupRunning = async (sql: Sql): Promise<boolean> =>
  (
    await sql`
      select from pg_locks
      where locktype = 'advisory' and classid = 0 and objid::bigint = ${BACKUP_LOCK} and objsubid = 1 and granted
        and mode = 'ExclusiveLock' and database = (select oid from pg_database where datname = current_database())`
  ).length > 0;

/**
 * Yields what `read` yields in a transaction that sees the database as it was at one moment, on a connection of its own. The
 * transaction ends with the generator.
 */
export async function* readSnapshot<T>(
  { openReader }: Pick<Database, "openReader">,
  read: (sql: Tx) => AsyncGenerator<T, void>,
): AsyncGenerator<T, void> {
  const connection = openReader();
  const begun = Promise.withResolvers<Tx>();
  const over = Promise.withResolvers<void>();
  const transaction = connection.begin("isolation level repeatable read read only", async (sql) => {
    begun.resolve(sql as unknown as Tx);
    await over.promise;
  });
  transaction.catch(begun.reject);
  try {
    yield* read(await begun.promise);
  } finally {
    over.resolve();
    // Nothing was written: a transaction that fails at its end has lost nothing.
    await transaction.catch(() => {});
    await connection.end({ timeout: 1 });
  }
}
