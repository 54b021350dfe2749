import { describe, expect, test } from "bun:test";
import { createRequests } from "../asking.ts";
import { deleteOldUploads } from "../../src/store/uploads.ts";
import { createHarness, createServer, junit, until } from "../harness.ts";

const MIB = 1_048_576;

const { ask, app, acme, rival, database, url, addProject, regenerate } = await createHarness({
  maxBodyBytes: 2 * MIB,
  maxInflatedBytes: 4 * MIB,
});
const { pool } = database;

type Own = { project: string; key: string };

const post = (own: Own, query: string, body: unknown, headers: Record<string, string> = {}, asked = ask) =>
  createRequests(asked, `/projects/${own.project}`, own.key).call("POST", `/test-runs${query}`, body, headers);

const list = async ({ project, key }: Own, query = "") => {
  await app.settled();
  return (await ask(`GET /projects/${project}/uploads${query}`, { key })).body;
};

/** The only one. */
const noted = async (own: Own) => {
  const { data } = await list(own);
  expect(data).toHaveLength(1);
  return data[0];
};

const large = (text: string) => `${text}<!--${"x".repeat(1_100_000)}-->`;
const warned = (attributes = `tests="7"`) => junit("pp").replace("<testsuite", `<testsuite ${attributes}`);

const form = (fields: Record<string, string>, report: string) => {
  const data = new FormData();
  for (const [name, value] of Object.entries(fields)) data.append(name, value);
  data.append("file", new File([report], "report.xml"));
  return data;
};

