import { describe, expect, test } from "bun:test";
import { generateProjectKey } from "../../src/operations/people/keys.ts";
import { lockLiveKey } from "../../src/store/keys.ts";
import { createHarness, createServer, junit, until } from "../harness.ts";

const { ask, acme, rival, regenerate, database, url, addProject } = await createHarness();

/** An upload whose body is sent in two parts; the second only when `finish` is called. */
function slowUpload(base: string, projectId: string, key: string, query = "", padding = "") {
  let finish = () => {};
  const body = `${junit("pp")}<!--${padding}-->`;
  const stream = new ReadableStream({
    type: "direct",
    async pull(controller: any) {
      controller.write(body.slice(0, 30));
      await controller.flush();
      await new Promise<void>((resolve) => (finish = resolve));
      controller.write(body.slice(30));
      controller.close();
    },
  } as never);
  const answer = fetch(`${base}/api/v1/projects/${projectId}/test-runs${query}`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}` },
    body: stream,
  });
  return { answer, started: () => until(() => finish.toString() !== "() => {}"), finish: () => finish() };
}

const countRuns = async (projectId: string) =>
  (await database.pool`select from test_run where project_id = ${projectId}`).length;

describe("generating a project key", () => {
  test("revokes the one before at once, on every server", async () => {
    const { project, key } = await addProject(acme);
    const other = await createServer(database);
    const path = `GET /projects/${project}/test-runs`;
    for (const server of [{ ask }, other]) expect((await server.ask(path, { key })).status).toBe(200);
    const fresh = (await database.begin((sql) => generateProjectKey(sql, project)))!.key;
    for (const server of [{ ask }, other]) {
      expect((await server.ask(path, { key })).status).toBe(401);
      expect((await server.ask(path, { key: fresh })).status).toBe(200);
    }
  });

  test("a slow upload that began before is answered 401 and leaves nothing", async () => {
    const { project, key } = await addProject(acme);
    const upload = slowUpload(url, project, key, "?execution_key=slow");
    await upload.started();
    await database.begin((sql) => generateProjectKey(sql, project));
    upload.finish();
    const answer = await upload.answer;
    expect(answer.status).toBe(401);
    expect(await answer.json()).toEqual({ error: { code: "UNAUTHORIZED", message: expect.any(String) } });
    expect(await countRuns(project)).toBe(0);
    expect((await database.pool`select from execution where project_id = ${project}`).length).toBe(0);
  });

  test("an upload that is slow but not revoked is stored", async () => {
    const { project, key } = await addProject(acme);
    const upload = slowUpload(url, project, key);
    await upload.started();
    upload.finish();
    expect((await upload.answer).status).toBe(201);
    expect(await countRuns(project)).toBe(1);
  });

  test("in the middle of 200 parallel uploads: what was acknowledged is stored, and nothing else", async () => {
    const { project, key } = await addProject(acme);
    const path = `POST /projects/${project}/test-runs`;
    const uploads = Array.from({ length: 200 }, () => ask(path, { key, body: junit("p") }));
    await Promise.race(uploads);
    await database.begin((sql) => generateProjectKey(sql, project));
    const stored = await countRuns(project);
    const statuses = (await Promise.all(uploads)).map(({ status }) => status);
    const acknowledged = statuses.filter((status) => status === 201).length;
    expect(statuses.filter((status) => status !== 201 && status !== 401)).toEqual([]);
    expect(await countRuns(project)).toBe(acknowledged);
    expect(stored).toBe(acknowledged);
    expect(acknowledged).toBeGreaterThan(0);
  });

  test("a long poll that began before is answered 401", async () => {
    const { project, key } = await addProject(acme);
    const path = `/projects/${project}/executions`;
    const { body } = await ask(`POST ${path}`, { key, body: {} });
    const polling = ask(`GET ${path}/${body.id}?wait=30`, { key });
    await until(
      async () =>
        (await database.pool`select from pg_stat_activity where query ilike 'listen%' and datname = current_database()`)
          .length > 0,
    );
    const fresh = (await database.begin((sql) => generateProjectKey(sql, project)))!.key;
    await ask(`POST ${path}/${body.id}/cancel`, { key: fresh });
    expect((await polling).status).toBe(401);
  });

  test("comes through where uploads never pause: who comes later waits for it", async () => {
    const { project, key } = await addProject(acme);
    const [live] = await database.pool<{ id: string; teamId: string; projectId: string }[]>`
      select id, team_id as "teamId", project_id as "projectId" from api_key
      where project_id = ${project} and revoked_at is null`;
    const { promise: end, resolve: endFirst } = Promise.withResolvers<void>();
    const { promise: begun, resolve: firstHasBegun } = Promise.withResolvers<boolean>();
    const first = database.begin(async (sql) => {
      firstHasBegun(await lockLiveKey(sql, live!));
      await end;
    });
    expect(await begun).toBe(true);
    const revoking = database.begin((sql) => generateProjectKey(sql, project));
    const waiting = async (count: number) =>
      (
        await database.pool`
          select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
      ).length === count;
    await until(() => waiting(1));
    const second = ask(`POST /projects/${project}/test-runs`, { key, body: junit("p") });
    await until(() => waiting(2));
    endFirst();
    await Promise.all([first, revoking]);
    expect((await second).status).toBe(401);
    expect(await countRuns(project)).toBe(0);
  });

  test("a revoked key is a 401 also where another error would be due", async () => {
    const { project, key } = await addProject(acme);
    await ask(`GET /projects/${project}`, { key });
    await database.begin((sql) => generateProjectKey(sql, project));
    for (const path of [`/projects/${project}?x=1`, `/projects/${rival.project}`, "/nope", "/projects/x"])
      expect([path, (await ask(`GET ${path}`, { key })).status]).toEqual([path, 401]);
  });

  test("many at once leave exactly one live key", async () => {
    const { project } = await addProject(acme);
    const keys = await Promise.all(
      Array.from({ length: 10 }, () => database.begin((sql) => generateProjectKey(sql, project))),
    );
    const answers = await Promise.all(keys.map((fresh) => ask(`GET /projects/${project}`, { key: fresh!.key })));
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
  const path = `POST /projects/${acme.project}/executions`;
  const post = (key: string, body: unknown, apiKey = acme.key) =>
    ask(path, { key: apiKey, body, headers: { "idempotency-key": key } });

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
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        (index % 2 ? ask : other.ask)(`POST /projects/${project}/test-runs`, {
          key,
          body: junit("pf"),
          headers: { "idempotency-key": "once" },
        }),
      ),
    );
    expect(new Set(answers.map(({ status, text }) => `${status} ${JSON.parse(text).executionId}`)).size).toBe(1);
    expect(answers.filter(({ headers }) => headers.get("idempotent-replayed") === null)).toHaveLength(1);
    expect(await countRuns(project)).toBe(1);
  });

  test("a form is the same whatever its boundary", async () => {
    const form = () => {
      const data = new FormData();
      data.append("file", new File([junit("p")], "a.xml"));
      return data;
    };
    const send = () =>
      ask(`POST /projects/${acme.project}/test-runs`, {
        key: acme.key,
        body: form(),
        headers: { "idempotency-key": "form" },
      });
    const [first, second] = [await send(), await send()];
    expect([second.status, second.text]).toEqual([201, first.text]);
  });

  test("a refused request is not remembered", async () => {
    expect((await post("c", { nope: 1 })).status).toBe(400);
    expect((await post("c", { branch: "x" })).status).toBe(201);
  });

  test("projects do not share keys, also those of one team", async () => {
    expect((await post("d", { branch: "x" })).status).toBe(201);
    for (const { project, key } of [await addProject(acme), rival]) {
      const theirs = await ask(`POST /projects/${project}/executions`, {
        key,
        body: { branch: "y" },
        headers: { "idempotency-key": "d" },
      });
      expect([theirs.status, theirs.headers.get("idempotent-replayed")]).toEqual([201, null]);
    }
  });

  test("a new key of the project repeats what the old one began", async () => {
    const { project, key } = await addProject(acme);
    const send = (apiKey: string) =>
      ask(`POST /projects/${project}/executions`, { key: apiKey, body: {}, headers: { "idempotency-key": "k" } });
    const first = await send(key);
    const fresh = (await database.begin((sql) => generateProjectKey(sql, project)))!.key;
    expect((await send(fresh)).text).toBe(first.text);
  });
});

