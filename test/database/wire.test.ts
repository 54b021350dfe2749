/** Statements that go to PostgreSQL without the driver, and what they do when there is no way there. */

import { afterAll, describe, expect, test } from "bun:test";
import { createServer } from "node:net";
import postgres from "postgres";
import { isUnavailable } from "../../src/database/connect.ts";
import { createSilenceWatch } from "../../src/database/silence.ts";
import { DriverSocket } from "../../src/database/socket.ts";
import { attachWire, readTexts } from "../../src/database/wire.ts";
import { createDatabase, until } from "../harness.ts";
import { createTunnel } from "../tunnel.ts";

const { connection, database } = await createDatabase();

type Options = { driver?: postgres.Options<{}>; session?: postgres.Options<{}> };

/** A pool with a wire of its own; `session` is how the wire reaches PostgreSQL, `driver` how the pool does. */
function createWire({ driver = {}, session = driver }: Options = {}) {
  const base = { ...connection, max: 1, fetch_types: false };
  const sql = postgres({ ...base, ...driver } as never);
  const sockets: DriverSocket[] = [];
  const wire = attachWire(sql, {
    open: (create) =>
      postgres({
        ...base,
        ...session,
        max_lifetime: null,
        socket: (options: postgres.ParsedOptions) => {
          const socket = create(options);
          sockets.push(socket);
          return socket;
        },
      } as never),
  });
  afterAll(() => Promise.all([wire.close(), sql.end({ timeout: 0 })]));
  const ask = (text: string, ...parameters: string[]) => readTexts(sql, text, parameters);
  const pid = async () => (await ask("select pg_backend_pid()::text"))[0]![0];
  return {
    sql,
    wire,
    sockets,
    ask,
    /** Once it answers itself: the session of the pool is another one. */
    async isThere(): Promise<void> {
      const own = String((await sql`select pg_backend_pid() as pid`)[0]!["pid"]);
      await until(async () => (await pid()) !== own);
    },
    pid,
  };
}

const codeOf = (error: unknown) => (error as { code?: string }).code;

test("statements have names that no other session has: a pooler may give one session to several", async () => {
  const wires = [createWire(), createWire()];
  const names: string[] = [];
  for (const { sql, ask, isThere } of wires) {
    await isThere();
    const query = "select name from pg_prepared_statements where name <> $1";
    names.push(...(await ask(query, "")).map(([name]) => name!));
    await sql`select ${1}::int as one`;
    names.push(...(await sql`select name from pg_prepared_statements`).map(({ name }) => name as string));
  }
  expect(names.length).toBeGreaterThanOrEqual(4);
  expect(new Set(names).size).toBe(names.length);
  for (const name of names) expect(name.length).toBeGreaterThanOrEqual(8);
});

