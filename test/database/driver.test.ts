/** What the patch of postgres.js mends: sessions that end under those who use them. Without it these tests hang. */

import { afterAll, describe, expect, test } from "bun:test";
import { createServer, type AddressInfo } from "node:net";
import postgres from "postgres";
import { createDatabase, until } from "../harness.ts";
import { createTunnel } from "../tunnel.ts";

const { connection, database } = await createDatabase();

/** A pool of one connection, and how to end its session from elsewhere. */
function createPool() {
  const closes: (() => void)[] = [];
  const sql = postgres({ ...connection, max: 1, fetch_types: false, onclose: () => closes.shift()?.() });
  afterAll(() => sql.end({ timeout: 0 }));
  return {
    sql,
    /** Resolves when the driver has seen the end. */
    async end(pid: number) {
      const { promise, resolve } = Promise.withResolvers<void>();
      closes.push(resolve);
      await database.pool`select pg_terminate_backend(${pid})`;
      await promise;
    },
  };
}

const codeOf = (error: unknown) => (error as { code?: string }).code;
const pidOf = async (sql: postgres.Sql) => (await sql<{ pid: number }[]>`select pg_backend_pid() as pid`)[0]!.pid;

test("a connection that is closed before it is ready is an error, and is not opened again at once", async () => {
  let count = 0;
  // As a proxy that has no server to pass a connection to.
  const closing = createServer((socket) => {
    count++;
    socket.on("error", () => {});
    socket.end();
  });
  await new Promise<void>((resolve) => closing.listen(0, "127.0.0.1", resolve));
  const { port } = closing.address() as AddressInfo;
  const sql = postgres({ host: "127.0.0.1", port, max: 1, fetch_types: false });
  expect(codeOf(await sql`select 1`.catch((error: unknown) => error))).toBe("CONNECTION_CLOSED");
  expect(codeOf(await sql.begin((tx) => tx`select 1`).catch((error: unknown) => error))).toBe("CONNECTION_CLOSED");
  expect(count).toBe(2);
  await sql.end({ timeout: 0 });
  closing.close();
});

describe("a session that ends", () => {
  test("under a transaction fails all that the transaction still asks, and the next transactions go on", async () => {
    const { sql, end } = createPool();
    const asked: unknown[] = [];
    const broken = sql.begin(async (tx) => {
      await end(await pidOf(tx as never));
      for (let i = 0; i < 3; i++) await tx`select ${i}::int as late`.catch((error) => asked.push(codeOf(error)));
      await tx.savepoint((inner) => inner`select 1`).catch((error) => asked.push(codeOf(error)));
      throw new Error("given up");
    });
    expect(codeOf(await broken.catch((error) => error))).toBe("CONNECTION_CLOSED");
    const next = Array.from({ length: 3 }, (_, i) => sql.begin((tx) => tx<{ n: number }[]>`select ${i}::int as n`));
    expect((await Promise.all(next)).map(([row]) => row!.n)).toEqual([0, 1, 2]);
    expect(asked).toEqual(Array(4).fill("CONNECTION_CLOSED"));
  });

  test("while a transaction has queries in line rejects every one of them", async () => {
    const { sql, end } = createPool();
    const broken = sql.begin(async (tx) => {
      const pid = await pidOf(tx as never);
      const line = Array.from({ length: 3 }, () => tx`select pg_sleep(60)`.catch(codeOf));
      const ended = end(pid);
      // Terminated in its sleep, the first one is told so by the server.
      expect(await Promise.all(line)).toEqual([expect.any(String), "CONNECTION_CLOSED", "CONNECTION_CLOSED"]);
      await ended;
    });
    await expect(broken).rejects.toThrow();
    expect(await sql`select 1 as one`).toEqual([{ one: 1 }] as never);
  });

  test("under a reserved connection fails what is asked of it, and its release gives nothing back", async () => {
    const { sql, end } = createPool();
    await sql`select 1`;
    const reserved = await sql.reserve();
    await end(await pidOf(reserved as never));
    expect(codeOf(await reserved`select 1`.catch((error) => error))).toBe("CONNECTION_CLOSED");
    reserved.release();
    expect(await sql`select 2 as two`).toEqual([{ two: 2 }] as never);
  });

  test("leaves nothing behind for the next one: neither its error nor what was to be sent", async () => {
    const { sql, end } = createPool();
    for (let round = 0; round < 20; round++) {
      const pid = await pidOf(sql);
      // A statement with parameters that is new to the session is described first: that answers an error with a message.
      const broken = sql.unsafe(`select pg_sleep($1::int), ${round}`, [60], { prepare: true }).catch(codeOf);
      await end(pid);
      expect(await broken).toEqual(expect.any(String));
      expect(await sql`select ${round}::int as round`).toEqual([{ round }] as never);
    }
  });
});

