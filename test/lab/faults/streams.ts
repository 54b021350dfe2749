/**
 * Four hundred open streams on two servers while uploads go on and a runner prints: what other requests take, what memory
 * it costs, and that everybody is told everything once. `bun test/lab/faults/streams.ts [seconds]`, 30 of them by default.
 */

import { connect } from "node:net";
import { generateProjectKey } from "../../../src/operations/people/keys.ts";
import { insertProject } from "../../../src/store/projects.ts";
import { openStream } from "../../event_stream.ts";
import { guardProcess } from "../../places.ts";
import { judge, startServers } from "./servers.ts";

// Bun opens no more connections than this, which it reads once.
if (process.env.BUN_CONFIG_MAX_HTTP_REQUESTS === undefined) {
  const again = Bun.spawn([process.execPath, ...process.argv.slice(1)], {
    env: { ...process.env, BUN_CONFIG_MAX_HTTP_REQUESTS: "1000" },
    stdio: ["ignore", "inherit", "inherit"],
  });
  guardProcess(again);
  process.exit(await again.exited);
}

// Other requests are sent by a process of its own: the one that reads four hundred streams has much to do itself.
if (process.env.READS !== undefined) {
  const { urls, targets, seconds } = JSON.parse(process.env.READS) as Reads;
  const took: number[] = [];
  for (let n = 0, until = performance.now() + seconds * 1000; performance.now() < until; n++) {
    const { project, key } = targets[n % targets.length]!;
    const started = performance.now();
    const path = `${urls[n % urls.length]}/api/v1/projects/${project}/test-runs`;
    await (await fetch(path, { headers: { authorization: `Bearer ${key}` } })).text();
    took.push(performance.now() - started);
    await Bun.sleep(10);
  }
  console.log(JSON.stringify(took));
  process.exit(0);
}
type Reads = { urls: string[]; targets: { project: string; key: string }[]; seconds: number };

const SECONDS = Math.min(60, Number(process.argv[2] ?? 30));
const STREAMS = 400;
const PROJECTS = 10;
const UPLOADERS = 4;
/** What a client that reads nothing leaves in the buffers of the system is not ours. */
const DEAF = 8;
const DEAF_LINES = 40;

const world = await startServers({ count: 2, environment: { LOG_LEVEL: "info" } });
const { servers, database, team } = world;
const projects = [{ project: world.project, key: world.key }];
while (projects.length < PROJECTS)
  projects.push(
    await database.begin(async (sql) => {
      const project = (await insertProject(sql, team, `project ${projects.length}`))!;
      return { project, key: (await generateProjectKey(sql, project))!.key };
    }),
  );

type Call = { server: number; method: string; path: string; key: string; body?: string };
async function call({ server, method, path, key, body }: Call) {
  const response = await fetch(`${servers[server % 2]!.url}/api/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${key}` },
    ...(body === undefined ? {} : { body }),
  });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as any;
}

const percentile = (values: number[], share: number) =>
  Math.round(values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) * share)] ?? 0);
const memory = async () => (await Promise.all(servers.map((server) => server.memory()))).map(({ now }) => now);
const cpu = async () => {
  const stats = await Promise.all(servers.map(({ child }) => Bun.file(`/proc/${child.pid}/stat`).text()));
  return stats.reduce((sum, text) => {
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return sum + Number(fields[11]) + Number(fields[12]);
  }, 0);
};

const report = (name: string) =>
  `<testsuite name="${name}">${Array.from({ length: 50 }, (_, at) => `<testcase name="c${at}"/>`).join("")}</testsuite>`;

/** Uploads and reads for so long; how long the reads took, in milliseconds. */
async function work(seconds: number, uploaded: Map<string, string[]>): Promise<number[]> {
  const until = performance.now() + seconds * 1000;
  const uploads = Array.from({ length: UPLOADERS }, async (_, uploader) => {
    for (let n = 0; performance.now() < until; n++) {
      const { project, key } = projects[(uploader + n) % PROJECTS]!;
      const slug = `task-${uploader}-${n}-${uploaded.size}`;
      const path = `/projects/${project}/test-runs?task_slug=${slug}`;
      await call({ server: n, method: "POST", path, key, body: report(slug) });
      uploaded.set(project, [...(uploaded.get(project) ?? []), slug]);
      await Bun.sleep(50);
    }
  });
  const reads: Reads = { urls: servers.map(({ url }) => url), targets: projects, seconds };
  const reader = Bun.spawn([process.execPath, import.meta.path], {
    env: { ...process.env, READS: JSON.stringify(reads) },
    stdio: ["ignore", "pipe", "inherit"],
  });
  guardProcess(reader);
  await Promise.all(uploads);
  return JSON.parse(await new Response(reader.stdout).text());
}

