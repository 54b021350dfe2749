/** The database: pipelined connections for short reads beside ordinary pools for everything else. */

import postgres from "postgres";
import { readDatabaseUrl } from "./database_url.ts";
import { createWatchedPool, createTransactions, RolledBack } from "./watched_pool.ts";
import { createOwnedPool, createOwnerGate } from "./owner_gate.ts";
import { createSilenceWatch, sessionsOf, type SilenceOptions } from "./silence.ts";

export type Sql = postgres.Sql;

declare const inTransaction: unique symbol;
/** A connection within a transaction. Functions that need a transaction take this type, so that the compiler refuses a pool. */
export type Tx = Sql & { readonly [inTransaction]: true };

export type Database = {
  /** Ordinary pool for single statements that may take their time. */
  pool: Sql;
  /** The same for one owner, such as a team, whose statements leave a quarter of the connections to others. None is sent once `isOver`. */
  poolOf(owner: string, isOver: () => boolean): Sql;
  /**
   * Runs one transaction, on a pool of its own. Those of one `owner`, such as a team, leave a quarter of the connections to others, and
   * must not be nested.
   */
  begin<T>(work: (sql: Tx) => Promise<T>, owner?: string): Promise<T>;
  /**
   * Like `begin`, but sends the first statements together with BEGIN. Nothing may be written before the transaction has `begun`, and until
   * then `work` may be called again. Statements use generic plans. There are no savepoints.
   */
  beginAhead<T>(work: (sql: Tx, begun: Promise<unknown>) => Promise<T>, owner?: string): Promise<T>;
  /**
   * One pipelined connection with generic plans, only for short indexed reads of the API, because slow statements would delay those behind
   * them.
   */
  fast: Sql;
  /**
   * A connection like `fast`, only for statements about API keys. Every request waits for one of these, so none may wait behind a statement
   * on another table, which may be locked.
   */
  keys: Sql;
  /** The same, only for the dashboard: its sessions, accounts and other short reads. */
  pages: Sql;
  /** The time of the last commit on this server, of `performance.now()`. */
  committedAt(): number;
  /** Opens a connection for LISTEN, which the caller ends. */
  openListener: OpenListener;
  /** Opens a connection outside of the pools for one long transaction that reads; to be ended by the caller. */
  openReader(): Sql;
  /** The load of its pools by name. Figures that are not known are absent. */
  load(): Record<string, PoolLoad>;
  /** The options it was opened with, so that another thread can open connections of its own. */
  connection: ConnectionOptions;
  /**
   * Call this about every second until the database is closed. It ends connections that have fallen silent and returns their number, and
   * replaces pools that hang although the database is reachable and returns their names.
   */
  watch(): Promise<{ silent: number; replaced: string[] }>;
  close(): Promise<void>;
};

/** `onClose`: the connection has ended, and with it its subscriptions; the next statement opens another one. */
export type OpenListener = (on: { onNotify(channel: string, payload: string): void; onClose(): void }) => Sql;

export type PoolLoad = {
  /** Connections at the most. */
  size: number;
  inUse?: number;
  waiting?: number;
  /** How long the last probe of the pool has been waiting to be sent. */
  waitMs: number;
};

/** A URL or the parts of a connection; other options of postgres.js are set here. */
export type ConnectionOptions = (
  { url: string } | Pick<postgres.Options<{}>, "host" | "port" | "username" | "password" | "database">
) & {
  /** Distinguishes the sessions of this process from those of other ones; all its threads have the same. Default: a new one. */
  process?: string;
};

/** Runs `work` in a savepoint. If it throws, its changes are undone, and the transaction may continue. */
export async function savepoint<T>(sql: Tx, work: (sql: Tx) => Promise<T>): Promise<T> {
  let cause: { error: unknown } | undefined;
  const { savepoint } = sql as unknown as postgres.TransactionSql;
  try {
    const { value } = await savepoint(async (inner) => {
      try {
        return { value: await work(inner as unknown as Tx) };
      } catch (error) {
        cause = { error };
        throw error;
      }
    });
    return value;
  } catch (error) {
    // If the connection has died, the rollback fails as well, with a less useful error.
    throw cause ? cause.error : error;
  }
}

