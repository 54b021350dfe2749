/**
 * Makes all connections to the database fall silent under servers that read and write, again and again: nothing passes any
 * more, nothing is closed, and new connections work, as after a fail-over or when a firewall has forgotten them. Everything
 * must work again by itself, slow statements must be left alone, and SIGTERM must end the servers in that state.
 * `bun test/lab/faults/silent_connections.ts [rounds]`, 5 of them take about 2 minutes.
 */

import { insertAccount, insertMembership } from "../../../src/store/accounts.ts";
import { startSession } from "../../../src/operations/people/accounts.ts";
import { startTunnel } from "../../tunnel.ts";
import { judge, startServers } from "./servers.ts";

const ROUNDS = Number(process.argv[2] ?? 5);
/** From the beginning of the silence until everybody succeeds. */
const RECOVERY_MS = 15_000;
/** The longest that a request which was under way may take. */
const STUCK_MS = 20_000;
const STOP_MS = 30_000;
/** Longer than it takes to suspect a connection twice. */
const SLOW_MS = 13_000;

// The pools are small, so that PostgreSQL has enough connections for the silent ones and for those that replace them.
const world = await startServers();
const { username, password, database: name } = world.connection;
const tunnel = await startTunnel(world.connection);
const { host, port } = tunnel.options;
const DATABASE_URL = `postgres://${username}:${encodeURIComponent(password)}@${host}:${port}/${name}`;
// Only servers whose connections can fall silent: another one would do their work in the background.
world.servers[0]!.child.kill("SIGTERM");
await world.servers[0]!.child.exited;
const servers = [
  await world.add({ DATABASE_URL, DATABASE_POOL: "4" }),
  await world.add({ DATABASE_URL, DATABASE_POOL: "2" }),
];

const { token } = await world.database.begin(async (sql) => {
  const account = (await insertAccount(sql, { email: "ada@acme.example", name: "Ada", passwordHash: null }))!;
  await insertMembership(sql, world.team, account, "owner");
  return await startSession(sql, account, { address: "127.0.0.1", userAgent: "faults" });
});
const cookie = `assay_session=${token}`;
const authorization = `Bearer ${world.key}`;
const json = { authorization, "content-type": "application/json" };

type Client = { name: string; succeededAt: number; isAsking: boolean };
type Ask = (signal: AbortSignal) => Promise<Response>;
const clients: Client[] = [];
let isOver = false;
let slowestMs = 0;
const counts = { answered: 0, failed: 0, unsaid: 0, odd: new Set<string>(), hung: 0 };

/** One request after the other until the end. */
async function keepAsking(client: Client, isPage: boolean, ask: Ask): Promise<void> {
  while (!isOver) {
    const asked = performance.now();
    client.isAsking = true;
    try {
      const response = await ask(AbortSignal.timeout(STUCK_MS + 30_000));
      await response.arrayBuffer();
      counts.answered++;
      if (response.ok) client.succeededAt = asked;
      else counts.failed++;
      if (response.status === 500 && !isPage && !response.headers.has("retry-after")) counts.unsaid++;
      if (!response.ok && !isPage && response.status !== 500) counts.odd.add(`${client.name}: ${response.status}`);
    } catch (error) {
      counts.hung++;
      console.log(`${client.name}: ${String(error)}`);
    }
    client.isAsking = false;
    slowestMs = Math.max(slowestMs, performance.now() - asked);
    await Bun.sleep(20);
  }
}

/** Reads events, and counts as a success what it was told more than a second after it was asked for. */
async function keepListening(client: Client, open: (signal: AbortSignal) => Promise<Response>): Promise<void> {
  while (!isOver) {
    const abort = new AbortController();
    try {
      const response = await open(abort.signal);
      if (!response.ok) await response.arrayBuffer();
      else
        for await (const bytes of response.body!) {
          if (Buffer.from(bytes as Uint8Array).includes("data:")) client.succeededAt = performance.now() - 1_000;
          if (isOver) break;
        }
    } catch {}
    abort.abort();
    await Bun.sleep(100);
  }
}

