/** Connections whose other end says nothing more and does not close them, as after a fail-over. */

import { afterAll, describe, expect, test } from "bun:test";
import postgres from "postgres";
import { connect, isUnavailable } from "../../../src/database/connect.ts";
import { createSilenceWatch, type WatchedSession, sessionsOf } from "../../../src/database/silence.ts";
import { createDatabase, until } from "../../harness.ts";
import { createTunnel } from "../../tunnel.ts";

const { connection, database } = await createDatabase();
const TIMES = { silenceMs: 40, probeAfterMs: 10 };

type Options = { max?: number; open?: () => postgres.Sql };

/** A pool whose connections can fall silent, and what watches it. */
async function createPool({ max = 2, open }: Options = {}) {
  const tunnel = await createTunnel(connection);
  const openAnother = (more: object) => {
    const sql = postgres({ ...connection, ...more, fetch_types: false, backoff: () => 0.01 } as never);
    afterAll(() => sql.end({ timeout: 0 }));
    return sql;
  };
  let checks = 0;
  const sql = openAnother({ ...tunnel.options, max });
  const watch = createSilenceWatch({
    ...TIMES,
    sessions: () => sessionsOf(sql),
    open() {
      checks++;
      return open ? open() : openAnother({ ...tunnel.options, max: 1 });
    },
  });
  return { sql, tunnel, watch, checks: () => checks };
}

const pidOf = async (sql: postgres.Sql) => (await sql<{ pid: number }[]>`select pg_backend_pid() as pid`)[0]!.pid;

describe("connections that have fallen silent", () => {
  test("while they were idle are all closed, and what is asked next is answered", async () => {
    const { sql, tunnel, watch } = await createPool({ max: 3 });
    const before = await Promise.all([pidOf(sql), pidOf(sql), pidOf(sql)]);
    expect(new Set(before).size).toBe(3);
    expect(tunnel.silence()).toBe(3);
    await until(async () => (await watch.look()) > 0);
    for (const pid of await Promise.all([pidOf(sql), pidOf(sql), pidOf(sql)])) expect(before).not.toContain(pid);
  });

  test("fail what they owe as an outage, whether it never arrived or its answer was lost", async () => {
    const { sql, tunnel, watch } = await createPool();
    await Promise.all([pidOf(sql), pidOf(sql)]);
    const sent = sql`select pg_advisory_lock(11)`.catch((error) => error);
    await until(async () => (await database.pool`select from pg_locks where objid = 11 and granted`).length === 1);
    tunnel.silence();
    const owed = [sent, ...[1, 2].map(() => sql`select 1`.catch((error) => error))];
    await until(async () => {
      await watch.look();
      return await Promise.race([Promise.all(owed).then(() => true), Bun.sleep(5).then(() => false)]);
    });
    expect((await sql<{ one: number }[]>`select 1 as one`)[0]!.one).toBe(1);
  });

  test("give back the locks of their transactions", async () => {
    const { sql, tunnel, watch } = await createPool();
    await database.pool`create table locked as select 1 as n`;
    const { promise: go, resolve } = Promise.withResolvers<void>();
    const { promise: locked, resolve: hasLocked } = Promise.withResolvers<void>();
    const transaction = sql
      .begin(async (tx) => {
        await tx`update locked set n = 2`;
        hasLocked();
        await go;
        await tx`select 1`;
      })
      .catch((error) => error);
    await locked;
    tunnel.silence();
    resolve();
    await until(async () => (await watch.look()) > 0);
    expect(isUnavailable(await transaction)).toBe(true);
    await database.pool`update locked set n = 3`;
    expect((await database.pool<{ n: number }[]>`select n from locked`)[0]!.n).toBe(3);
  });

  test("while they waited for the lock of another of them are found as soon as that is gone", async () => {
    const { sql, tunnel, watch } = await createPool({ max: 3 });
    const { promise: go, resolve } = Promise.withResolvers<void>();
    const lock = (tx: postgres.TransactionSql) => tx`select pg_advisory_xact_lock(12)`;
    const first = sql.begin(async (tx) => {
      await lock(tx);
      await go;
      await tx`select 1`;
    });
    await until(async () => (await database.pool`select from pg_locks where objid = 12 and granted`).length === 1);
    const others = [1, 2].map(() => sql.begin(lock));
    const all = Promise.allSettled([first, ...others]);
    await until(async () => (await database.pool`select from pg_locks where objid = 12`).length === 3);
    tunnel.silence();
    resolve();
    await until(async () => (await watch.look()) === 3);
    for (const { status } of await all) expect(status).toBe("rejected");
    await until(async () => (await database.pool`select from pg_locks where objid = 12`).length === 0);
  });
});

