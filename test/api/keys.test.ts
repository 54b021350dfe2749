import { beforeEach, describe, expect, test } from "bun:test";
import { createHarness, createServer, junit } from "../harness.ts";
import { prune } from "../../src/work/prune.ts";

const { ask, acme, addProject, database, regenerate } = await createHarness();

let own: { project: string; key: string };
let project: string;
beforeEach(async () => {
  own = await addProject(acme);
  ({ project } = own);
});

const add = (body: unknown, key = own.key) => ask(`POST /projects/${project}/keys`, { key, body });
const upload = (key: string, query = "") =>
  ask(`POST /projects/${project}/test-runs?task_slug=t${query}`, { key, body: junit("p") });
const list = async (query = "") => (await ask(`GET /projects/${project}/keys${query}`, { key: own.key })).body;
const register = (key: string, runner = "build-1") =>
  ask(`POST /projects/${project}/runners`, { key, body: { runner } });
const sync = (key: string, runner = "build-1", more = {}) =>
  ask(`POST /projects/${project}/leases`, { key, body: { runner, free: 1, waitSeconds: 0, ...more } });

describe("a named key", () => {
  test("is shown once, listed without the key, and revoked by its id", async () => {
    const { status, body } = await add({ name: "nightly", scope: "upload", expiresInDays: 30 });
    expect([status, body]).toEqual([
      201,
      {
        ...{ id: expect.any(String), name: "nightly", scope: "upload", key: expect.stringMatching(/^svc_proj_/) },
        ...{ leading: body.key.slice(0, 17), createdAt: expect.any(String), lastUsedAt: null },
        expiresAt: expect.any(String),
      },
    ]);
    expect(Date.parse(body.expiresAt) - Date.parse(body.createdAt)).toBe(30 * 86_400_000);
    expect((await upload(body.key)).status).toBe(201);
    const { key: _, lastUsedAt: __, ...shown } = body;
    expect((await list()).data).toMatchObject([shown]);
    const { status: revoked } = await ask(`DELETE /projects/${project}/keys/${body.id}`, { key: own.key });
    expect(revoked).toBe(204);
    expect((await upload(body.key)).status).toBe(401);
    expect((await list()).data).toEqual([]);
  });

  test("is not revoked by a new key of the project, which stays the only one of its kind", async () => {
    const { body } = await add({ name: "nightly", scope: "upload" });
    const before = own.key;
    own.key = await regenerate({ ...acme, ...own });
    expect([(await upload(before)).status, (await upload(body.key)).status]).toEqual([401, 201]);
  });

  test("that has expired is a 401, and is listed no more", async () => {
    const { body } = await add({ name: "nightly", scope: "read", expiresInDays: 1 });
    const read = () => ask(`GET /projects/${project}/test-runs`, { key: body.key });
    expect((await read()).status).toBe(200);
    await database.pool`update api_key set expires_at = now() - interval '1 second' where id = ${body.id}`;
    expect((await read()).status).toBe(401);
    expect((await list()).data).toEqual([]);
  });

  test("is shown to nobody who repeats the request, and stored nowhere", async () => {
    const path = `POST /projects/${project}/keys`;
    const headers = { "Idempotency-Key": crypto.randomUUID() };
    const once = { key: own.key, headers, body: { name: "once", scope: "read" } };
    const [first, second] = [await ask(path, once), await ask(path, once)];
    expect([first.body.id, first.body.key.length]).toEqual([second.body.id, 53]);
    expect(second.body.key).toBeNull();
    const [stored] = await database.pool<{ body: string }[]>`select body from idempotency where body like '%once%'`;
    expect(stored!.body).not.toContain(first.body.key);
  });

  test("has a rate limit of its own", async () => {
    const limited = await createServer(database, { rateLimitPerMinute: 2 });
    const { body } = await add({ name: "nightly", scope: "read" });
    const status = async (key: string) => (await limited.ask(`GET /projects/${project}`, { key })).status;
    expect([await status(own.key), await status(own.key), await status(own.key)]).toEqual([200, 200, 429]);
    expect([await status(body.key), await status(body.key), await status(body.key)]).toEqual([200, 200, 429]);
  });

  test("is refused with a name or a scope that is none", async () => {
    for (const [body, named] of [
      [{ scope: "read" }, "name"],
      [{ name: "", scope: "read" }, "name"],
      [{ name: "x", scope: "runner" }, "scope"],
      [{ name: "x", scope: "read", expiresInDays: 0 }, "expiresInDays"],
    ] as const) {
      const { status, body: answer } = await add(body);
      expect([status, answer.error.message]).toEqual([400, expect.stringContaining(`"${named}"`)]);
    }
  });

  test("of the scope upload cannot have tasks run", async () => {
    const { body } = await add({ name: "ci", scope: "upload" });
    const create = (mode: string, key: string) =>
      ask(`POST /projects/${project}/executions`, { key, body: { mode, tasks: ["t"] } });
    expect((await create("report", body.key)).status).toBe(201);
    expect((await create("run", body.key)).status).toBe(401);
    const { body: running } = await add({ name: "runs", scope: "run" });
    expect((await create("run", running.key)).status).toBe(201);
  });

  test("pages of them go on where the last one ended", async () => {
    for (const name of ["a", "b", "c"]) await add({ name, scope: "read" });
    const first = await list("?limit=2");
    const second = await list(`?limit=2&cursor=${first.pagination.cursor}`);
    expect([...first.data, ...second.data].map(({ name }: any) => name)).toEqual(["c", "b", "a"]);
  });
});

