/** The real process, as a user starts, stops and kills it. */

import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import { startEmbedded } from "../../src/database/postgres/embedded.ts";
import { readFirstStart } from "../first_start.ts";
import { createDatabase, junit, until, databaseVariables } from "../harness.ts";
import { createPlace, guardProcess, readOutput, removePlace } from "../places.ts";
import { startSharingPooler } from "../pgbouncer.ts";
import { createProxy, createReceiver } from "../receiver.ts";
import { beginUpload } from "../slow_upload.ts";

setDefaultTimeout(90_000);
const ROOT = join(import.meta.dir, "../..");
const places: string[] = [];
const children = new Set<Bun.Subprocess>();
afterAll(async () => {
  for (const child of children) child.kill("SIGTERM");
  await Promise.all([...children].map((child) => child.exited));
  await Promise.all(places.map(removePlace));
});

function createDirectory(): string {
  const place = createPlace("start");
  places.push(place);
  return join(place, "data");
}

const environment = (more: Record<string, string>) => ({ ...process.env, DATABASE_URL: "", PUBLIC_URL: "", ...more });

type Server = Awaited<ReturnType<typeof start>>;

/** A command that ends with the tests, if not before. */
function spawn(command: string[], options: Bun.SpawnOptions.OptionsObject<"ignore", "pipe", "pipe">) {
  const child = Bun.spawn(command, { cwd: ROOT, stdout: "pipe", stderr: "pipe", ...options });
  children.add(child);
  guardProcess(child);
  void child.exited.then(() => children.delete(child));
  return child;
}
const startCommand = [process.execPath, "src/main.ts"];

/** Resolves when the server is ready, or has ended before. */
async function start(dataDir: string, more: Record<string, string> = {}) {
  const child = spawn(startCommand, {
    env: environment({ DATA_DIR: dataDir, PORT: "0", RATE_LIMIT_PER_MINUTE: "0", LOG_LEVEL: "info", ...more }),
  });
  let output = "";
  const { promise: ready, resolve } = Promise.withResolvers<string | undefined>();
  const reading = (async () => {
    for await (const chunk of child.stdout) {
      output += new TextDecoder().decode(chunk);
      const url = /"message":"Assay is ready","url":"([^"]+)"/.exec(output)?.[1];
      if (url !== undefined) resolve(url);
    }
    resolve(undefined);
  })();
  const url = (await ready) ?? "";
  const stop = async (signal: NodeJS.Signals = "SIGTERM") => {
    child.kill(signal);
    await child.exited;
    await reading;
    return child.exitCode;
  };
  return {
    child,
    url,
    output: () => output,
    welcome: () => readFirstStart(dataDir),
    stop,
    errors: () => new Response(child.stderr).text(),
  };
}

/** Requests with a key that the first start has printed: of its project, or of its team. */
function createCalls({ welcome }: Server, kind: "project" | "team") {
  const [, team, teamKey, project, key] = /Team\s+(\S+)\s+(\S+)\s+Project\s+(\S+)\s+(\S+)/.exec(welcome()) as string[];
  const [base, authorization] = kind === "team" ? [`/teams/${team}`, teamKey] : [`/projects/${project}`, key];
  const headers = { authorization: `Bearer ${authorization}` };
  const call = (server: Server, path: string, init: RequestInit = {}) =>
    fetch(`${server.url}/api/v1${base}${path}`, { headers, ...init });
  return {
    ...{ project: project!, key: authorization!, call },
    post: (server: Server, path: string, body: unknown) =>
      call(server, path, { method: "POST", body: typeof body === "string" ? body : JSON.stringify(body) }),
  };
}
const readJson = async (answer: Response): Promise<any> => await answer.json();

const shell = async (line: string) => JSON.parse(await Bun.$`sh -c ${line}`.quiet().text());

