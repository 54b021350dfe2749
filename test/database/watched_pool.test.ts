import { afterAll, describe, expect, test } from "bun:test";
import postgres from "postgres";
import { createWatchedPool, createTransactions, type WatchedPoolOptions } from "../../src/database/watched_pool.ts";
import { writeToDisk } from "../../src/store/instance.ts";
import { createReadiness } from "../../src/store/readiness.ts";
import { createDatabase, until } from "../harness.ts";
import { createTunnel } from "../tunnel.ts";

const { connection, database } = await createDatabase();
type Begin = typeof database.begin;
const opened: postgres.Sql[] = [];
// Nobody waits for them: what hangs ends late.
afterAll(() => opened.forEach((sql) => void sql.end({ timeout: 0 })));

/** What opens one pool after the other: `hung` never gets a connection, `away` is refused every one. */
function pools(...kinds: ("hung" | "away" | "sound")[]): WatchedPoolOptions & { opened: () => number } {
  let count = 0;
  return {
    patienceMs: 20,
    opened: () => count,
    open() {
      const kind = kinds[count++] ?? "sound";
      const more =
        kind === "hung"
          ? { socket: () => new Promise(() => {}) }
          : kind === "away"
            ? { path: "/nowhere/.s.PGSQL.5432" }
            : {};
      const sql = postgres({ ...connection, ...more, max: 2, fetch_types: false } as never);
      opened.push(sql);
      return sql;
    },
  };
}

const one = (sql: postgres.Sql) => sql<{ one: number }[]>`select 1 as one`;

describe("a lane through which nothing gets", () => {
  test("is replaced once, and what is asked of it from then on is answered", async () => {
    const options = pools("hung", "sound");
    const lane = createWatchedPool(options);
    await until(() => lane.look());
    expect(await one(lane.sql)).toEqual([{ one: 1 }] as never);
    expect(await lane.look()).toBe(false);
    expect(options.opened()).toBe(2);
  });

  test("lets the transactions that wait begin in the new pool, each of them once", async () => {
    const options = pools("hung", "sound");
    const { begin, look } = createTransactions(options, 2);
    const began: number[] = [];
    const waiting = [1, 2, 3].map((n) => begin(async (sql) => (began.push(n), (await one(sql))[0]!.one + n)));
    await until(() => look());
    expect(await Promise.all(waiting)).toEqual([2, 3, 4]);
    expect(began.toSorted()).toEqual([1, 2, 3]);
  });

  test("stays while the database is away: another pool would get through as little", async () => {
    const options = pools("hung", "away", "away");
    const lane = createWatchedPool(options);
    await until(async () => {
      expect(await lane.look()).toBe(false);
      return options.opened() > 2;
    });
  });
});

test("a pool that is full of transactions is busy, and is not replaced", async () => {
  const options = pools("sound");
  const { begin, look } = createTransactions(options, 2);
  const { promise: end, resolve } = Promise.withResolvers<void>();
  let inside = 0;
  const busy = [1, 2].map(() => begin(async () => (inside++, await end)));
  await until(() => inside === 2);
  const waiting = begin(one);
  const since = performance.now();
  await until(async () => {
    expect(await look()).toBe(false);
    return performance.now() - since > 5 * options.patienceMs!;
  });
  resolve();
  await Promise.all(busy);
  expect(await waiting).toEqual([{ one: 1 }] as never);
  expect(options.opened()).toBe(1);
});

test("a failure of a transaction reaches who began it, before and after its beginning", async () => {
  const { begin } = createTransactions(pools("sound"), 2);
  await expect(begin(async () => Promise.reject(new Error("mine")))).rejects.toThrow("mine");
  await expect(createTransactions(pools("away"), 2).begin(one)).rejects.toThrow();
});

describe("a transaction that begins ahead", () => {
  const { beginAhead } = createTransactions(pools("sound"), 1);
  const add = (sql: postgres.Sql, n: number) => sql`insert into ahead values (${n})`;
  const stored = async () => (await database.pool<{ n: number }[]>`select n from ahead order by n`).map(({ n }) => n);

  test("is stored as a whole or not at all, also where nobody has waited for what failed", async () => {
    await database.pool`create table ahead (n int primary key)`;
    await beginAhead(async (sql, begun) => {
      await begun;
      await Promise.all([add(sql, 1), add(sql, 2)]);
    });
    const failing = [
      beginAhead(async (sql, begun) => {
        await begun;
        await add(sql, 3);
        throw new Error("mine");
      }),
      beginAhead(async (sql, begun) => {
        await begun;
        await Promise.all([add(sql, 4), add(sql, 1)]);
      }),
      beginAhead(async (sql, begun) => {
        await begun;
        await add(sql, 5);
        add(sql, 1).catch(() => {});
      }),
    ];
    const [mine, known, unheard] = (await Promise.allSettled(failing)) as PromiseRejectedResult[];
    expect(mine!.reason.message).toBe("mine");
    expect(known!.reason.code).toBe("23505");
    expect(unheard!.reason.message).toContain("nobody has waited for");
    expect(await stored()).toEqual([1, 2]);
  });

  test("fails with its connection, and leaves nothing behind", async () => {
    const broken = beginAhead(async (sql, begun) => {
      await begun;
      const [row] = await sql<{ pid: number }[]>`select pg_backend_pid() as pid`;
      await database.pool`select pg_terminate_backend(${row!.pid})`;
      await add(sql, 6);
    });
    await expect(broken).rejects.toThrow();
    expect(await beginAhead((sql) => one(sql))).toEqual([{ one: 1 }] as never);
    expect(await stored()).toEqual([1, 2]);
  });

  test("waits for its turn, and begins in the new pool where one is replaced", async () => {
    const { beginAhead, look } = createTransactions(pools("hung", "sound"), 2);
    const waiting = [1, 2, 3].map((n) => beginAhead(async (sql) => (await one(sql))[0]!.one + n));
    await until(() => look());
    expect(await Promise.all(waiting)).toEqual([2, 3, 4]);
  });
});

