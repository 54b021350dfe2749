/** Keys that are replaced, the rate limit, Idempotency-Key and uploads, on one server and on two. */

import { describe, expect, test } from "bun:test";
import { createAsking } from "../asking.ts";
import { generateProjectKey } from "../../src/operations/people/keys.ts";
import { lockLiveKey } from "../../src/store/keys.ts";
import { createHarness, createServer, holdTransaction, junit, until } from "../harness.ts";
import { beginUpload } from "../slow_upload.ts";

const { ask, acme, rival, database, url, addProject } = await createHarness();

const createProject = async () => createAsking(ask, await addProject(acme));
const regenerate = async (project: string): Promise<string> =>
  (await database.begin((sql) => generateProjectKey(sql, project)))!.key;
const countRuns = async (projectId: string) =>
  (await database.pool`select from test_run where project_id = ${projectId}`).length;

describe("generating a project key", () => {
  test("revokes the one before at once, on every server", async () => {
    const { project, key } = await addProject(acme);
    const other = await createServer(database);
    const path = `GET /projects/${project}/test-runs`;
    for (const server of [{ ask }, other]) expect((await server.ask(path, { key })).status).toBe(200);
    const fresh = await regenerate(project);
    for (const server of [{ ask }, other]) {
      expect((await server.ask(path, { key })).status).toBe(401);
      expect((await server.ask(path, { key: fresh })).status).toBe(200);
    }
  });

  // A large upload is handled in a thread of its own.
  test.each([
    ["small", ""],
    ["large", "x".repeat(1_100_000)],
  ])("a slow upload that began before is answered 401 and leaves nothing", async (_, padding) => {
    const own = await createProject();
    const upload = await beginUpload(url, own, `${junit("pp")}<!--${padding}-->`);
    await regenerate(own.project);
    upload.finish();
    const answer = await upload.answered;
    expect(answer).toStartWith("HTTP/1.1 401");
    expect(answer).toContain(`{"error":{"code":"UNAUTHORIZED"`);
    expect(await countRuns(own.project)).toBe(0);
    expect((await database.pool`select from execution where project_id = ${own.project}`).length).toBe(0);
  });

  test("an upload that is slow but not revoked is stored", async () => {
    const own = await createProject();
    const upload = await beginUpload(url, own, junit("pp"));
    upload.finish();
    expect(await upload.answered).toStartWith("HTTP/1.1 201");
    expect(await countRuns(own.project)).toBe(1);
  });

  test("in the middle of 200 parallel uploads: what was acknowledged is stored, and nothing else", async () => {
    const { project, send } = await createProject();
    const uploads = Array.from({ length: 200 }, () => send(junit("p")));
    await Promise.race(uploads);
    await regenerate(project);
    const stored = await countRuns(project);
    const statuses = (await Promise.all(uploads)).map(({ status }) => status);
    const acknowledged = statuses.filter((status) => status === 201).length;
    expect(statuses.filter((status) => status !== 201 && status !== 401)).toEqual([]);
    expect(await countRuns(project)).toBe(acknowledged);
    expect(stored).toBe(acknowledged);
    expect(acknowledged).toBeGreaterThan(0);
  });

  test("a long poll that began before is answered 401", async () => {
    const { project, post, call } = await createProject();
    const { id } = await post("/executions", {});
    const polling = call("GET", `/executions/${id}?wait=30`);
    await until(
      async () =>
        (await database.pool`select from pg_stat_activity where query ilike 'listen%' and datname = current_database()`)
          .length > 0,
    );
    const fresh = await regenerate(project);
    await ask(`POST /projects/${project}/executions/${id}/cancel`, { key: fresh });
    expect((await polling).status).toBe(401);
  });

  test("comes through where uploads never pause: who comes later waits for it", async () => {
    const { project, send } = await createProject();
    const [live] = await database.pool<{ id: string; teamId: string; projectId: string }[]>`
      select id, team_id as "teamId", project_id as "projectId" from api_key
      where project_id = ${project} and revoked_at is null`;
    const first = await holdTransaction(database, async (sql) => expect(await lockLiveKey(sql, live!)).toBe(true));
    const revoking = regenerate(project);
    const waiting = async (count: number) =>
      (
        await database.pool`
          select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
      ).length === count;
    await until(() => waiting(1));
    const second = send(junit("p"));
    await until(() => waiting(2));
    await Promise.all([first.release(), revoking]);
    expect((await second).status).toBe(401);
    expect(await countRuns(project)).toBe(0);
  });

  test("a revoked key is a 401 also where another error would be due", async () => {
    const { project, key } = await addProject(acme);
    await regenerate(project);
    for (const path of [`/projects/${project}?x=1`, `/projects/${rival.project}`, "/nope", "/projects/x"])
      expect([path, (await ask(`GET ${path}`, { key })).status]).toEqual([path, 401]);
  });

  test("many at once leave exactly one live key", async () => {
    const { project } = await addProject(acme);
    const keys = await Promise.all(Array.from({ length: 10 }, () => regenerate(project)));
    const answers = await Promise.all(keys.map((key) => ask(`GET /projects/${project}`, { key })));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
  });
});

describe("the rate limit", () => {
  test("refuses the 61st request of a key in a minute, ten clients at once or not, and the headers tell the truth", async () => {
    const limited = await createHarness({ rateLimitPerMinute: 60 });
    const get = () => limited.ask(`GET /projects/${limited.acme.project}`, limited.acme);
    const first = await get();
    expect([first.headers.get("x-ratelimit-limit"), first.headers.get("x-ratelimit-remaining")]).toEqual(["60", "59"]);
    const reset = Number(first.headers.get("x-ratelimit-reset")) - Date.now() / 1000;
    expect(reset).toBeGreaterThan(55);
    expect(reset).toBeLessThanOrEqual(61);
    const answers = await Promise.all(
      Array.from({ length: 10 }, async () => {
        const statuses = [];
        for (let index = 0; index < 8; index++) statuses.push((await get()).status);
        return statuses;
      }),
    );
    expect(answers.flat().filter((status) => status === 200)).toHaveLength(59);
    const refused = await get();
    expect([refused.status, refused.body.error.code]).toEqual([429, "RATE_LIMITED"]);
    expect(refused.headers.get("x-ratelimit-remaining")).toBe("0");
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect((await limited.ask(`GET /projects/${limited.rival.project}`, limited.rival)).status).toBe(200);
  });

  test("counts keyless and invalid requests by address, and a forged X-Forwarded-For does not help", async () => {
    const limited = await createHarness({ rateLimitPerMinute: 5 });
    const ask = (index: number) =>
      limited.ask(`GET /projects/${limited.acme.project}`, {
        key: index % 2 ? "svc_proj_wrong" : null,
        headers: { "x-forwarded-for": `203.0.113.${index}` },
      });
    const statuses = [];
    for (let index = 0; index < 7; index++) statuses.push((await ask(index)).status);
    expect(statuses).toEqual([401, 401, 401, 401, 401, 429, 429]);
    expect((await limited.ask(`GET /projects/${limited.acme.project}`, limited.acme)).status).toBe(200);
  });

  test("behind a trusted proxy every client has an allowance of its own", async () => {
    const limited = await createHarness({ rateLimitPerMinute: 1, trustProxy: ["127.0.0.1"] });
    const from = (address: string) =>
      limited.ask("GET /projects", { headers: { "x-forwarded-for": `6.6.6.6, ${address}` } });
    const statuses = [];
    for (const address of ["203.0.113.1", "203.0.113.2", "203.0.113.1"]) statuses.push((await from(address)).status);
    expect(statuses).toEqual([401, 401, 429]);
  });

  test("an upload of any size is one request, and every error counts", async () => {
    const limited = await createHarness({ rateLimitPerMinute: 10 });
    const { headers } = await limited.ask(`POST /projects/${limited.acme.project}/test-runs`, {
      key: limited.acme.key,
      body: junit("p".repeat(5_000)),
    });
    expect(headers.get("x-ratelimit-remaining")).toBe("9");
    const bad = await limited.ask(`GET /projects/${limited.acme.project}/test-runs?limit=0`, limited.acme);
    expect([bad.status, bad.headers.get("x-ratelimit-remaining")]).toEqual([400, "8"]);
  });
});

describe("Idempotency-Key", () => {
  const post = (name: string, body: unknown, { project, key } = acme as { project: string; key: string }) =>
    ask(`POST /projects/${project}/executions`, { key, body, headers: { "idempotency-key": name } });

  test("the same request again is answered from memory, without a second effect", async () => {
    const [first, second] = [await post("a", { branch: "x" }), await post("a", { branch: "x" })];
    expect([first.status, second.status]).toEqual([201, 201]);
    expect(second.text).toBe(first.text);
    expect([first.headers.get("idempotent-replayed"), second.headers.get("idempotent-replayed")]).toEqual([
      null,
      "true",
    ]);
  });

  test("another request under the same key is a 400", async () => {
    await post("b", { branch: "x" });
    expect((await post("b", { branch: "y" })).status).toBe(400);
  });

  test("50 at once have one effect, on two servers", async () => {
    const other = await createServer(database);
    const { project, key } = await addProject(acme);
    const headers = { "idempotency-key": "once" };
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        (index % 2 ? ask : other.ask)(`POST /projects/${project}/test-runs`, { key, body: junit("pf"), headers }),
      ),
    );
    expect(new Set(answers.map(({ status, text }) => `${status} ${JSON.parse(text).executionId}`)).size).toBe(1);
    expect(answers.filter(({ headers }) => headers.get("idempotent-replayed") === null)).toHaveLength(1);
    expect(await countRuns(project)).toBe(1);
  });

  test("a form is the same whatever its boundary", async () => {
    const send = () => {
      const body = new FormData();
      body.append("file", new File([junit("p")], "a.xml"));
      const headers = { "idempotency-key": "form" };
      return ask(`POST /projects/${acme.project}/test-runs`, { key: acme.key, body, headers });
    };
    const [first, second] = [await send(), await send()];
    expect([second.status, second.text]).toEqual([201, first.text]);
  });

  test("a refused request is not remembered", async () => {
    expect((await post("c", { nope: 1 })).status).toBe(400);
    expect((await post("c", { branch: "x" })).status).toBe(201);
  });

  test("projects do not share keys, also those of one team", async () => {
    expect((await post("d", { branch: "x" })).status).toBe(201);
    for (const theirs of [await addProject(acme), rival]) {
      const { status, headers } = await post("d", { branch: "y" }, theirs);
      expect([status, headers.get("idempotent-replayed")]).toEqual([201, null]);
    }
  });

  test("a new key of the project repeats what the old one began", async () => {
    const own = await addProject(acme);
    const first = await post("k", {}, own);
    const fresh = { ...own, key: await regenerate(own.project) };
    expect((await post("k", {}, fresh)).text).toBe(first.text);
  });
});

/** Sends bytes as they are; the connection is cut after them, or left until the server answers. */
async function sendRaw(bytes: string, { isCut = false } = {}): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  await Bun.connect({
    hostname: "127.0.0.1",
    port: Number(new URL(url).port),
    socket: {
      open(socket) {
        socket.write(bytes);
        if (!isCut) return;
        socket.flush();
        socket.terminate();
        resolve("");
      },
      data: (_, chunk) => resolve(chunk.toString()),
      error: () => resolve(""),
    },
  });
  return await promise;
}

test("an upload that breaks off leaves nothing", async () => {
  const { project, key, get } = await createProject();
  const body = junit("p".repeat(50));
  const head = `POST /api/v1/projects/${project}/test-runs HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer ${key}\r\nContent-Length: ${body.length}\r\n\r\n`;
  for (let tenth = 1; tenth < 10; tenth++)
    await sendRaw(head + body.slice(0, (body.length * tenth) / 10), { isCut: true });
  await get("");
  expect(await countRuns(project)).toBe(0);
});

test("the use of a key is noted", async () => {
  const { project, get } = await createProject();
  await get("");
  await until(async () => {
    const [row] = await database.pool`select last_used_at as used from api_key where project_id = ${project}`;
    return row!["used"] !== null;
  });
});

describe("a large upload, which is handled in a thread of its own", () => {
  const large = (letters: string) => `${junit(letters)}<!--${"x".repeat(1_100_000)}-->`;

  test("is answered like any other, whole or compressed", async () => {
    const { send } = await createProject();
    const query = "execution_key=large";
    const small = await send(junit("pfs"), query);
    const first = await send(large("pps"), query);
    const again = await send(large("pps"), query);
    const zipped = await send(Bun.gzipSync(large("ppp")), query);
    expect([small.status, first.status, again.status, zipped.status]).toEqual([201, 201, 200, 201]);
    expect(first.body).toMatchObject({ attempt: 2, passed: 2, skipped: 1, flaky: 1 });
    expect(again.body).toEqual(first.body);
    expect(zipped.body).toMatchObject({ attempt: 3, passed: 3, flaky: 1 });
  });

  test("that cannot be read is a 400 that says why", async () => {
    const { project, send } = await createProject();
    const { status, body } = await send("x".repeat(1_100_000));
    expect([status, body.error.code]).toEqual([400, "VALIDATION_ERROR"]);
    expect(await countRuns(project)).toBe(0);
  });

  test("keeps its Idempotency-Key", async () => {
    const { project, key } = await addProject(acme);
    const headers = { "idempotency-key": "large" };
    const send = () => ask(`POST /projects/${project}/test-runs`, { key, body: large("p"), headers });
    const [first, second] = await Promise.all([send(), send()]);
    expect(second.text).toBe(first.text);
    expect([first, second].filter(({ headers }) => headers.has("idempotent-replayed"))).toHaveLength(1);
  });
});

test("a request whose Host header makes no address is a 400, whatever it asks for", async () => {
  for (const path of ["/healthz", `/api/v1/projects/${acme.project}`])
    for (const head of [`GET ${path} HTTP/1.0`, `GET ${path} HTTP/1.1\r\nHost: a b/../@x`]) {
      const answer = await sendRaw(`${head}\r\n\r\n`);
      expect(answer).toStartWith("HTTP/1.1 400");
      expect(answer).toContain(`{"error":{"code":"VALIDATION_ERROR"`);
    }
});
