/**
 * Forty runners with one key and nothing to do, at a server with its usual limit of 60 requests a minute: how many requests
 * fall into any minute once they have settled, and how soon a task is at work. `bun test/lab/faults/idle_runners.ts [runners] [seconds]`,
 * 40 and 220.
 */

import { join } from "node:path";
import { createPlace, removePlace } from "../../places.ts";
import { type Seen, startFront, startRunner } from "./runners.ts";
import { judge, startServers } from "./servers.ts";

const RUNNERS = Number(process.argv[2] ?? 40);
const SECONDS = Number(process.argv[3] ?? 220);
const LIMIT = 60;
/** They all begin together, which is no rest. */
const SETTLE_MS = 90_000;

const world = await startServers({ environment: { RATE_LIMIT_PER_MINUTE: String(LIMIT), LOG_LEVEL: "warn" } });
const front = startFront(() => world.servers[0]!.url);
const place = createPlace("idle");
const config = join(place, "assay.yaml");
const command = `printf '<testsuite name="unit"><testcase name="a"/></testsuite>' > report.xml`;
await Bun.write(config, JSON.stringify({ tasks: { unit: { command, report: "report.xml" } } }));
const runners = Array.from({ length: RUNNERS }, (_, at) =>
  startRunner(world, { url: front.url, config, args: ["--name", `runner ${at}`] }),
);
await Bun.sleep(SECONDS * 1000);

const times = front.seen.map(({ at }) => at).sort((a, b) => a - b);
const first = times[0]!;
const tens = Object.groupBy(times, (at) => Math.floor((at - first) / 10_000));
console.log(
  `requests in each 10 s: ${Array.from({ length: SECONDS / 10 }, (_, at) => tens[at]?.length ?? 0).join(" ")}`,
);
const inMinute = (from: number) => times.filter((at) => at >= from && at < from + 60_000).length;
const inRest = front.seen.filter(({ at }) => at >= first + SETTLE_MS);
const most = Math.max(...inRest.map(({ at }) => inMinute(at)));
const refusedOf = (all: readonly Seen[]) => all.filter(({ status }) => status === 429).length;
console.log(`in the first minute: ${inMinute(first)} requests; refused at all: ${refusedOf(front.seen)}`);

const began = performance.now();
const started = await fetch(`${world.servers[0]!.url}/api/v1/projects/${world.project}/executions`, {
  method: "POST",
  headers: { authorization: `Bearer ${world.key}`, "content-type": "application/json" },
  body: JSON.stringify({ mode: "run", tasks: ["unit"] }),
});
const { id } = (await started.json()) as { id: string };
let status = "";
for (let tries = 0; tries < 300 && !["passed", "failed"].includes(status); tries++) {
  await Bun.sleep(100);
  [{ status } = { status: "" }] = await world.database.pool<{ status: string }[]>`
    select status from execution where id = ${id}`;
}
const seconds = (performance.now() - began) / 1000;

for (const { child } of runners) child.kill("SIGTERM");
const stopping = performance.now();
const codes = await Promise.all(runners.map(({ ended }) => ended));
judge(
  [`no minute has more than ${LIMIT} requests of ${RUNNERS} runners`, most <= LIMIT, most],
  ["none is refused", refusedOf(inRest) === 0, refusedOf(inRest)],
  ["a task is run at once", status === "passed", `${status} after ${seconds.toFixed(1)} s`],
  ["all of them end", codes.every((code) => code === 0), `in ${((performance.now() - stopping) / 1000).toFixed(1)} s`],
);
front.stop();
await world.stop();
await removePlace(place);
