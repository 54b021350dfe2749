/** Several processes on one port, as a user starts, stops and kills them. */

import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { startEmbedded } from "../../src/database/postgres/embedded.ts";
import { createBrowser } from "../browser.ts";
import { junit, until } from "../harness.ts";
import { createPlace, guardProcess, removePlace } from "../places.ts";
import { beginUpload } from "../slow_upload.ts";

setDefaultTimeout(90_000);
const ROOT = join(import.meta.dir, "../..");
const LIMIT = 40;
const place = createPlace("workers");
const children = new Set<Bun.Subprocess>();
afterAll(async () => {
  for (const child of children) child.kill("SIGTERM");
  await Promise.all([...children].map((child) => child.exited));
  await removePlace(place);
});

/** Resolves when the server is ready, or has ended before. All are on one database. */
async function start(more: Record<string, string>) {
  const child = Bun.spawn([process.execPath, "src/main.ts"], {
    cwd: ROOT,
    env: { ...process.env, DATABASE_URL: "", PUBLIC_URL: "", DATA_DIR: place, PORT: "0", WORKERS: "2", ...more },
    stdout: "pipe",
    stderr: "pipe",
  });
  children.add(child);
  guardProcess(child);
  const { promise: ready, resolve } = Promise.withResolvers<string>();
  let output = "";
  const reading = (async () => {
    for await (const chunk of child.stdout) {
      output += new TextDecoder().decode(chunk);
      const url = /"message":"Assay is ready","url":"([^"]+)"/.exec(output)?.[1];
      if (url !== undefined) resolve(url);
    }
    resolve("");
  })();
  return {
    child,
    url: await ready,
    output: () => output,
    /** Of the log, parsed. */
    lines: () =>
      output
        .split("\n")
        .filter((line) => line.startsWith("{") && line.endsWith("}"))
        .map((line) => JSON.parse(line) as Record<string, unknown>),
    /** The exit code; resolves when no worker has its output open any more either. */
    async stop(signal: NodeJS.Signals): Promise<number | null> {
      child.kill(signal);
      await child.exited;
      await reading;
      children.delete(child);
      return child.exitCode;
    },
    errors: () => new Response(child.stderr).text(),
  };
}

type Server = Awaited<ReturnType<typeof start>>;

const isWorker = (pid: number): boolean => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("workers/worker.ts");
  } catch {
    return false;
  }
};
const workersOf = ({ child }: Server): number[] =>
  readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, "utf8").trim().split(" ").map(Number).filter(isWorker);

/** Each request on a connection of its own, which the system gives to any worker. */
const get = (url: string, headers: Record<string, string> = {}) =>
  fetch(url, { headers: { ...headers, connection: "close" }, keepalive: false });

/** The samples of a metric, by worker. */
async function read({ url }: Server, name: string): Promise<Map<string, number>> {
  const found = new Map<string, number>();
  for (const [, labels, value] of (await (await get(`${url}/metrics`)).text()).matchAll(
    new RegExp(`^${name}\\{([^}]*)\\} (\\S+)$`, "gm"),
  )) {
    const worker = /worker="([^"]*)"/.exec(labels!)![1]!;
    found.set(worker, (found.get(worker) ?? 0) + Number(value));
  }
  return found;
}

const isAnswered = async (server: Server, count: number) =>
  [...(await read(server, "process_uptime_seconds")).keys()].length === count + 1;

// Which processes a process has started is only known there.
const isLinux = process.platform === "linux";
const key = { value: "", project: "" };