/** One run of the first project, watched by all of its streams. */
const [own] = projects as [(typeof projects)[number]];
const path = `/projects/${own.project}`;
const execution = await call({
  ...{ server: 0, method: "POST", path: `${path}/executions`, key: own.key },
  body: JSON.stringify({ mode: "run", tasks: ["unit"] }),
});
const sync = (body: object) =>
  call({
    ...{ server: 0, method: "POST", path: `${path}/leases`, key: own.key },
    body: JSON.stringify({ runner: "ann", ...body }),
  });
const { leases } = await sync({ free: 1 });
const lease: string = leases[0].id;

console.log("without streams");
const alone = await work(8, new Map());
const before = await memory();
console.log(`  reads p50 ${percentile(alone, 0.5)} ms, p99 ${percentile(alone, 0.99)} ms; memory ${before} MiB`);

const printedAt = new Map<number, number>();
const late: number[] = [];
const streams = await Promise.all(
  Array.from({ length: STREAMS }, async (_, at) => {
    const { project, key } = projects[at % PROJECTS]!;
    const query = project === own.project ? `?execution_id=${execution.id}` : "";
    return await openStream(servers[Math.floor(at / PROJECTS) % 2]!.url, project, {
      key,
      query,
      onTold({ event, data }) {
        if (event === "log") late.push(performance.now() - printedAt.get(data.offset)!);
      },
    });
  }),
);
const opened = streams.filter(({ status }) => status === 200).length;

// Beside them clients that ask for much and read nothing.
const deaf = Array.from({ length: DEAF }, (_, at) => {
  const url = new URL(servers[at % 2]!.url);
  const socket = connect(Number(url.port), url.hostname);
  socket.pause();
  socket.on("error", () => {});
  socket.write(
    `GET /api/v1${path}/events?execution_id=${execution.id} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${own.key}\r\n\r\n`,
  );
  return socket;
});

const uploaded = new Map<string, string[]>();
let offset = 0;
let printing = true;
const printer = (async () => {
  while (printing) {
    const text = `${"x".repeat(offset < DEAF_LINES * 200_000 ? 199_999 : 99)}\n`;
    printedAt.set(offset, performance.now());
    await sync({ free: 0, held: [{ id: lease, log: { offset, text } }] });
    offset += text.length;
    await Bun.sleep(500);
  }
})();
const spent = await cpu();
const watched = await work(SECONDS, uploaded);
const cores = ((await cpu()) - spent) / 100 / SECONDS;
printing = false;
await printer;
const during = await memory();
const slugsOf = (stream: (typeof streams)[number]) =>
  stream.named("test_run.completed").map(({ data }) => data.testRun.taskSlug as string);
const isTold = (stream: (typeof streams)[number], at: number) => {
  const { project } = projects[at % PROJECTS]!;
  if (project === own.project) return true;
  const [heard, all] = [slugsOf(stream), uploaded.get(project) ?? []];
  return heard.length === all.length && new Set(heard).size === all.length && all.every((slug) => heard.includes(slug));
};
const logsOf = (stream: (typeof streams)[number]) => stream.named("log").map(({ data }) => data.offset as number);
const hasLog = (stream: (typeof streams)[number], at: number) =>
  at % PROJECTS !== 0 || [...printedAt.keys()].join() === logsOf(stream).join();
const whole = () => streams.every((stream, at) => isTold(stream, at) && hasLog(stream, at));
for (const end = performance.now() + 5_000; !whole() && performance.now() < end;) await Bun.sleep(50);

console.log(`with ${opened} streams and ${DEAF} that read nothing, for ${SECONDS} s`);
console.log(`  reads p50 ${percentile(watched, 0.5)} ms, p99 ${percentile(watched, 0.99)} ms; memory ${during} MiB`);
console.log(`  log text after p50 ${percentile(late, 0.5)} ms, p99 ${percentile(late, 0.99)} ms`);
console.log(`  both servers together use ${cores.toFixed(2)} cores`);
const grown = Math.max(...during.map((now, at) => now - before[at]!));
const claims: Parameters<typeof judge> = [
  ["all streams open", opened === STREAMS, opened],
  ["every upload is told once to each of them", streams.every(isTold)],
  ["everything printed is told once and in order", streams.every(hasLog), `${offset} bytes`],
  ["reads beside them take less than 250 ms, 99 of 100", percentile(watched, 0.99) < 250],
  ["printed text is there within 3 s, 99 of 100", percentile(late, 0.99) < 3_000],
  ["memory grows by less than 200 MiB", grown < 200, `${grown} MiB`],
];

const stopped = performance.now();
for (const { child } of servers) child.kill("SIGTERM");
await Promise.all(streams.map(({ over }) => over));
await Promise.all(servers.map(({ child }) => child.exited));
const tookMs = Math.round(performance.now() - stopped);
const farewells = streams.filter(({ told }) => told.at(-1)?.data.reason === "stopping").length;
claims.push(
  ["servers that stop end all streams with a word", farewells === STREAMS, farewells],
  ["and within 10 s, whoever reads nothing", tookMs < 10_000, `${tookMs} ms`],
);
judge(...claims);
for (const socket of deaf) socket.destroy();
await world.stop();
