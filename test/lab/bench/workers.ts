/**
 * One process against two on one port, in turns: the list and small uploads, with a limit that is counted. `bun
 * test/lab/bench/workers.ts`, about a minute; on two cores the generator and PostgreSQL are on them as well.
 */

import { readdirSync, readFileSync } from "node:fs";
import { startServers } from "../faults/servers.ts";
import { median, wrk } from "./server.ts";

const ROUNDS = Number(process.env["BENCH_ROUNDS"] ?? 3);
const SECONDS = 3;
const UPLOADERS = 8;
const WORKERS = [1, 2];
const report = `<testsuite name="s">${Array.from({ length: 50 }, (_, at) => `<testcase name="case ${at}"/>`).join("")}</testsuite>`;

/** Seconds of processor that a process and all that it has started have used. */
function cpuOf(root: number): number {
  const parents = new Map<number, number[]>();
  const used = new Map<number, number>();
  for (const name of readdirSync("/proc").filter((name) => /^\d+$/.test(name)))
    try {
      const fields = readFileSync(`/proc/${name}/stat`, "utf8").split(") ").at(-1)!.split(" ");
      const parent = Number(fields[1]);
      parents.set(parent, [...(parents.get(parent) ?? []), Number(name)]);
      used.set(Number(name), (Number(fields[11]) + Number(fields[12])) / 100);
    } catch {
      // It has ended meanwhile.
    }
  const sum = (pid: number): number =>
    (used.get(pid) ?? 0) + (parents.get(pid) ?? []).reduce((all, child) => all + sum(child), 0);
  return sum(root);
}

const worlds = [];
for (const workers of WORKERS) {
  const environment = { WORKERS: String(workers), RATE_LIMIT_PER_MINUTE: "1000000", LOG_LEVEL: "warn" };
  const world = await startServers({ environment });
  const { url, child } = world.servers[0]!;
  const path = `${url}/api/v1/projects/${world.project}/test-runs`;
  const [row] = await world.database.pool<{ pid: number }[]>`select pg_backend_pid() as pid`;
  const postmaster = Number(readFileSync(`/proc/${row!.pid}/stat`, "utf8").split(") ").at(-1)!.split(" ")[1]);
  // PostgreSQL is a child of the server.
  const cpu = () => ({ server: cpuOf(child.pid) - cpuOf(postmaster), postgres: cpuOf(postmaster) });
  worlds.push({ workers, world, path, cpu, results: new Map<string, number[]>() });
}
type World = (typeof worlds)[number];

const note = ({ results }: World, name: string, value: number) =>
  void results.set(name, [...(results.get(name) ?? []), value]);

async function upload({ world, path }: World, milliseconds: number): Promise<{ count: number; times: number[] }> {
  const until = performance.now() + milliseconds;
  const times: number[] = [];
  await Promise.all(
    Array.from({ length: UPLOADERS }, async () => {
      while (performance.now() < until) {
        const began = performance.now();
        const headers = { authorization: `Bearer ${world.key}` };
        const answer = await fetch(`${path}?task_slug=unit`, { method: "POST", headers, body: report });
        await answer.text();
        if (answer.status !== 201) throw new Error(`An upload answered ${answer.status}`);
        times.push(performance.now() - began);
      }
    }),
  );
  return { count: times.length, times: times.sort((a, b) => a - b) };
}

async function measured(world: World, name: string, work: () => Promise<number>): Promise<void> {
  const before = world.cpu();
  const began = performance.now();
  const count = await work();
  const seconds = (performance.now() - began) / 1_000;
  const after = world.cpu();
  note(world, `${name}, a second`, count / seconds);
  note(world, `${name}, µs of the server's processor each`, ((after.server - before.server) / count) * 1e6);
  note(world, `${name}, µs of PostgreSQL's`, ((after.postgres - before.postgres) / count) * 1e6);
}

for (const world of worlds) await upload(world, 1_000);
for (let round = 0; round < ROUNDS; round++)
  for (const world of worlds) {
    await measured(world, "list of 10", async () => {
      const { perSecond, p99Ms } = await wrk(`${world.path}?limit=10`, { key: world.world.key, seconds: SECONDS });
      note(world, "list of 10, p99 ms", p99Ms);
      return perSecond * SECONDS;
    });
    await measured(world, "upload of 50", async () => {
      const { count, times } = await upload(world, SECONDS * 1_000);
      note(world, "upload of 50, p99 ms", times[Math.floor(count * 0.99)]!);
      return count;
    });
  }
for (const world of worlds) {
  const before = world.cpu();
  await Bun.sleep(4_000);
  const after = world.cpu();
  note(world, "idle, % of a core, server", (after.server - before.server) * 25);
  note(world, "idle, % of a core, PostgreSQL", (after.postgres - before.postgres) * 25);
}

for (const name of worlds[0]!.results.keys())
  console.log(
    name.padEnd(50),
    worlds.map(({ workers, results }) => `${workers}: ${median(results.get(name)!).toFixed(1)}`).join("   "),
  );
for (const { world } of worlds) await world.stop();
