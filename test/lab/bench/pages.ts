/**
 * How large the pages of a project are, and how long the server takes for them (the median of ten), on a small project and
 * on a large one: `bun test/lab/bench/pages.ts`. Says where a page is over 30 KB or 20 ms.
 */

import { createPerson } from "../../people.ts";
import { report } from "./ingest.ts";
import { type BenchServer, median, startServer } from "./server.ts";

const GOALS = { bytes: 30_000, ms: 20 };
const ROUNDS = 10;
const CATALOGUE = 100_000;
const EXECUTIONS = Number(process.env["BENCH_EXECUTIONS"] ?? 10);
const FAILING = 5_000;
const DAY_MS = 86_400_000;

type Place = { project: string; key: string };
type Measured = { name: string; bytes: number; ms: number };

async function call(server: BenchServer, { key }: Place, method: string, path: string, body?: string) {
  const response = await fetch(`${server.url}/api/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${key}` },
    ...(body === undefined ? {} : { body }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return text === "" ? undefined : JSON.parse(text);
}

/** Until what follows the uploads is done as well. */
async function settled({ database }: BenchServer): Promise<void> {
  const isLeft = () => database.pool`
    select from test_run where not health_applied union all select from execution where completed_at is null limit 1`;
  while ((await isLeft()).length > 0) await Bun.sleep(100);
  await database.pool`vacuum analyze`;
}

/** A million results of a hundred thousand cases; then an execution in which 5,000 fail, for fifty reasons. */
async function enlarge(server: BenchServer, place: Place): Promise<string> {
  const full = report(CATALOGUE, "large");
  const at = (days: number) => new Date(Date.now() - days * DAY_MS).toISOString();
  const send = (query: string, body: string) =>
    call(server, place, "POST", `/projects/${place.project}/test-runs?branch=main&complete=true&${query}`, body);
  for (let index = EXECUTIONS; index > 0; index--)
    await send(`task_slug=bench&execution_key=${index}&commit=${index}&completed_at=${at(index)}`, full);
  const failing = Array.from(
    { length: FAILING },
    (_, index) =>
      `<testcase classname="com.acme.Broken${index % 100}" name="case ${index}" time="0.1"><failure message="Failure of kind ${"abcdefghij"[index % 10]}${"klmno"[index % 5]}: expected ${index}">at work${index % 50} (src/work${index % 50}.ts:${index % 50}:1)</failure></testcase>`,
  );
  // The others pass: an outage is told otherwise.
  const passing = Array.from(
    { length: FAILING },
    (_, index) => `<testcase classname="com.acme.Sound" name="case ${index}" time="0.1"/>`,
  );
  const body = `<testsuite name="broken">${[...failing, ...passing].join("")}</testsuite>`;
  const { executionId } = await send("task_slug=broken&execution_key=failing&commit=feed", body);
  await settled(server);
  return executionId;
}

async function measure(server: BenchServer, cookie: string, name: string, path: string): Promise<Measured> {
  const times: number[] = [];
  let bytes = 0;
  for (let round = 0; round <= ROUNDS; round++) {
    const started = performance.now();
    const response = await fetch(`${server.url}${path}`, {
      headers: { accept: "text/html", "accept-encoding": "identity", cookie },
      redirect: "manual",
    });
    const text = await response.text();
    if (response.status !== 200) throw new Error(`${path}: ${response.status}`);
    bytes = Buffer.byteLength(text);
    // The first one prepares statements.
    if (round > 0) times.push(performance.now() - started);
  }
  return { name, bytes, ms: median(times) };
}

async function lookAt(server: BenchServer, cookie: string, place: Place, given?: string): Promise<Measured[]> {
  const base = `/projects/${place.project}`;
  const list = async (what: string) => (await call(server, place, "GET", `/projects/${place.project}${what}`)).data;
  const executionId = given ?? (await list("/executions?status=failed&limit=1"))[0].id;
  const [{ taskSlug }] = await list(`/test-runs?execution_id=${executionId}&limit=1`).catch(() => [{}]);
  const [testCase] = await list("/test-cases?limit=1&sort=flakeRate");
  const [bug] = await list("/bug-reports?limit=1");
  const execution = `${base}/executions/${executionId}`;
  const task = given === undefined ? (taskSlug ?? "sample: search") : "broken";
  const paths: [string, string][] = [
    ["my projects", "/"],
    ["project", base],
    ["executions", `${base}/executions`],
    ["execution", execution],
    ["comparison", `${execution}/comparison`],
    ["task", `${execution}/tasks/${encodeURIComponent(task)}`],
    ["tests", `${base}/tests`],
    ["tests, searched", `${base}/tests?q=number`],
    ["test", `${base}/tests/${testCase.id}`],
    ["bugs", `${base}/bugs`],
    ["bug", `${base}/bugs/${bug.id}`],
    ["search", `${base}/search?q=case`],
    ["uploads", `${base}/uploads`],
    ["settings", `${base}/settings`],
    ["onboarding", `${base}/onboarding`],
    ["links and badges", `${base}/shares`],
    ["team", `/teams/${server.team}/settings`],
    ["members", `/teams/${server.team}/members`],
    ["runners", `/teams/${server.team}/runners`],
    ["a new automation", `/teams/${server.team}/automations/new`],
    ["audit log", `/teams/${server.team}/audit`],
    ["API", "/docs"],
    ["API, operations", "/docs/operations"],
  ];
  const measured: Measured[] = [];
  for (const [name, path] of paths) measured.push(await measure(server, cookie, name, path));
  return measured;
}

const over = (value: number, goal: number) => (value > goal ? " !" : "  ");

const server = await startServer();
try {
  const { token } = await createPerson(server.database, { team: server.team, role: "owner" });
  const cookie = `assay_session=${token}`;
  await call(server, server, "POST", `/projects/${server.project}/onboarding/sample-data`);
  await settled(server);
  const small = await lookAt(server, cookie, server);
  const executionId = await enlarge(server, server);
  const large = await lookAt(server, cookie, server, executionId);
  console.log(`${"".padEnd(18)}${"sample data".padStart(22)}${"100,000 cases, 5,000 failing".padStart(34)}`);
  for (const [index, { name, bytes, ms }] of small.entries()) {
    const other = large[index]!;
    const tell = (one: Measured) =>
      `${(one.bytes / 1_000).toFixed(1).padStart(10)} KB${over(one.bytes, GOALS.bytes)}${one.ms.toFixed(1).padStart(8)} ms${over(one.ms, GOALS.ms)}`;
    console.log(`${name.padEnd(18)}${tell({ name, bytes, ms })}${tell(other).padStart(30)}`);
  }
  console.log(`!: over ${GOALS.bytes / 1_000} KB or ${GOALS.ms} ms`);
} finally {
  await server.stop();
}
