/**
 * Asks a real server for everything that src/server/openapi.json knows, with values between valid and absurd:
 * `bun test/lab/faults/fuzz_bodies.ts [seconds] [seed]`. There may be no 5xx, no hang, and nothing that breaks the contract.
 */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import * as v from "valibot";
import { ROUTES } from "../../../src/server/app.ts";
import { type ErrorCode, STATUS } from "../../../src/http/problem.ts";
import { createRouter } from "../../../src/http/router.ts";
import openapi from "../../../src/server/openapi.json" with { type: "json" };
import { judge, startServers } from "./servers.ts";

const seconds = Number(process.argv[2] ?? 60);
const seed = Number(process.argv[3] ?? Date.now() % 2 ** 31);
console.log(`seed ${seed}, ${seconds} s`);

const AT_ONCE = 16;
const HANG_MS = 5_000;
/** Longer than that, a request is given up: it has hung. */
const PATIENCE_MS = 15_000;
const MAX_FINDINGS = 20;
const FIXTURES = join(import.meta.dir, "../../fixtures");
const FRAGMENTS = readdirSync(FIXTURES)
  .filter((name) => /\.(?:xml|json|tap|ndjson)$/.test(name))
  .map((name) => readFileSync(join(FIXTURES, name)));

type Schema = {
  type?: string;
  const?: unknown;
  enum?: unknown[];
  oneOf?: Schema[];
  anyOf?: Schema[];
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: Schema | boolean;
  items?: Schema;
  minItems?: number;
  maxItems?: number;
  minimum?: number;
  maximum?: number;
  maxLength?: number;
  format?: string;
};
type Parameter = { name: string; in: string; required?: boolean; schema: Schema };
type Operation = { method: string; path: string; parameters: Parameter[]; content: Record<string, { schema: Schema }> };

const OPERATIONS: Operation[] = Object.entries(openapi.paths).flatMap(([path, methods]) =>
  Object.entries(methods as Record<string, Record<string, unknown>>).map(([method, operation]) => ({
    method: method.toUpperCase(),
    path,
    parameters: ((operation["parameters"] ?? []) as Parameter[]).filter((parameter) => "schema" in parameter),
    content: (operation["requestBody"] as Pick<Operation, "content"> | undefined)?.content ?? {},
  })),
);

/** Text that stands in JSON as it is. */
class Raw {
  readonly json: string;

  constructor(json: string) {
    this.json = json;
  }
}

/** Unlike JSON.stringify: with what is Raw, and with all the fields of a list of pairs, be they the same. */
class Fields {
  readonly pairs: [string, unknown][];

  constructor(pairs: [string, unknown][]) {
    this.pairs = pairs;
  }
}

function toJson(value: unknown): string {
  if (value instanceof Raw) return value.json;
  if (value instanceof Fields)
    return `{${value.pairs.map(([name, inner]) => `${JSON.stringify(name)}:${toJson(inner)}`).join(",")}}`;
  if (Array.isArray(value)) return `[${value.map(toJson).join(",")}]`;
  return JSON.stringify(value) ?? "null";
}

const toText = (value: unknown) => (typeof value === "string" ? value : toJson(value));

