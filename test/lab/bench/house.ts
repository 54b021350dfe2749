/**
 * `bun test/lab/bench/house.ts [CHECKOUT…]`: what a request costs the processor in the server without a database, against a bare
 * Bun.serve that sends the same nine headers; other checkouts are measured in turn with this one. BENCH_ASK=upload measures
 * what begins so, BENCH_PROFILE=FOLDER writes profiles there.
 */

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createApp, ROUTES } from "../../../src/server/app.ts";
import { openAttachments } from "../../../src/attachments/store.ts";
import { readConfig } from "../../../src/config.ts";
import { createAddressList } from "../../../src/http/address.ts";
import { createEventStreams } from "../../../src/http/events.ts";
import { createOutbound } from "../../../src/http/outbound.ts";
import { startServer } from "../../../src/http/serve.ts";
import { createLog } from "../../../src/log.ts";
import { createMetrics } from "../../../src/server/metrics.ts";
import { readReport } from "../../../src/reports/read.ts";
import { json } from "../../../src/request/reply.ts";
import type { Context, UploadContext } from "../../../src/request/route.ts";
import { createKey } from "../../../src/secrets/keys.ts";
import { createAttempts } from "../../../src/secrets/attempts.ts";
import { createPasswords } from "../../../src/secrets/passwords.ts";
import { createSeal } from "../../../src/secrets/seal.ts";
import type { Database, Sql } from "../../../src/database/connect.ts";
import { createOwnedPool, createOwnerGate } from "../../../src/database/owner_gate.ts";
import { createWatchedPool } from "../../../src/database/watched_pool.ts";
import { createPlace, guardProcess, removePlace } from "../../places.ts";
import { median } from "./server.ts";

const ROUNDS = Number(process.env["BENCH_ROUNDS"] ?? 5);
const SECONDS = 1;

const project = "0193b3c4-0000-7000-8000-000000000001";
const execution = "0193b3c4-0000-7000-8000-000000000002";
const ADMITTED = 1_000_000;

const element = (index: number) =>
  JSON.stringify({
    executionId: execution,
    taskSlug: `task ${index}/1`,
    completedAt: "2026-01-01T00:00:00.000Z",
    passed: 100,
    failed: 0,
    skipped: 3,
    total: 103,
  });

const page = (limit: number) => [
  {
    elements: Array.from({ length: limit + 1 }, (_, index) => element(index)).join(",\n"),
    ids: project.repeat(limit + 1),
  },
];

const run = {
  id: project,
  executionId: execution,
  taskSlug: "unit",
  completedAt: "2026-01-01T00:00:00.000Z",
  status: "passed",
  attempt: 1,
  shards: 1,
  namedShards: [],
  passed: 50,
  failed: 0,
  skipped: 0,
  flaky: 0,
  durationMs: 1,
  verdict: "passed",
  format: "junit",
  exitCode: null,
  warnings: [],
  outage: false,
  wasOutage: false,
  healthApplied: true,
};

/** Answers every statement at once with the rows that its text asks for. */
function createAnswers(): Sql {
  const texts = page(10).map(({ elements, ids }) => [elements, ids]);
  const key = [{ id: project, teamId: project, projectId: project, scope: null }];
  const rowsOf = (text: string): unknown[] =>
    text.includes("from test_run") ? [run] : text.includes("api_key") ? key : [];
  const known = new Map<unknown, Promise<unknown>>();
  const answer = (strings: readonly string[]) => {
    let rows = known.get(strings);
    if (!rows)
      known.set(strings, (rows = Object.assign(Promise.resolve(rowsOf(strings.join("?"))), { execute: () => rows })));
    return rows;
  };
  const ready = Promise.resolve(texts);
  return Object.assign(answer, { unsafe: () => ({ values: () => ready }) }) as unknown as Sql;
}

/** The application as the server runs it, but for what it asks. */
function serveHouse(): string {
  const lane = createWatchedPool({ open: createAnswers as never });
  const within = createOwnerGate(15);
  const database = {
    pool: lane.sql,
    poolOf: (owner: string, isOver: () => boolean) => createOwnedPool(lane.sql, within, owner, isOver),
    fast: lane.sql,
    keys: lane.sql,
    pages: lane.sql,
    begin: (work: (sql: unknown) => unknown) => work(lane.sql),
    load: () => ({}),
  } as unknown as Database;
  // Statements of an upload depend on each other; what is measured here is its way to them.
  const upload = ROUTES.find(({ method, body }) => method === "POST" && body === "upload")!;
  upload.handle = async (context: Context<never, never, never>) => {
    const { body, services, conclude, upload } = context as unknown as Context<any, any, any> & {
      upload: UploadContext;
    };
    const report = readReport(body.files, { maxInflatedBytes: services.maxInflatedBytes, mayBeEmpty: false });
    const { status, type, body: text } = await conclude(async () => json(201, run));
    return upload.stored(
      { status, contentType: type, body: text },
      {
        executionId: execution,
        taskSlug: "unit",
        format: report.format,
        cases: report.cases.length,
        warnings: [],
        added: true,
      },
    );
  };
  const server = startServer({ host: "127.0.0.1", port: 0 });
  const none = () => undefined as never;
  const app = createApp({
    database,
    metrics: createMetrics({ database, gauges: async () => undefined }),
    metricsToken: undefined,
    corsOrigins: [],
    uploadThread: { handle: none, expire: none, endStuck: none, prepare: none },
    publicUrl: server.url,
    cursorSecret: new Uint8Array(32),
    // A line for each request that writes, as by default.
    log: createLog("info", () => {}, false),
    rateLimitPerMinute: ADMITTED,
    maxBodyBytes: 32 * 1_048_576,
    maxInflatedBytes: 128 * 1_048_576,
    uploadMemoryBytes: 512 * 1_048_576,
    retentionDays: 90,
    attachments: openAttachments(readConfig({}).attachments, {
      onSpoolError: none,
      counters: { stored: none, failed: none },
    }),
    seal: createSeal(new Uint8Array(32)),
    outbound: createOutbound({ allow: createAddressList([]) }),
    outboundAllow: createAddressList([]),
    trustProxy: createAddressList([]),
    signals: { watch: none, tell: none },
    live: undefined as never,
    eventStreams: createEventStreams(),
    isReady: async () => true,
    sessions: undefined as never,
    visitors: { recall: none, find: async () => undefined } as never,
    signIn: {
      passwords: createPasswords(),
      attempts: createAttempts(),
      policy: { allowedDomains: [], passwordLogin: true },
      oidc: undefined,
    },
  });
  server.answerWith(app);
  return server.url;
}

