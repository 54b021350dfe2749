/** A running Assay on a database of its own, with the fixed cast: Acme, and Rival, who must never see Acme's. */

import { afterAll, expect } from "bun:test";
import * as v from "valibot";
import { readConfig } from "../src/config.ts";
import { type AppOptions, ROUTES } from "../src/server/app.ts";
import { composeServer } from "../src/server/composition.ts";
import type { AttachmentSettings } from "../src/attachments/store.ts";
import { createAddressList } from "../src/http/address.ts";
import type { StreamLimits } from "../src/http/events.ts";
import { createRouter } from "../src/http/router.ts";
import { createLog } from "../src/log.ts";
import { connect, type Database, type Tx } from "../src/database/connect.ts";
import { selectCursorSecret } from "../src/store/instance.ts";
import { generateProjectKey, generateTeamKey } from "../src/operations/people/keys.ts";
import { insertProject, insertTeam } from "../src/store/projects.ts";
import { testCluster } from "./cluster.ts";
import { birthOf, createPlace } from "./places.ts";

/** What seals variables in tests. */
export const SECRET_KEY = new Uint8Array(32).fill(7);

/** A team with a project and a key for each. */
export type Company = { team: string; project: string; key: string; teamKey: string };

export type Answer = { status: number; headers: Headers; body: any; text: string };

export type Ask = {
  key?: string | null;
  /** JSON unless it is a text, bytes, a form or a stream. */
  body?: unknown;
  headers?: Record<string, string>;
};

const find = createRouter(ROUTES);
const error = v.strictObject({
  error: v.strictObject({
    code: v.picklist(["VALIDATION_ERROR", "UNAUTHORIZED", "NOT_FOUND", "RATE_LIMITED", "INTERNAL_ERROR"]),
    message: v.string(),
  }),
});

type TestDatabase = { connection: Record<string, unknown>; database: Database };

/** A migrated database of its own without rows, dropped at the end of the file: for tests that read or change what belongs to no team. */
export const createDatabase = (): Promise<TestDatabase> => openTestDatabase("assay_template");

/**
 * The migrated database of this worker process of the test runner, which its files use one after the other: each has teams of its own. It
 * goes with the cluster.
 */
async function openSharedDatabase(): Promise<TestDatabase> {
  const cluster = await testCluster();
  const name = `worker_${process.pid}_${birthOf(process.pid)}`;
  const admin = connect({ ...cluster, database: "postgres" }, 1);
  const [existing] = await admin.pool`select from pg_database where datname = ${name}`;
  if (!existing) await createFromTemplate(admin, name, "assay_template");
  await admin.close();
  const connection = { ...cluster, database: name };
  const database = connect(connection, 4);
  afterAll(() => database.close());
  return { connection, database };
}

const createFromTemplate = (admin: Database, name: string, template: string) =>
  admin.pool.unsafe(`create database ${name} template ${template} strategy file_copy`);

/** A database without tables. It belongs to a user who may do nothing else, as with a PostgreSQL that others operate. */
export async function createBareDatabase(): Promise<TestDatabase> {
  const user = { username: `user_${crypto.randomUUID().replaceAll("-", "")}`, password: crypto.randomUUID() };
  return await openTestDatabase("template0", user);
}

/** The variable of a command or a program for a database of the tests, which listens on a socket. */
export function databaseVariables(connection: Record<string, unknown>) {
  const [user, password, host] = ["username", "password", "host"].map((name) =>
    encodeURIComponent(String(connection[name])),
  );
  const { port, database } = connection;
  return { DATABASE_URL: `postgres://${user}:${password}@${host}:${port}/${database}` };
}