/** Where names have a meaning, something that has it; addresses lead to TEST-NET-3 and private networks alone. */
const MEANT: Record<string, readonly string[]> = {
  url: ["https://203.0.113.9/hook", "http://203.0.113.9:8080/a?b=c", "http://10.0.0.7/hook", "nonsense", "http://["],
  baseUrl: ["https://203.0.113.9", "http://203.0.113.9:1/gitlab/", "https://[fd00::7]", "http://169.254.169.254"],
  externalUrl: ["https://tracker.example/1", "http://[::1]/"],
  buildUrl: ["https://ci.example/job/my job/1", "http://["],
  build_url: ["https://ci.example/job/my job/1", "", "http://["],
  schedule: ["30 6 * * 1-5", "@hourly", "0 0 30 2 *", "*/0 * * * *", "* * * * * *", "@reboot", "0 0 1-31/7 * MON"],
  timezone: ["Europe/Berlin", "UTC", "Mars/Olympus", "+02:00", "EST5EDT", "europe/berlin"],
  branches: ["main", "**", "release/*", "!main", "!", "[", "{a,{b", "***", "[!a-", "{,}".repeat(60)],
  repository: ["owner/name", "../x", "a/b/c"],
  project: ["group/name", "42", "..", "a//b"],
  projectKey: ["WEB", "web"],
  email: ["a@b.example", "a", "@"],
  token: ["t0ken", "http:", "https://[", "a b", "é"],
  routingKey: ["0123456789abcdef", "http:"],
  secret: [`whsec_${"A".repeat(43)}=`, "whsec_", "whsec_%%%"],
  workflow: ["ci.yml", "..", "a/b"],
  slug: ["staging", "prod-1", "Größe", "-"],
  shard: ["1/2", "2/2", "3/2", "9999/9999", "0/1"],
  exit_code: ["0", "1", "-1", "4294967295", "4294967296", "9999999999"],
  health: ["flaky", "flaky,broken", ",", "flaky,flaky,nonsense"],
  wait: ["1", "0", "31"],
  key: ["nightly {date} {time}", "k"],
  format: ["junit", "tap", "__proto__", "constructor"],
  q: ["%", "_", "\\", "a%b", "'--"],
};
const MOMENTS = [
  ...["2026-01-31T12:00:00Z", "1970-01-01T00:00:00+14:00", "9999-12-31T23:59:59-23:59", "2026-02-30T00:00:00Z"],
  ...[
    "0000-01-01T00:00:00Z",
    "infinity",
    "294277-01-01T00:00:00Z",
    "2026-01-31",
    "1e9",
    "2026-01-31T12:00:00.123456789Z",
  ],
];
const HOSTILE = [
  ...["", " ", "\t\n", "\0", "a\0b", "\ud800", "\udc00a", "\u202egnp.exe", "\ufeff", "\ufffd", "e\u0301", "👩‍👩‍👧", "ＡＢ"],
  ...["__proto__", "constructor", "toString", "null", "undefined", "NaN", "true", "-0", "0x10", "1e3", "[]", "{}"],
  ...[
    "' or 1=1 --",
    "\\",
    "%00",
    "%zz",
    "%",
    "../../etc/passwd",
    "<script>alert(1)</script>",
    "${x}",
    "$1",
    "\r\nX: y",
  ],
  ...[
    "a".repeat(201),
    "é".repeat(2_001),
    "\\".repeat(5_000),
    " ".repeat(70_000),
    "👩".repeat(40_000),
    "/".repeat(3_000),
  ],
];
const NUMBERS = [
  ...[0, -0, 1, -1, 0.5, 100, 101, 2 ** 31 - 1, 2 ** 31, -(2 ** 31) - 1, 2 ** 32, 2 ** 53, 2 ** 63, 1e21, 1e-7],
  ...["1e400", "-1e400", "9007199254740993", "1E+2", "-0", "0.1e1", "1".repeat(400), "NaN", "Infinity", "01"],
];
const REPORTS = [
  `<testsuite name="s" tests="NaN"><testcase name="a" time="-1"/><testcase name="b"><failure message="m"/></testcase></testsuite>`,
  `<testsuite><testcase name="&#0;" classname="__proto__" time="1e999" file="\u202e" line="99999999999"/></testsuite>`,
  `{"passed":2147483647,"failed":2147483647,"skipped":2147483647}`,
  `{"passed":1,"failed":0,"skipped":0,"cases":[{"name":"\\ud83d\\ude00","status":"passed","durationMs":2147483647}]}`,
  "TAP version 14\n1..2\nok 1 - a # time=99999999999s\nnot ok 2 - b\n  ---\n  at: {{{\n  ...\n",
  `{"Action":"fail","Package":"p","Test":"T/__proto__","Elapsed":1e308,"Time":"9999-12-31T23:59:59Z"}\n`,
];
const DOTENV = [
  ...["A=1\n", "export B = 'two\nlines'\n", 'C="\\n\\t\\$"\n', "D=`x`y\n", "=\n", "# c\n", "E\n", "F='open\n", "1=2\n"],
  ...[
    "G=\0\n",
    "H=\ud800\n",
    "__proto__=1\n",
    `I=${" ".repeat(9_000)}#\n`,
    "\ufeffJ=1\r\n",
    `K=${"v".repeat(66_000)}\n`,
  ],
];

/** Ids that are there, by the name of the parameter that takes them. */
const there = new Map<string, string[]>();
const KEPT = 40;

