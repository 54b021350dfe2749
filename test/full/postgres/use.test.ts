/** One cluster that several processes reach by other paths and from other containers, and copies of it. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, readFileSync, readlinkSync, renameSync, rmSync } from "node:fs";
import { readdirSync } from "node:fs";
import { hostname } from "node:os";
import { dirname, join } from "node:path";
import { tryLock } from "../../../src/database/postgres/lock.ts";
import { postmaster, query, useClusters } from "./clusters.ts";

setDefaultTimeout(30_000);
const { start, emptyPlace, madePlace, startElsewhere } = useClusters();

const canUnshare = Bun.spawnSync(["unshare", "--mount", "--pid", "--fork", "--mount-proc", "true"]).success;
if (!canUnshare) console.warn("DATA_DIR at second paths and in containers is not tested: this needs root and unshare");

/** A second path to the parent of `directory`, which only the process that `through` runs sees; `prepare` is a shell command there. */
function secondPath(directory: string, { container = false, prepare = "true" } = {}) {
  const other = dirname(emptyPlace());
  const namespaces = ["--mount", ...(container ? ["--pid", "--fork", "--kill-child", "--mount-proc"] : [])];
  const script = `mount --bind ${dirname(directory)} ${other} && ${prepare}`;
  return {
    path: join(other, "postgres"),
    through: ["unshare", ...namespaces, "sh", "-c", `${script} && exec "$@"`, "sh"],
    // The shell stays, as the first process of the container.
    throughShell: ["unshare", ...namespaces, "sh", "-c", `${script} && { "$@" || :; echo ended; cat; }`, "sh"],
  };
}

/** PostgreSQL's pid as this process knows it, also if the server runs in a container. */
function postmasterOutside(path: string): number {
  const [own] = readFileSync(join(path, "cluster/postmaster.pid"), "utf8").split("\n");
  return Number(
    readdirSync("/proc").find((pid) => {
      if (!/^\d+$/.test(pid)) return false;
      try {
        const isInside = readlinkSync(`/proc/${pid}/ns/pid`) !== readlinkSync("/proc/self/ns/pid");
        const pids = /^NSpid:\s+(.*)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]!.split(/\s+/);
        return isInside && pids.at(-1) === own && readlinkSync(`/proc/${pid}/exe`).endsWith("/postgres");
      } catch {
        return false;
      }
    }),
  );
}

const inUse = (path: string) =>
  new RegExp(
    `in use by process \\d+ on "${hostname()}", as "${path}" since 20[^ ]+Z, which cannot be reached from here: run commands there`,
  );

const copy = (from: string, to: string) => expect(Bun.spawnSync(["cp", "-a", from, to]).exitCode).toBe(0);

test("a shared lock excludes exclusive ones alone, and a lock ends with its handle", () => {
  const path = join(dirname(emptyPlace()), "lock");
  const [one, other] = [tryLock(path, "shared"), tryLock(path, "shared")];
  expect([one, other]).not.toContain(undefined);
  one!.release();
  expect(tryLock(path)).toBeUndefined();
  other!.release();
  const exclusive = tryLock(path);
  expect(exclusive).toBeDefined();
  expect(tryLock(path, "shared")).toBeUndefined();
  exclusive!.release();
});

test.if(canUnshare)("a second path in another mount namespace leads to the server that runs", async () => {
  const directory = madePlace();
  const second = secondPath(directory);
  const here = await start(directory);
  const pid = postmaster(directory)!.pid;
  const elsewhere = startElsewhere(second.path, second.through);
  await elsewhere.started();
  expect(postmaster(directory)?.pid).toBe(pid);
  await here.stop();
  expect(postmaster(directory)?.pid).toBe(pid);
  // Its socket is named by a path that is not seen there.
  const again = await start(directory);
  expect(postmaster(directory)?.pid).toBe(pid);
  await elsewhere.stop();
  expect(await query(again, "select 1 as one")).toEqual([{ one: 1 }]);
  await again.stop();
  expect(postmaster(directory)).toBeUndefined();
});

