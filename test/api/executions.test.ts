import { describe, expect, test } from "bun:test";
import { expireExecutions } from "../../src/work/expire.ts";
import { createHarness, createServer, junit, until } from "../harness.ts";

const { ask, acme, addProject, database } = await createHarness();
const executions = `/projects/${acme.project}/executions`;
const create = (body: unknown = {}) => ask(`POST ${executions}`, { key: acme.key, body });
const get = async (id: string) => (await ask(`GET ${executions}/${id}`, acme)).body;
const upload = (query: string, letters: string) =>
  ask(`POST /projects/${acme.project}/test-runs?${query}`, { key: acme.key, body: junit(letters) });
const act = (id: string, action: string) => ask(`POST ${executions}/${id}/${action}`, { key: acme.key });
const makeOverdue = (id: string) =>
  database.pool`update execution set expires_at = now() - interval '1 second' where id = ${id}`;

describe("POST /projects/:projectId/executions", () => {
  test("creates an execution with its declared tasks", async () => {
    const origin = { branch: "main", commit: "abc", pullRequest: "7", buildUrl: "https://ci/1", environment: "ci" };
    const { status, body } = await create({ key: "build 1", tasks: ["unit", "e2e"], ...origin });
    const task = {
      status: "queued",
      attempt: 0,
      passed: 0,
      failed: 0,
      skipped: 0,
      total: 0,
      startedAt: null,
      completedAt: null,
    };
    expect(status).toBe(201);
    expect(body).toEqual({
      id: expect.any(String),
      key: "build 1",
      status: "queued",
      mode: "report",
      ...origin,
      trigger: "api",
      rerunOf: null,
      tasks: [
        { slug: "unit", ...task },
        { slug: "e2e", ...task },
      ],
      passed: 0,
      failed: 0,
      skipped: 0,
      total: 0,
      flaky: 0,
      verdict: null,
      createdAt: expect.any(String),
      startedAt: null,
      completedAt: null,
      url: expect.stringContaining(body.id),
    });
    expect(await get(body.id)).toEqual(body);
  });

  test("an empty body is an execution without declarations", async () => {
    const { status, body } = await ask(`POST ${executions}`, { key: acme.key });
    expect([status, body.tasks]).toEqual([201, []]);
  });

  test("a key that exists answers 200 with the same execution, however many ask at once", async () => {
    const answers = await Promise.all(Array.from({ length: 10 }, () => create({ key: "meet here", tasks: ["a"] })));
    expect(answers.map(({ status }) => status).sort()).toEqual([...Array(9).fill(200), 201]);
    expect(new Set(answers.map(({ body }) => body.id)).size).toBe(1);
  });

  test("names every bad field", async () => {
    const { status, body } = await create({
      key: "",
      tasks: ["a", "a"],
      branch: 5,
      timeoutMinutes: 0,
      projectId: "x",
      number: 1,
    });
    expect(status).toBe(400);
    for (const name of ["key", "tasks", "branch", "timeoutMinutes", "projectId", "number"])
      expect(body.error.message).toContain(name === "tasks" ? `"tasks.1"` : `"${name}"`);
  });

  test("names the task slug that is there again, and the list that is too long", async () => {
    const message = async (tasks: string[]) => (await create({ tasks })).body.error.message;
    expect(await message(["a", "a"])).toBe(`Cannot read "tasks.1": expected each task slug once, got "a"`);
    expect(await message(["unit", "e2e", "lint", "e2e", "unit"])).toBe(
      `Cannot read "tasks.3": expected each task slug once, got "e2e"; ` +
        `Cannot read "tasks.4": expected each task slug once, got "unit"`,
    );
    const many = Array.from({ length: 501 }, (_, index) => `t${index}`);
    expect(await message(many)).toBe(`Cannot read "tasks": expected at most 500 task slugs, got an array of 501`);
  });

  test("what is no JSON object is refused", async () => {
    for (const body of [
      "[]",
      "1",
      `"x"`,
      "null",
      "{",
      "\xff",
      `{"key":"a\\u0000b"}`,
      `{"key":"\\ud800"}`,
      "[".repeat(100_000),
    ])
      expect([body.slice(0, 20), (await create(body)).status]).toEqual([body.slice(0, 20), 400]);
  });

  test("names of object methods are unknown fields like any other", async () => {
    for (const name of ["__proto__", "constructor", "toString"]) {
      const { status, body } = await create(`{"${name}":1}`);
      expect([status, body.error.message]).toEqual([400, `Unknown field "${name}"`]);
    }
  });
});

