/** The built-in PostgreSQL with real server processes; every test has its own directory. */
import { expect, setDefaultTimeout, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import { openHome } from "../../../src/database/postgres/home.ts";
import { guardProcess } from "../../places.ts";
import { postmaster, query, useClusters } from "./clusters.ts";

setDefaultTimeout(30_000);
const isRoot = process.getuid?.() === 0;
const { start, emptyPlace, madePlace, seed, startElsewhere } = useClusters();

test("starts on an empty directory, answers, and tells nobody the password", async () => {
  const directory = emptyPlace();
  let commands = "";
  const starting = start(directory);
  for (let done = false; !done;) {
    void starting.finally(() => (done = true));
    await Bun.sleep(20);
    commands += await new Response(Bun.spawn(["ps", "-axww", "-o", "args"], { stderr: "ignore" }).stdout).text();
  }
  const cluster = await starting;
  const { password } = cluster.connection;
  expect(await query(cluster, "select current_database() as name, 1 + 1 as two")).toEqual([{ name: "assay", two: 2 }]);
  const shown = await query(
    cluster,
    "select name, setting from pg_settings where name in ('listen_addresses', 'fsync')",
  );
  expect(shown).toEqual([
    { name: "fsync", setting: "off" },
    { name: "listen_addresses", setting: "" },
  ]);
  expect(password.length).toBeGreaterThan(26);
  expect(readFileSync(join(directory, "password"), "utf8")).toBe(password);
  expect(statSync(join(directory, "password")).mode & 0o777).toBe(0o600);
  expect(statSync(cluster.connection.host).mode & 0o777).toBe(0o700);
  expect(commands).toContain("--pwfile=");
  expect(commands).not.toContain(password);
  expect(readFileSync(join(directory, "server.log"), "utf8")).not.toContain(password);
  await cluster.stop();
});

test("writes commits to the disk", async () => {
  const cluster = await start(madePlace(), true);
  const settings = await query(
    cluster,
    "select name, setting from pg_settings where name in ('fsync', 'full_page_writes', 'synchronous_commit') order by name",
  );
  expect(settings).toEqual(
    ["fsync", "full_page_writes", "synchronous_commit"].map((name) => ({ name, setting: "on" })),
  );
  await cluster.stop();
});

test("refuses a wrong password", async () => {
  const cluster = await start(seed());
  const wrong = { ...cluster, connection: { ...cluster.connection, password: "wrong" } };
  await expect(query(wrong, "select 1")).rejects.toThrow("password authentication failed");
  await cluster.stop();
});

test("keeps its data over stop and start", async () => {
  const directory = madePlace();
  const first = await start(directory);
  await query(first, "create table kept as select 42 as answer");
  await first.stop();
  expect(postmaster(directory)).toBeUndefined();
  const second = await start(directory);
  expect(await query(second, "table kept")).toEqual([{ answer: 42 }]);
  await second.stop();
  const socket = expect.stringMatching(/^socket-/);
  expect(readdirSync(directory).sort()).toEqual([
    "cluster",
    "password",
    "server.log",
    socket,
    "start.lock",
    "use.lock",
    "used-by.json",
  ]);
});

test("started twice it adopts the running server, and only the last stop stops it", async () => {
  const directory = madePlace();
  const first = await start(directory);
  const second = await start(directory);
  expect(second.connection).toEqual(first.connection);
  const pid = postmaster(directory)?.pid;
  await first.stop();
  await first.stop();
  expect(postmaster(directory)?.pid).toBe(pid!);
  expect(await query(second, "select 1 as one")).toEqual([{ one: 1 }]);
  await second.stop();
  expect(postmaster(directory)).toBeUndefined();
});

test("adopts the server of a process group that was killed", async () => {
  const directory = madePlace();
  const elsewhere = startElsewhere(directory);
  await elsewhere.started();
  const pid = postmaster(directory)?.pid;
  await elsewhere.kill();
  const cluster = await start(directory);
  expect(postmaster(directory)?.pid).toBe(pid!);
  await cluster.stop();
  expect(postmaster(directory)).toBeUndefined();
});

test("is stopped although a process was killed whose statement still ran", async () => {
  const directory = madePlace();
  const cluster = await start(directory);
  const script = `
    const { default: postgres } = await import("postgres");
    await postgres(${JSON.stringify({ ...cluster.connection, max: 1 })})\`select pg_sleep(600)\`;`;
  const child = Bun.spawn([process.execPath, "-e", script], { cwd: import.meta.dir });
  guardProcess(child);
  const running = "select from pg_stat_activity where query like '%pg_sleep(600)%' and pid <> pg_backend_pid()";
  while ((await query(cluster, running)).length === 0);
  child.kill("SIGKILL");
  await child.exited;
  await cluster.stop();
  expect(postmaster(directory)).toBeUndefined();
});

test("recovers after its server was killed", async () => {
  const directory = madePlace();
  const first = await start(directory, true);
  await query(first, "create table kept as select 42 as answer");
  process.kill(postmaster(directory)!.pid, "SIGKILL");
  const second = await start(directory);
  expect(await query(second, "table kept")).toEqual([{ answer: 42 }]);
  await first.stop();
  expect(await query(second, "table kept")).toEqual([{ answer: 42 }]);
  await second.stop();
});

test("is adopted and stopped while it recovers from the crash of one of its processes", async () => {
  const directory = madePlace();
  const first = await start(directory);
  const connect = () => postgres({ ...first.connection, max: 1, onnotice: () => {} });
  /** Until the recovery has begun, which cuts all connections. */
  async function crash(): Promise<void> {
    const [victim, witness] = [connect(), connect()];
    const [backend] = await victim<{ pid: number }[]>`select pg_backend_pid() as pid`;
    await witness`select`;
    const cut = witness`select pg_sleep(60)`.then(
      () => false,
      () => true,
    );
    process.kill(backend!.pid, "SIGKILL");
    expect(await cut).toBe(true);
    await Promise.all([victim, witness].map((sql) => sql.end({ timeout: 0 })));
  }
  const pid = postmaster(directory)?.pid;
  await crash();
  const second = await start(directory);
  expect(postmaster(directory)?.pid).toBe(pid!);
  expect(await query(second, "select 1 as one")).toEqual([{ one: 1 }]);
  await crash();
  await second.stop();
  await first.stop();
  expect(postmaster(directory)).toBeUndefined();
});

test("revives a server that was killed, once and where it was, for everybody who knew it", async () => {
  const directory = madePlace();
  const first = await start(directory, true);
  const second = await start(directory);
  await query(first, "create table kept as select 42 as answer");
  await first.revive();
  const killed = postmaster(directory)!.pid;
  process.kill(killed, "SIGKILL");
  while (postmaster(directory)) await Bun.sleep(1);
  await Promise.all([first.revive(), second.revive()]);
  expect(postmaster(directory)?.pid).not.toBe(killed);
  expect(await query(first, "table kept")).toEqual([{ answer: 42 }]);
  expect(await query(second, "table kept")).toEqual([{ answer: 42 }]);
  await first.stop();
  await second.stop();
  expect(postmaster(directory)).toBeUndefined();
  await second.revive();
  expect(postmaster(directory)).toBeUndefined();
});

test("revives a server that somebody else has told to stop, and that waits for its clients", async () => {
  const directory = madePlace();
  const cluster = await start(directory);
  const told = postmaster(directory)!.pid;
  process.kill(told, "SIGTERM");
  while (postmaster(directory)?.status !== "stopping") await Bun.sleep(1);
  await cluster.revive();
  expect(postmaster(directory)?.pid).toBe(told);
  await cluster.revive(0);
  expect(postmaster(directory)?.pid).not.toBe(told);
  expect(await query(cluster, "select 1 as one")).toEqual([{ one: 1 }]);
  await cluster.stop();
});

test("two that start at once on an empty directory make one cluster", async () => {
  const directory = emptyPlace();
  const elsewhere = startElsewhere(directory);
  const here = await start(directory);
  await elsewhere.started();
  await query(here, "create table shared ()");
  await here.stop();
  expect(postmaster(directory)).toBeDefined();
  await elsewhere.stop();
  expect(postmaster(directory)).toBeUndefined();
});

test("starts although a first start was killed in the middle of initdb", async () => {
  const directory = emptyPlace();
  const elsewhere = startElsewhere(directory);
  const isHalfMade = () =>
    existsSync(directory) && readdirSync(directory).some((name) => existsSync(join(directory, name, "PG_VERSION")));
  while (!isHalfMade()) await Bun.sleep(1);
  await elsewhere.kill();
  expect(existsSync(join(directory, "cluster"))).toBe(false);
  const cluster = await start(directory);
  expect(await query(cluster, "select 1 as one")).toEqual([{ one: 1 }]);
  await cluster.stop();
});

test("names both versions when the database is of another PostgreSQL", async () => {
  const directory = emptyPlace();
  await Bun.write(join(directory, "cluster/PG_VERSION"), "9\n");
  await expect(start(directory)).rejects.toThrow(/made by PostgreSQL 9, but .* is PostgreSQL 1\d/);
});

test("shows the end of the server's log when it does not start", async () => {
  const directory = emptyPlace();
  await Bun.write(join(directory, "cluster/PG_VERSION"), readFileSync(join(seed(), "cluster/PG_VERSION")));
  await expect(start(directory)).rejects.toThrow(/server\.log" ends with:\n[^]*cluster[^]*DATABASE_URL/);
});

test("takes a pid that now belongs to another process for none", async () => {
  await Bun.write(join(seed(), "cluster/postmaster.pid"), `${process.pid}\n`);
  await (await start(seed())).stop();
  expect(postmaster(seed())).toBeUndefined();
});

test.if(isRoot)("works in a directory that only root may enter, and starts afresh when that was deleted", async () => {
  const directory = emptyPlace();
  chmodSync(join(directory, ".."), 0o700);
  const cluster = await start(directory);
  expect(await query(cluster, "select 1 as one")).toEqual([{ one: 1 }]);
  await cluster.stop();
  const home = realpathSync(directory);
  expect(openHome(directory, () => {}).directory).toBe(home);
  rmSync(directory);
  const said: string[] = [];
  const fresh = openHome(directory, (message) => said.push(message)).directory;
  expect(fresh).not.toBe(home);
  expect(existsSync(join(fresh, "cluster"))).toBe(false);
  expect(said.join("\n")).toContain(`"${home}" holds an earlier database`);
  rmSync(home, { recursive: true });
});

test.if(isRoot)("follows the link of a directory that was moved, and refuses that of a copy", async () => {
  const directory = emptyPlace();
  const dataDir = join(directory, "..");
  chmodSync(dataDir, 0o700);
  const home = openHome(directory, () => {}).directory;
  const [moved, copied, alias] = ["moved", "copied", "alias"].map((name) => `${dataDir}-${name}`) as [
    string,
    string,
    string,
  ];
  const open = (path: string) => openHome(join(path, "postgres"), () => {}).directory;
  const copy = (from: string, to: string) => expect(Bun.spawnSync(["cp", "-a", from, to]).exitCode).toBe(0);
  try {
    copy(dataDir, copied);
    await expect(start(join(copied, "postgres"))).rejects.toThrow(`is a copy of the link "${directory}"`);
    expect(open(dataDir)).toBe(home);
    symlinkSync(dataDir, alias);
    expect(open(alias)).toBe(home);
    rmSync(copied, { recursive: true });
    renameSync(dataDir, moved);
    expect(open(moved)).toBe(home);
    copy(moved, copied);
    expect(() => open(copied)).toThrow(`is a copy of the link "${join(moved, "postgres")}"`);
    copy(moved, dataDir);
    expect(() => open(dataDir)).toThrow("copied DATA_DIR");
    expect(open(moved)).toBe(home);
  } finally {
    for (const path of [alias, moved, copied, home]) rmSync(path, { recursive: true, force: true });
  }
});

test.if(isRoot)("does not replace a database that is missing from where the link points", async () => {
  const directory = emptyPlace();
  chmodSync(join(directory, ".."), 0o700);
  rmSync(openHome(directory, () => {}).directory, { recursive: true });
  await expect(start(directory)).rejects.toThrow("restore");
});