test("the first start prints lines that work as they are, the second no key, and the run is still there", async () => {
  const dataDir = createDirectory();
  const first = await start(dataDir);
  const [upload, list] = first
    .welcome()
    .split("\n")
    .filter((line) => line.startsWith("curl "));
  expect(await shell(upload!)).toMatchObject({ taskSlug: "hello", passed: 1, failed: 1, verdict: "failed" });
  const { data } = await shell(list!);
  expect(data).toEqual([expect.objectContaining({ taskSlug: "hello", total: 2 })]);
  expect(statSync(dataDir).mode & 0o777).toBe(process.getuid?.() === 0 ? 0o711 : 0o700);
  expect(first.welcome().match(/svc_proj_\w+/g)).toHaveLength(4);
  expect(await first.stop("SIGTERM")).toBe(0);

  const second = await start(dataDir);
  expect(second.output()).not.toMatch(/svc_(proj|team)_/);
  expect((await shell(list!.replace(first.url, second.url))).data).toEqual(data);
  expect(await second.stop("SIGINT")).toBe(0);
});

test("a start prints a link that makes the first account, a later one another, and none when there is an account", async () => {
  const dataDir = createDirectory();
  const linkOf = ({ output, url }: { output: () => string; url: string }) =>
    new RegExp(`${url}/setup\\?token=[\\w-]{43}`).exec(output())?.[0];
  const first = await start(dataDir);
  const link = linkOf(first)!;
  expect(first.output().match(/setup\?token=/g)).toHaveLength(1);
  expect((await fetch(link)).status).toBe(200);
  const second = await start(dataDir);
  await until(() => linkOf(second) !== undefined);
  const other = linkOf(second)!;
  expect(other.split("=")[1]).not.toBe(link.split("=")[1]);
  // Each server takes the other's link.
  const crossed = [link.replace(first.url, second.url), other.replace(second.url, first.url)];
  for (const url of crossed) expect((await fetch(url)).status).toBe(200);
  expect((await fetch(`${first.url}/setup?token=${"x".repeat(43)}`)).status).toBe(404);
  await second.stop();

  const team = /Team +([0-9a-f-]{36})/.exec(first.welcome())![1]!;
  const create = ["admin", "create-user", "--email", "ada@acme.example", "--team", team, "--no-password"];
  const made = spawn([process.execPath, "src/cli/assay.ts", ...create], { env: environment({ DATA_DIR: dataDir }) });
  expect(await made.exited).toBe(0);
  expect((await fetch(link)).status).toBe(404);
  await first.stop("SIGTERM");
  const third = await start(dataDir);
  expect(linkOf(third)).toBeUndefined();
  expect(await third.stop("SIGTERM")).toBe(0);
});

test("kill -9 during uploads loses nothing that was acknowledged and halves nothing", async () => {
  const dataDir = createDirectory();
  let server = await start(dataDir);
  const { call, post } = createCalls(server, "project");
  const acknowledged = new Set<string>();
  let count = 0;
  for (let round = 0; round < 2; round++) {
    const goal = acknowledged.size + 10;
    const { promise: enough, resolve } = Promise.withResolvers<void>();
    const uploaders = Array.from({ length: 8 }, async () => {
      for (;;) {
        const slug = `t${count++}`;
        const answer = await post(server, `/test-runs?task_slug=${slug}`, junit("ppf".repeat(70))).catch(() => {});
        if (!answer) return;
        if (answer.status === 201) acknowledged.add(slug);
        if (acknowledged.size >= goal) resolve();
      }
    });
    await enough;
    await server.stop("SIGKILL");
    await Promise.all(uploaders);
    server = await start(dataDir);
  }
  const { data } = await readJson(await call(server, "/test-runs?limit=100"));
  const stored = new Map<string, number[]>(data.map((run: any) => [run.taskSlug, [run.passed, run.failed]]));
  expect(stored.size).toBe(data.length);
  expect([...acknowledged].filter((slug) => !stored.has(slug))).toEqual([]);
  expect(new Set([...stored.values()].map(String))).toEqual(new Set(["140,70"]));
  expect(await server.stop()).toBe(0);
});

