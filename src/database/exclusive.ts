/** Transactions that need exclusive locks: they wait briefly, give way to the others that wait behind them, and are tried again. */

import { type Database, isConflict, isLockTimeout, type Sql, type Tx } from "./connect.ts";

/** Maximum time that a statement waits for an exclusive lock: others that need the table wait behind it. */
const LOCK_TIMEOUT = "2s";
const LOOK_MS = 1_000;
/** Maximum pause between attempts, so that a wait of an hour does not delay uploads every few seconds. */
const MAX_PAUSE_MS = 30_000;

/** Limits the time to wait for locks in the rest of the transaction. */
export const limitLockWait = (sql: Tx) => sql`select set_config('lock_timeout', ${LOCK_TIMEOUT}, true)`;

export type ExclusiveOptions = {
  /** The subject of the messages, such as "The migration". */
  what: string;
  /** Gets a message about each session that holds a lock. */
  say: (message: string) => void;
  /** Maximum number of attempts; unlimited by default. */
  tries?: number;
};

/** Calls `work` in a transaction until it gets all locks in time. Throws what `work` throws otherwise. */
export async function withExclusiveLocks<T>(
  { pool, begin }: Pick<Database, "pool" | "begin">,
  { what, say, tries = Infinity }: ExclusiveOptions,
  work: (sql: Tx) => Promise<T>,
): Promise<T> {
  const said = new Set<number>();
  async function report(pid: number): Promise<void> {
    const sessions = (await selectBlocking(pool, pid)).filter((session) => !said.has(session.pid));
    for (const session of sessions) said.add(session.pid);
    if (sessions.length > 0) say(`${what} waits for a lock of ${sessions.map(({ text }) => text).join("; ")}`);
  }
  for (let count = 1; ; count++) {
    let timer: Timer | undefined;
    try {
      return await begin(async (sql) => {
        await limitLockWait(sql);
        const [session] = await sql<{ pid: number }[]>`select pg_backend_pid() as pid`;
        timer = setInterval(() => void report(session!.pid).catch(() => {}), LOOK_MS);
        return await work(sql);
      });
    } catch (error) {
      if (!(isLockTimeout(error) || isConflict(error)) || count >= tries) throw error;
    } finally {
      clearInterval(timer);
    }
    await Bun.sleep(Math.min(MAX_PAUSE_MS, 1_000 * 2 ** (count - 1)));
  }
}

/** The sessions that hold a lock which `pid` waits for. */
async function selectBlocking(sql: Sql, pid: number) {
  // Excludes the statement, which may contain a secret. A role sees only the number of sessions of other roles.
  return await sql<{ pid: number; text: string }[]>`
    select pid, concat_ws(', ', 'session ' || pid || ' of ' || coalesce(nullif(split_part(application_name, ' ', 1), ''), 'an unnamed program'),
      'user ' || usename, host(client_addr), state || ' for ' || extract(epoch from now() - state_change)::int || ' s') as text
    from pg_stat_activity where pid = any(pg_blocking_pids(${pid})) order by pid`;
}