function createGenerator(seed: number) {
  let state = seed;

  /** mulberry32, so that a finding can be repeated. */
  function random(below: number): number {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % below;
  }
  const pick = <T>(list: readonly T[]): T => list[random(list.length)]!;
  const oneIn = (count: number) => random(count) === 0;
  // Half of the requests are meant to succeed: what is refused reaches nothing.
  let isWild = false;
  const wildly = (count: number) => isWild && oneIn(count);

  function id(name: string): string {
    const known = there.get(name) ?? [];
    if (known.length > 0 && !wildly(3)) return pick(known);
    if (!isWild) return crypto.randomUUID();
    if (oneIn(2)) return crypto.randomUUID();
    return pick([
      "x",
      "",
      crypto.randomUUID().toUpperCase(),
      `{${crypto.randomUUID()}}`,
      "..",
      "0".repeat(36),
      ...HOSTILE,
    ]);
  }

  const anything = (): unknown =>
    pick<() => unknown>([
      () => pick(HOSTILE),
      () => number(),
      () => pick<unknown>([null, true, false, [], {}, [null], { a: 1 }, { toString: 1 }]),
      () => new Fields([["__proto__", { polluted: true }]]),
      () => new Raw("[".repeat(9_000) + "]".repeat(9_000)),
      () => new Raw(`{"a":`.repeat(3_000) + "1" + "}".repeat(3_000)),
      () => Array.from({ length: pick([1, 101, 1_001]) }, () => pick(HOSTILE.slice(0, 20))),
    ])();

  function number(): unknown {
    const value = pick(NUMBERS);
    return typeof value === "string" ? new Raw(value) : value;
  }

  const ID = /(?:Id|_id|^projects|^testCaseIds|^into|^baseline)$/;
  const kindOf = (name: string) =>
    name === "into"
      ? "bugReportId"
      : /^(?:baseline|execution_id)$/.test(name)
        ? "executionId"
        : name.replace(/s$/, "").replace(/^project$/, "projectId");

  function text(name: string, schema: Schema): unknown {
    if (ID.test(name)) return id(kindOf(name));
    if (/^(?:until|completedAt|completed_at|created_after|created_before)$/.test(name))
      return isWild ? pick(MOMENTS) : MOMENTS[0];
    if (/^(?:taskSlug|task_slug|taskSlugs|tasks)$/.test(name) && !wildly(4))
      return pick(isWild ? ["unit", "e2e", "üñí / ", "__proto__"] : ["unit", "e2e"]);
    if (name === "cursor") return pick(there.get("cursor") ?? ["x"]);
    if (name in MEANT && !wildly(6))
      return isWild ? pick(MEANT[name]!) : name === "slug" ? `s${random(1e6)}` : MEANT[name]![0];
    if (wildly(8)) return "m".repeat((schema.maxLength ?? 100) + random(3) - 1);
    return wildly(3) ? pick(HOSTILE) : `${name} ${random(20)}`;
  }

  /** Mostly what the schema wants. */
  function value(schema: Schema, name: string): unknown {
    if (wildly(25)) return anything();
    const choices = schema.oneOf ?? schema.anyOf;
    if (choices) return value(pick(choices), name);
    if ("const" in schema) return schema.const;
    if (schema.enum) return pick(schema.enum);
    if (schema.type === "object") return fields(schema);
    if (schema.type === "array") {
      const length = wildly(6) ? pick([0, 0, (schema.maxItems ?? 100) + 1, 1_000]) : 1 + random(isWild ? 3 : 1);
      return Array.from({ length }, () => value(schema.items ?? {}, name));
    }
    if (schema.type === "boolean") return oneIn(2);
    if (schema.type === "null") return null;
    if (schema.type === "integer" || schema.type === "number") {
      if (wildly(3)) return number();
      if (!isWild)
        return (schema.minimum ?? 0) + random(Math.min(100, (schema.maximum ?? 100) - (schema.minimum ?? 0) + 1));
      return pick([schema.minimum ?? 0, schema.maximum ?? 100, (schema.minimum ?? 0) + random(100), -1, 1.5]);
    }
    return schema.type === "string" ? text(name, schema) : anything();
  }

  function fields({ properties = {}, required = [], additionalProperties }: Schema): Fields {
    const pairs: [string, unknown][] = [];
    for (const [name, schema] of Object.entries(properties)) {
      // Without it, some integrations would reach for a real host.
      const isNeeded = required.includes(name) || name === "baseUrl";
      if (isNeeded ? !wildly(40) || name === "baseUrl" : oneIn(isWild ? 2 : 4)) pairs.push([name, value(schema, name)]);
    }
    if (typeof additionalProperties === "object" || additionalProperties === true)
      for (let more = random(4); more > 0; more--)
        pairs.push([
          wildly(3) ? pick(HOSTILE) : `A${random(9)}`,
          wildly(3) ? anything() : isWild ? pick(HOSTILE) : "v",
        ]);
    if (wildly(25)) pairs.push([pick(["__proto__", "constructor", "id", "createdAt", ...HOSTILE]), anything()]);
    if (wildly(25) && pairs.length > 0) pairs.push(pick(pairs));
    // An event and a schedule exclude each other.
    if (!isWild && "schedule" in properties && "event" in properties)
      return new Fields([oneIn(3) ? ["schedule", MEANT["schedule"]![0]] : ["event", pick(properties["event"]!.enum!)]]);
    return new Fields(pairs);
  }

  function damaged(json: string): string | Buffer {
    if (!wildly(30)) return json;
    return pick<() => string | Buffer>([
      () => json.slice(0, random(json.length + 1)),
      () => `\ufeff${json}`,
      () => Buffer.concat([Buffer.from(json.slice(0, -1)), Buffer.from([0xff, 0xc3]), Buffer.from("}")]),
      () => toJson(anything()),
      () => pick(["", "null", "[]", "{", '"', "{}{}", " "]),
      () => `${"[".repeat(200_000)}`,
    ])();
  }

  function report(schema: Schema | undefined): string | Buffer {
    if (schema && oneIn(4)) return damaged(toJson(fields(schema)));
    if (!isWild) return pick([...REPORTS, ...FRAGMENTS]);
    if (oneIn(2)) return REPORTS.map((one) => (oneIn(3) ? one : "")).join("") || pick(REPORTS);
    const whole = pick(FRAGMENTS);
    const start = oneIn(2) ? 0 : random(whole.length);
    const piece = oneIn(3) ? whole : whole.subarray(start, start + random(whole.length));
    const text = piece.toString("latin1");
    const at = random(text.length + 1);
    return oneIn(2) ? piece : Buffer.from(text.slice(0, at) + pick(HOSTILE) + text.slice(at), "latin1");
  }

  function form(schema: Schema | undefined, query: Parameter[]): [Buffer, string] {
    const boundary = wildly(20) ? "x" : `b${random(1e9)}`;
    const parts: Buffer[] = [];
    const add = (head: string, bytes: string | Buffer) =>
      void parts.push(
        Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; ${head}\r\n\r\n`),
        Buffer.from(bytes as string),
        Buffer.from("\r\n"),
      );
    for (let files = random(3); files >= 0; files--)
      add(`name="report"; filename="${pick(["r.xml", "", "../../x", "\u202e", "a.json"])}"`, report(schema));
    for (const { name, schema } of query)
      if (oneIn(4)) add(`name="${name}"`, wildly(15) ? Buffer.from([0x61, 0xff]) : toText(value(schema, name)));
    if (wildly(20)) add(`name="${pick(HOSTILE).replace(/["\r\n]/g, "")}"`, pick(HOSTILE));
    return [Buffer.concat([...parts, Buffer.from(`--${boundary}--\r\n`)]), `multipart/form-data; boundary=${boundary}`];
  }

  function body({ content, parameters }: Operation): [string | Buffer | undefined, string] {
    const schema = content["application/json"]?.schema;
    if ("multipart/form-data" in content) {
      const query = parameters.filter((parameter) => parameter.in === "query");
      if (oneIn(3)) return form(schema, query);
      return [
        report(schema),
        pick(["application/json", "application/xml", "", "application/octet-stream", "nonsense/"]),
      ];
    }
    if ("text/plain" in content && isWild && oneIn(2))
      return [Array.from({ length: 1 + random(6) }, () => pick(DOTENV)).join(""), "text/plain"];
    if (!schema) return wildly(10) ? [pick(["{}", "x", '{"a":1}', "null"]), "application/json"] : [undefined, ""];
    return [
      damaged(toJson(value(schema, "body"))),
      wildly(15) ? pick(["", "text/plain", "text/csv", "application/json; charset=utf-16"]) : "application/json",
    ];
  }

  const encode = (text: string) =>
    wildly(60) ? pick(["%", "%zz", "%ff", "%00", "%2F"]) : encodeURIComponent(text.toWellFormed());

  return function request() {
    let operation = pick(OPERATIONS);
    // Some seconds of work, one after the other: many of them would measure nothing but their queue.
    if (operation.path.endsWith("/sample-data") && !oneIn(10)) operation = pick(OPERATIONS);
    isWild = oneIn(2);
    let path = operation.path;
    for (const { name } of operation.parameters.filter((parameter) => parameter.in === "path")) {
      const isTop = name === "projectId" || name === "teamId";
      const given =
        isTop && !wildly(30)
          ? there.get(name)![0]!
          : name === "variableName" || name === "taskSlug"
            ? pick([...(name === "taskSlug" ? ["unit", "e2e"] : ["A0", "A1"]), ...(isWild ? HOSTILE : [])])
            : id(name);
      path = path.replace(`{${name}}`, encode(given).slice(0, 6_000));
    }
    const query = operation.parameters
      .filter((parameter) => parameter.in === "query" && oneIn(4))
      .map(
        ({ name, schema }) =>
          `${encode(name)}=${encode(toText(name === "wait" ? pick(MEANT["wait"]!) : value(schema, name))).slice(0, 6_000)}`,
      );
    if (wildly(30) && query.length > 0) query.push(query[0]!);
    if (wildly(40)) query.push(`${encode(pick(HOSTILE.slice(0, 30)))}=1`);
    const [bytes, type] =
      operation.method === "GET" || operation.method === "DELETE" ? [undefined, ""] : body(operation);
    const isZipped = bytes !== undefined && oneIn(15);
    const headers: Record<string, string> = {
      ...(type === "" ? {} : { "Content-Type": type }),
      ...(isZipped ? { "Content-Encoding": "gzip" } : {}),
      ...(wildly(8) ? { "Idempotency-Key": pick(["one", "two", "three", "a b", "", "x".repeat(256)]) } : {}),
      ...(oneIn(8) ? { Accept: "text/plain" } : {}),
    };
    const isOwnKey = !wildly(40);
    const isTeam = operation.path.startsWith("/teams/") === isOwnKey;
    return {
      method: operation.method,
      target: `${path}${query.length > 0 ? `?${query.join("&")}` : ""}`,
      headers,
      isTeam,
      sent: bytes,
      body: isZipped ? gzipSync(bytes) : bytes,
    };
  };
}

