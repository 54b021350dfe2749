/** A real server in a process of its own on a fresh built-in PostgreSQL, and what a benchmark needs to talk to it. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startEmbedded } from "../../src/postgres/embedded.ts";
import { connect } from "../../src/store/connect.ts";

const ROOT = join(import.meta.dir, "../..");

/** Milliseconds from the start of the process to the answer of /readyz. */
async function start(dataDir: string) {
  const started = performance.now();
  const child = Bun.spawn([process.execPath, join(ROOT, "src/main.ts")], {
    env: {
      ...process.env,
      DATA_DIR: dataDir,
      PORT: "0",
      RATE_LIMIT_PER_MINUTE: "0",
      LOG_LEVEL: "warn",
      MAX_BODY_MB: "128",
      DATABASE_URL: "",
    },
    stdout: "pipe",
    stderr: "inherit",
  });
  let output = "";
  const { promise: url, resolve, reject } = Promise.withResolvers<string>();
  (async () => {
    for await (const chunk of child.stdout) {
      output += new TextDecoder().decode(chunk);
      // With LOG_LEVEL=warn the only output is the welcome of the first start.
      const match = /"(http:\/\/127\.0\.0\.1:\d+)\/api/.exec(output);
      if (match) resolve(match[1]!);
    }
    reject(new Error(`The server ended:\n${output}`));
  })().catch(reject);
  return { child, url, readyMs: async () => (await url, performance.now() - started), output: () => output };
}

export async function startServer() {
  const directory = await mkdtemp(join(tmpdir(), "assay-bench-"));
  const server = await start(directory);
  const url = await server.url;
  const readyMs = await server.readyMs();
  const [, project] = /projects\/([0-9a-f-]{36})/.exec(server.output())!;
  const [key] = /svc_proj_\w+/.exec(server.output())!;
  const embedded = await startEmbedded({ directory: join(directory, "postgres") });
  const database = connect(embedded.connection, 4);

  return {
    url,
    project: project!,
    key: key!,
    readyMs,
    database,
    connection: embedded.connection,
    directory,
    /** MiB of the server's process, now and at its highest. */
    memory: async () => {
      const status = await Bun.file(`/proc/${server.child.pid}/status`).text();
      const read = (name: string) => Math.round(Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(status)![1]) / 1024);
      return { now: read("VmRSS"), peak: read("VmHWM") };
    },
    async stop() {
      await database.close();
      server.child.kill("SIGTERM");
      await server.child.exited;
      await embedded.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

export type BenchServer = Awaited<ReturnType<typeof startServer>>;

export const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;

/** Requests per second and the latency's 99th percentile in ms, as wrk measures them. */
export async function wrk(url: string, options: { key?: string; connections?: number; seconds?: number } = {}) {
  const { key, connections = 32, seconds = 3 } = options;
  const authorization = key === undefined ? [] : ["-H", `Authorization: Bearer ${key}`];
  const output = await Bun.$`wrk -t1 -c${connections} -d${seconds}s --latency ${authorization} ${url}`.text();
  if (/Non-2xx/.test(output)) throw new Error(`Not all answers were 200:\n${output}`);
  const [, p99, unit] = /99%\s+([\d.]+)(us|ms|s)/.exec(output)!;
  return {
    perSecond: Number(/Requests\/sec:\s+([\d.]+)/.exec(output)![1]),
    p99Ms: Number(p99) * { us: 0.001, ms: 1, s: 1000 }[unit as "us" | "ms" | "s"],
  };
}