test("transactions that wait for connections which have frozen begin in the new pool, each of them once", async () => {
  const tunnel = await createTunnel(connection);
  let count = 0;
  const open = () => {
    const address = count++ === 0 ? tunnel.options : {};
    const sql = postgres({ ...connection, ...address, max: 2, fetch_types: false });
    opened.push(sql);
    return sql;
  };
  const { begin, beginAhead, look } = createTransactions({ open, patienceMs: 20 }, 2);
  await Promise.all([1, 2].map(() => begin(one)));
  tunnel.stall();
  const began: number[] = [];
  const waiting = [1, 2, 3].map((n) =>
    beginAhead(async (sql, begun) => {
      await begun;
      began.push(n);
      return (await one(sql))[0]!.one + n;
    }),
  );
  await until(() => look());
  expect(await Promise.all(waiting)).toEqual([2, 3, 4]);
  expect(began.toSorted()).toEqual([1, 2, 3]);
});

describe("readiness", () => {
  const { fast, committedAt } = database;

  test("is there when reads and writes get through", async () => {
    expect(await createReadiness(database, 1)()).toBe(true);
  });

  test("is not there with a schema that is older, where nothing may be written, and where writes fail", async () => {
    expect(await createReadiness(database, 10_000)()).toBe(false);
    const sql = postgres({ ...connection, connection: { default_transaction_read_only: true } } as never);
    opened.push(sql);
    const readOnly = createTransactions({ open: () => sql }, 1);
    expect(await createReadiness({ fast, committedAt, begin: readOnly.begin as Begin }, 1)()).toBe(false);
    const away = createTransactions(pools("away"), 1);
    expect(await createReadiness({ fast, committedAt, begin: away.begin as Begin }, 1)()).toBe(false);
  });

  test("is there behind so many writes that the look has to wait, as long as they are committed", async () => {
    const waits = (() => new Promise(() => {})) as Begin;
    let commits = 0;
    const isBusy = createReadiness({ fast, begin: waits, committedAt: () => (commits++, performance.now()) }, 1);
    const isStuck = createReadiness({ fast, begin: waits, committedAt: () => -Infinity }, 1);
    expect([...(await Promise.all([isBusy(), isStuck()])), commits]).toEqual([true, false, 1]);
  });

  test("is not there while the disk is full, which is told once, and is there again when there is room", async () => {
    const told: unknown[] = [];
    let isFull = true;
    const full = Object.assign(new Error("could not extend file"), { code: "53100" });
    const begin = ((work) =>
      database.begin((sql) =>
        work(
          new Proxy(sql, {
            apply: (query, _, parameters) =>
              isFull && String(parameters[0]).includes("generate_series")
                ? Promise.reject(full)
                : Reflect.apply(query, undefined, parameters),
          }),
        ),
      )) as Begin;
    const isReady = createReadiness({ fast, committedAt, begin }, 1, (error) => told.push(error));
    expect([await isReady(), await isReady(), told]).toEqual([false, false, [full]]);
    isFull = false;
    expect(await isReady()).toBe(true);
  });

  test("finds out by writing more than what PostgreSQL keeps in memory", async () => {
    const write = database.begin(async (sql) => {
      await sql`set local temp_file_limit = '900kB'`;
      await writeToDisk(sql);
    });
    expect(((await write.catch((error) => error)) as { code?: string } | undefined)?.code).toBe("53400");
    // Whoever has set such a limit has a database that is ready all the same.
    const limited = ((work) =>
      database.begin(async (sql) => {
        await sql`set local temp_file_limit = '900kB'`;
        return await work(sql);
      })) as Begin;
    expect(await createReadiness({ fast, committedAt, begin: limited }, 1)()).toBe(true);
  });

  test("is looked at once for all who ask at the same time", async () => {
    let looks = 0;
    const begin: typeof database.begin = (work) => (looks++, database.begin(work));
    const isReady = createReadiness({ fast, committedAt, begin }, 1);
    expect(await Promise.all([isReady(), isReady(), isReady()])).toEqual([true, true, true]);
    expect(looks).toBe(1);
  });
});