const servers = await startServers({
  // Nothing leaves the machine, whatever is made up: the proxy is not there.
  environment: { OUTBOUND_PROXY: "http://127.0.0.1:1", OUTBOUND_ALLOW: "203.0.113.0/24" },
});
const [server] = servers.servers as [(typeof servers.servers)[0]];
there.set("projectId", [servers.project]);
there.set("teamId", [servers.team]);

const findRoute = createRouter(ROUTES);
const findings = new Map<string, string>();
const statuses = new Map<number, number>();
const succeeded = new Set<string>();
let slowest = { ms: 0, what: "" };

const NAMES: Record<string, string> = {
  executions: "executionId",
  "test-cases": "testCaseId",
  "bug-reports": "bugReportId",
  environments: "environmentId",
  integrations: "integrationId",
  deliveries: "deliveryId",
  automations: "automationId",
};

function keep(name: string, id: unknown): void {
  if (typeof id !== "string") return;
  const known = there.get(name) ?? [];
  if (known.includes(id)) return;
  known.push(id);
  there.set(name, known.slice(-KEPT));
}

/** Remembers what is there now. */
function harvest(path: string, answer: any): void {
  const rows: any[] = Array.isArray(answer?.data) ? answer.data : [answer];
  const collection = path.split("/").findLast((part) => part in NAMES);
  for (const row of rows) {
    keep("executionId", row?.executionId);
    keep("testCaseId", row?.testCaseId);
    for (const bug of Array.isArray(row?.bugReports) ? row.bugReports : []) keep("bugReportId", bug?.id);
    if (/\/(?:test|redeliver)$/.test(path)) keep("deliveryId", row?.id);
    else if (collection !== undefined && !/\/(?:runs|variables|test-runs)/.test(path))
      keep(NAMES[collection]!, row?.id);
  }
  keep("cursor", answer?.pagination?.cursor);
}

