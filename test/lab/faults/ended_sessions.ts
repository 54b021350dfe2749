/**
 * Ends all sessions of two servers in the middle of reads and writes, again and again, as a fail-over does: every request
 * is answered in time, and writes go on. `bun test/lab/faults/ended_sessions.ts [rounds]`, 200 of them take about 3 minutes.
 */

import postgres from "postgres";
import { judge, startServers } from "./servers.ts";

const ROUNDS = Number(process.argv[2] ?? 200);
const UPLOADERS = 3;
const READERS = 4;
/** What a request may take while the database is there again. */
const PATIENCE_MS = 12_000;

const world = await startServers({ count: 2 });
const admin = postgres({ ...world.connection, max: 1, connection: { application_name: "faults" } });
const runs = (url: string) => `${url}/api/v1/projects/${world.project}/test-runs`;
const headers = { authorization: `Bearer ${world.key}` };

type Client = { name: string; succeeded: number; asked: number };
let stopped = false;
let slowest = 0;
const counts = { answered: 0, failed: 0, unsaid: 0, hung: 0 };

/** One request after the other until the end. */
async function keepAsking(client: Client, ask: (signal: AbortSignal) => Promise<Response>): Promise<void> {
  while (!stopped) {
    const asked = (client.asked = performance.now());
    try {
      const response = await ask(AbortSignal.timeout(PATIENCE_MS + 30_000));
      await response.arrayBuffer();
      if (response.ok) client.succeeded = asked;
      else counts.failed++;
      if (response.status === 500 && !response.headers.has("retry-after")) counts.unsaid++;
      counts.answered++;
      if (response.status !== 200 && response.status !== 201 && response.status !== 500)
        throw new Error(`${client.name} was answered ${response.status}`);
    } catch (error) {
      if ((error as Error).name !== "TimeoutError") throw error;
      counts.hung++;
    }
    slowest = Math.max(slowest, performance.now() - asked);
  }
}

const clients: Client[] = [];
const work: Promise<void>[] = [];
function add(name: string, ask: (signal: AbortSignal) => Promise<Response>): void {
  const client = { name, succeeded: -1, asked: 0 };
  clients.push(client);
  work.push(keepAsking(client, ask));
}

let number = 0;
for (const [at, { url }] of world.servers.entries()) {
  for (let i = 0; i < UPLOADERS; i++)
    add(`uploader ${i} of server ${at}`, (signal) => {
      const body = `<testsuite name="u${i}"><testcase name="a"/><testcase name="b${number++ % 50}"/></testsuite>`;
      return fetch(runs(url), { method: "POST", headers, body, signal });
    });
  for (let i = 0; i < READERS; i++)
    add(`reader ${i} of server ${at}`, (signal) => fetch(runs(url), { headers, signal }));
}

/** Whether all have succeeded with what they have asked since; false when the patience is over. */
async function allSucceed(since: number): Promise<boolean> {
  while (clients.some(({ succeeded }) => succeeded < since)) {
    if (performance.now() - since > PATIENCE_MS) return false;
    await Bun.sleep(20);
  }
  return true;
}

let ended = 0;
let round = 0;
let holds = await allSucceed(performance.now());
for (; holds && round < ROUNDS; round++) {
  // Half of the rounds strike again while connections are being made anew.
  for (let strike = 0; strike <= round % 2; strike++) {
    await Bun.sleep(Math.random() * 300);
    const rows = await admin`
      select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'assay %' and pid <> pg_backend_pid()`;
    ended += rows.length;
  }
  holds = await allSucceed(performance.now());
  if (!holds) {
    const since = performance.now() - PATIENCE_MS;
    for (const { name } of clients.filter(({ succeeded }) => succeeded < since)) console.log(`no success: ${name}`);
  }
}
stopped = true;
await Promise.race([
  Promise.all(work.map((one, at) => one.then(() => (clients[at]!.asked = Infinity)))),
  Bun.sleep(PATIENCE_MS),
]);
counts.hung += clients.filter(({ asked }) => asked < Infinity).length;
const ready = await Promise.all(world.servers.map(async ({ url }) => (await fetch(`${url}/readyz`)).status));
console.log(`${ended} sessions ended, ${counts.answered} requests answered, ${counts.failed} of them 500`);
judge(
  [`everybody succeeds within ${PATIENCE_MS / 1000} s of each strike`, holds, `${round} of ${ROUNDS} rounds`],
  ["who is answered 500 is told when to try again", counts.unsaid === 0, `${counts.unsaid} were not`],
  ["both servers are ready", ready.every((status) => status === 200), ready.join(", ")],
  ["no request hangs", counts.hung === 0, `${counts.hung}; the slowest took ${Math.round(slowest)} ms`],
);
await admin.end();
await world.stop();