test.if(isLinux)(
  "the limit, log-ins and figures are of all workers together, also when one is killed; a stop drains them all",
  async () => {
    const server = await start({ RATE_LIMIT_PER_MINUTE: String(LIMIT) });
    const { url } = server;
    key.value = /svc_proj_\w+/.exec(server.output())![0];
    key.project = /projects\/([0-9a-f-]{36})/.exec(server.output())![1]!;
    expect(server.output().match(/svc_proj_\w+/g)).toHaveLength(4);
    expect(server.output().match(/setup\?token=/g)).toHaveLength(1);
    const path = `/api/v1/projects/${key.project}/test-runs`;
    const headers = { authorization: `Bearer ${key.value}` };
    const list = async (count: number) => {
      const answers = await Promise.all(Array.from({ length: count }, () => get(url + path, headers)));
      return answers.filter(({ status }) => status === 200);
    };

    const good = await list(3 * LIMIT);
    expect(good).toHaveLength(LIMIT);
    // No two were told that the same number is left.
    const left = good.map((answer) => Number(answer.headers.get("x-ratelimit-remaining")));
    expect(left.sort((a, b) => a - b)).toEqual(Array.from({ length: LIMIT }, (_, index) => index));
    const served = await read(server, "assay_http_requests_total");
    expect([...served.keys()].sort()).toEqual(["1", "2"]);
    expect(Math.min(...served.values())).toBeGreaterThan(0);
    expect([...(await read(server, "assay_worker_restarts_total")).values()]).toEqual([0, 0]);

    const [victim] = workersOf(server);
    process.kill(victim!, "SIGKILL");
    await until(() => server.output().includes("A worker has ended"), 20);
    expect(server.lines().find(({ message }) => String(message).startsWith("A worker has ended"))).toMatchObject({
      level: "warn",
      reason: "signal SIGKILL",
      waitSeconds: 0,
    });
    await until(() => isAnswered(server, 2), 20);
    expect(workersOf(server)).toHaveLength(2);
    expect(workersOf(server)).not.toContain(victim);
    const refusedBy = (worker: Map<string, number>) => Math.min(...worker.values());
    await until(async () => {
      expect(await list(20)).toEqual([]);
      const answered = await read(server, "assay_http_requests_total");
      return answered.size === 2 && refusedBy(answered) > 0;
    }, 20);
    expect([...(await read(server, "assay_worker_restarts_total")).values()].sort()).toEqual([0, 1]);

    const browsers = Array.from({ length: 12 }, () => createBrowser(url, { connection: "close" }));
    const forms = await Promise.all(browsers.map(async (one) => one.hiddenOf(await one.get("/login"), "/login")));
    const wrong = { email: "ada@acme.example", password: "a wrong password" };
    const told = await Promise.all(browsers.map((one, at) => one.post("/login", { ...forms[at]!, ...wrong })));
    expect(told.filter(({ text }) => text.includes("or the password is wrong"))).toHaveLength(3);
    expect(told.filter(({ text }) => text.includes("Too many attempts"))).toHaveLength(9);

    expect(await server.stop("SIGTERM")).toBe(0);
    expect(server.lines().at(-1)!["message"]).toBe("Stopped");
  },
);

test.if(isLinux)("SIGTERM, twice, lets running uploads end in every worker", async () => {
  const server = await start({ RATE_LIMIT_PER_MINUTE: "0" });
  const place = { project: key.project, key: key.value };
  const uploads = await Promise.all(Array.from({ length: 16 }, () => beginUpload(server.url, place, junit("pp"))));
  // Answers to later requests of both tell that the heads have been read.
  for (const workers = new Set<string>(); workers.size < 2;) {
    await get(`${server.url}/healthz`);
    for (const [worker, count] of await read(server, "assay_http_requests_total")) if (count > 0) workers.add(worker);
  }
  const stopped = server.stop("SIGTERM");
  server.child.kill("SIGTERM");
  await until(() => server.output().includes("Stopping: waiting for running requests"));
  for (const { finish } of uploads) finish();
  const answers = await Promise.all(uploads.map(({ answered }) => answered));
  for (const answer of answers) expect(answer).toStartWith("HTTP/1.1 201");
  expect(await stopped).toBe(0);
  const stored = server.lines().filter(({ message, status }) => message === "request" && status === 201);
  expect(stored).toHaveLength(16);
  expect(new Set(stored.map(({ worker }) => worker))).toEqual(new Set(["1", "2"]));
});

