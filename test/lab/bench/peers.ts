/** The list of 10 by Assay and by what a team would build it with otherwise, on the same database in the same run. */

import { join } from "node:path";
import { followOutput, guardProcess } from "../../places.ts";
import { ROUNDS } from "./list.ts";
import { type BenchServer, median, wrk } from "./server.ts";

const FOLDER = join(import.meta.dir, "peers");
/** NestJS with TypeORM was still getting faster after 3,000 requests. */
const WARM_UP_SECONDS = 6;

type Peer = { name: string; entry: string; runtime: "bun" | "node"; goal: number };
/** `isCounted`: the rate limit's remainder goes down with every request. */
type Behaviour = { pages: unknown[]; refusals: number[]; isCounted: boolean };
type Running = { url: string; stop(): Promise<unknown> };

const PEERS: Peer[] = [
  { name: "Hono on Bun + postgres.js", entry: "hono.ts", runtime: "bun", goal: 2.8 },
  { name: "Fastify 5 + pg on Node", entry: "fastify.ts", runtime: "node", goal: 6.5 },
  { name: "NestJS + TypeORM on Node", entry: "nest/main.ts", runtime: "node", goal: 20 },
];

/** Their packages are no business of Assay's: they have a lockfile of their own, and are installed when they are measured. */
export async function installPeers(): Promise<void> {
  const { exitCode, stderr } = await Bun.$`${process.execPath} install --frozen-lockfile`.cwd(FOLDER).quiet().nothrow();
  if (exitCode !== 0) throw new Error(`Cannot install the packages of the peers in ${FOLDER}:\n${stderr}`);
}

/** What Node can run of a source in TypeScript; its packages stay as they were published. */
async function build(entry: string): Promise<string> {
  const output = join(FOLDER, "dist", entry.replace(/\.ts$/, ".js"));
  const command = [process.execPath, "build", entry, "--target=node", "--packages=external", `--outfile=${output}`];
  const { exitCode, stderr } = await Bun.$`${command}`.cwd(FOLDER).quiet().nothrow();
  if (exitCode !== 0) throw new Error(`Cannot build ${entry}:\n${stderr}`);
  return output;
}

async function start({ entry, runtime }: Peer, { connection }: BenchServer): Promise<Running> {
  const { host, port, username, password, database } = connection;
  const command = runtime === "bun" ? [process.execPath, join(FOLDER, entry)] : ["node", await build(entry)];
  const child = Bun.spawn(command, {
    cwd: FOLDER,
    env: {
      ...process.env,
      NODE_ENV: "production",
      PGHOST: host,
      PGPORT: String(port),
      PGUSER: username,
      PGPASSWORD: password,
      PGDATABASE: database,
    },
    stdout: "pipe",
    stderr: "inherit",
  });
  guardProcess(child);
  const url = await followOutput(child, (output) => /http:\S+(?=\n)/.exec(output)?.[0]).url;
  const stop = () => {
    child.kill("SIGTERM");
    return child.exited;
  };
  return { url, stop };
}

const listOf = (url: string, project: string) => `${url}/api/v1/projects/${project}/test-runs`;

/** What is to be the same from everybody: two pages, the second by the first one's cursor; who is refused; who is counted. */
async function behaviour(url: string, { project, key }: BenchServer): Promise<Behaviour> {
  const ask = (query: string, of = project, by = key) =>
    fetch(listOf(url, of) + query, { headers: { authorization: `Bearer ${by}` } });
  const pages: unknown[] = [];
  const remaining: number[] = [];
  for (let cursor = ""; pages.length < 2;) {
    const response = await ask(`?limit=10${cursor}`);
    if (response.status !== 200) throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
    const { data, pagination } = (await response.json()) as { data: unknown; pagination: Record<string, unknown> };
    pages.push({ data, hasMore: pagination["hasMore"], answers: Object.keys(pagination).sort() });
    cursor = `&cursor=${pagination["cursor"]}`;
    for (const [name, value] of response.headers) if (/ratelimit-remaining/i.test(name)) remaining.push(Number(value));
  }
  const refusals = [
    fetch(listOf(url, project)),
    ask("", project, `${key}x`),
    ask("", crypto.randomUUID()),
    ask("?limit=0"),
    ask("?limit=ten"),
    ask("?further=1"),
    ask("?cursor=abc"),
  ];
  return {
    pages,
    refusals: await Promise.all(refusals.map(async (response) => (await response).status)),
    isCounted: remaining.length === 2 && remaining[1] === remaining[0]! - 1,
  };
}

/** Nobody's speed is that of an error, or of another list. */
function requireSame(name: string, found: Behaviour, expected: Behaviour): void {
  for (const part of Object.keys(expected) as (keyof Behaviour)[])
    if (!Bun.deepEquals(found[part], expected[part]))
      throw new Error(
        `${name} differs from Assay in ${part}: ${JSON.stringify(found[part])} and not ${JSON.stringify(expected[part])}`,
      );
}

/** Needs `installPeers`, and the runs of `seedRuns`. Without Node on the PATH, the rows of what runs on it say so. */
export async function benchPeers(server: BenchServer): Promise<string[][]> {
  // As new as the others, and with a rate limit that counts as theirs do: one that nobody reaches. What else it would open
  // connections for is not asked for here, and the built-in PostgreSQL has 60.
  const assay = await server.add({ RATE_LIMIT_PER_MINUTE: "1000000", DATABASE_POOL: "2" });
  const expected = await behaviour(assay.url, server);
  const measure = async (url: string, seconds?: number) => {
    const path = `${listOf(url, server.project)}?limit=10`;
    return (await wrk(path, { key: server.key, ...(seconds ? { seconds } : {}) })).perSecond;
  };
  await measure(assay.url, WARM_UP_SECONDS);
  const rows: string[][] = [];
  // One after the other, each in turns with Assay: together their pools would be more than the database takes.
  for (const peer of PEERS) {
    const [name, goal] = [`list of 10 against ${peer.name}, as usual`, `≥ ${peer.goal} ×`];
    if (peer.runtime === "node" && Bun.which("node") === null) {
      rows.push([name, "not measured: Node is not on the PATH", goal, ""]);
      continue;
    }
    const { url, stop } = await start(peer, server);
    const perSecond = { assay: [] as number[], peer: [] as number[] };
    try {
      requireSame(peer.name, await behaviour(url, server), expected);
      await measure(url, WARM_UP_SECONDS);
      for (let round = 0; round < ROUNDS; round++) {
        perSecond.assay.push(await measure(assay.url));
        perSecond.peer.push(await measure(url));
      }
    } finally {
      await stop();
    }
    const [ours, theirs] = [median(perSecond.assay), median(perSecond.peer)];
    rows.push([name, `${(ours / theirs).toFixed(1)} ×`, goal, `${whole(ours)} to ${whole(theirs)}`]);
  }
  return rows;
}

const whole = (value: number) => `${Math.round(value).toLocaleString("en")}/s`;