describe("a connection that is reserved", () => {
  test("may be the first of the pool, and is ended with the pool when it is released", async () => {
    const { sql } = createPool();
    const reserved = await sql.reserve();
    expect([...(await reserved`select 1 as one`)]).toEqual([{ one: 1 }]);
    const ended = sql.end();
    await reserved`select 1`;
    reserved.release();
    await ended;
  });

  test("and could not be opened leaves the next one to those who ask for it", async () => {
    let tries = 0;
    const password = () => (tries++ === 0 ? "wrong" : connection.password);
    const sql = postgres({ ...connection, password, max: 1, fetch_types: false } as never);
    afterAll(() => sql.end({ timeout: 0 }));
    expect(codeOf(await sql.reserve().catch((error) => error))).toBe("28P01");
    const second = await sql.reserve();
    expect([...(await second`select 2 as two`)]).toEqual([{ two: 2 }]);
    second.release();
    expect([...(await sql`select 3 as three`)]).toEqual([{ three: 3 }]);
  });

  test("is not given back in a failed transaction, nor while it is asked, and its handle has ended", async () => {
    const { sql } = createPool();
    const failed = await sql.reserve();
    const pid = await pidOf(failed as never);
    await failed`begin`;
    expect(codeOf(await failed`select 1 / 0`.catch((error) => error))).toBe("22012");
    failed.release();
    expect(codeOf(await failed`select 1`.catch((error) => error))).toBe("RELEASED");
    expect(await pidOf(sql)).not.toBe(pid);
    const busy = await sql.reserve();
    const asked = busy`select pg_sleep(60)`.catch(codeOf);
    await new Promise(setImmediate);
    busy.release();
    expect(await sql.begin((tx) => tx`select 1 as one`)).toEqual([{ one: 1 }] as never);
    expect(await asked).toBe("CONNECTION_DESTROYED");
  });

  test("past its lifetime ends when it is released, and its pool opens none when it has ended", async () => {
    const sql = postgres({ ...connection, max: 1, max_lifetime: 0.05, fetch_types: false });
    const reserved = await sql.reserve();
    const pid = await pidOf(reserved as never);
    await reserved`select pg_sleep(0.1)`;
    reserved.release();
    expect(await pidOf(sql)).not.toBe(pid);
    await sql.end();
    expect(codeOf(await sql.reserve().catch((error) => error))).toBe("CONNECTION_ENDED");
  });
});

test("a statement whose plan is stale is not asked again in a transaction that has failed with it", async () => {
  const { sql } = createPool();
  await sql`create table stale (n int)`;
  const insert = () => sql.unsafe("insert into stale values ($1)", [1], { prepare: true });
  await insert();
  const reserved = await sql.reserve();
  const again = () => reserved.unsafe("insert into stale values ($1)", [2], { prepare: true });
  await reserved.unsafe("deallocate all");
  await reserved.unsafe("begin");
  const [inserted, ended] = await Promise.all([again().catch(codeOf), reserved.unsafe("commit")]);
  expect([inserted, ended.command]).toEqual(["26000", "ROLLBACK"]);
  reserved.release();
  expect([...(await sql`select n from stale`)]).toEqual([{ n: 1 }]);
});

describe("a pool", () => {
  test("takes the connection that was used last, so that the others may fall idle", async () => {
    const sql = postgres({ ...connection, max: 3, fetch_types: false });
    afterAll(() => sql.end({ timeout: 0 }));
    const opened = await Promise.all([pidOf(sql), pidOf(sql), pidOf(sql)]);
    expect(new Set(opened).size).toBe(3);
    const pids = new Set<number>();
    for (let n = 0; n < 4; n++) {
      pids.add(await pidOf(sql));
      pids.add(await sql.begin((tx) => pidOf(tx as never)));
      const reserved = await sql.reserve();
      pids.add(await pidOf(reserved));
      reserved.release();
    }
    expect(pids.size).toBe(1);
    // And all of them again where there is work for all.
    expect(new Set(await Promise.all([pidOf(sql), pidOf(sql), pidOf(sql)]))).toEqual(new Set(opened));
  });

  test("gets back an idle connection whose other end has vanished without a word", async () => {
    const { options, stall } = await createTunnel(connection);
    let closed = 0;
    const { promise, resolve } = Promise.withResolvers<void>();
    const onclose = () => void (++closed === 2 && resolve());
    const sql = postgres({ ...connection, ...options, max: 2, fetch_types: false, idle_timeout: 0.05, onclose });
    afterAll(() => sql.end({ timeout: 0 }));
    expect(new Set(await Promise.all([pidOf(sql), pidOf(sql)])).size).toBe(2);
    stall();
    await promise;
    expect(new Set(await Promise.all([pidOf(sql), pidOf(sql)])).size).toBe(2);
  });
});

test("a transaction goes on after a COPY that was read more slowly than it arrived", async () => {
  const { sql } = createPool();
  const rows = await sql.begin(async (tx) => {
    const stream = await tx`copy (select repeat('x', 1000) from generate_series(1, 2000)) to stdout`.readable();
    let [count, before] = [0, -1];
    // Until nothing more arrives, because the socket is paused, or all has arrived.
    const isSettled = () => before === (before = stream.readableLength);
    for await (const _ of stream) if (count++ % 100 === 0) await until(isSettled);
    return { count, after: await tx`select 1 as one` };
  });
  expect(rows).toMatchObject({ count: 2000, after: [{ one: 1 }] });
});