describe("the key of a runner", () => {
  test("opens its leases and their reports, and nothing of another runner", async () => {
    const { status, body } = await register(own.key);
    expect([status, body]).toEqual([201, { runner: "build-1", id: expect.any(String), key: expect.any(String) }]);
    const create = { key: own.key, body: { mode: "run", tasks: ["t", "u"] } };
    await ask(`POST /projects/${project}/executions`, create);
    const { leases } = (await sync(body.key)).body;
    expect(leases).toHaveLength(1);
    const { body: other } = await register(own.key, "build-2");
    const wrongName = await sync(other.key, "build-1");
    expect([wrongName.status, wrongName.body.error.message]).toEqual([400, expect.stringContaining('"build-2"')]);
    const fail = (key: string) =>
      ask(`POST /projects/${project}/leases/${leases[0].id}/fail`, { key, body: { message: "no" } });
    expect((await fail(other.key)).status).toBe(404);
    expect((await upload(other.key, `&lease_id=${leases[0].id}`)).status).toBe(400);
    expect((await upload(body.key)).status).toBe(400);
    const path = `POST /projects/${project}/test-runs?lease_id=${leases[0].id}`;
    expect((await ask(path, { key: body.key, body: junit("p") })).status).toBe(201);
  });

  test("ends with the key that it was made with", async () => {
    const { body: named } = await add({ name: "runners", scope: "run" });
    const [ofOwn, ofNamed] = [(await register(own.key)).body.key, (await register(named.key, "build-2")).body.key];
    expect([(await sync(ofOwn)).status, (await sync(ofNamed, "build-2")).status]).toEqual([200, 200]);
    await ask(`DELETE /projects/${project}/keys/${named.id}`, { key: own.key });
    expect([(await sync(ofOwn)).status, (await sync(ofNamed, "build-2")).status]).toEqual([200, 401]);
    own.key = await regenerate({ ...acme, ...own });
    expect((await sync(ofOwn)).status).toBe(401);
  });

  test("ends an hour after its last use, not after the key that it was made with, and is forgotten a week later", async () => {
    const { body: named } = await add({ name: "runners", scope: "run", expiresInDays: 1 });
    const { body } = await register(named.key);
    const minutes = async () => {
      const [row] = await database.pool<{ minutes: number }[]>`
        select extract(epoch from expires_at - now()) / 60 as minutes from api_key where id = ${body.id}`;
      return row && Math.round(row.minutes);
    };
    expect(await minutes()).toBe(65);
    await database.pool`update api_key set expires_at = now() + interval '5 minutes' where id = ${named.id}`;
    const { body: second } = await register(named.key, "build-2");
    expect((await sync(second.key, "build-2")).status).toBe(200);
    await database.pool`update api_key set expires_at = now() - interval '8 days' where id = ${body.id}`;
    expect((await sync(body.key)).status).toBe(401);
    await prune(database.pool);
    expect(await minutes()).toBeUndefined();
    expect((await sync(second.key, "build-2")).status).toBe(200);
  });

  test("is not listed among the named keys, and cannot be made by a key that may not run tasks", async () => {
    const { body } = await add({ name: "ci", scope: "upload" });
    expect((await register(body.key)).status).toBe(401);
    const { body: runner } = await register(own.key);
    expect((await list()).data).toHaveLength(1);
    expect((await ask(`DELETE /projects/${project}/keys/${runner.id}`, { key: own.key })).status).toBe(404);
  });
});