/** A session that owes what is said, for so long; what is done to it is counted. */
function createSession(about: Partial<WatchedSession> & { silentMs: number }) {
  const { silentMs, ...more } = about;
  const session = { destroyed: false, probed: 0 };
  return Object.assign(session, {
    ...{ pid: 1, owes: "statement" as const, sentBytes: 0, isIdle: false },
    heardAt: performance.now() - silentMs,
    probe: () => void session.probed++,
    destroy: () => void (session.destroyed = true),
    ...more,
  });
}

/** Looks once at sessions that nobody has; `pid` is what the new connection takes for its own. */
async function lookAt(
  sessions: ReturnType<typeof createSession>[],
  { onOpen = () => {}, pid }: { onOpen?: () => void; pid?: number } = {},
) {
  const sql = postgres({ ...connection, max: 1, fetch_types: false } as never);
  if (pid !== undefined) Object.assign(sql, { sessions: () => [{ pid }] });
  const open = () => (onOpen(), sql);
  return await createSilenceWatch({ sessions: () => sessions.filter(({ destroyed }) => !destroyed), open }).look();
}

describe("a connection that says nothing for another reason is left alone:", () => {
  test("its statement is slow", async () => {
    const { sql, watch, checks } = await createPool();
    let slow: Promise<unknown> | undefined;
    await database.begin(async (tx) => {
      await tx`select pg_advisory_xact_lock(13)`;
      slow = sql`select pg_advisory_lock(13)`.execute();
      await until(async () => {
        expect(await watch.look()).toBe(0);
        return checks() >= 3;
      });
    });
    await slow;
  });

  test("no new connection is answered either", async () => {
    const { sql, tunnel, watch, checks } = await createPool({
      open: () => postgres({ ...connection, path: "/nowhere/.s.PGSQL.5432", max: 1 } as never),
    });
    const pid = await pidOf(sql);
    tunnel.silence();
    const asked = pidOf(sql);
    await until(async () => {
      expect(await watch.look()).toBe(0);
      return checks() >= 2;
    });
    tunnel.resume();
    expect(await asked).toBe(pid);
  });

  test("its answer came while PostgreSQL was being asked, for this process was busy", async () => {
    const session = createSession({ silentMs: 60_000 });
    expect(await lookAt([session], { onOpen: () => void (session.heardAt = performance.now()) })).toBe(0);
    expect(session.destroyed).toBe(false);
  });

  test("what was sent to it is large", async () => {
    const large = createSession({ silentMs: 8_000, sentBytes: 4_000_000 });
    expect(await lookAt([large])).toBe(0);
    const silent = createSession({ silentMs: 40_000, sentBytes: 4_000_000 });
    expect(await lookAt([silent])).toBe(1);
  });

  test("it is in a transaction that asks nothing", async () => {
    const session = createSession({ silentMs: 60_000, owes: null });
    expect(await lookAt([session])).toBe(0);
    expect([session.probed, session.destroyed]).toEqual([0, false]);
  });

  test("a connection pooler does not tell which backend it has, unless the silence is longer than any statement", async () => {
    const slow = createSession({ silentMs: 60_000 });
    const silent = createSession({ silentMs: 80_000 });
    const probed = createSession({ silentMs: 6_000, owes: "probe", isIdle: true });
    expect(await lookAt([slow, silent, probed], { pid: 0 })).toBe(2);
    expect([slow, silent, probed].map(({ destroyed }) => destroyed)).toEqual([false, true, true]);
  });
});