test("kill -9 loses and invents no announcement: each upload is told under one id", async () => {
  const receiver = createReceiver({ status: 200 });
  const dataDir = createDirectory();
  const more = { OUTBOUND_ALLOW: "127.0.0.0/8" };
  let server = await start(dataDir, more);
  const team = createCalls(server, "team");
  const project = createCalls(server, "project");
  const config = { url: receiver.url, secret: `whsec_${Buffer.alloc(32, 7).toString("base64")}` };
  const { id } = await readJson(await team.post(server, "/integrations", { kind: "webhook", config }));
  const actions = [{ type: "notify", integrationId: id }];
  await team.post(server, "/automations", { name: "tell", trigger: { event: "test_run.completed" }, actions });
  const acknowledged: string[] = [];
  for (let round = 0; round < 2; round++) {
    const uploads = Array.from({ length: 4 }, async () => {
      const answer = await project.post(server, "/test-runs", junit("pf")).then(readJson, () => {});
      if (answer) acknowledged.push(answer.executionId);
    });
    await uploads[0];
    // The first time before anything was announced, then while it is.
    if (round > 0) await until(() => receiver.requests.length > round * 2);
    await server.stop("SIGKILL");
    await Promise.all(uploads);
    server = await start(dataDir, more);
  }
  const told = () =>
    new Map(receiver.requests.map(({ body, headers }) => [headers["webhook-id"], body.data.execution.id]));
  // What was being sent when the server was killed is sent again when its claim is over.
  await until(() => acknowledged.every((id) => [...told().values()].includes(id)));
  const { data } = await readJson(await project.call(server, "/executions?limit=100"));
  const executions = data.map(({ id }: { id: string }) => id).sort();
  await until(() => new Set(told().values()).size === executions.length);
  expect([...told().values()].sort()).toEqual(executions);
  await server.stop();
}, 90_000);

test("HTTP_PROXY leads no request to an integration anywhere; OUTBOUND_PROXY does, and its password is nowhere", async () => {
  const receiver = createReceiver({ status: 204 });
  const proxy = await createProxy();
  const dataDir = createDirectory();
  const more = { OUTBOUND_ALLOW: "127.0.0.0/8", HTTP_PROXY: proxy.url, http_proxy: proxy.url, ALL_PROXY: proxy.url };
  let server = await start(dataDir, { ...more, NO_PROXY: "", no_proxy: "" });
  const team = createCalls(server, "team");
  const post = async (path: string, body: unknown) => readJson(await team.post(server, `/integrations${path}`, body));
  const { id } = await post("", { kind: "webhook", config: { url: receiver.url } });
  expect((await post(`/${id}/test`, {})).status).toBe("sent");
  expect(proxy.heads).toEqual([]);
  await server.stop();

  const proxies = { OUTBOUND_PROXY: proxy.url, NO_PROXY: "*", no_proxy: "*", LOG_LEVEL: "debug" };
  server = await start(dataDir, { ...more, ...proxies });
  const sent = await post(`/${id}/test`, {});
  expect(sent.status).toBe("sent");
  expect(proxy.heads).toEqual([expect.stringContaining(`POST ${receiver.url}/ HTTP/1.1`)]);
  expect(receiver.requests).toHaveLength(2);
  await server.stop();
  for (const text of [JSON.stringify(sent), server.output(), await server.errors()])
    expect(text).not.toMatch(/hunter2|b3BlcmF0b3I6aHVudGVyMg/);
});

test("SIGTERM, twice, lets a running upload end and does not wait for idle connections", async () => {
  const server = await start(createDirectory());
  const { project, key } = createCalls(server, "project");
  const { promise: idle, resolve: connected } = Promise.withResolvers<void>();
  const { hostname, port } = new URL(server.url);
  await Bun.connect({ hostname, port: Number(port), socket: { open: () => connected(), data() {} } });
  const { answered, finish } = await beginUpload(server.url, { project, key }, junit("pp"));
  await idle;
  // An answer to a later request tells that the upload's head has been read.
  await fetch(`${server.url}/healthz`);
  const stopped = server.stop();
  server.child.kill("SIGTERM");
  finish();
  expect(await answered).toStartWith("HTTP/1.1 201");
  expect(await stopped).toBe(0);
});

