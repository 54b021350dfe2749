/**
 * Three machines with PostgreSQL under Patroni and etcd, three with Assay and HAProxy, nginx in front, all configured as deploy/ says, under
 * uploads, tasks and revocations: leaders are killed, frozen and cut off, a disk fills up, servers die. No acknowledged upload may be lost, no
 * lease run twice, no revoked key accepted, and writes must work again within the time of a fail-over.
 *
 * `bun test/lab/cluster/cluster.ts [--logs FOLDER] [FAULT…]`, all faults take about 15 minutes. Needs root, and the packages patroni, etcd-server,
 * haproxy, nginx, postgresql, iproute2 and nftables of Debian. The machines are network namespaces: nothing is reached outside.
 */

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { findOwnCgroup, openGroup, type TaskCgroup } from "../../../src/runner/cgroups.ts";
import { createPlace, guardProcess, removePlace } from "../../places.ts";
import { judge } from "../faults/servers.ts";
import { startApplication } from "./application.ts";
import { findPostgres, startDatabase } from "./database.ts";
import { patroniTimes } from "./examples.ts";
import { type Fault, FAULTS, type World } from "./faults.ts";
import { startUploads, type Uploads } from "./load.ts";
import { createNetwork, type Machine } from "./machines.ts";
import { startRevocations } from "./revocations.ts";
import { startTasks } from "./tasks.ts";

const PROGRAMS = ["unshare", "nsenter", "setpriv", "ip", "nft", "patroni", "etcd", "haproxy", "nginx"];
const MINUTES = 60;
/** Beside the times of Patroni: electing, promoting, HAProxy's check and connecting. */
const SLACK_SECONDS = 5;
/** A server that was killed is known to its proxy at once, and a standby that vanished when Patroni looks again. */
const SERVER_SECONDS = 5;
const SETTLE_MS = 3_000;
const LEADER_MS = 120_000;

type Claims = Parameters<typeof judge>;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { logs: { type: "string" }, inside: { type: "string" } },
});
const unknown = positionals.filter((name) => !(name in FAULTS));
if (unknown.length > 0) throw new Error(`Unknown: ${unknown.join(", ")}; expected ${Object.keys(FAULTS).join(", ")}`);

/** The namespaces of mounts, processes and network end with their first process: nothing outlives it. */
async function runInNamespaces(): Promise<void> {
  const path = `${process.env["PATH"]}:/usr/sbin:/sbin`;
  const missing = PROGRAMS.filter((program) => !Bun.which(program, { PATH: path }));
  if (findPostgres() === undefined) missing.push("postgresql");
  if (process.getuid?.() !== 0) missing.push("root");
  if (missing.length > 0) return console.log(`Skipped: needs ${missing.join(", ")}`);
  const place = createPlace("cluster");
  await Bun.$`chmod 755 ${place}`;
  // A shell is the first process because it waits for processes whose parent has ended, which Patroni relies on.
  const command = ["sh", "-c", '"$@"; exit $?', "sh", process.execPath, import.meta.path, "--inside", place];
  const logs = values.logs === undefined ? [] : ["--logs", values.logs];
  const namespaces = ["unshare", "-m", "-n", "-p", "--fork", "--kill-child", "--mount-proc", ...command, ...logs];
  // In a group of their own: a runner outside would take those of the runners inside for left over, because it does not see their processes.
  const group = createGroup();
  const child = Bun.spawn([...(group?.wrap(namespaces) ?? namespaces), ...positionals], {
    env: { ...process.env, PATH: path },
    stdio: ["ignore", "inherit", "inherit"],
  });
  guardProcess(child);
  process.exitCode = await child.exited;
  await removePlace(place);
  await group?.remove();
}

function createGroup(): TaskCgroup | undefined {
  const own = findOwnCgroup();
  if (own === undefined) return undefined;
  const path = join(own, `assay-cluster-${process.pid}`);
  mkdirSync(path);
  return openGroup(path);
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}

async function untilAnotherLeads({ database }: World, leader: Machine): Promise<void> {
  for (const began = performance.now(); performance.now() - began < LEADER_MS; await Bun.sleep(200)) {
    const found = await database.find("leader", leader);
    if (found !== undefined && found !== leader) return;
  }
}

/** Waits until uploads are acknowledged again, for a while. */
async function untilWritesWork(uploads: Uploads): Promise<void> {
  for (const began = performance.now(); performance.now() - began < LEADER_MS; await Bun.sleep(200))
    if (uploads.acknowledgedSince(performance.now() - 2_000) >= 5) return;
}

function limitOf({ affects }: Fault): number {
  const { ttl, loop_wait } = patroniTimes();
  return affects === "servers" ? SERVER_SECONDS : ttl + loop_wait + SLACK_SECONDS;
}