test("a session of another server that has the same process id is neither asked nor ended", async () => {
  const younger = postgres({ ...connection, max: 1, fetch_types: false } as never);
  afterAll(() => younger.end({ timeout: 0 }));
  const pid = await pidOf(younger);
  const session = createSession({ silentMs: 3_600_000, pid });
  expect(await lookAt([session])).toBe(1);
  expect(await pidOf(younger)).toBe(pid);
});

test("an idle connection is probed without being used, in a transaction it is not", async () => {
  const { sql, watch } = await createPool({ max: 1 });
  await pidOf(sql);
  const [session] = sessionsOf(sql);
  const first = session!.heardAt;
  await until(async () => {
    expect(await watch.look()).toBe(0);
    return session!.owes === null && session!.heardAt > first;
  });
  // Asked while the answer to a probe is on its way, a statement gets its own.
  for (let n = 0; n < 20; n++) {
    session!.probe();
    expect((await sql<{ n: number }[]>`select ${n}::int as n`)[0]!.n).toBe(n);
  }
  await sql.begin(async (tx) => {
    await tx`select 1`;
    expect([session!.isIdle, session!.owes]).toEqual([false, null]);
  });
});

describe("a database", () => {
  test("watches every connection that it opens: none hangs, and what is asked afterwards is answered", async () => {
    const tunnel = await createTunnel(connection);
    const silent = connect({ ...connection, ...tunnel.options }, 2, TIMES);
    afterAll(() => silent.close());
    let listenerClosed = 0;
    const listener = silent.openListener({ onNotify() {}, onClose: () => void listenerClosed++ });
    afterAll(() => listener.end({ timeout: 0 }));
    const { pool, begin, beginAhead, fast, keys, pages } = silent;
    const ahead = (sql: postgres.Sql, begun: Promise<unknown>) => begun.then(() => pidOf(sql));
    /** The backends of all its connections. */
    const ask = async () => {
      const asked = [pool, pool, fast, keys, pages, listener].map(pidOf);
      asked.push(begin(pidOf), begin(pidOf), beginAhead(ahead));
      const failed = (await Promise.allSettled(asked)).flatMap((one) =>
        one.status === "rejected" ? [one.reason] : [],
      );
      for (const error of failed) expect(isUnavailable(error)).toBe(true);
      return failed.length === 0 ? await Promise.all(asked) : undefined;
    };
    // Two pools of two, three pipelined connections, and the listener.
    let before: number[] = [];
    await until(async () => new Set((before = (await ask())!)).size === 8);
    expect(tunnel.silence()).toBe(8);
    const hanging = ask();
    let isAnswered = false;
    void hanging.then(() => (isAnswered = true));
    await until(async () => (await silent.watch(), isAnswered));
    expect(await hanging).toBeUndefined();
    expect(listenerClosed).toBe(1);
    await until(async () => {
      const after = await ask();
      return after !== undefined && !after.some((pid) => before.includes(pid));
    });
  });

  test("closes in time while its connections are silent", async () => {
    const tunnel = await createTunnel(connection);
    const silent = connect({ ...connection, ...tunnel.options }, 2);
    await Promise.all([silent.pool`select 1`, silent.begin((sql) => sql`select 1`), silent.fast`select 1`]);
    tunnel.silence();
    const asked = [silent.pool`select 1`, silent.begin((sql) => sql`select 1`), silent.fast`select 1`];
    const failed = Promise.allSettled(asked.map((one) => one.then()));
    await silent.close();
    for (const result of await failed) expect(isUnavailable((result as PromiseRejectedResult).reason)).toBe(true);
  });
});