/** The pid of the built-in PostgreSQL and of everything it has started. */
const postgresProcesses = (log: string): number[] => {
  const postmaster = [...log.matchAll(/PostgreSQL [^"]*runs[^"]* \(pid (\d+)\)/g)].at(-1)![1]!;
  const children = readFileSync(`/proc/${postmaster}/task/${postmaster}/children`, "utf8");
  return [postmaster, ...children.trim().split(" ")].map(Number);
};

const isLinux = process.platform === "linux";

test.if(isLinux)(
  "PostgreSQL killed under it is back by itself, nothing is lost and nothing hangs meanwhile",
  async () => {
    const server = await start(createDirectory());
    const { call, post } = createCalls(server, "project");
    expect((await post(server, "/test-runs", junit("pf"))).status).toBe(201);
    process.kill(postgresProcesses(server.output())[0]!, "SIGKILL");
    expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
    let answer = await call(server, "/test-runs");
    await until(async () => {
      // What PostgreSQL had started answers for a moment after it was killed.
      if (answer.status === 200 && server.output().includes("runs again")) return true;
      if (answer.status !== 200) {
        expect(answer.status).toBe(500);
        expect(answer.headers.get("retry-after")).toBe("2");
      }
      answer = await call(server, "/test-runs");
      return false;
    }, 20);
    expect(await answer.json()).toMatchObject({ data: [{ passed: 1, failed: 1 }] });
    expect((await post(server, "/test-runs", junit("ppf"))).status).toBe(201);
    expect(await server.stop()).toBe(0);
  },
);

test.if(isLinux)(
  "while PostgreSQL is frozen the server is alive and not ready, and goes on when it thaws",
  async () => {
    const server = await start(createDirectory());
    const { call } = createCalls(server, "project");
    const list = () => call(server, "/test-runs");
    expect((await list()).status).toBe(200);
    const frozen = postgresProcesses(server.output());
    for (const pid of frozen) process.kill(pid, "SIGSTOP");
    try {
      const waiting = list();
      expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
      expect((await fetch(`${server.url}/readyz`)).status).toBe(503);
      for (const pid of frozen) process.kill(pid, "SIGCONT");
      expect((await waiting).status).toBe(200);
      await until(async () => (await fetch(`${server.url}/readyz`)).status === 200);
    } finally {
      for (const pid of frozen) process.kill(pid, "SIGCONT");
    }
    expect(await server.stop()).toBe(0);
  },
);

test("two servers started at once on an empty directory set up one team between them, and both serve", async () => {
  const dataDir = createDirectory();
  const servers = await Promise.all([start(dataDir), start(dataDir)]);
  const keys = servers.flatMap((server) => server.welcome().match(/svc_proj_\w+/g) ?? []);
  expect(new Set(keys).size).toBe(1);
  const outputs = servers.map((server) => server.welcome()).join("\n");
  const project = /projects\/([0-9a-f-]{36})/.exec(outputs)![1];
  for (const { url } of servers) {
    const path = `${url}/api/v1/projects/${project}`;
    expect((await fetch(path, { headers: { authorization: `Bearer ${keys[0]}` } })).status).toBe(200);
  }
  expect(await Promise.all(servers.map((server) => server.stop()))).toEqual([0, 0]);
});