describe("GET /projects/:projectId/uploads", () => {
  test("tells who sent what, when, and why it was refused", async () => {
    const own = await addProject(acme);
    const before = Date.now();
    const query = "?task_slug=unit&shard=9/4&branch=main&commit=abc&execution_key=build+7&pull_request=12&format=junit";
    const client = { "user-agent": "curl/8.5.0", "x-request-id": "job-7" };
    const refused = await post(own, `${query}&build_url=http://user:pass@ci`, junit("p"), client);
    expect(refused.status).toBe(400);
    const upload = await noted(own);
    const build = { branch: "main", commit: "abc", executionKey: "build 7", pullRequest: "12" };
    expect(upload).toEqual({
      ...{ id: expect.stringMatching(/^[0-9a-f-]{36}$/), outcome: "refused", statusCode: 400, times: 1 },
      ...{ answeredAt: upload.lastAnsweredAt, lastAnsweredAt: expect.any(String) },
      ...{ message: refused.body.error.message, warnings: [], bytes: junit("p").length },
      parameters: { taskSlug: "unit", shard: "9/4", ...build, format: "junit" },
      ...{ userAgent: "curl/8.5.0", requestId: "job-7", clientAddress: "127.0.0.1" },
      ...{ keyLeading: own.key.slice(0, 17), executionId: null, taskSlug: null },
    });
    expect(Date.parse(upload.answeredAt)).toBeGreaterThanOrEqual(before);
    expect(Date.parse(upload.answeredAt)).toBeLessThanOrEqual(Date.now());
  });

  test("tells what was odd about a report that was accepted, of this report alone", async () => {
    const own = await addProject(acme);
    const first = await post(own, "?execution_key=b&task_slug=t&shard=1/2", warned());
    expect(first.body.warnings).toHaveLength(1);
    // The run has the warnings of its other shard, and of what was sent twice: nothing is odd about these uploads.
    const second = await post(own, "?execution_key=b&task_slug=t&shard=2/2", junit("p"));
    const again = await post(own, "?execution_key=b&task_slug=t&shard=1/2", warned());
    expect([second.status, again.status]).toEqual([201, 200]);
    expect([second.body.warnings.length, again.body.warnings.length]).toEqual([1, 1]);
    const { warnings, executionId } = first.body;
    expect(await noted(own)).toMatchObject({
      ...{ outcome: "warned", statusCode: 201, message: null, warnings, executionId, taskSlug: "t" },
      parameters: { executionKey: "b", taskSlug: "t", shard: "1/2" },
    });
  });

  test("is empty where all that came was clean, or only read", async () => {
    const own = await addProject(acme);
    await post(own, "", junit("pfs"));
    await post(own, "", large(junit("p")));
    await ask(`GET /projects/${own.project}/test-runs?nope=1`, { key: own.key });
    await ask(`POST /projects/${own.project}/executions`, { key: own.key, body: "{" });
    expect(await list(own)).toEqual({ data: [], pagination: { hasMore: false } });
  });

  const refusals: [name: string, query: string, body: () => unknown, headers: Record<string, string>, bytes: number][] =
    [
      ["is no report", "?task_slug=t", () => "hello", {}, 5],
      ["is no report, in the thread for large ones", "?task_slug=t", () => large("hello"), {}, large("hello").length],
      ["is too large", "?task_slug=t", () => "x".repeat(2 * MIB + 1), {}, 2 * MIB + 1],
      ["has a broken parameter", "?task_slug=t&%ff=1", () => junit("p"), {}, junit("p").length],
      ["has an Idempotency-Key that is none", "?task_slug=t", () => junit("p"), { "idempotency-key": "a b" }, -1],
    ];
  test.each(refusals)("tells of one that %s", async (_, query, body, headers, bytes) => {
    const own = await addProject(acme);
    const { status, body: answer } = await post(own, query, body(), headers);
    const upload = await noted(own);
    expect([status, upload.statusCode]).toEqual([upload.statusCode, status]);
    expect(status).toBeGreaterThanOrEqual(400);
    expect(upload).toMatchObject({ outcome: "refused", message: answer.error.message, parameters: { taskSlug: "t" } });
    if (bytes >= 0) expect(upload.bytes).toBe(bytes);
  });

  test.each([
    ["small", (text: string) => text],
    ["large", large],
  ])("knows the parameters that came in a form with a %s report", async (_, size) => {
    const own = await addProject(acme);
    const fields = { task_slug: "api", shard: "x", nope: "1" };
    const refused = await post(own, "?branch=main", form(fields, size(junit("p"))));
    expect(refused.status).toBe(400);
    expect((await noted(own)).parameters).toEqual({ branch: "main", taskSlug: "api", shard: "x" });
    const accepted = await addProject(acme);
    await post(accepted, "", form({ task_slug: "api", shard: "1/1" }, size(warned())));
    expect(await noted(accepted)).toMatchObject({ outcome: "warned", parameters: { taskSlug: "api", shard: "1/1" } });
  });

  test("tells of one that broke off, and who sent it", async () => {
    const own = await addProject(acme);
    const head = `POST /api/v1/projects/${own.project}/test-runs?task_slug=t HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer ${own.key}\r\nUser-Agent: flaky-network/1\r\nContent-Length: 100\r\n\r\n`;
    const open = (socket: Bun.Socket) => {
      socket.write(`${head}0123456789`);
      socket.flush();
      socket.end();
    };
    await Bun.connect({ hostname: "127.0.0.1", port: Number(new URL(url).port), socket: { open, data() {} } });
    await until(async () => (await list(own)).data.length === 1);
    const client = { clientAddress: "127.0.0.1", userAgent: "flaky-network/1" };
    expect(await noted(own)).toMatchObject({ statusCode: 400, message: "The body is truncated", ...client });
  });

  test("tells the project of a key that was used for a project of others", async () => {
    const own = await addProject(acme);
    expect((await post({ project: rival.project, key: own.key }, "?task_slug=t", junit("p"))).status).toBe(404);
    expect((await post({ project: "nonsense", key: own.key }, "?task_slug=t", junit("p"))).status).toBe(400);
    expect((await list(own)).data.map((upload: any) => upload.statusCode)).toEqual([400, 404]);
    expect((await list(rival)).data).toEqual([]);
  });

  test("tells of failures of ours", async () => {
    const own = await addProject(acme);
    const failing = await createServer({ ...database, begin: () => Promise.reject(new Error("no transaction today")) });
    const { status, body } = await post(own, "?task_slug=t", junit("p"), {}, failing.ask);
    expect(status).toBe(500);
    await failing.app.settled();
    expect(await noted(own)).toMatchObject({ outcome: "refused", statusCode: 500, message: body.error.message });
  });

  test("knows nothing of what was sent with a wrong key, or one that was replaced meanwhile", async () => {
    const own = await addProject(acme);
    const wrong = `${own.key.slice(0, -1)}${own.key.endsWith("A") ? "B" : "A"}`;
    expect((await post({ ...own, key: wrong }, "", "hello")).status).toBe(401);
    const { promise: end, resolve: finish } = Promise.withResolvers<void>();
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
    const body = new ReadableStream({
      type: "direct",
      async pull(controller: any) {
        controller.write("hel");
        await controller.flush();
        begin();
        await end;
        controller.write("lo");
        await controller.close();
      },
    } as never);
    const headers = { authorization: `Bearer ${own.key}` };
    const sending = fetch(`${url}/api/v1/projects/${own.project}/test-runs`, { method: "POST", headers, body });
    await begun;
    const key = await regenerate({ ...acme, ...own });
    finish();
    expect((await sending).status).toBe(401);
    expect((await list({ ...own, key })).data).toEqual([]);
  });

  test("tells a flood of requests beyond the rate limit as one, and how often", async () => {
    const own = await addProject(acme);
    const limited = await createServer(database, { rateLimitPerMinute: 2 });
    const answers = await Promise.all(
      Array.from({ length: 40 }, () => post(own, "?task_slug=t", junit("p"), { "user-agent": "flood" }, limited.ask)),
    );
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(38);
    await limited.app.settled();
    const one = { statusCode: 429, times: 1, userAgent: "flood", parameters: { taskSlug: "t" } };
    expect(await noted(own)).toMatchObject(one);
    limited.app.sweep();
    await limited.app.settled();
    const flood = await noted(own);
    expect(flood.times).toBe(38);
    expect(flood.message).toBe(answers.find(({ status }) => status === 429)!.body.error.message);
    expect(flood.lastAnsweredAt >= flood.answeredAt).toBe(true);
  });

  test("never holds a key, wherever somebody has put one", async () => {
    const own = await addProject(acme);
    const { key } = own;
    const client = { "user-agent": `mine ${key}`, "x-request-id": key };
    await post(own, `?task_slug=${key}&shard=${key}&${key}=1`, junit("p"), client);
    await post(own, `?format=${key}`, junit("p"));
    const { data } = await list(own);
    const rows = await pool`select u::text from upload_log u where project_id = ${own.project}`;
    expect(data).toHaveLength(2);
    for (const text of [JSON.stringify(data), JSON.stringify(rows)]) {
      expect(text).toContain(`${key.slice(0, 17)}…`);
      expect(text).not.toContain(key.slice(0, 19));
    }
  });

  test("cuts texts, and stores what PostgreSQL would not", async () => {
    const own = await addProject(acme);
    const query = `?branch=${"b".repeat(5_000)}&commit=%00%ff&task_slug=t&nope=${"n".repeat(500)}`;
    await post(own, query, junit("p"), { "user-agent": "a".repeat(5_000) });
    const { parameters, userAgent, message } = await noted(own);
    expect([parameters.branch.length, userAgent.length]).toEqual([200, 200]);
    expect(parameters.commit).toBe("\ufffd\ufffd");
    expect(message.length).toBeLessThanOrEqual(1_000);
  });

  test("is a list like all others, newest first, by outcome, from any server", async () => {
    const own = await addProject(acme);
    for (let index = 0; index < 5; index++) {
      await post(own, `?task_slug=t${index}`, index % 2 ? warned(`tests="${index + 50}"`) : "hello");
      await app.settled();
    }
    const other = await createServer(database);
    const uploads = createRequests(other.ask, `/projects/${own.project}/uploads`, own.key);
    const slugs = async (query: string) => (await uploads.walk(query)).map(({ parameters }) => parameters.taskSlug);
    expect(await slugs("?limit=2")).toEqual(["t4", "t3", "t2", "t1", "t0"]);
    expect(await slugs("?outcome=warned")).toEqual(["t3", "t1"]);
    expect(await slugs("?outcome=refused&limit=2")).toEqual(["t4", "t2", "t0"]);
    const { pagination } = await uploads.get("?limit=2");
    for (const query of [`outcome=warned&cursor=${pagination.cursor}`, "outcome=lost"])
      expect((await uploads.call("GET", `?${query}`)).status).toBe(400);
  });

  test("holds what is younger than a day, and the newest of that", async () => {
    const own = await addProject(acme);
    const insert = async (minutesAgo: number) => {
      const at = Date.now() - minutesAgo * 60_000;
      await pool`
        insert into upload_log (project_id, id, outcome, status_code, warnings, parameters, client_address, key_leading,
          request_id, answered_at, last_answered_at)
        values (${own.project}, ${Bun.randomUUIDv7("hex", at)}, 'refused', 400, '[]', '{}', '', '', ${String(minutesAgo)},
          ${new Date(at).toISOString()}, ${new Date(at).toISOString()})`;
    };
    for (const minutesAgo of [1, 2, 3, 4, 24 * 60 - 1, 24 * 60 + 1]) await insert(minutesAgo);
    const minutes = async () => (await list(own)).data.map(({ requestId }: any) => Number(requestId));
    expect(await minutes()).toEqual([1, 2, 3, 4, 24 * 60 - 1]);
    await deleteOldUploads(pool, { hours: 24, kept: 3 });
    expect(await minutes()).toEqual([1, 2, 3]);
    expect(await pool`select from upload_log where project_id = ${own.project}`).toHaveLength(3);
  });
});
