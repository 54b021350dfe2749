/**
 * Forty runners with one key at the default rate limit, through a server that is away, a PostgreSQL that is away, four killed runners and
 * one broken one: every task has one result, none runs twice but those of the killed runners, nothing is timed out or blamed.
 * `bun test/lab/faults/forty_runners.ts [runners] [seconds of a task] [seconds away]`: 40, 120 and 300 take 15 minutes.
 */

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createPlace, removePlace } from "../../places.ts";
import { type RunnerProcess, startFront, startRunner } from "./runners.ts";
import { judge, startServers } from "./servers.ts";

const [RUNNERS = 40, SECONDS = 120, AWAY_SECONDS = 300] = process.argv.slice(2).map(Number);
const KILLED = Math.max(1, Math.round(RUNNERS / 10));
/** Those of killed runners run again: with them every runner has three tasks, one after the other. */
const ROUNDS = 3;
const TASKS = RUNNERS * ROUNDS - KILLED;
const IDEAL_SECONDS = ROUNDS * SECONDS;
const MAX_SECONDS = 1.15 * IDEAL_SECONDS + 2 * AWAY_SECONDS;

const world = await startServers({ count: 1, environment: { RATE_LIMIT_PER_MINUTE: "60", LOG_LEVEL: "info" } });
const front = startFront(() => world.servers[0]!.url);
const place = createPlace("forty");
const ledger = join(place, "ledger");
await Bun.write(ledger, "");
const command = `
  echo "begin $ASSAY_TASK" >> ${ledger}; sleep ${SECONDS}
  printf '<testsuite name="%s"><testcase name="a"/></testsuite>' "$ASSAY_TASK" > "$ASSAY_TASK.xml"
  echo "end $ASSAY_TASK" >> ${ledger}`;
const slugs = Array.from({ length: TASKS }, (_, at) => `task-${at}`);
/** Each runner has a folder of its own, as each has a machine of its own: those of one folder work one after the other. */
function start(name: string, more: object = {}): RunnerProcess {
  const tasks = Object.fromEntries(slugs.map((slug) => [slug, { command, report: `${slug}.xml`, ...more }]));
  const config = join(place, name, "assay.yaml");
  mkdirSync(join(place, name), { recursive: true });
  writeFileSync(config, JSON.stringify({ tasks }));
  return startRunner(world, { url: front.url, config, args: ["--name", name] });
}
const runners = Array.from({ length: RUNNERS }, (_, at) => start(`runner-${at}`));
const brokenRunner = start("broken", { before: "exit 1" });

const { pool } = world.database;
const postmaster = () =>
  Number(readFileSync(join(world.directory, "postgres/cluster/postmaster.pid"), "utf8").split("\n")[0]);
/** The postmaster and its children: those are processes of this script's own cluster. */
const signalPostgres = async (signal: "SIGSTOP" | "SIGCONT") => {
  const parent = postmaster();
  const children = (await Bun.$`pgrep -P ${parent}`.nothrow().text()).split("\n").filter(Boolean).map(Number);
  for (const pid of signal === "SIGSTOP" ? [parent, ...children] : [...children, parent]) process.kill(pid, signal);
};

while ((await pool`select from runner`).length < RUNNERS + 1) await Bun.sleep(200);
const headers = { authorization: `Bearer ${world.key}`, "content-type": "application/json" };
const started = await fetch(`${front.url}/api/v1/projects/${world.project}/executions`, {
  method: "POST",
  headers,
  body: JSON.stringify({ mode: "run", tasks: slugs, timeoutMinutes: 60 }),
});
const { id } = (await started.json()) as { id: string };
const began = performance.now();
const elapsed = () => Math.round((performance.now() - began) / 1000);
const tell = (what: string) => console.log(`${elapsed()} s: ${what}`);
const until = async (second: number) => Bun.sleep(Math.max(0, second * 1000 - (performance.now() - began)));