describe("the life of an execution", () => {
  test("declared tasks end it when all of them have reported", async () => {
    const { body } = await create({ tasks: ["a", "b"] });
    await upload(`execution_id=${body.id}&task_slug=a`, "pp");
    expect(await get(body.id)).toMatchObject({ status: "running", verdict: null, completedAt: null });
    await upload(`execution_id=${body.id}&task_slug=b`, "pf");
    const ended = await get(body.id);
    expect(ended).toMatchObject({ status: "failed", verdict: "failed", passed: 3, failed: 1, total: 4 });
    expect(ended.completedAt).not.toBeNull();
    expect(ended.tasks.map(({ slug, status }: { slug: string; status: string }) => [slug, status])).toEqual([
      ["a", "passed"],
      ["b", "failed"],
    ]);
  });

  test("complete=true with the last upload ends it by its results", async () => {
    const first = await upload("execution_key=last&task_slug=a", "p");
    await upload("execution_key=last&task_slug=b&complete=true", "p");
    expect(await get(first.body.executionId)).toMatchObject({ status: "passed", verdict: "passed" });
  });

  test("completing twice is completing once, and after a cancellation it is refused", async () => {
    const { body } = await upload("execution_key=complete", "p");
    const [one, two] = [await act(body.executionId, "complete"), await act(body.executionId, "complete")];
    expect([one.status, two.status, one.body.status]).toEqual([200, 200, "passed"]);
    expect(two.body).toEqual(one.body);
    const cancelled = (await create()).body.id;
    await act(cancelled, "cancel");
    expect((await act(cancelled, "complete")).status).toBe(400);
  });

  test("completed with a declared task missing is not green", async () => {
    const { body } = await create({ tasks: ["a", "b"] });
    await upload(`execution_id=${body.id}&task_slug=a`, "pp");
    const { body: ended } = await act(body.id, "complete");
    expect(ended).toMatchObject({ status: "timed_out", verdict: "failed" });
    expect(ended.tasks[1]).toMatchObject({ slug: "b", status: "timed_out" });
  });

  test("when its time is over, missing declared tasks make it timed_out, else results decide", async () => {
    const silent = (await create({ tasks: ["a"] })).body.id;
    const green = (await upload("execution_key=green", "p")).body.executionId;
    const young = (await upload("execution_key=young", "p")).body.executionId;
    await Promise.all([makeOverdue(silent), makeOverdue(green)]);
    await Promise.all([expireExecutions(database), expireExecutions(database)]);
    expect(await get(silent)).toMatchObject({ status: "timed_out", verdict: "failed" });
    expect(await get(green)).toMatchObject({ status: "passed" });
    expect(await get(young)).toMatchObject({ status: "running" });
  });

  test("a late report re-opens the figures of an ended execution, and it stays ended", async () => {
    const { body } = await create({ tasks: ["a", "b"] });
    await upload(`execution_id=${body.id}&task_slug=a`, "p");
    const ended = (await act(body.id, "complete")).body;
    await upload(`execution_id=${body.id}&task_slug=b`, "pp");
    expect(await get(body.id)).toMatchObject({ status: "passed", passed: 3, completedAt: ended.completedAt });
    await upload(`execution_id=${body.id}&task_slug=c`, "f");
    expect(await get(body.id)).toMatchObject({ status: "failed", failed: 1 });
  });

  test("cancel ends it for good; what has ended otherwise cannot be cancelled", async () => {
    const { body } = await create({ tasks: ["a"] });
    const cancelled = await act(body.id, "cancel");
    expect(cancelled.body).toMatchObject({ status: "cancelled", tasks: [{ status: "cancelled" }] });
    await upload(`execution_id=${body.id}&task_slug=a`, "p");
    expect(await get(body.id)).toMatchObject({ status: "cancelled", passed: 1 });
    const passed = (await upload("", "p")).body.executionId;
    expect((await act(passed, "cancel")).status).toBe(400);
  });

  test("later reports fill in what the first did not know about the build, and change nothing else", async () => {
    await upload("execution_key=origin&task_slug=a&branch=main", "p");
    const { body } = await upload("execution_key=origin&task_slug=b&branch=other&commit=abc&pull_request=9", "p");
    expect(await get(body.executionId)).toMatchObject({ branch: "main", commit: "abc", pullRequest: "9" });
  });

  test("an upload without an execution is one of its own, complete at once", async () => {
    const { body } = await upload("branch=main", "ps");
    const execution = await get(body.executionId);
    expect(execution).toMatchObject({ key: null, status: "passed", verdict: "passed", trigger: "upload" });
    expect(execution.completedAt).toBe(body.completedAt);
  });

  test("DELETE removes it with its runs and cases", async () => {
    const { body } = await upload("task_slug=gone", "pf");
    const path = `${executions}/${body.executionId}`;
    const deleted = await ask(`DELETE ${path}`, acme);
    expect([deleted.status, deleted.text]).toEqual([204, ""]);
    for (const request of [
      `GET ${path}`,
      `DELETE ${path}`,
      `GET ${path}/test-runs/gone`,
      `GET ${path}/test-runs/gone/cases`,
    ])
      expect((await ask(request, acme)).status).toBe(404);
    expect(
      (await ask(`GET /projects/${acme.project}/test-runs?execution_id=${body.executionId}`, acme)).body.data,
    ).toEqual([]);
    const left =
      await database.pool`select run_id from case_result r where not exists (select from test_run t where t.id = r.run_id)`;
    expect(left.length).toBe(0);
  });
});