const working: Promise<void>[] = [];
let number = 0;
for (const [at, { url }] of servers.entries()) {
  const project = `${url}/api/v1/projects/${world.project}`;
  const add = (what: string, ask: Ask, isPage = false) => {
    const client = { name: `${what} of server ${at}`, succeededAt: -1, isAsking: false };
    clients.push(client);
    working.push(keepAsking(client, isPage, ask));
  };
  const get = (path: string, headers: Record<string, string>) => (signal: AbortSignal) =>
    fetch(path, { headers, signal });
  const upload = (padding: number) => (signal: AbortSignal) => {
    const body = `<testsuite name="s"><testcase name="a${number++ % 50}"/><!--${"x".repeat(padding)}--></testsuite>`;
    return fetch(`${project}/test-runs`, { method: "POST", headers: { authorization }, body, signal });
  };
  for (let i = 0; i < 3; i++) add(`uploader ${i}`, upload(0));
  add("uploader of large reports", upload(1_200_000));
  for (let i = 0; i < 3; i++) add(`reader ${i} of runs`, get(`${project}/test-runs`, { authorization }));
  for (let i = 0; i < 3; i++) add(`reader ${i} of executions`, get(`${project}/executions`, { authorization }));
  add("reader of the project", get(project, { authorization }));
  for (let i = 0; i < 3; i++)
    add(`viewer ${i}`, get(`${url}/projects/${world.project}`, { cookie, accept: "text/html" }), true);
  add("runner", (signal) => {
    const body = JSON.stringify({ runner: `runner of ${at}`, free: 1, waitSeconds: 2, taskSlugs: ["none"] });
    return fetch(`${project}/leases`, { method: "POST", headers: json, body, signal });
  });
  add("probe", get(`${url}/readyz`, {}), true);
  const client = { name: `event stream of server ${at}`, succeededAt: -1, isAsking: false };
  clients.push(client);
  working.push(keepListening(client, (signal) => fetch(`${project}/events`, { headers: { authorization }, signal })));
}

/** How long it took until all had succeeded with what they asked after `since`; undefined where it takes too long. */
async function recoveryMs(since: number): Promise<number | undefined> {
  while (clients.some(({ succeededAt }) => succeededAt < since)) {
    if (performance.now() - since > RECOVERY_MS) return undefined;
    await Bun.sleep(20);
  }
  return performance.now() - since;
}
const closings = () =>
  servers.flatMap(({ output }) => output().match(/Connections to the database have fallen silent/g) ?? []).length;

await recoveryMs(performance.now());

// A statement that is slow, on a connection that is sound.
const slow = await world.database.begin(async (sql) => {
  await sql`lock table bug_report in access exclusive mode`;
  const answers = servers.map(({ url }) =>
    fetch(`${url}/api/v1/projects/${world.project}/bug-reports`, { headers: { authorization } }),
  );
  await Bun.sleep(SLOW_MS);
  return answers;
});
const slowStatuses = (await Promise.all(slow)).map(({ status }) => status);
const closedWrongly = closings();

const recoveries: (number | undefined)[] = [];
let silenced = 0;
for (let round = 0; round < ROUNDS && !recoveries.includes(undefined); round++) {
  await Bun.sleep(1_000 + Math.random() * 4_000);
  silenced += tunnel.silence();
  const since = performance.now();
  recoveries.push(await recoveryMs(since));
  if (recoveries.at(-1) === undefined)
    for (const { name } of clients.filter(({ succeededAt }) => succeededAt < since)) console.log(`no success: ${name}`);
}
const closed = closings();

isOver = true;
const ended = Promise.all(working);
await Promise.race([ended, Bun.sleep(STUCK_MS)]);
counts.hung += clients.filter(({ isAsking }) => isAsking).length;

// Asked for in the silence: some requests are under way, and so is what runs in the background.
silenced += tunnel.silence();
const asked = servers.flatMap(({ url }) =>
  ["test-runs", "executions"].map((path) =>
    fetch(`${url}/api/v1/projects/${world.project}/${path}`, { headers: { authorization } }).then(
      ({ status }) => status,
      () => 0,
    ),
  ),
);
await Bun.sleep(1_000);
const stopping = performance.now();
for (const { child } of servers) child.kill("SIGTERM");
const stops = await Promise.all(
  servers.map(async ({ child }) => {
    const code = await Promise.race([child.exited, Bun.sleep(2 * STOP_MS).then(() => undefined)]);
    return { code, ms: performance.now() - stopping };
  }),
);
await Promise.all(asked);

console.log(`${silenced} connections silenced, ${counts.answered} requests answered, ${counts.failed} of them 500`);
const seconds = (ms: number | undefined) => (ms === undefined ? "never" : `${(ms / 1_000).toFixed(1)} s`);
judge(
  [
    `a statement of ${SLOW_MS / 1_000} s is answered, and no connection is closed`,
    slowStatuses.every((status) => status === 200) && closedWrongly === 0,
    `${slowStatuses.join(", ")}; ${closedWrongly} closed`,
  ],
  [
    `everybody succeeds within ${RECOVERY_MS / 1_000} s of each silence`,
    recoveries.length === ROUNDS && !recoveries.includes(undefined),
    recoveries.map(seconds).join(", "),
  ],
  [`no request takes longer than ${STUCK_MS / 1_000} s`, counts.hung === 0 && slowestMs < STUCK_MS, seconds(slowestMs)],
  ["who is answered 500 is told when to try again", counts.unsaid === 0, `${counts.unsaid} were not`],
  ["nobody is answered anything else", counts.odd.size === 0, [...counts.odd].join(", ")],
  ["the log tells of it", closed >= ROUNDS, `${closed} lines`],
  [
    `SIGTERM ends the servers within ${STOP_MS / 1_000} s`,
    stops.every(({ code, ms }) => code === 0 && ms < STOP_MS),
    stops.map(({ code, ms }) => `${code} after ${seconds(ms)}`).join(", "),
  ],
);
tunnel.close();
await world.stop();
process.exit();
