/** Ends connections that have fallen silent: their other end is gone, but nothing has closed them. */

import postgres, { type Sql } from "postgres";

/** An established connection. Times are of `performance.now()`. */
export type WatchedSession = {
  /** The process id of its backend, as reported by PostgreSQL. */
  readonly pid: number;
  readonly owes: "statement" | "probe" | null;
  /** When something was last received, or if later, when the session began to owe an answer. */
  readonly heardAt: number;
  /** Number of bytes sent since then. */
  readonly sentBytes: number;
  /** Whether it owes no statement, and is outside of a transaction. */
  readonly isIdle: boolean;
  /** Asks for an answer that is due at once. Only for a session that is idle. */
  probe(): void;
  /** Closes the connection without a word, and rejects all that it owes. */
  destroy(): void;
};

export type SilenceOptions = {
  sessions: () => WatchedSession[];
  /** A pool that opens one new connection. */
  open: () => Sql;
  /** How long a session may owe an answer before it is suspected. Default 5,000. */
  silenceMs?: number;
  /** How long an idle session may say nothing before it is probed. Default 3,000. */
  probeAfterMs?: number;
};

/*
 * Connections fall silent in a fail-over, or when a firewall has forgotten them, and whatever was asked of one would wait for
 * ever.
 *
 * An idle connection is probed, and the answer to a probe is due at once. A connection on which a statement runs cannot be
 * probed, and the statement may be slow. So a new connection asks PostgreSQL whether the backend of the silent one is working:
 * if it is not, it has never received the statement, or its answer was lost. No connection is ended unless that new connection
 * is answered: while the database itself is away or frozen, others would get through as little.
 */

/** Maximum time for a new connection to prove that the database is reachable. */
const CHECK_TIMEOUT_MS = 3_000;
/** A slow link is not silent: a session gets time for the bytes sent to it, at 2 Mbit/s. */
const MIN_BYTES_PER_MS = 250;
/** Longer than any statement may take. Used for sessions whose state PostgreSQL does not report. */
const MAX_STATEMENT_MS = 75_000;
/**
 * Delay between two checks: a database that was frozen may answer the new connection first, and a session that was found working may have
 * waited for a lock of one that has been ended.
 */
const RECHECK_MS = 500;
const MAX_CHECKS = 20;
/** For this long after a silent connection was found, others are suspected after ALERT_SILENCE_MS. */
const ALERT_MS = 15_000;
const ALERT_SILENCE_MS = 1_000;

/** `gone`: there is no such backend. `unknown`: PostgreSQL does not say, or a connection pooler is in between. */
type Activity = "working" | "idle" | "gone" | "unknown";
const TOO_MANY_CONNECTIONS = "53300";
type Suspect = { session: WatchedSession; heardAt: number };

export const sessionsOf = (sql: Sql): WatchedSession[] =>
  (sql as unknown as { sessions(): WatchedSession[] }).sessions();