const HEADERS = ["x-request-id", "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"];

/** What is wrong with an answer; undefined: nothing. */
function wrongWith(method: string, path: string, response: Response, text: string): string | undefined {
  const { status, headers } = response;
  for (const name of HEADERS) if (!headers.get(name)) return `no header ${name}`;
  if (headers.get("cache-control") !== "no-store") return "may be cached";
  if (headers.get("x-content-type-options") !== "nosniff") return "may be sniffed";
  if (status >= 500) return `answered ${status}`;
  const found = findRoute(method, path.split("?")[0]!);
  const route = found && "route" in found ? found.route : undefined;
  if (status < 300) succeeded.add(`${route?.method} ${route?.path}`);
  if (status === 204) return text === "" && route?.answer === null ? undefined : "a body where there is none";
  if (route?.lines !== undefined && status === 200)
    return JSON.parse(text.trimEnd().split("\n").at(-1)!).type === "end" ? undefined : "an export that is not complete";
  const isText = headers.get("content-type")!.startsWith("text/plain");
  const answer = isText && status < 400 ? text : JSON.parse(text);
  if (status >= 400) {
    const { code, message, ...more } = answer.error ?? {};
    if (Object.keys(answer).join() !== "error" || Object.keys(more).length > 0) return "another shape of error";
    if (STATUS[code as ErrorCode] !== status) return `the code ${code} with ${status}`;
    return typeof message === "string" && message.length > 5 && message.isWellFormed() ? undefined : "no message";
  }
  if (status >= 300) return `answered ${status}`;
  if (!route?.answer) return "success where there is nothing";
  const { success, issues } = v.safeParse(route.answer, answer);
  if (!success && !isText) return `not as the schema says: ${issues[0].message} at ${v.getDotPath(issues[0])}`;

  if (!isText) harvest(path.split("?")[0]!, answer);
  return undefined;
}