test.if(isLinux)("what is to be done behind uploads is done, also after every worker was killed", async () => {
  const server = await start({ RATE_LIMIT_PER_MINUTE: "0" });
  const before = workersOf(server);
  for (const pid of before) process.kill(pid, "SIGKILL");
  await until(async () => {
    const now = workersOf(server);
    return (
      now.length === 2 && !now.some((pid) => before.includes(pid)) && (await isAnswered(server, 2).catch(() => false))
    );
  }, 20);
  const path = `${server.url}/api/v1/projects/${key.project}/test-runs`;
  const headers = { authorization: `Bearer ${key.value}` };
  expect((await fetch(path, { method: "POST", headers, body: junit("pf") })).status).toBe(201);
  const uncounted = async () =>
    /^assay_runs_uncounted (\d+)$/m.exec(await (await get(`${server.url}/metrics`)).text())?.[1];
  await until(async () => (await uncounted()) === "0", 20);
  expect(await server.stop("SIGINT")).toBe(0);
});

test.if(isLinux)("when the parent is killed its workers end, and the port is free", async () => {
  const server = await start({});
  const workers = workersOf(server);
  expect(workers).toHaveLength(2);
  await server.stop("SIGKILL");
  // Of a process that is ending there is nothing to read some time before the system takes its port back.
  await until(() => !workers.some(isWorker));
  const port = Number(new URL(server.url).port);
  await until(() => {
    try {
      void Bun.serve({ port, hostname: "127.0.0.1", reusePort: false, fetch: () => new Response() }).stop(true);
      return true;
    } catch {
      return false;
    }
  });
});

test.if(isLinux)(
  "a worker that cannot start any more ends the whole, with an error and without a process left",
  async () => {
    const file = join(place, "key-of-this-test");
    writeFileSync(file, readFileSync(join(place, "secret-key"), "utf8"));
    const server = await start({ SECRET_KEY_FILE: file });
    const workers = workersOf(server);
    rmSync(file);
    process.kill(workers[0]!, "SIGTERM");
    expect(await server.child.exited).toBe(1);
    expect(await server.errors()).toEndWith("Worker 1 could not start 5 times in a row (exit code 1)\n");
    const restarts = server.lines().filter(({ message }) => String(message).startsWith("A worker has ended"));
    expect(restarts.map(({ worker, reason, waitSeconds }) => [worker, reason, waitSeconds])).toEqual([
      ["1", "exit code 0", 0],
      ["1", "exit code 1", 0.25],
      ["1", "exit code 1", 0.5],
      ["1", "exit code 1", 1],
      ["1", "exit code 1", 2],
    ]);
    await until(() => !workers.some(isWorker));
  },
);

test.if(isLinux)("a PostgreSQL that was left running for one process is started anew for four", async () => {
  const own = createPlace("workers");
  try {
    const before = await start({ DATA_DIR: own, WORKERS: "1" });
    await before.stop("SIGKILL");
    const server = await start({ DATA_DIR: own, WORKERS: "4" });
    expect(server.url).toStartWith("http://");
    expect(await server.stop("SIGTERM")).toBe(0);
  } finally {
    await removePlace(own);
  }
});

describe("a start is refused", () => {
  test("where the port is not free, whoever shares it", async () => {
    const other = Bun.serve({ port: 0, hostname: "127.0.0.1", reusePort: true, fetch: () => new Response() });
    const server = await start({ PORT: String(other.port) });
    expect(await server.errors()).toContain(`Cannot listen on 127.0.0.1:${other.port}`);
    expect(await server.stop("SIGTERM")).toBe(1);
    await other.stop(true);
  });

  test("where PostgreSQL takes fewer connections than all workers may need", async () => {
    const cluster = await startEmbedded({ directory: join(place, "postgres"), fsync: false });
    const server = await start({ WORKERS: "8" });
    expect(await server.errors()).toContain(
      "PostgreSQL takes 61 connections, WORKERS=8 with DATABASE_POOL=2 may need 142: raise its max_connections, or lower",
    );
    expect(await server.stop("SIGTERM")).toBe(1);
    await cluster.stop();
  });
});