await until(SECONDS / 8);
const killed = new Set<string>();
for (let at = 0; at < KILLED; at++) {
  const name = `runner-${at}`;
  runners[at]!.child.kill("SIGKILL");
  await runners[at]!.ended;
  for (const { slug } of await pool<{ slug: string }[]>`
    select task_slug as slug from lease where execution_id = ${id} and status in ('offered', 'running') and runner = ${name}`)
    killed.add(slug);
  runners[at] = start(`${name}-again`);
}
tell(`${KILLED} runners were killed, which held ${[...killed].join(", ")}`);

await until(1.3 * SECONDS);
const { child } = world.servers[0]!;
child.kill("SIGKILL");
await child.exited;
tell("the server is away");
await Bun.sleep(AWAY_SECONDS * 1000);
await world.restart(0);
tell("the server is back");
await Bun.sleep(20_000);
await signalPostgres("SIGSTOP");
tell("PostgreSQL is away");
await Bun.sleep(AWAY_SECONDS * 1000);
await signalPostgres("SIGCONT");
tell("PostgreSQL is back");

let status = "running";
while (["queued", "running"].includes(status) && elapsed() < 2 * MAX_SECONDS) {
  await Bun.sleep(500);
  // A connection that was frozen may fail once.
  const row = await pool<{ status: string }[]>`select status from execution where id = ${id}`.catch(() => []);
  status = row[0]?.status ?? status;
}
const seconds = elapsed();
tell(`the execution is ${status}`);
for (const runner of [...runners, brokenRunner]) runner.child.kill("SIGTERM");
const codes = await Promise.all([...runners, brokenRunner].map(({ ended }) => ended));

const begun = new Map<string, number>();
for (const line of readFileSync(ledger, "utf8").trim().split("\n")) {
  const [what, slug] = line.split(" ");
  if (what === "begin") begun.set(slug!, (begun.get(slug!) ?? 0) + 1);
}
const twice = [...begun].filter(([, times]) => times > 1).map(([slug]) => slug);
const leases = await pool<{ status: string; runner: string | null; count: number }[]>`
  select status, case when runner = 'broken' then runner end as runner, count(*)::int from lease
  where execution_id = ${id} group by 1, 2 order by 1, 2`;
const runs = await pool<{ status: string; passed: number; reported: number }[]>`
  select r.status, r.passed, (select count(*)::int from lease l where l.run_id = r.id and l.status = 'reported') as reported
  from test_run r where r.execution_id = ${id}`;
const right = runs.filter((run) => run.status === "passed" && run.passed === 1 && run.reported === 1);
const [{ failures }] = (await pool`select count(*)::int as failures from test_case where name <> 'a'`) as any;
const [paused] = await pool<
  { reason: string | null }[]
>`select pause_reason as reason from runner where name = 'broken'`;
const refused = front.seen.filter((one) => one.status === 429).length;
console.log(
  `leases: ${leases.map((row) => `${row.count} ${row.status}${row.runner ? ` of ${row.runner}` : ""}`).join(", ")}`,
);
console.log(
  `${front.seen.length} requests, ${refused} of them refused for the rate; the broken runner: ${paused?.reason}`,
);
judge(
  ["the execution ends green", status === "passed", status],
  ["every task has one result", right.length === TASKS, `${right.length} of ${TASKS}`],
  ["none ran twice but what a killed runner held", twice.every((slug) => killed.has(slug)), twice.join(", ") || "none"],
  [
    "nothing is timed out or lost, but what a killed runner held",
    leases.every((row) => row.status !== "timed_out" && (row.status !== "lost" || row.count <= KILLED)),
  ],
  ["nothing is blamed", failures === 0, failures],
  [
    "the broken runner has run nothing",
    !leases.some((row) => row.runner === "broken" && !["infrastructure", "returned"].includes(row.status)),
  ],
  [
    `it took at most 1.15 times the ideal and the outages`,
    seconds <= MAX_SECONDS,
    `${seconds} s; ideal ${IDEAL_SECONDS} s and ${2 * AWAY_SECONDS} s, at most ${Math.round(MAX_SECONDS)} s`,
  ],
  ["the runners end well", codes.every((code) => code === 0), [...new Set(codes)].join(", ")],
);
front.stop();
await world.stop();
await removePlace(place);