async function fire({ method, target, headers, isTeam, sent, body }: ReturnType<ReturnType<typeof createGenerator>>) {
  const started = performance.now();
  let wrong: string | undefined;
  let answered = "";
  try {
    const response = await fetch(`${server.url}/api/v1${target}`, {
      method,
      headers: { Authorization: `Bearer ${isTeam ? servers.teamKey : servers.key}`, ...headers },
      ...(body === undefined ? {} : { body }),
      signal: AbortSignal.timeout(PATIENCE_MS),
    });
    statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
    // A stream of events has no end.
    if (response.headers.get("content-type") === "text/event-stream") await response.body?.cancel();
    else {
      answered = await response.text();
      wrong = wrongWith(method, target, response, answered);
    }
  } catch (error) {
    wrong = `no answer that can be read: ${error}`;
  }
  const ms = Math.round(performance.now() - started);
  const what = `${method} ${target.slice(0, 300)}`;
  if (ms > slowest.ms) slowest = { ms, what };
  if (ms > HANG_MS) wrong ??= `took ${ms} ms`;
  if (wrong === undefined) return;
  const sort = `${method} ${target
    .split("?")[0]!
    .replace(/[0-9a-f-]{36}/g, "…")
    .slice(0, 100)}: ${wrong.replace(/\d{4,}/g, "…")}`;
  const shown = `${what}\n  ${JSON.stringify(headers)}\n  ${JSON.stringify(String(sent).slice(0, 1_500))}\n  ${answered.slice(0, 400)}`;
  if (!findings.has(sort) && findings.size < MAX_FINDINGS) findings.set(sort, shown);
}

const end = performance.now() + seconds * 1000;
let count = 0;
try {
  await Promise.all(
    Array.from({ length: AT_ONCE }, async (_, worker) => {
      const request = createGenerator(seed + worker);
      for (; performance.now() < end && findings.size < MAX_FINDINGS; count++) await fire(request());
    }),
  );
  const isAlive = await fetch(`${server.url}/healthz`, { signal: AbortSignal.timeout(HANG_MS) }).then(
    ({ status }) => status === 200 && server.child.exitCode === null,
    () => false,
  );
  for (const [sort, shown] of findings) console.log(`\n${sort}\n  ${shown}`);
  const [errors, warnings] = [server.logged("error"), server.logged("warn")];
  for (const line of [...errors, ...warnings].slice(0, 10)) console.log(JSON.stringify(line).slice(0, 2_000));
  const unreached = ROUTES.map(({ method, path }) => `${method} ${path}`).filter((route) => !succeeded.has(route));
  if (unreached.length > 0) console.log(`Never succeeded: ${unreached.join(", ")}`);
  judge(
    [
      "every answer keeps the contract",
      findings.size === 0,
      `${count} requests, ${JSON.stringify([...statuses].sort())}`,
    ],
    [
      `no request takes more than ${HANG_MS / 1000} s`,
      slowest.ms <= HANG_MS,
      `${slowest.ms} ms, ${slowest.what.slice(0, 100)}`,
    ],
    ["the server is alive", isAlive],
    [
      "nothing went wrong behind it",
      errors.length + warnings.length === 0,
      `${errors.length} errors, ${warnings.length} warnings`,
    ],
  );
} finally {
  await servers.stop();
}
