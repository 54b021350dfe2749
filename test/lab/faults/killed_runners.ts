/**
 * Three runners and two servers share two hundred short tasks, while one runner is killed and started again five times and one
 * server twice: every task ends with one accepted result, none runs twice but those that a killed runner held, and no process
 * is left. `bun test/lab/faults/killed_runners.ts [tasks]`, 200 take about 4 minutes: what was lost is missed for 90 s first.
 */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createPlace, removePlace } from "../../places.ts";
import { type RunnerProcess, startFront, startRunner } from "./runners.ts";
import { judge, startServers } from "./servers.ts";

const TASKS = Number(process.argv[2] ?? 200);
const KILLED_RUNNERS = 5;
const KILLED_SERVERS = 2;
const CONCURRENCY = 2;
const MINUTES = 8;

const world = await startServers({ count: 2 });
const fronts = world.servers.map((_, at) => startFront(() => world.servers[at]!.url));
const place = createPlace("ledger");
const config = join(place, "assay.yaml");
const ledger = join(place, "ledger");
await Bun.write(ledger, "");
const command = `
  echo "begin $ASSAY_TASK $ASSAY_LEASE_ID $$" >> ledger
  sleep 0.$(( $$ % 9 + 1)); echo "output of $ASSAY_TASK"
  printf '<testsuite name="%s"><testcase name="a"/><testcase name="b"/></testsuite>' "$ASSAY_TASK" > "$ASSAY_TASK.xml"
  echo "end $ASSAY_TASK $ASSAY_LEASE_ID $$" >> ledger`;
const slugs = Array.from({ length: TASKS }, (_, at) => `task-${at}`);
const tasks = Object.fromEntries(slugs.map((slug) => [slug, { command, report: `${slug}.xml` }]));
await Bun.write(config, JSON.stringify({ tasks }));

let names = 0;
let killable = "";
const start = (at: number): RunnerProcess => {
  const name = `runner ${at} (${names++})`;
  if (at === 0) killable = name;
  const args = ["--concurrency", String(CONCURRENCY), "--name", name];
  return startRunner(world, { url: fronts[at % 2]!.url, config, args });
};
const runners = [start(0), start(1), start(2)];

const headers = { authorization: `Bearer ${world.key}`, "content-type": "application/json" };
const url = `${fronts[0]!.url}/api/v1/projects/${world.project}/executions`;
const body = JSON.stringify({ mode: "run", tasks: slugs, timeoutMinutes: 30 });
const { id } = (await (await fetch(url, { method: "POST", headers, body })).json()) as { id: string };

const { pool } = world.database;
const count = async () => {
  const [row] = await pool<{ done: number; status: string }[]>`
    select (select count(*)::int from test_run where execution_id = e.id and status in ('passed', 'failed')) as done, e.status
    from execution e where e.id = ${id}`;
  return row!;
};
const began = performance.now();
const elapsed = () => Math.round((performance.now() - began) / 1000);
/** Whose tasks may run once more: those that were begun and not accepted when their runner was killed. */
const excused = new Set<string>();
let [killedRunners, killedServers] = [0, 0];
for (let last = -1; elapsed() < MINUTES * 60;) {
  const { done, status } = await count();
  if (!["queued", "running"].includes(status)) break;
  if (done !== last) console.log(`${elapsed()} s: ${done} of ${TASKS} are done`);
  last = done;
  // Spread over the tasks, so that all of it happens while there is work.
  if (killedRunners < KILLED_RUNNERS && done >= ((killedRunners + 1) * TASKS) / (KILLED_RUNNERS + 3)) {
    const { child } = runners[0]!;
    child.kill("SIGKILL");
    await child.exited;
    const held = await pool<{ slug: string }[]>`
      select task_slug as slug from lease where execution_id = ${id} and status in ('offered', 'running')
        and runner = ${killable}`;
    for (const { slug } of held) excused.add(slug);
    runners[0] = start(0);
    killedRunners++;
    console.log(
      `${elapsed()} s: a runner was killed, which held ${held.map(({ slug }) => slug).join(", ") || "nothing"}`,
    );
  } else if (killedServers < KILLED_SERVERS && done >= ((2 * killedServers + 1) * TASKS) / (2 * KILLED_SERVERS + 1)) {
    const { child } = world.servers[1]!;
    child.kill("SIGKILL");
    await child.exited;
    await world.restart(1);
    killedServers++;
    console.log(`${elapsed()} s: a server was killed and is back`);
  } else await Bun.sleep(100);
}
const { status } = await count();
for (const { child } of runners) child.kill("SIGTERM");
const codes = await Promise.all(runners.map(({ ended }) => ended));

const lines = readFileSync(ledger, "utf8")
  .trim()
  .split("\n")
  .map((line) => line.split(" "));
const begun = new Map<string, number>();
for (const [what, slug] of lines) if (what === "begin") begun.set(slug!, (begun.get(slug!) ?? 0) + 1);
const twice = [...begun].filter(([, times]) => times > 1).map(([slug]) => slug);
const results = await pool<{ slug: string; passed: number; attempt: number; accepted: number }[]>`
  select r.task_slug as slug, r.passed, r.attempt,
    (select count(*)::int from lease l where l.run_id = r.id and l.status = 'reported') as accepted
  from test_run r where r.execution_id = ${id}`;
const sound = results.filter(({ passed, attempt, accepted }) => passed === 2 && attempt === 1 && accepted === 1);
const leases = await pool<{ id: string; status: string }[]>`select id, status from lease where execution_id = ${id}`;
const left = leases.filter(
  ({ id }) => Bun.spawnSync(["sh", "-c", `grep -sl ${id} /proc/[0-9]*/environ`]).stdout.length > 0,
);
const byStatus = Object.entries(Object.groupBy(leases, ({ status }) => status)).map(
  ([name, all]) => `${all!.length} ${name}`,
);
console.log(
  `ledger: ${TASKS} tasks, ${lines.length} lines, leases: ${byStatus.join(", ")}; begun twice: ${twice.join(", ") || "none"}`,
);
judge(
  ["the execution ends green", status === "passed", `${status} after ${elapsed()} s`],
  ["all kills happened", killedRunners === KILLED_RUNNERS && killedServers === KILLED_SERVERS],
  ["every task has one accepted result", sound.length === TASKS, `${sound.length} of ${TASKS}`],
  ["every task has been begun", begun.size === TASKS],
  [
    "none ran twice but what a killed runner held",
    twice.every((slug) => excused.has(slug)),
    `${twice.length} ran twice`,
  ],
  ["no process is left", left.length === 0, left.length],
  ["the runners end well", codes.every((code) => code === 0), codes.join(", ")],
);
for (const front of fronts) front.stop();
await world.stop();
await removePlace(place);