async function openTestDatabase(
  template: string,
  owner?: { username: string; password: string },
): Promise<TestDatabase> {
  const cluster = await testCluster();
  const name = `test_${crypto.randomUUID().replaceAll("-", "")}`;
  const admin = connect({ ...cluster, database: "postgres" }, 1);
  await createFromTemplate(admin, name, template);
  if (owner) {
    await admin.pool.unsafe(`create role ${owner.username} login password '${owner.password}'`);
    await admin.pool.unsafe(`alter database ${name} owner to ${owner.username}`);
  }
  const connection = { ...cluster, ...owner, database: name };
  const database = connect(connection, 4);
  afterAll(async () => {
    await database.close();
    await admin.pool.unsafe(`drop database ${name} with (force)`);
    if (owner) await admin.pool.unsafe(`drop role ${owner.username}`);
    await admin.close();
  });
  return { connection, database };
}

async function found({ begin }: Database, name: string): Promise<Company> {
  return await begin(async (sql) => {
    const team = await insertTeam(sql, name);
    const project = (await insertProject(sql, team, `${name} web`))!;
    const { key } = (await generateProjectKey(sql, project))!;
    const { key: teamKey } = (await generateTeamKey(sql, team, "test"))!;
    return { team, project, key, teamKey };
  });
}

export type TestServerOptions = {
  rateLimitPerMinute?: number;
  trustProxy?: string[];
  maxBodyBytes?: number;
  maxInflatedBytes?: number;
  uploadMemoryBytes?: number;
  outboundAllow?: string[];
  eventStreams?: Partial<StreamLimits>;
  /** Who is signed in; default: who has a session. */
  visitors?: AppOptions["visitors"];
  /** How people sign in; default: with passwords. Gets the address that browsers find the server at. */
  signIn?: (publicUrl: string) => AppOptions["signIn"];
  clock?: () => Date;
  /** The answer of `/readyz`. Default: ready. */
  isReady?: () => Promise<boolean>;
  metricsToken?: string;
  corsOrigins?: string[];
  /** Default: the address that it listens on. */
  publicUrl?: string;
  attachments?: Partial<AttachmentSettings["limits"]> & Partial<Pick<AttachmentSettings, "s3" | "directory">>;
  /** Gets every log line, from "debug" on. */
  log?: (line: string) => void;
};

type HarnessOptions = TestServerOptions & { ownDatabase?: boolean };

/** The configuration of a server without environment variables: on a free port, without a rate limit. */
const DEFAULTS = readConfig({ PORT: "0", RATE_LIMIT_PER_MINUTE: "0" });

const directories = new WeakMap<Database, string>();

/** Servers of one database share a directory. */
function attachmentSettings(database: Database, given: TestServerOptions["attachments"] = {}): AttachmentSettings {
  const { s3, directory, ...limits } = given;
  const own = directory ?? directories.get(database) ?? createPlace("attachments");
  directories.set(database, own);
  const { attachments } = DEFAULTS;
  return { ...attachments, directory: own, s3, limits: { ...attachments.limits, ...limits } };
}

/** One server; several may share a database. */
export async function createServer(database: Database, options: TestServerOptions = {}) {
  const {
    log,
    trustProxy,
    outboundAllow,
    eventStreams: streamLimits,
    visitors,
    signIn,
    clock,
    isReady = async () => true,
    attachments,
    ...limits
  } = options;
  const server = composeServer({
    config: {
      ...DEFAULTS,
      ...limits,
      attachments: attachmentSettings(database, attachments),
      trustProxy: createAddressList(trustProxy ?? []),
      outboundAllow: createAddressList(outboundAllow ?? []),
    },
    log: createLog("debug", log ?? (() => {}), false),
    database,
    secretKey: SECRET_KEY,
    cursorSecret: await selectCursorSecret(database.pool),
    ...{ isReady, streamLimits, visitors, signIn, clock },
  });
  afterAll(async () => {
    await server.drain();
    server.close();
  });

  /** `path` is relative to /api/v1 and begins with the method: "GET /projects/…". Answers are held to their schema. */
  async function ask(target: string, { key, body, headers = {} }: Ask = {}): Promise<Answer> {
    const [method, path] = target.split(" ") as [string, string];
    const raw =
      body === undefined || typeof body === "string" || body instanceof Uint8Array || body instanceof FormData;
    const response = await fetch(`${server.url}/api/v1${path}`, {
      method,
      headers: { ...(key ? { authorization: `Bearer ${key}` } : {}), ...headers },
      ...(body === undefined ? {} : { body: raw ? (body as string) : JSON.stringify(body) }),
    });
    const isStream = response.headers.get("content-type") === "text/event-stream";
    // It would not end.
    if (isStream) await response.body?.cancel();
    const text = isStream ? "" : await response.text();
    const isJson = response.headers.get("content-type") === "application/json" && text !== "";
    const answer = { status: response.status, headers: response.headers, text, body: isJson ? JSON.parse(text) : text };
    holdToContract(method, path, answer);
    return answer;
  }

  const { url, app, metrics, eventStreams } = server;
  return { url, ask, app, metrics, eventStreams };
}

