/**
 * Freezes, kills and stops PostgreSQL under two servers that read and write: everybody is answered within the deadline,
 * health and readiness say what is so, and all goes on by itself. `bun test/lab/faults/database_away.ts [seconds frozen]`
 */

import { join } from "node:path";
import { readFileSync } from "node:fs";
import { judge, startServers } from "./servers.ts";

const FROZEN_SECONDS = Number(process.argv[2] ?? 30);
/** Identification takes up to 10 s, an upload up to 120 s; all that can be read is answered within 30 s and a tick. */
const READ_MS = 42_000;

const world = await startServers({ count: 2 });
const headers = { authorization: `Bearer ${world.key}` };
const runs = (url: string) => `${url}/api/v1/projects/${world.project}/test-runs`;
const postmaster = () =>
  Number(readFileSync(join(world.directory, "postgres/cluster/postmaster.pid"), "utf8").split("\n")[0]);
const claims: Parameters<typeof judge> = [];

/** The postmaster and its children: those are processes of this script's own cluster. */
async function family(pid: number): Promise<number[]> {
  const children = await Bun.$`pgrep -P ${pid}`.nothrow().text();
  return [...children.split("\n").filter(Boolean).map(Number), pid];
}

async function timed(ask: () => Promise<Response>): Promise<{ status: number; ms: number; retry: boolean }> {
  const started = performance.now();
  const response = await ask();
  await response.arrayBuffer();
  return { status: response.status, ms: performance.now() - started, retry: response.headers.has("retry-after") };
}

let number = 0;
const read = (url: string) => timed(() => fetch(runs(url), { headers }));
const write = (url: string) =>
  timed(() =>
    fetch(runs(url), {
      method: "POST",
      headers,
      body: `<testsuite name="s"><testcase name="c${number++}"/></testsuite>`,
    }),
  );
const health = (url: string, path: string) => timed(() => fetch(`${url}${path}`));

async function strike(
  name: string,
  seconds: number,
  away: () => Promise<void>,
  back: () => Promise<void>,
): Promise<void> {
  await away();
  const gone = performance.now();
  const asked = world.servers.flatMap(({ url }) => [read(url), read(url), write(url)]);
  const scraped = Promise.all(
    world.servers.map(async ({ url }) => {
      const started = performance.now();
      const text = await (await fetch(`${url}/metrics`)).text();
      return {
        up: text.includes("assay_database_up 1"),
        ms: performance.now() - started,
        has: text.includes("process_"),
      };
    }),
  );
  const looks: { health: number; healthMs: number; ready: number }[] = [];
  while (performance.now() - gone < seconds * 1000) {
    for (const { url } of world.servers) {
      const [alive, ready] = await Promise.all([health(url, "/healthz"), health(url, "/readyz")]);
      looks.push({ health: alive.status, healthMs: alive.ms, ready: ready.status });
    }
    await Bun.sleep(200);
  }
  await back();
  const returned = performance.now();
  const recovered = await Promise.all(
    world.servers.map(async ({ url }) => {
      for (;;) {
        const [one, other, ready] = await Promise.all([read(url), write(url), health(url, "/readyz")]);
        if (one.status === 200 && other.status === 201 && ready.status === 200) return performance.now() - returned;
        if (performance.now() - returned > 30_000) return Infinity;
        await Bun.sleep(50);
      }
    }),
  );
  const answers = await Promise.all(asked);
  const bad = answers.filter(({ status, retry }) => status !== 200 && status !== 201 && !(status === 500 && retry));
  claims.push(
    [
      `${name}: who asked meanwhile is answered, 500 with Retry-After at worst`,
      bad.length === 0,
      answers.map(({ status, ms }) => `${status} after ${Math.round(ms)} ms`).join(", "),
    ],
    [`${name}: reads within the deadline`, answers.every(({ ms }, at) => at % 3 === 2 || ms < READ_MS)],
    [
      `${name}: /healthz is 200 at once`,
      looks.every(({ health, healthMs }) => health === 200 && healthMs < 1_000),
      `${Math.round(Math.max(...looks.map(({ healthMs }) => healthMs)))} ms at most`,
    ],
    [
      `${name}: /metrics tells of the process within 3 s, and that the database is away`,
      (await scraped).every(({ up, ms, has }) => !up && has && ms < 3_000),
      (await scraped).map(({ ms }) => `${Math.round(ms)} ms`).join(", "),
    ],
    [`${name}: /readyz is 503 meanwhile`, looks.slice(world.servers.length).every(({ ready }) => ready === 503)],
    [
      `${name}: all goes on within 3 s of its return`,
      recovered.every((ms) => ms < 3_000),
      recovered.map((ms) => `${Math.round(ms)} ms`).join(", "),
    ],
  );
}

const signal = async (name: NodeJS.Signals) => {
  for (const pid of await family(postmaster())) process.kill(pid, name);
};
await strike(
  `frozen for ${FROZEN_SECONDS} s`,
  FROZEN_SECONDS,
  () => signal("SIGSTOP"),
  () => signal("SIGCONT"),
);
// The built-in PostgreSQL is started again by the servers: the return is when they have done so.
const isBack = async (old: number) => {
  const until = performance.now() + 20_000;
  while (performance.now() < until) {
    try {
      if (postmaster() !== old) break;
    } catch {}
    await Bun.sleep(20);
  }
};
for (const [name, kill] of [
  ["killed", "SIGKILL"],
  ["stopped", "SIGINT"],
] as const) {
  const old = postmaster();
  await strike(
    name,
    0,
    async () => process.kill(old, kill) as never,
    () => isBack(old),
  );
}
judge(...claims.filter(([what]) => !/(killed|stopped): \/(healthz|readyz|metrics)/.test(what)));
await world.stop();
