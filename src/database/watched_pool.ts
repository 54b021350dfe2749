/** A pool that is replaced if nothing gets through it although the database is reachable, because drivers have lost connections. */

import type { Sql } from "postgres";

/** A statement or transaction without effect, to see whether others would get through. */
type Probe = { sent: () => boolean; done: Promise<unknown> };

const statementProbe = (sql: Sql): Probe => {
  const query = sql`select 1`;
  // The driver notes here which connection it has given a query to.
  return { sent: () => (query as unknown as { state: object | null }).state !== null, done: query.execute() };
};

const transactionProbe = (sql: Sql): Probe => {
  let sent = false;
  const done = sql.begin(async (sql) => {
    sent = true;
    await sql`select 1`;
  });
  return { sent: () => sent, done };
};

export type WatchedPoolOptions = {
  open: () => Sql;
  /** How long a probe may wait to be sent. Default 10,000. */
  patienceMs?: number;
};

/** Longer than it takes to end connections that have fallen silent (silence.ts), which is the usual cause. */
const PROBE_TIMEOUT_MS = 10_000;
/** Maximum time for a new pool to prove that the database is reachable. */
const NEW_POOL_TIMEOUT_MS = 2_000;
/** Maximum time for queries of the replaced pool to finish; no statement takes longer. */
const RETIRED_SECONDS = 60;

type Watch = { probe: (sql: Sql) => Probe; isFull: () => boolean; onReplaced: () => void };

function watched({ open, patienceMs = PROBE_TIMEOUT_MS }: WatchedPoolOptions, { probe, isFull, onReplaced }: Watch) {
  let current = open();
  let probing: { probe: Probe; since: number } | undefined;
  let retired: Promise<void> | undefined;

  function begin(): void {
    const mine = { probe: probe(current), since: performance.now() };
    probing = mine;
    // A database that is away answers as well: with an error.
    const end = () => void (probing === mine && (probing = undefined));
    mine.probe.done.then(end, end);
  }

  async function replace(): Promise<boolean> {
    const next = open();
    const there = probe(next).done.then(
      () => true,
      () => false,
    );
    if (!(await Promise.race([there, Bun.sleep(NEW_POOL_TIMEOUT_MS).then(() => false)]))) {
      void next.end({ timeout: 0 });
      return false;
    }
    const before = current;
    current = next;
    probing = undefined;
    retired = before.end({ timeout: RETIRED_SECONDS }).finally(() => (retired = undefined));
    onReplaced();
    return true;
  }

  return {
    /** Stays the same, whichever pool it speaks through. */
    sql: new Proxy(current, {
      apply: (_, __, parameters) => Reflect.apply(current, undefined, parameters),
      get: (_, name) => Reflect.get(current, name),
    }),

    /**
     * Call this about every second. Replaces the pool if nothing could be sent through it in time, and returns whether it did. Only one
     * replacement at a time, so that a busy database is not flooded with connections.
     */
    async look(): Promise<boolean> {
      if (!probing) begin();
      else if (!retired && performance.now() - probing.since >= patienceMs && !probing.probe.sent() && !isFull())
        return await replace();
      return false;
    },

    /** Returns how long the current probe has been waiting to be sent. */
    waitMs: (): number => (probing && !probing.probe.sent() ? performance.now() - probing.since : 0),

    /** Queries in progress may take `seconds` to finish. */
    async close(seconds: number): Promise<void> {
      const others = retired && Promise.race([retired, Bun.sleep(seconds * 1000)]);
      await Promise.all([current.end({ timeout: seconds }), others]);
    },
  };
}

type WatchedPool = ReturnType<typeof watched>;

/** Creates a pool for single statements. */
export const createWatchedPool = (options: WatchedPoolOptions): WatchedPool =>
  watched(options, { probe: statementProbe, isFull: () => false, onReplaced: () => {} });

/** Longer than any statement takes: a full pool in which nothing has begun or ended since is not busy, it hangs. */
const PROGRESS_MS = 75_000;

type Work<T> = (sql: Sql, begun: Promise<unknown>) => Promise<T>;

/** `work` within a transaction of a pool, in which nothing is written unless `enter` allows it once it has begun. */
type Transact = <T>(pool: Sql, enter: () => boolean, work: Work<T>) => Promise<T | undefined>;

const transactInOrder: Transact = (pool, enter, work) =>
  pool.begin((sql) => (enter() ? work(sql as unknown as Sql, Promise.resolve()) : undefined)) as Promise<never>;

const transactAhead: Transact = async (pool, enter, work) => {
  const sql = await pool.reserve();
  try {
    const begun = sql
      .unsafe("begin; set local plan_cache_mode to force_generic_plan; set local enable_seqscan to off")
      .then(() => {
        if (!enter()) throw new Error("The transaction begins in another pool");
      });
    begun.catch(() => {});
    const value = await work(sql, begun).catch(async (error: unknown) => {
      // If the connection has died, the rollback fails as well, with a less useful error.
      await sql.unsafe("rollback").catch(() => {});
      throw error;
    });
    await begun;
    const { command } = await sql.unsafe("commit");
    if (command === "ROLLBACK") throw new RolledBack();
    return value;
  } finally {
    sql.release();
  }
};

/** Thrown if the commit was answered with a rollback. */
export class RolledBack extends Error {
  constructor() {
    super("The transaction was ended by a statement that nobody has waited for");
  }
}

/** Creates a pool for `size` concurrent transactions. Transactions that wait while it is replaced begin in the new one. */
export function createTransactions(options: WatchedPoolOptions, size: number) {
  const waiting = new Set<() => void>();
  let pool = { inside: 0, progressed: performance.now() };
  const watchedPool = watched(options, {
    probe: transactionProbe,
    isFull: () => pool.inside >= size && performance.now() - pool.progressed < PROGRESS_MS,
    onReplaced() {
      pool = { inside: 0, progressed: performance.now() };
      const again = [...waiting];
      waiting.clear();
      for (const start of again) start();
    },
  });

  function begin<T>(transact: Transact, work: Work<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      function start(): void {
        const mine = pool;
        let began = false;
        const isAbandoned = () => mine !== pool && !began;
        waiting.add(start);
        const count = (change: number) => {
          mine.inside += change;
          mine.progressed = performance.now();
        };
        const enter = () => {
          if (isAbandoned()) return false;
          began = true;
          waiting.delete(start);
          count(1);
          return true;
        };
        transact(watchedPool.sql, enter, work).then(
          (value) => {
            if (began) count(-1);
            if (!isAbandoned()) resolve(value as T);
          },
          (error) => {
            if (began) count(-1);
            if (isAbandoned()) return;
            waiting.delete(start);
            reject(error);
          },
        );
      }
      start();
    });
  }

  return {
    ...watchedPool,
    begin: <T>(work: (sql: Sql) => Promise<T>) => begin(transactInOrder, work),
    /** Like `begin`, but sends the first statements of `work` together with BEGIN. `work` may be called again if it has not `begun`. */
    beginAhead: <T>(work: Work<T>) => begin(transactAhead, work),
    load: () => ({ inUse: pool.inside, waiting: waiting.size }),
  };
}