/** The headers of every answer, the shape of every error, and the schema of every success. */
function holdToContract(method: string, path: string, { status, headers, body }: Answer): void {
  for (const name of ["x-request-id", "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"])
    expect(headers.get(name), name).toBeTruthy();
  expect(headers.get("cache-control")).toBe("no-store");
  expect(headers.get("x-content-type-options")).toBe("nosniff");
  // The client shows no body for TRACE.
  if (method === "HEAD" || method === "TRACE") return;
  if (status >= 400) {
    v.parse(error, body);
    return;
  }
  const found = find(method, path.split("?")[0]!);
  if (!found || "allow" in found) throw new Error(`${method} ${path} succeeds and is no route`);
  expect([found.route.status, found.route.otherStatus]).toContain(status);
  if (found.route.answer && typeof body === "object") v.parse(found.route.answer, body);
}

/** A server with the cast, on the database that the files of a worker share, or on one of its own. */
export async function createHarness({ ownDatabase = false, ...options }: HarnessOptions = {}) {
  const { database, connection } = await (ownDatabase ? createDatabase() : openSharedDatabase());
  const [acme, rival] = await Promise.all([found(database, "Acme"), found(database, "Rival")]);
  const server = await createServer(database, options);
  return {
    ...server,
    database,
    connection,
    acme,
    rival,
    /** A new project key for the company; the one before is revoked. */
    regenerate: async ({ project }: Company) => (await database.begin((sql) => generateProjectKey(sql, project)))!.key,
    /** Another project of the company. */
    addProject: async ({ team }: Company) => {
      return await database.begin(async (sql) => {
        const project = (await insertProject(sql, team, "other"))!;
        return { project, key: (await generateProjectKey(sql, project))!.key };
      });
    },
  };
}

/** Runs `take` in a transaction that stays open until `release` is called. */
export async function holdTransaction({ begin }: Pick<Database, "begin">, take: (sql: Tx) => Promise<unknown>) {
  const { promise: end, resolve } = Promise.withResolvers<void>();
  const { promise: taken, resolve: hasTaken } = Promise.withResolvers<void>();
  const holding = begin(async (sql) => {
    await take(sql);
    hasTaken();
    await end;
  });
  await Promise.race([taken, holding]);
  const release = async () => {
    resolve();
    await holding;
  };
  return { release };
}

/** Waits until `condition` holds; fails after so many seconds. */
export async function until(condition: () => boolean | Promise<boolean>, seconds = 40): Promise<void> {
  const end = performance.now() + seconds * 1000;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error("The condition did not come true");
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** A small JUnit report: a letter per case, p, f or s; - for one that it does not have. */
export const junit = (letters: string, suite = "unit"): string =>
  `<testsuite name="${suite}">${[...letters]
    .map((letter, index) => {
      if (letter === "-") return "";
      const inner = letter === "f" ? `<failure message="case ${index} failed"/>` : letter === "s" ? "<skipped/>" : "";
      return `<testcase classname="${suite}" name="case ${index}" time="0.01">${inner}</testcase>`;
    })
    .join("")}</testsuite>`;