/** `2026-01-31 12:00:00.5+00` → `2026-01-31T12:00:00.500Z`: sessions run in UTC, columns hold milliseconds. */
export function toIsoTime(text: string): string {
  const fraction = text.length === 22 ? "000" : text.slice(20, -3);
  const milliseconds = fraction.length === 3 ? fraction : `${fraction}00`.slice(0, 3);
  return `${text.slice(0, 10)}T${text.slice(11, 19)}.${milliseconds}Z`;
}

export type Fragment = postgres.PendingQuery<postgres.Row[]>;

/**
 * Whether statements in the rest of the transaction use generic plans. Writes to partitions would otherwise be planned each time, and
 * look-ups of a thousand rows would scan whole tables whose statistics are old. Both then use an index: the plan is made while the table
 * may have a page of rows, and is used when it has thousands.
 */
const keepPlans = (sql: Sql, keeps = true): Fragment =>
  sql`set_config('plan_cache_mode', ${sql.unsafe(keeps ? "'force_generic_plan'" : "'auto'")}, true)
    || set_config('enable_seqscan', 'off', true)`;
/** The same as a statement. */
export const setKeepsPlans = (sql: Tx, keeps: boolean) => sql`select ${keepPlans(sql, keeps)}`;

/** Statements that write, as one: none of them sees what another one has written. */
export const joinWrites = (sql: Sql, [first, ...others]: readonly Fragment[]): Fragment => {
  const named = others.reduce(
    (before, write, index) => sql`${before}, ${sql.unsafe(`write_${index}`)} as (${write})`,
    sql`write as (${first!})`,
  );
  return sql`with ${named} select`;
};

/** The same, in one round trip. */
export async function writeTogether(sql: Tx, writes: readonly Fragment[]): Promise<void> {
  if (writes.length === 1) await writes[0];
  else if (writes.length > 1) await joinWrites(sql, writes);
}