describe("a wire", () => {
  for (const way of ["a Unix socket", "TCP"])
    test(`over ${way} answers each with its own rows, in any size`, async () => {
      const { ask, isThere } = createWire(way === "TCP" ? { driver: (await createTunnel(connection)).options } : {});
      await isThere();
      const numbers = Array.from({ length: 300 }, (_, n) => String(n));
      const answers = numbers.map((n) => ask("select $1::text, null, 'é' || $2 from generate_series(1, 2)", n, "ß\n€"));
      expect(await Promise.all(answers)).toEqual(numbers.map((n) => Array(2).fill([n, null, "éß\n€"])));
      // More than either side's buffers hold, in both directions at once.
      const large = Array.from({ length: 8 }, (_, n) => String.fromCharCode(97 + n).repeat(2_500_000) + "€");
      const echoes = await Promise.all(large.map((text) => ask("select $1::text, md5($1)", text)));
      for (const [n, text] of large.entries())
        expect(echoes[n]![0]!.map((value) => Bun.hash(value!))).toEqual(
          [text, new Bun.CryptoHasher("md5").update(text).digest("hex")].map((value) => Bun.hash(value)),
        );
      expect(await ask("select 1 where false")).toEqual([]);
    });

  test("rejects what fails with PostgreSQL's error, and nothing else", async () => {
    const { ask, isThere } = createWire();
    await isThere();
    const failing = () => ask("select 1 / $1::int", "0").catch((error) => error);
    const asked = [ask("select 'before'"), failing(), ask("select n from later"), failing(), ask("select 'after'")];
    const [before, first, absent, second, after] = await Promise.allSettled(asked);
    expect([before, after].map((result) => (result as { value: unknown }).value)).toEqual([[["before"]], [["after"]]]);
    for (const result of [first, second]) {
      const { value } = result as unknown as { value: postgres.PostgresError };
      expect([value.name, value.code, value.message]).toEqual(["PostgresError", "22012", "division by zero"]);
    }
    expect(codeOf((absent as PromiseRejectedResult).reason)).toBe("42P01");
    await database.pool`create table later as select 'there' as n`;
    expect(await ask("select n from later")).toEqual([["there"]]);
  });

  test("prepares a statement anew whose table has changed", async () => {
    const { ask, isThere } = createWire();
    await isThere();
    await database.pool`create table changing as select 'a' as one`;
    expect(await ask("select * from changing")).toEqual([["a"]]);
    await database.pool`alter table changing add two text default 'b'`;
    const all = [1, 2, 3].map(() => ask("select * from changing"));
    expect(await Promise.all(all)).toEqual(Array(3).fill([["a", "b"]]));
  });

  test("whose session ends rejects all that it owes as an outage, and is there again", async () => {
    const { ask, isThere, pid } = createWire();
    await isThere();
    const before = (await pid())!;
    const owed = [ask("select pg_sleep(60)::text"), ask("select 1::text"), ask("select 2::text")];
    const ended = Promise.allSettled(owed);
    await until(async () => {
      await database.pool`select pg_terminate_backend(${before}::int)`;
      return (await Promise.race([ended, Bun.sleep(5)])) !== undefined;
    });
    for (const result of await ended) {
      expect(result.status).toBe("rejected");
      expect(isUnavailable((result as PromiseRejectedResult).reason)).toBe(true);
    }
    // Meanwhile the driver answers.
    expect(await ask("select 3::text")).toEqual([["3"]]);
    await isThere();
    expect(await pid()).not.toBe(before);
  });

  test("that is reset in the middle of large writes rejects them as an outage", async () => {
    const tunnel = await createTunnel(connection);
    const { ask, isThere } = createWire({ session: tunnel.options });
    await isThere();
    tunnel.stall();
    const owed = Promise.allSettled(Array.from({ length: 4 }, () => ask("select md5($1)", "x".repeat(4_000_000))));
    tunnel.reset();
    for (const result of await owed) expect(isUnavailable((result as PromiseRejectedResult).reason)).toBe(true);
  });

  test("that is probed gives every statement its own answer, before and behind the probe", async () => {
    const { ask, isThere, wire } = createWire();
    await isThere();
    const [session] = wire.sessions();
    for (let n = 0; n < 20; n++) {
      session!.probe();
      expect([session!.owes, session!.isIdle]).toEqual(["probe", true]);
      const answers = [ask("select $1::text", `a${n}`), ask("select $1::text", `b${n}`)];
      session!.probe();
      expect([session!.owes, session!.isIdle]).toEqual(["statement", false]);
      expect(await Promise.all(answers)).toEqual([[[`a${n}`]], [[`b${n}`]]]);
      expect(session!.owes).toBeNull();
    }
    session!.probe();
    await until(() => session!.owes === null);
  });

  test("that has fallen silent fails what it owes as an outage, and is there again", async () => {
    const tunnel = await createTunnel(connection);
    const { ask, isThere, wire, sockets, pid } = createWire({ session: tunnel.options });
    await isThere();
    const before = await pid();
    const open = () => postgres({ ...connection, max: 1, fetch_types: false } as never);
    const watch = createSilenceWatch({ sessions: wire.sessions, open, silenceMs: 30, probeAfterMs: 10 });
    tunnel.silence();
    const owed = ask("select 1").catch((error) => error);
    await until(async () => (await watch.look()) === 1);
    expect(sockets.at(-1)!.readyState).toBe("closed");
    expect(isUnavailable(await owed)).toBe(true);
    await isThere();
    expect(await pid()).not.toBe(before);
  });

  test("that cannot be opened leaves everything to the driver", async () => {
    // Accepts, and never says a word.
    const mute = createServer(() => {});
    await new Promise<void>((resolve) => mute.listen(0, "127.0.0.1", resolve));
    afterAll(() => void mute.close());
    const { port } = mute.address() as { port: number };
    for (const session of [{ host: "127.0.0.1", port, connect_timeout: 0.05 }, { path: "/nowhere/.s.PGSQL.5432" }]) {
      const { ask, sockets } = createWire({ driver: {}, session });
      await until(async () => {
        expect(await ask("select $1::text", "still")).toEqual([["still"]]);
        return sockets[0]?.readyState === "closed";
      });
    }
  });

  test("is not for what is encrypted, nor for one of several hosts", async () => {
    const { host, port } = connection as { host: string; port: number };
    for (const session of [{ ssl: "prefer" as const }, { host: [host, host], port: [port, port] }]) {
      const { ask, sockets } = createWire({ driver: {}, session: session as never });
      for (let time = 0; time < 20; time++) expect(await ask("select 'driver'")).toEqual([["driver"]]);
      expect(sockets).toEqual([]);
    }
  });

  test("is closed with nothing left behind, also while it is being opened", async () => {
    const opening = createWire();
    await opening.ask("select 1");
    await opening.wire.close();
    const open = createWire();
    await open.isThere();
    await open.wire.close();
    for (const { sockets } of [opening, open]) expect(sockets.map((socket) => socket.readyState)).toEqual(["closed"]);
    expect(await open.ask("select 'driver'")).toEqual([["driver"]]);
    expect(open.sockets).toHaveLength(1);
  });
});

describe("a socket", () => {
  test("that cannot connect says why as node:net does, and closes once", async () => {
    const free = createServer();
    await new Promise<void>((resolve) => free.listen(0, "127.0.0.1", resolve));
    const { port } = free.address() as { port: number };
    await new Promise((resolve) => free.close(resolve));
    const addresses = [{ unix: "/nowhere/.s.PGSQL.5432" }, { hostname: "127.0.0.1", port }];
    const codes = addresses.map(async (address) => {
      const socket = new DriverSocket(address);
      expect(socket.write(Buffer.from("hello"))).toBe(false);
      const said: unknown[] = [];
      socket.on("error", (error) => said.push(codeOf(error)));
      socket.on("close", (hadError) => said.push(hadError));
      await until(() => socket.readyState === "closed");
      return said;
    });
    expect(await Promise.all(codes)).toEqual([
      ["ENOENT", true],
      ["ECONNREFUSED", true],
    ]);
  });
});