test("an upload that breaks off leaves nothing", async () => {
  const { project, key } = await addProject(acme);
  const body = junit("p".repeat(50));
  for (let tenth = 1; tenth < 10; tenth++) {
    const head = `POST /api/v1/projects/${project}/test-runs HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer ${key}\r\nContent-Length: ${body.length}\r\n\r\n`;
    const { promise: sent, resolve } = Promise.withResolvers<void>();
    await Bun.connect({
      hostname: "127.0.0.1",
      port: Number(new URL(url).port),
      socket: {
        open(socket) {
          socket.write(head + body.slice(0, (body.length * tenth) / 10));
          socket.flush();
          socket.terminate();
          resolve();
        },
        data() {},
        error: () => resolve(),
      },
    });
    await sent;
  }
  await ask(`GET /projects/${project}`, { key });
  expect(await countRuns(project)).toBe(0);
});

test("the use of a key is noted", async () => {
  const { project, key } = await addProject(acme);
  await ask(`GET /projects/${project}`, { key });
  await until(async () => {
    const [row] = await database.pool`select last_used_at as used from api_key where project_id = ${project}`;
    return row!["used"] !== null;
  });
});

test("a new key works at once and the old one is refused, from outside", async () => {
  const fresh = await regenerate(rival);
  expect((await ask(`GET /projects/${rival.project}`, rival)).status).toBe(401);
  expect((await ask(`GET /projects/${rival.project}`, { key: fresh })).status).toBe(200);
});