/** A time within a JSON object of the database, as answers carry it. */
export const toJsonTime = (sql: Sql, column: Fragment): Fragment =>
  sql`to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

/** A time that is rounded to milliseconds may be yet to come: this one is cut. */
export const thisMoment = (sql: Sql): Fragment => sql`date_trunc('milliseconds', now())`;

/** Passes JSON as text, because postgres.js would encode it a second time. */
export const toJson = (sql: Sql, value: unknown): Fragment => sql`${JSON.stringify(value)}::text::json`;

/**
 * Returns objects for `json_to_recordset`: one parameter for any number of rows. Lone surrogates, which a truncated text may end with, are
 * replaced as in a text parameter.
 */
export function toRows(rows: readonly object[]): string {
  const text = JSON.stringify(rows);
  if (!text.includes("\\ud")) return text;
  return text.replace(/\\(\\|ud[89a-f]..)/g, (all, escaped) => (escaped === "\\" ? all : "\ufffd"));
}

/** Literals of PostgreSQL arrays: without a type look-up at connect, postgres.js cannot send arrays itself. */
export const toNumberArray = (values: ArrayLike<number | null>): string =>
  `{${Array.prototype.map.call(values, (value) => value ?? "null").join(",")}}`;

/** Reads such a literal. JSON would be made of it by the database only to be read again. */
export const toNumbers = (literal: string): (number | null)[] =>
  JSON.parse(`[${literal.slice(1, -1).replaceAll("NULL", "null")}]`);

export const toTextArray = (values: readonly (string | null)[]): string =>
  `{${values.map((value) => (value === null ? "null" : `"${value.replace(/["\\]/g, "\\$&")}"`)).join(",")}}`;

/** Settings of every session: no transaction waits, or is left open, for longer; also where a reader takes nothing. */
export const SESSION_SETTINGS = { lock_timeout: "15s", idle_in_transaction_session_timeout: "60s" };
/** The limit of a statement in all pools except those for short reads. */
export const STATEMENT_TIMEOUT = "60s";

/** The first word of `application_name`; the second one is of the process. */
const APPLICATION = "assay";

/** Whether a row of pg_stat_activity is a session of Assay on this database, of whatever process and version. */
export const isSession = (sql: Sql) =>
  sql`datname = current_database() and split_part(application_name, ' ', 1) = ${sql.unsafe(`'${APPLICATION}'`)}`;

/** Idle seconds after which TCP keep-alive probes begin, one about every second. */
const KEEP_ALIVE_SECONDS = 10;
/** PostgreSQL does the same, and so ends the sessions of a client whose machine is gone. Unix sockets ignore it. */
const SERVER_KEEP_ALIVE = {
  tcp_keepalives_idle: "30",
  tcp_keepalives_interval: "5",
  tcp_keepalives_count: "3",
  tcp_user_timeout: "45s",
};

/** `silenceTimes` are those of silence.ts unless a test gives shorter ones. */
export function connect(
  options: ConnectionOptions,
  poolSize: number,
  silenceTimes: Pick<SilenceOptions, "silenceMs" | "probeAfterMs"> = {},
): Database {
  const { process = crypto.randomUUID().slice(0, 8), ...place } = options;
  const given = "url" in place ? readDatabaseUrl(place.url) : { options: place };
  const open = (extra: postgres.Options<{}>, session: Record<string, string>): Sql => {
    const all: postgres.Options<{}> = {
      ...(given.options as postgres.Options<{}>),
      fetch_types: false,
      onnotice: () => {},
      connect_timeout: 10,
      keep_alive: KEEP_ALIVE_SECONDS,
      // An address or a proxy may lead to a standby, such as a leader that was replaced. Its reads are out of date: a key that was
      // revoked may be valid there.
      target_session_attrs: "primary",
      // The driver's own wait doubles with every connection that fails, up to 20 s: long after the database is back.
      backoff: (() => 0.2 + 0.2 * Math.random()) as never,
      types: {
        date: { to: 1184, from: [1184], serialize: (value: string) => value, parse: toIsoTime },
        bigint: { to: 20, from: [20], serialize: String, parse: Number },
      } as never,
      ...extra,
      connection: {
        application_name: `${APPLICATION} ${process}`,
        TimeZone: "UTC",
        ...SESSION_SETTINGS,
        ...SERVER_KEEP_ALIVE,
        // Compiling takes 50 ms where costs are estimated too high, which is longer than nearly every statement here.
        jit: "off",
        ...session,
      } as never,
    };
    return "url" in given ? postgres(given.url, all) : postgres(all);
  };
  // Pipelining would queue a fast statement behind a slow one. Without it postgres.js cannot begin a transaction, so
  // transactions, which have a connection to themselves anyway, get a pool of their own.
  const pipeline = (max_pipeline: number) => ({ max_pipeline }) as postgres.Options<{}>;
  const pools = new Set<Sql>();
  const openWatched: typeof open = (extra, session) => {
    const sql = open(extra, session);
    pools.add(sql);
    const end = sql.end;
    sql.end = (options) => end(options).finally(() => pools.delete(sql));
    return sql;
  };
  const pool = createWatchedPool({
    open: () =>
      openWatched({ max: poolSize, idle_timeout: 300, ...pipeline(0) }, { statement_timeout: STATEMENT_TIMEOUT }),
  });
  const transactions = createTransactions(
    {
      open: () =>
        openWatched({ max: poolSize, idle_timeout: 300, ...pipeline(4) }, { statement_timeout: STATEMENT_TIMEOUT }),
    },
    poolSize,
  );
  const ofFast = { statement_timeout: "5s", plan_cache_mode: "force_generic_plan" };
  const createFast = () => createWatchedPool({ open: () => openWatched({ max: 1 }, ofFast) });
  const [fast, keys, pages] = [createFast(), createFast(), createFast()];
  const watchedPools = { statements: pool, transactions, "fast reads": fast, keys, pages };
  const silence = createSilenceWatch({
    ...silenceTimes,
    sessions: () => [...pools].flatMap(sessionsOf),
    open: () => open({ max: 1 }, { statement_timeout: "3s" }),
  });
  const share = poolSize - Math.floor(poolSize / 4);
  const [within, withinPool] = [createOwnerGate(share), createOwnerGate(share)];
  let committedAt = -Infinity;
  const noteCommit = <T>(value: T): T => {
    committedAt = performance.now();
    return value;
  };
  return {
    pool: pool.sql,
    poolOf: (owner, isOver) => createOwnedPool(pool.sql, withinPool, owner, isOver),
    begin: (work, owner) => within(owner, () => transactions.begin((sql) => work(sql as Tx))).then(noteCommit),
    beginAhead: (work, owner) =>
      within(owner, () => transactions.beginAhead((sql, begun) => work(sql as Tx, begun))).then(noteCommit),
    committedAt: () => committedAt,
    fast: fast.sql,
    keys: keys.sql,
    pages: pages.sql,
    openListener: ({ onNotify, onClose }) =>
      openWatched({ max: 1, max_lifetime: null, onnotify: onNotify, onclose: onClose } as never, {}),
    openReader: () => openWatched({ max: 1, ...pipeline(4) }, { statement_timeout: STATEMENT_TIMEOUT }),
    load: () => ({
      statements: { size: poolSize, waitMs: pool.waitMs() },
      transactions: { size: poolSize, waitMs: transactions.waitMs(), ...transactions.load() },
      fast_reads: { size: 1, waitMs: fast.waitMs() },
      keys: { size: 1, waitMs: keys.waitMs() },
      pages: { size: 1, waitMs: pages.waitMs() },
    }),
    connection: { ...options, process },
    async watch() {
      const silent = await silence.look();
      const looks = Object.entries(watchedPools).map(async ([name, one]) => ((await one.look()) ? [name] : []));
      return { silent, replaced: (await Promise.all(looks)).flat() };
    },
    async close() {
      await Promise.all(Object.values(watchedPools).map((one) => one.close(5)));
    },
  };
}

/** Empty where it has none. */
const codeOf = (error: unknown): string => (error instanceof Error && "code" in error ? String(error.code) : "");

const OUTAGES = new Set([
  ..."CONNECTION_CLOSED CONNECTION_ENDED CONNECTION_DESTROYED CONNECT_TIMEOUT".split(" "),
  ..."ECONNREFUSED ECONNRESET ECONNABORTED EHOSTUNREACH ENETUNREACH ENETDOWN ENOENT EPIPE ETIMEDOUT".split(" "),
  "FailedToOpenSocket",
  // Shutdown, crash, starting up, too many connections, read-only, out of time, waited too long for a lock, deadlock.
  ..."57P01 57P02 57P03 53300 25006 57014 55P03 25P03 25P04 40P01".split(" "),
  // The disk is full, out of memory, the disk cannot be read or written, lost to another transaction.
  ..."53100 53200 58030 40001".split(" "),
]);

/** Errors that an item can cause by itself: the connection survives, and with a savepoint so does the transaction. */
const TIMEOUTS = new Set(["57014", "55P03", "40P01", "40001"]);

/** Whether a statement took too long, waited too long for a lock, or was ended for another transaction. */
export const isTimeout = (error: unknown): boolean => TIMEOUTS.has(codeOf(error));

/** Whether a statement waited too long for a lock. */
export const isLockTimeout = (error: unknown): boolean => codeOf(error) === "55P03";

/** The transaction is undone, and likely to come through when it is repeated. */
const CONFLICTS = new Set(["40P01", "40001"]);

/** Whether PostgreSQL ended a transaction for another one: as the victim of a deadlock, or of a serialization failure. */
export const isConflict = (error: unknown): boolean => CONFLICTS.has(codeOf(error));

/** How often a transaction is run that loses each time to another one, in all. */
const MAX_TRIES = 4;

/** Runs a transaction, and repeats one that PostgreSQL has ended for another one, unless nobody waits for it any more. */
export async function retryConflicts<T>(isOver: () => boolean, transact: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await transact();
    } catch (error) {
      if (!isConflict(error) || tries === MAX_TRIES || isOver()) throw error;
    }
  }
}

/** Whether what was to be stored is there already, where there may be only one. */
export const isTaken = (error: unknown): boolean => codeOf(error) === "23505";

/** Whether a transaction that failed with this error at its commit is known to be rolled back. */
export const isUndone = (error: unknown): boolean =>
  error instanceof RolledBack || (error instanceof postgres.PostgresError && error.severity === "ERROR");

/** Whether there is no room on a disk of the database. Statements that only read may get through all the same. */
export const isDiskFull = (error: unknown): boolean => codeOf(error) === "53100";

/** Whether something is larger than the configuration of PostgreSQL allows, such as its temporary files. */
export const isOverLimit = (error: unknown): boolean => codeOf(error) === "53400";

/** Whether an error says that the database is unavailable or too busy, and not that the statement is wrong. */
export const isUnavailable = (error: unknown): boolean => OUTAGES.has(codeOf(error));