test.if(canUnshare)(
  "a server started by a path that exists nowhere else is adopted, and revived for both",
  async () => {
    const directory = madePlace();
    const second = secondPath(directory);
    const elsewhere = startElsewhere(second.path, second.through);
    await elsewhere.started();
    const here = await start(directory);
    expect(existsSync(second.path)).toBe(false);
    const { pid } = postmaster(directory)!;
    process.kill(pid, "SIGKILL");
    while (postmaster(directory)) await Bun.sleep(1);
    await here.revive();
    expect(await query(here, "select 1 as one")).toEqual([{ one: 1 }]);
    await elsewhere.stop();
    expect(postmaster(directory)).toBeDefined();
    await here.stop();
    expect(postmaster(directory)).toBeUndefined();
  },
);

test.if(canUnshare)("a server whose socket is out of reach is not started a second time", async () => {
  // The path is too long for a socket, which is therefore in a directory of /tmp. The second process has another one in its place.
  const directory = join(emptyPlace(), "a".repeat(60), "postgres");
  mkdirSync(dirname(directory), { recursive: true });
  for (const path of [dirname(directory), dirname(dirname(directory))]) chmodSync(path, 0o711);
  const second = secondPath(directory, { prepare: `mount -t tmpfs none "$(readlink ${directory}/socket)"` });
  const here = await start(directory);
  const pid = postmaster(directory)!.pid;
  expect(await startElsewhere(second.path, second.through).refused()).toMatch(inUse(directory));
  expect(postmaster(directory)?.pid).toBe(pid);
  expect(await query(here, "select 1 as one")).toEqual([{ one: 1 }]);
  await here.stop();
});

test.if(canUnshare)(
  "a directory that a container uses is refused until the container is gone, however it ends",
  async () => {
    const directory = madePlace();
    const second = secondPath(directory, { container: true });
    for (const end of ["stop", "kill"] as const) {
      const container = startElsewhere(second.path, second.through);
      await container.started();
      const pidFile = readFileSync(join(directory, "cluster/postmaster.pid"), "utf8");
      await expect(start(directory)).rejects.toThrow(inUse(second.path));
      expect(readFileSync(join(directory, "cluster/postmaster.pid"), "utf8")).toBe(pidFile);
      await container[end]();
      const here = await start(directory);
      expect(await query(here, "select 1 as one")).toEqual([{ one: 1 }]);
      const third = startElsewhere(second.path, second.through);
      expect(await third.refused()).toMatch(inUse(directory));
      expect(await query(here, "select 1 as one")).toEqual([{ one: 1 }]);
      await here.stop();
    }
  },
);

test.if(canUnshare)("a container uses its directory also while its PostgreSQL is dead, or its Assay", async () => {
  const directory = madePlace();
  const second = secondPath(directory, { container: true });
  const withoutPostgres = startElsewhere(second.path, second.through);
  await withoutPostgres.started();
  process.kill(postmasterOutside(directory), "SIGKILL");
  await expect(start(directory)).rejects.toThrow(inUse(second.path));
  await withoutPostgres.kill();

  const withoutAssay = startElsewhere(second.path, second.throughShell);
  await withoutAssay.started();
  await withoutAssay.say("die");
  expect(await withoutAssay.nextLine()).toBe("ended\n");
  await expect(start(directory)).rejects.toThrow(inUse(second.path));
  await withoutAssay.kill();
  await (await start(directory)).stop();
});

test("a copy of a running database is refused, and the original starts after a crash, also at another path", async () => {
  const directory = madePlace();
  const place = dirname(directory);
  const copied = dirname(emptyPlace());
  const first = startElsewhere(directory);
  await first.started();
  copy(directory, copied);
  const refusal = `is a copy of a running database (process ${first.pid} on "${hostname()}", as "${directory}" since`;
  await expect(start(join(copied, "postgres"))).rejects.toThrow(refusal);
  const server = postmaster(directory)!;
  await first.kill();
  process.kill(server.pid, "SIGKILL");
  while (postmaster(directory)) await Bun.sleep(1);

  renameSync(directory, join(place, "moved"));
  const moved = await start(join(place, "moved"));
  await query(moved, "create table kept as select 42 as answer");
  await moved.stop();
  await expect(start(join(copied, "postgres"))).rejects.toThrow("restore a backup instead");
  rmSync(join(copied, "postgres/used-by.json"));
  await (await start(join(copied, "postgres"))).stop();

  copy(join(place, "moved"), directory);
  const stopped = await start(directory);
  expect(await query(stopped, "table kept")).toEqual([{ answer: 42 }]);
  await stopped.stop();
});