test("of two servers started at once on a new database, each with a directory of its own, one seals and one is refused", async () => {
  const { connection } = await createDatabase();
  const database = databaseVariables(connection);
  const directories = [createDirectory(), createDirectory()];
  const servers = await Promise.all(directories.map((dataDir) => start(dataDir, database)));
  expect(servers.map(({ url }) => url === "").sort()).toEqual([false, true]);
  const [winner, loser] = servers[0]!.url === "" ? [1, 0] : [0, 1];
  const errors = await servers[loser]!.errors();
  expect(errors).toMatch(/^(SECRET_KEY is missing|The file "[^"]+secret-key" is not the key).*\n$/);
  expect(await servers[loser]!.stop()).toBe(1);
  expect(await servers[winner]!.stop()).toBe(0);
  const again = await start(directories[winner]!, database);
  expect(again.url).not.toBe("");
  // With the key of the first one, the other one starts as well.
  const file = readFileSync(join(directories[winner]!, "secret-key"), "utf8");
  const both = await start(directories[loser]!, { ...database, SECRET_KEY: file.trim() });
  expect(both.url).not.toBe("");
  expect(await Promise.all([again.stop(), both.stop()])).toEqual([0, 0]);
});

test("a pooler that shares sessions is refused at the start, in one sentence", async () => {
  const { connection } = await createDatabase();
  const url = await startSharingPooler(connection, { lock_timeout: "15s" });
  const server = await start(createDirectory(), { DATABASE_URL: url });
  expect(await server.errors()).toMatch(/^DATABASE_URL leads through a pooler that shares sessions [^\n]*\n$/);
  expect(await server.stop()).toBe(1);
});

test("SIGTERM while the server starts stops it, and PostgreSQL with it, as soon as it has started", async () => {
  const dataDir = createDirectory();
  const child = spawn(startCommand, { env: environment({ DATA_DIR: dataDir, PORT: "0" }) });
  let output = "";
  let isTold = false;
  for await (const chunk of child.stdout) {
    output += new TextDecoder().decode(chunk);
    if (!isTold && output.includes("Created the database schema")) isTold = child.kill("SIGTERM") === undefined;
  }
  expect([await child.exited, await new Response(child.stderr).text()]).toEqual([0, ""]);

  expect(output).toContain('"message":"Stopped"');
  // PostgreSQL takes it away when it ends in order.
  expect(existsSync(join(dataDir, "postgres", "cluster", "postmaster.pid"))).toBe(false);
});

test("a database of a newer version is refused, and so is one whose values the key does not open", async () => {
  const dataDir = createDirectory();
  const server = await start(dataDir);
  const { call, post } = createCalls(server, "team");
  const { id } = await readJson(await post(server, "/environments", { slug: "staging" }));
  const put = { method: "PUT", body: `{"value":"x"}` };
  expect((await call(server, `/environments/${id}/variables/TOKEN`, put)).status).toBe(201);
  expect(await server.stop()).toBe(0);

  const wrong = await start(dataDir, { SECRET_KEY: Buffer.alloc(32).toString("base64") });
  expect(await wrong.errors()).toContain("SECRET_KEY is not the key of 1 value in the database");
  expect(await wrong.stop()).toBe(1);

  const cluster = await startEmbedded({ directory: join(dataDir, "postgres"), fsync: false });
  const sql = postgres({ ...cluster.connection, max: 1 });
  await sql`insert into migration (number, name) values (99, 'from the future')`;
  await sql.end();
  await cluster.stop();
  const old = await start(dataDir);
  expect(await old.errors()).toMatch(
    /^The database has schema 99, this version of Assay knows up to \d+: start a newer version\n$/,
  );
  expect(await old.stop()).toBe(1);
});

test("who waits until the server is ready finds the keys of the first start in its output", async () => {
  const free = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
  const port = free.port!;
  await free.stop(true);
  const dataDir = createDirectory();
  const output = `${dataDir}.log`;
  const child = Bun.spawn([process.execPath, "src/main.ts"], {
    cwd: ROOT,
    env: environment({ DATA_DIR: dataDir, PORT: String(port) }),
    ...{ stdout: Bun.file(output), stderr: "inherit" },
  });
  children.add(child);
  guardProcess(child);
  await until(() =>
    fetch(`http://127.0.0.1:${port}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    ),
  );
  expect(await Bun.file(output).text()).toMatch(/cat \S+first-start\.txt[\s\S]*\/setup\?token=/);
  child.kill("SIGTERM");
  expect(await child.exited).toBe(0);
});

test("a port in use is refused before the database is opened", async () => {
  const dataDir = createDirectory();
  const other = Bun.serve({ port: 0, hostname: "127.0.0.1", reusePort: true, fetch: () => new Response() });
  const refused = await start(dataDir, { PORT: String(other.port) });
  expect(await refused.errors()).toContain(`Cannot listen on 127.0.0.1:${other.port}`);
  expect(await refused.stop()).toBe(1);
  expect(existsSync(dataDir)).toBe(false);
  await other.stop(true);
  const first = await start(dataDir);
  expect(first.welcome().match(/svc_proj_\w+/g)).toHaveLength(4);
  const second = await start(createDirectory(), { PORT: new URL(first.url).port });
  expect(await second.errors()).toContain("Cannot listen");
  expect(await second.stop()).toBe(1);
  expect(await first.stop()).toBe(0);
});

test("a long poll does not hold up the stop", async () => {
  const server = await start(createDirectory());
  const { call, post } = createCalls(server, "project");
  const { id } = await readJson(await post(server, "/executions", {}));
  const waiting = call(server, `/executions/${id}?wait=30`);
  await fetch(`${server.url}/healthz`);
  // It would not within the time of this test, were the poll waited for.
  expect(await server.stop()).toBe(0);
  expect(await readJson(await waiting)).toMatchObject({ status: "queued" });
});

test("wrong configuration stops the start and names every mistake", async () => {
  const server = await start(createDirectory(), { PORT: "x", LOG_LEVEL: "loud", TRUST_PROXY: "nonsense" });
  const errors = await server.errors();
  expect(await server.stop()).toBe(1);
  for (const name of ["PORT", "LOG_LEVEL", "TRUST_PROXY"]) expect(errors).toContain(name);
});

test("admin commands work while the server runs and while it does not", async () => {
  const dataDir = createDirectory();
  const admin = async (...args: string[]) => {
    const command = [process.execPath, "src/cli/assay.ts", "admin", ...args, "--json"];
    const child = spawn(command, { env: environment({ DATA_DIR: dataDir }) });
    const { code, output, errors } = await readOutput(child);
    return { code, answer: output === "" ? undefined : JSON.parse(output), errors };
  };
  await (await start(dataDir)).stop();
  const { answer: team } = await admin("create-team", "--name", "Acme");
  const { answer: project } = await admin("create-project", "--team", team.id, "--name", "Web");
  const server = await start(dataDir);
  expect((await admin("list-teams")).answer.data).toMatchObject([{ name: "My team" }, { name: "Acme" }]);
  const status = async (key: string) => {
    const headers = { authorization: `Bearer ${key}` };
    return (await fetch(`${server.url}/api/v1/projects/${project.id}`, { headers })).status;
  };
  const { answer: first } = await admin("generate-key", "--project", project.id);
  const key = expect.stringMatching(/^svc_proj_/);
  expect(first).toEqual({ id: expect.any(String), key, leading: first.key.slice(0, 17) });
  expect(await status(first.key)).toBe(200);
  const { answer: second } = await admin("generate-key", "--project", project.id);
  expect([await status(first.key), await status(second.key)]).toEqual([401, 200]);
  const { answer: keys } = await admin("list-keys", "--team", team.id);
  expect(keys.data).toMatchObject([
    { id: second.id, revokedAt: null },
    { id: first.id, revokedAt: expect.any(String) },
  ]);
  expect(JSON.stringify(keys)).not.toContain(second.key);
  await admin("revoke-key", "--id", second.id);
  expect(await status(second.key)).toBe(401);
  expect(await server.stop()).toBe(0);
});

test("too few file descriptors are told at the start, and what to do", async () => {
  const command = ["sh", "-c", 'ulimit -n 40; exec "$@"', "sh", ...startCommand];
  const child = spawn(command, { env: environment({ DATA_DIR: createDirectory(), PORT: "0" }) });
  expect(await new Response(child.stderr).text()).toContain("at least 66 are needed: raise it (ulimit -n)");
  expect(await child.exited).toBe(1);
});