export function createSilenceWatch({ sessions, open, silenceMs = 5_000, probeAfterMs = 3_000 }: SilenceOptions) {
  /** When PostgreSQL last reported that a session was working. */
  const foundWorking = new WeakMap<WatchedSession, number>();
  let isLooking = false;
  let lastEndedAt = -Infinity;

  const isAlert = () => performance.now() - lastEndedAt < ALERT_MS;

  /** Probes sessions that are idle, and returns those whose answer is overdue. */
  function findSuspects(): Suspect[] {
    const now = performance.now();
    const allowedMs = isAlert() ? Math.min(ALERT_SILENCE_MS, silenceMs) : silenceMs;
    const suspects: Suspect[] = [];
    for (const session of sessions()) {
      const { owes, heardAt, sentBytes, isIdle } = session;
      const silentMs = now - heardAt;
      if (owes !== null && silentMs >= allowedMs + sentBytes / MIN_BYTES_PER_MS) suspects.push({ session, heardAt });
      else if (owes === null && isIdle && silentMs >= probeAfterMs) session.probe();
    }
    return suspects;
  }

  /** Anything received while PostgreSQL was being asked ends the suspicion: this process may have been busy. */
  const isStillSilent = ({ session, heardAt }: Suspect) => session.owes !== null && session.heardAt === heardAt;

  function isDead(suspect: Suspect, activity: Activity, now: number): boolean {
    if (!isStillSilent(suspect)) return false;
    if (suspect.session.owes === "probe") return true;
    return activity === "unknown" ? now - suspect.heardAt >= MAX_STATEMENT_MS : activity !== "working";
  }

  /** Throws when the new connection is not answered. */
  async function findDead(sql: Sql, suspects: readonly Suspect[]) {
    const { activities, isDirect } = await inTime(selectActivities(sql, suspects)).catch((error: unknown) => {
      // This error is an answer too. Sessions that owe only the answer to a probe are dead, and may hold the missing connections.
      if (!(error instanceof postgres.PostgresError) || error.code !== TOO_MANY_CONNECTIONS) throw error;
      return { isDirect: false, activities: suspects.map((): Activity => "unknown") };
    });
    const now = performance.now();
    for (const { session } of suspects) foundWorking.set(session, now);
    return { dead: suspects.filter((suspect, at) => isDead(suspect, activities[at]!, now)), isDirect };
  }

  async function endAll(sql: Sql, dead: readonly Suspect[], isDirect: boolean): Promise<void> {
    const lastHeardAt = Math.max(...dead.map(({ heardAt }) => heardAt));
    const known = new Set(dead.map(({ session }) => session));
    // Nothing shows that these idle ones are better, and it costs little to open them again.
    const doubtful = sessions()
      .filter((session) => session.isIdle && (session.owes === "probe" || session.heardAt <= lastHeardAt))
      .filter((session) => !known.has(session))
      .map((session) => ({ session, heardAt: session.heardAt }));
    const all = [...dead, ...doubtful];
    for (const { session } of all) session.destroy();
    // PostgreSQL keeps their locks and connections until it notices that they have ended.
    if (isDirect) await inTime(terminateBackends(sql, all)).catch(() => {});
  }

  /** Ends the sessions that two checks find dead, and passes their number to `onEnded`. */
  async function check(sql: Sql, onEnded: (count: number) => void): Promise<void> {
    let foundBefore = new Map<WatchedSession, number>();
    for (let checks = 0; checks < MAX_CHECKS; checks++) {
      const suspects = findSuspects();
      const { dead, isDirect } = await findDead(sql, suspects);
      if (dead.length === 0) return;
      const certain = dead.filter(({ session, heardAt }) => foundBefore.get(session) === heardAt);
      if (certain.length > 0) {
        onEnded(certain.length);
        lastEndedAt = performance.now();
        await endAll(sql, certain, isDirect);
      }
      foundBefore = new Map(dead.map(({ session, heardAt }) => [session, heardAt]));
      await Bun.sleep(RECHECK_MS);
    }
  }

  return {
    /** Call this about every second. Returns the number of sessions that it ended because they were silent. */
    async look(): Promise<number> {
      if (isLooking) return 0;
      const now = performance.now();
      const isDue = ({ session }: Suspect) => isAlert() || now - (foundWorking.get(session) ?? -Infinity) >= silenceMs;
      if (!findSuspects().some(isDue)) return 0;
      isLooking = true;
      const sql = open();
      let ended = 0;
      try {
        await check(sql, (count) => (ended += count));
      } catch {
        // The database is away, which is logged elsewhere.
      } finally {
        void sql.end({ timeout: 0 });
        isLooking = false;
      }
      return ended;
    },
  };
}

async function inTime<T>(work: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error("The database did not answer in time")), CHECK_TIMEOUT_MS);
  try {
    return await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
  }
}

const askedAbout = (suspects: readonly Suspect[]): string =>
  JSON.stringify(
    suspects.map(({ session: { pid }, heardAt }, index) => ({
      ...{ index, pid },
      silent: (performance.now() - heardAt) / 1_000,
    })),
  );

/**
 * Selects the backends of sessions. After a failover another server may use the same process ids, but its backends are not ours: they began
 * after the silence, or serve another program. A second is allowed for the difference between two clocks.
 */
const backends = (sql: Sql, suspects: readonly Suspect[]) => sql`
  json_to_recordset(${askedAbout(suspects)}::text::json) as asked (index int, pid int, silent float)
  left join pg_stat_activity a on a.pid = asked.pid and a.usename = session_user
    and a.application_name = current_setting('application_name')
    and a.backend_start < now() - (asked.silent - 1) * interval '1 second'`;

async function selectActivities(sql: Sql, suspects: readonly Suspect[]) {
  const rows = await sql<{ ownPid: number; activity: Activity }[]>`
    select pg_backend_pid() as "ownPid",
      case
        when a.pid is null then 'gone'
        when a.state is null or a.state = 'disabled' then 'unknown'
        -- A backend that waits for its client is as silent for us as we are for it.
        when a.state in ('active', 'fastpath function call') and a.wait_event_type is distinct from 'Client' then 'working'
        else 'idle'
      end as activity
    from ${backends(sql, suspects)} order by asked.index`;
  // A connection pooler makes up process ids of its own.
  const isDirect = sessionsOf(sql)[0]?.pid === rows[0]?.ownPid;
  return { isDirect, activities: rows.map(({ activity }): Activity => (isDirect ? activity : "unknown")) };
}

const terminateBackends = async (sql: Sql, suspects: readonly Suspect[]) =>
  await sql`select pg_terminate_backend(a.pid) from ${backends(sql, suspects)} where a.pid is not null`;
