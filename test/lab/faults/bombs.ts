/** Bombs and the largest of valid reports, many side by side, against a real server: its memory, and what others feel. */

import { judge, startServers } from "./servers.ts";

const MIB = 1_048_576;
const MAX_MIB = 1_024;
const MAX_MS = 250;

if (process.argv[2] === "probe") {
  const [list, key] = process.argv.slice(3) as [string, string];
  let isDone = false;
  process.stdin.on("end", () => (isDone = true)).resume();
  const ask = async (url: string) => {
    let longest = 0;
    while (!isDone) {
      const began = performance.now();
      const response = await fetch(url, { headers: { authorization: `Bearer ${key}` } });
      await response.text();
      if (response.status !== 200) throw new Error(`${url} answered ${response.status}`);
      longest = Math.max(longest, performance.now() - began);
      await Bun.sleep(25);
    }
    return Math.round(longest);
  };
  const [health, lists] = await Promise.all([ask(new URL("/healthz", list).href), ask(list)]);
  process.stdout.write(JSON.stringify({ health, list: lists }));
  process.exit(0);
}

const start = await startServers();
const { servers, project, key, database } = start;
const [server] = servers as [(typeof servers)[number]];
const list = `${server.url}/api/v1/projects/${project}/test-runs`;
const authorization = `Bearer ${key}`;

/** A JUnit report of about so many bytes, mostly output, a case for every 4 KiB. */
function report(bytes: number): Uint8Array<ArrayBuffer> {
  const parts = [`<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="bombs">\n`];
  const output = "as it is told in the specification of the product\n".repeat(79);
  for (let index = 0; index < bytes / 4_100; index++) {
    const suite = Math.floor(index / 100);
    if (index % 100 === 0)
      parts.push(`${index > 0 ? "</testsuite>\n" : ""}<testsuite name="com.acme.Suite${suite}">\n`);
    parts.push(
      `<testcase classname="com.acme.Suite${suite}" name="does what it should in the case of ${index}" time="0.1"><system-out>${output}</system-out></testcase>\n`,
    );
  }
  parts.push("</testsuite></testsuites>");
  return new TextEncoder().encode(parts.join(""));
}

const post = async (body: Uint8Array<ArrayBuffer>, query: string, headers: Record<string, string> = {}) => {
  const response = await fetch(`${list}${query}`, {
    method: "POST",
    headers: { authorization, ...headers },
    body: body as never,
  });
  return { status: response.status, text: await response.text() };
};

/** Asks again and again, in a process of its own, while `work` goes on; the longest answer of each in ms. */
async function watch(work: Promise<unknown>): Promise<{ health: number; list: number }> {
  const probe = Bun.spawn([process.execPath, import.meta.path, "probe", list, key], { stdin: "pipe", stdout: "pipe" });
  await work.finally(() => probe.stdin.end());
  return JSON.parse(await new Response(probe.stdout).text());
}

type Claim = Parameters<typeof judge>[number];
const claims: Claim[] = [];

async function round(
  what: string,
  count: number,
  expected: { status: number; message?: string },
  send: (index: number) => ReturnType<typeof post>,
): Promise<void> {
  await server.forgetPeak();
  const began = performance.now();
  const all = Promise.all(Array.from({ length: count }, (_, index) => send(index)));
  const longest = await watch(all);
  const answers = await all;
  const seconds = (performance.now() - began) / 1_000;
  const wrong = answers.filter(
    ({ status, text }) => status !== expected.status || (expected.message && !text.includes(expected.message)),
  );
  const { peak } = await server.memory();
  claims.push(
    [
      `${what}: each is answered ${expected.status}`,
      wrong.length === 0,
      wrong[0]?.text.slice(0, 200) ?? `${seconds.toFixed(1)} s`,
    ],
    [`${what}: the server takes less than ${MAX_MIB} MiB`, peak < MAX_MIB, `${peak} MiB`],
    [`${what}: /healthz within ${MAX_MS} ms`, longest.health < MAX_MS, `${longest.health} ms`],
    [`${what}: the list within ${MAX_MS} ms`, longest.list < MAX_MS, `${longest.list} ms`],
  );
}

const countRuns = async () => (await database.pool`select from test_run`).length;

try {
  await post(
    new TextEncoder().encode(`<testsuite name="first"><testcase name="first"/></testsuite>`),
    "?task_slug=first",
  );
  const idle = (await server.memory()).now;
  const zeros = new Uint8Array(900 * MIB);
  const bombs = { zstd: new Uint8Array(Bun.zstdCompressSync(zeros)), gzip: Bun.gzipSync(zeros) };
  const tooLarge = {
    status: 400,
    message: "Body too large: at most 128 MiB after decompression (MAX_INFLATED_MB of the server)",
  };
  const toEncoding = (encoding: string) => ({ "content-encoding": encoding });
  const before = await countRuns();
  await round("twenty zstd bombs", 20, tooLarge, () => post(bombs.zstd, "", toEncoding("zstd")));
  await round("twenty gzip bombs", 20, tooLarge, () => post(bombs.gzip, "", toEncoding("gzip")));
  claims.push(["bombs leave nothing", (await countRuns()) === before]);

  const huge = report(120 * MIB);
  const packed = Bun.gzipSync(huge);
  await round(`ten reports of ${Math.round(huge.length / MIB)} MiB, packed`, 10, { status: 201 }, (index) =>
    post(packed, `?task_slug=bombs&execution_key=huge${index}`, toEncoding("gzip")),
  );
  const large = report(30 * MIB);
  await round(`twenty reports of ${Math.round(large.length / MIB)} MiB`, 20, { status: 201 }, (index) =>
    post(large, `?task_slug=bombs&execution_key=large${index}`),
  );
  claims.push(["what was accepted is there", (await countRuns()) === before + 30]);
  console.log(`idle: ${idle} MiB; at the end: ${(await server.memory()).now} MiB`);
} finally {
  await start.stop();
}
judge(...claims);