/** The nine headers and a body of the length of a list's. */
function serveBare(): string {
  const body = `{"data":[${page(9)[0]!.elements}],"pagination":{"hasMore":true,"cursor":"${"x".repeat(100)}"}}`;
  const headers = {
    "X-Request-Id": project,
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-RateLimit-Limit": String(ADMITTED),
    "X-RateLimit-Remaining": String(ADMITTED),
    "X-RateLimit-Reset": "1767225600",
    "Content-Type": "application/json",
    Vary: "Accept-Encoding",
  };
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response(body, { headers }) });
  return server.url.href.slice(0, -1);
}

async function start(script: string, mode: "house" | "bare") {
  const child = Bun.spawn([process.execPath, ...profile(mode), script, `--${mode}`], { stdout: "pipe" });
  guardProcess(child);
  const url = new TextDecoder().decode((await child.stdout.getReader().read()).value).trim();
  const ticks = async () => {
    const stat = await Bun.file(`/proc/${child.pid}/stat`).text();
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return Number(fields[11]) + Number(fields[12]);
  };
  return { url, ticks, child };
}

const PROFILES = process.env["BENCH_PROFILE"];
const profile = (mode: string) =>
  mode === "house" && PROFILES ? ["--cpu-prof", "--cpu-prof-interval=200", `--cpu-prof-dir=${PROFILES}`] : [];

const junit = (cases: number) =>
  `<testsuite name="s" tests="${cases}">${Array.from(
    { length: cases },
    (_, index) =>
      `<testcase classname="com.acme.Suite" name="does what it should in case ${index}" time="0.1" file="src/A.java"/>`,
  ).join("")}</testsuite>`;

async function main(checkouts: string[]): Promise<void> {
  const place = createPlace("house");
  const key = createKey("project").key;
  const head = `wrk.headers["Authorization"] = "Bearer ${key}"\n`;
  const asks: [name: string, path: string, script: string][] = [
    ["list of 10", `/api/v1/projects/${project}/test-runs?limit=10`, head],
    ["one test run", `/api/v1/projects/${project}/executions/${execution}/test-runs/unit`, head],
    ...[1, 50].map((cases): [string, string, string] => [
      `upload of ${cases}`,
      `/api/v1/projects/${project}/test-runs?task_slug=unit`,
      `${head}wrk.method = "POST"\nwrk.body = [[${junit(cases)}]]\n`,
    ]),
  ];
  const servers = [
    { name: "bare", ...(await start(import.meta.path, "bare")) },
    ...(await Promise.all(
      ["", ...checkouts].map(async (checkout) => ({
        name: checkout || "house",
        ...(await start(checkout ? join(checkout, "test/lab/bench/house.ts") : import.meta.path, "house")),
      })),
    )),
  ];
  const wanted = process.env["BENCH_ASK"];
  for (const [name, path, script] of asks.filter(([name]) => !wanted || name.startsWith(wanted))) {
    const file = join(place, "ask.lua");
    await writeFile(file, script);
    const results = new Map<string, { us: number[]; perSecond: number[] }>();
    for (let round = -1; round < ROUNDS; round++)
      // Whoever comes second finds the machine as the first has left it.
      for (const { name, url, ticks } of round % 2 === 0 ? servers : servers.toReversed()) {
        if (name === "bare" && round < 0) continue;
        const before = await ticks();
        const output = await Bun.$`wrk -t1 -c32 -d${SECONDS}s -s ${file} ${url}${path}`.text();
        const used = (await ticks()) - before;
        if (/Non-2xx|Socket errors/.test(output)) throw new Error(output);
        if (round < 0) continue;
        const [, requests] = /(\d+) requests in/.exec(output)!;
        const [, perSecond] = /Requests\/sec:\s+([\d.]+)/.exec(output)!;
        const result = results.get(name) ?? { us: [], perSecond: [] };
        results.set(name, result);
        result.us.push((used * 10_000) / Number(requests));
        result.perSecond.push(Number(perSecond));
      }
    for (const [server, { us, perSecond }] of results)
      console.log(
        `${name.padEnd(14)} ${server.padEnd(20)} ${median(us).toFixed(1)} µs (${Math.min(...us).toFixed(1)} at best)  ${Math.round(median(perSecond))}/s`,
      );
  }
  for (const { child } of servers) child.kill("SIGINT");
  await Promise.all(servers.map(({ child }) => child.exited));
  await removePlace(place);
}

const [mode] = process.argv.slice(2);
if (mode === "--house") console.log(serveHouse());
else if (mode === "--bare") console.log(serveBare());
else await main(process.argv.slice(2));
if (mode?.startsWith("--")) process.on("SIGINT", () => process.exit(0));