describe("GET /projects/:projectId/executions/:executionId?wait=", () => {
  test("answers as soon as the execution ends, also when another server ends it", async () => {
    const other = await createServer(database);
    const { body } = await create({ tasks: ["a"] });
    const waiting = ask(`GET ${executions}/${body.id}?wait=30`, acme);
    await until(async () => {
      const [row] =
        await database.pool`select count(*)::int as count from pg_stat_activity where query ilike 'listen%' and datname = current_database()`;
      return row!["count"] > 0;
    });
    await other.ask(`POST ${executions}/${body.id}/cancel`, acme);
    expect((await waiting).body.status).toBe("cancelled");
  });

  test("an execution that has ended is answered at once, and a missing one is a 404", async () => {
    const { body } = await upload("", "p");
    expect((await ask(`GET ${executions}/${body.executionId}?wait=30`, acme)).body.status).toBe("passed");
    expect((await ask(`GET ${executions}/${crypto.randomUUID()}?wait=30`, acme)).status).toBe(404);
  });

  test("wait is 1 to 30 seconds", async () => {
    const { body } = await create();
    for (const wait of ["0", "31", "x"])
      expect((await ask(`GET ${executions}/${body.id}?wait=${wait}`, acme)).status).toBe(400);
  });
});

describe("GET /projects/:projectId/executions", () => {
  test("filters by status, branch, environment, task and time of creation, newest first", async () => {
    const { project, key } = await addProject(acme);
    const path = `/projects/${project}/executions`;
    const post = async (body: object) => (await ask(`POST ${path}`, { key, body })).body;
    const one = await post({ branch: "main", environment: "ci", tasks: ["unit"] });
    const two = await post({ branch: "feature", environment: "ci", tasks: ["unit", "e2e"] });
    const three = await post({ branch: "main" });
    await ask(`POST ${path}/${three.id}/cancel`, { key });
    const list = async (query: string) =>
      (await ask(`GET ${path}?${query}`, { key })).body.data.map(({ id }: { id: string }) => id);
    expect(await list("")).toEqual([three.id, two.id, one.id]);
    expect(await list("status=queued")).toEqual([two.id, one.id]);
    expect(await list("branch=main")).toEqual([three.id, one.id]);
    expect(await list("environment=ci&branch=feature")).toEqual([two.id]);
    expect(await list("task_slug=unit")).toEqual([two.id, one.id]);
    const time = encodeURIComponent(one.createdAt);
    expect(await list(`created_before=${time}`)).toEqual([]);
    expect(await list(`created_after=${time}&limit=100`)).not.toContain(one.id);
    expect(await list("created_after=2026-01-01T00:00:00%2B02:00&limit=100")).toHaveLength(3);
    for (const bad of ["2026-02-30T00:00:00Z", "infinity", "294277-01-01T00:00:00Z", "2026-01-01"])
      expect((await ask(`GET ${path}?created_after=${bad}`, { key })).status).toBe(400);
    // Their offset leads out of the years that there are.
    for (const bad of ["1970-01-01T00:00:00+14:00", "9999-12-31T23:59:59-00:01"])
      for (const name of ["created_after", "created_before"]) {
        const { status, body } = await ask(`GET ${path}?${name}=${encodeURIComponent(bad)}`, { key });
        expect([status, body.error.message]).toEqual([400, expect.stringContaining(`"${name}"`)]);
      }
    expect(await list("created_before=9999-12-31T23:59:59.999Z&limit=100")).toHaveLength(3);
    expect(await list("created_before=1970-01-01T00:00:00Z")).toEqual([]);
  });
});