describe("a large upload, which is handled in a thread of its own", () => {
  const large = (letters: string) => `${junit(letters)}<!--${"x".repeat(1_100_000)}-->`;
  const post = (project: string, key: string, body: unknown, headers = {}) =>
    ask(`POST /projects/${project}/test-runs?execution_key=large&task_slug=t`, { key, body, headers });

  test("is answered like any other, whole or compressed", async () => {
    const { project, key } = await addProject(acme);
    const small = await post(project, key, junit("pfs"));
    const first = await post(project, key, large("pps"));
    const again = await post(project, key, large("pps"));
    const zipped = await post(project, key, Bun.gzipSync(large("ppp")));
    expect([small.status, first.status, again.status, zipped.status]).toEqual([201, 201, 200, 201]);
    expect(first.body).toMatchObject({ attempt: 2, passed: 2, skipped: 1, flaky: 1 });
    expect(again.body).toEqual(first.body);
    expect(zipped.body).toMatchObject({ attempt: 3, passed: 3, flaky: 1 });
  });

  test("that cannot be read is a 400 that says why", async () => {
    const { project, key } = await addProject(acme);
    const { status, body } = await post(project, key, "x".repeat(1_100_000));
    expect([status, body.error.code]).toEqual([400, "VALIDATION_ERROR"]);
    expect(await countRuns(project)).toBe(0);
  });

  test("is a 401 when its key is replaced before it is stored", async () => {
    const { project, key } = await addProject(acme);
    const upload = slowUpload(url, project, key, "?task_slug=x", "x".repeat(1_100_000));
    await upload.started();
    await database.begin((sql) => generateProjectKey(sql, project));
    upload.finish();
    expect((await upload.answer).status).toBe(401);
    expect(await countRuns(project)).toBe(0);
  });

  test("keeps its Idempotency-Key", async () => {
    const { project, key } = await addProject(acme);
    const send = () => post(project, key, large("p"), { "idempotency-key": "large" });
    const [first, second] = await Promise.all([send(), send()]);
    expect(second.text).toBe(first.text);
    expect([first, second].filter(({ headers }) => headers.has("idempotent-replayed"))).toHaveLength(1);
  });
});

test("a request whose Host header makes no address is a 400, whatever it asks for", async () => {
  for (const path of ["/healthz", `/api/v1/projects/${acme.project}`])
    for (const head of [`GET ${path} HTTP/1.0`, `GET ${path} HTTP/1.1\r\nHost: a b/../@x`]) {
      const { promise, resolve } = Promise.withResolvers<string>();
      await Bun.connect({
        hostname: "127.0.0.1",
        port: Number(new URL(url).port),
        socket: {
          open: (socket) => void socket.write(`${head}\r\n\r\n`),
          data: (_, chunk) => resolve(chunk.toString()),
        },
      });
      const answer = await promise;
      expect(answer).toStartWith("HTTP/1.1 400");
      expect(answer).toContain(`{"error":{"code":"VALIDATION_ERROR"`);
    }
});
