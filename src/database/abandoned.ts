/** Ends transactions of servers that are frozen: nothing comes from them any more, and what they have locked holds up others. */

import { isSession, type Sql } from "./connect.ts";
import { BACKUP_LOCK, MIGRATION_LOCK } from "./locks.ts";

/*
 * A server that is stopped (a suspended virtual machine, SIGSTOP, a debugger) leaves its connections open, and PostgreSQL ends its
 * transactions only after `idle_in_transaction_session_timeout`. A server that computes between two statements looks alike, so
 * only transactions that others wait for are ended.
 */

type AbandonedOptions = {
  sql: () => Sql;
  /** How long a transaction that others wait for may have no statement. Default 5,000. */
  patienceMs?: number;
};

/** Longer than a server computes on large reports, and so short that an upload which waits takes less than 10 s. */
const PATIENCE_MS = 5_000;
/** The locks of an ended transaction may go to another one of the same frozen server: for this time after an end, patience is shorter. */
const ALERT_MS = 30_000;
const ALERT_PATIENCE_MS = 1_500;

export function createAbandonedWatch({ sql, patienceMs = PATIENCE_MS }: AbandonedOptions) {
  let isLooking = false;
  let ended = 0;
  let lastEndedAt = -Infinity;

  async function end(): Promise<void> {
    const isAlert = performance.now() - lastEndedAt < ALERT_MS;
    const rows = await terminateAbandoned(sql(), isAlert ? Math.min(patienceMs, ALERT_PATIENCE_MS) : patienceMs);
    if (rows.length === 0) return;
    ended += rows.length;
    lastEndedAt = performance.now();
  }

  return {
    /** To be called every second or so. Never waits; answers how many transactions were ended since the last call. */
    look(): number {
      if (!isLooking) {
        isLooking = true;
        // A database that is away is logged elsewhere.
        void end()
          .catch(() => {})
          .finally(() => (isLooking = false));
      }
      const count = ended;
      ended = 0;
      return count;
    },
  };
}

/** The halves of an advisory lock's number, as pg_locks shows them. */
const halves = (lock: number) => [Math.floor(lock / 2 ** 32), lock % 2 ** 32] as const;

/**
 * Only locks of rows and advisory ones: those of whole tables are held by exports, whose readers have a minute, and who waits for
 * them gives way (exclusive.ts). A backup holds its own advisory locks for as long as it takes.
 */
function terminateAbandoned(sql: Sql, patienceMs: number) {
  const [backup, migration] = [halves(BACKUP_LOCK), halves(MIGRATION_LOCK)];
  return sql`
    with waiting as materialized (
      select distinct pid from pg_locks
      where not granted and locktype in ('transactionid', 'tuple', 'advisory')
        and (locktype <> 'advisory' or (classid::bigint, objid::bigint) not in
          ((${backup[0]}::bigint, ${backup[1]}::bigint), (${migration[0]}::bigint, ${migration[1]}::bigint)))
    ), blocking as materialized (
      select distinct unnest(pg_blocking_pids(pid)) as pid from waiting
    ), late as materialized (
      select pid, application_name, client_addr, state, wait_event_type from pg_stat_activity
      where ${isSession(sql)} and usename = session_user
        and (state like 'idle in transaction%' or (state = 'active' and wait_event_type in ('Client', 'Lock')))
        and state_change < clock_timestamp() - ${patienceMs}::int * interval '1 millisecond'
    ), abandoned as (
      select application_name, client_addr from late join blocking using (pid) where wait_event_type is distinct from 'Lock'
    )
    -- Those of the same process that wait for these locks would get them next, and keep them as long.
    select pg_terminate_backend(pid) as ended from late
    where (application_name, coalesce(client_addr, '0.0.0.0')) in
        (select application_name, coalesce(client_addr, '0.0.0.0') from abandoned)
      and (pid in (select pid from waiting) or pid in (select pid from blocking))`;
}
