/**
 * Two processes on one port for two real minutes of a rate limit, asked without end over connections of their own, while
 * one after the other is killed with -9. `bun test/lab/faults/workers.ts`, about 2.5 minutes.
 */

import { readFileSync } from "node:fs";
import { judge, startServers } from "./servers.ts";

const LIMIT = 100;
const MINUTES = 2;
const AT_ONCE = 8;
const KILL_EVERY_MS = 7_000;

const world = await startServers({ environment: { WORKERS: "2", RATE_LIMIT_PER_MINUTE: String(LIMIT) } });
const { url, child, output } = world.servers[0]!;
const path = `${url}/api/v1/projects/${world.project}/test-runs?limit=1`;
const headers = { authorization: `Bearer ${world.key}`, connection: "close" };
const began = performance.now();
const isOver = () => performance.now() - began > MINUTES * 60_000 + 5_000;

/** When it was sent and answered: it was admitted between the two. */
const admitted: { sent: number; answered: number }[] = [];
let [refused, brokenOff, others] = [0, 0, 0];

async function ask(): Promise<void> {
  while (!isOver()) {
    const sent = performance.now();
    const answer = await fetch(path, { headers, keepalive: false }).catch(() => undefined);
    const answered = performance.now();
    await answer?.arrayBuffer();
    if (!answer) brokenOff++;
    else if (answer.status === 200) admitted.push({ sent, answered });
    else if (answer.status === 429) refused++;
    else others++;
    await Bun.sleep(5);
  }
}

const workers = () =>
  readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, "utf8")
    .trim()
    .split(" ")
    .filter((pid) => readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("workers/worker.ts"))
    .map(Number);

let kills = 0;
async function kill(): Promise<void> {
  for (; !isOver(); await Bun.sleep(KILL_EVERY_MS)) {
    const all = workers();
    if (all.length === 2) process.kill(all[kills++ % 2]!, "SIGKILL");
  }
}

await Promise.all([kill(), ...Array.from({ length: AT_ONCE }, ask)]);

const bySent = admitted.toSorted((a, b) => a.sent - b.sent);
// Both ends of a window lie within a request's time: only what is surely too many counts.
const tooMany = bySent.filter((one, at) => at >= LIMIT && one.answered - bySent[at - LIMIT]!.sent < 60_000).length;
const restarts = output().split("A worker has ended").length - 1;
child.kill("SIGTERM");
await child.exited;
judge(
  ["no window of 60 s holds more than the limit", tooMany === 0, `${admitted.length} admitted, ${refused} refused`],
  // At the first moment, and again as each of them leaves the window; what was broken off may have counted.
  ["the limit is used up", admitted.length >= LIMIT * (MINUTES + 1) - brokenOff, `${brokenOff} broken off`],
  ["nothing else was answered", others === 0, others],
  ["a worker came for each that was killed", kills > 10 && restarts === kills, `${restarts} of ${kills}`],
  ["the stop went well", child.exitCode === 0, child.exitCode],
);
await world.stop();