/** Returns the longest time without an acknowledged write, in ms. */
async function endure(
  world: World,
  uploads: Uploads,
  fault: Fault,
  round: number,
): Promise<{ ms: number; claims: Claims }> {
  const leader = (await world.database.find("leader"))!;
  const first = uploads.acknowledged();
  uploads.takeExperience();
  const began = performance.now();
  const undo = await fault.strike(world, leader, round);
  if (fault.affects === "leader") await untilAnotherLeads(world, leader);
  await Bun.sleep(Math.max(SETTLE_MS, (fault.holdMs ?? 0) - (performance.now() - began)));
  await untilWritesWork(uploads);
  await undo();
  const isWhole = await world.database.untilWhole();
  const rejoined = performance.now();
  await Bun.sleep(Math.max(SETTLE_MS, fault.watchMs ?? 0));
  await untilWritesWork(uploads);
  const { ms } = uploads.longestPause(began);
  const { statuses, slowestMs, longestRetriedMs, unexpected } = uploads.takeExperience();
  const damaged = await uploads.findDamaged(first);
  const count = uploads.acknowledged() - first;
  const answers = [...statuses].map(([status, times]) => `${times} × ${status}`).join(", ");
  console.log(
    `${fault.name}: ${seconds(ms)} without an acknowledged write; ${answers}; slowest request ${seconds(slowestMs)}, ` +
      `with repetitions ${seconds(longestRetriedMs)}; three members after ${seconds(rejoined - began)}`,
  );
  const { lost, repeated, partial } = damaged;
  return {
    ms,
    claims: [
      [`${fault.name}: writes within ${limitOf(fault)} s`, ms < limitOf(fault) * 1_000, seconds(ms)],
      [
        `${fault.name}: every acknowledged upload is there, once and whole`,
        lost.length + repeated.length + partial.length === 0,
        `${count}, ${lost.length} lost, ${repeated.length} repeated, ${partial.length} partial ${[...lost, ...repeated, ...partial].slice(0, 5)}`,
      ],
      [
        `${fault.name}: failures are 500 with Retry-After, or of nginx`,
        unexpected.length === 0,
        unexpected.slice(0, 3).join("; "),
      ],
      [`${fault.name}: three members again`, isWhole, isWhole ? undefined : await world.database.describe()],
    ],
  };
}

async function run(place: string): Promise<void> {
  const logs = values.logs ?? join(place, "logs");
  mkdirSync(logs, { recursive: true });
  setTimeout(() => {
    console.log(`FAILS  the script ends within ${MINUTES} minutes`);
    process.exit(1);
  }, MINUTES * 60_000);
  await createNetwork();
  const database = await startDatabase(place, logs);
  const application = await startApplication(place, logs);
  const world = { database, application };
  console.log("The cluster is running");

  const [uploads, revocations, tasks] = [
    startUploads(application),
    startRevocations(application),
    startTasks(application, place),
  ];
  await Bun.sleep(SETTLE_MS);
  const claims: Claims = [];
  const figures: string[] = [];
  const names = positionals.length > 0 ? positionals : Object.keys(FAULTS);
  for (const fault of names.map((name) => FAULTS[name]!)) {
    const pauses: number[] = [];
    for (let round = 0; round < (fault.times ?? 1); round++) {
      const { ms, claims: found } = await endure(world, uploads, fault, round);
      pauses.push(ms);
      claims.push(...found);
    }
    const sorted = pauses.toSorted((a, b) => a - b);
    const median = sorted[Math.floor(sorted.length / 2)]!;
    figures.push(`| ${fault.name} | ${pauses.length} | ${seconds(median)} | ${seconds(sorted.at(-1)!)} |`);
  }
  const [keys, ran] = [await revocations.finish(), await tasks.finish()];
  await uploads.stop();
  const all = await uploads.findDamaged();
  console.log(["| fault | times | median | longest |", "| --- | --- | --- | --- |", ...figures].join("\n"));
  console.log([`leases: ${ran.statuses.join(", ")}`, ...ran.messages].join("\n"));
  judge(
    ...claims,
    [
      "at the end every acknowledged upload is there",
      all.lost.length === 0,
      `${uploads.acknowledged()} acknowledged, ${all.lost.length} lost`,
    ],
    ["no upload is stored twice or by halves", all.repeated.length + all.partial.length === 0],
    [
      "no revoked key is accepted",
      keys.accepted.length === 0 && keys.revoked > 0,
      `${keys.revoked} revoked, ${keys.refusals} requests refused, accepted: ${keys.accepted.length} ${keys.accepted.slice(0, 5)}`,
    ],
    ["no lease runs twice", ran.twice.length === 0 && ran.begun > 0, `${ran.begun} ran, ${ran.twice.length} twice`],
    ["no task runs again under another lease", ran.again.length === 0, `${ran.again.length} ran again`],
    [
      "every execution passes, with one result for each task",
      !ran.isStuck && ran.unsuccessful === 0 && ran.results === ran.expected,
      `${ran.executions} executions, ${ran.unsuccessful} unsuccessful, ${ran.results} of ${ran.expected} results`,
    ],
  );
  process.exit();
}

if (values.inside === undefined) await runInNamespaces();
else await run(values.inside);
