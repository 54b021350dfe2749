import { describe, expect, test } from "bun:test";
import { createAsking } from "../asking.ts";
import { expireExecutions } from "../../src/work/expire.ts";
import { createHarness, createServer, junit, until } from "../harness.ts";

const { ask, acme, addProject, database } = await createHarness();
const own = createAsking(ask, acme);
const create = (body: unknown = {}) => own.call("POST", "/executions", body);
const get = (id: string) => own.get(`/executions/${id}`);
const freshProject = async () => createAsking(ask, await addProject(acme));
const upload = (query: string, letters: string) => own.call("POST", `/test-runs?${query}`, junit(letters));
const act = (id: string, action: string) => own.call("POST", `/executions/${id}/${action}`);
const makeOverdue = (id: string) =>
  database.pool`update execution set expires_at = now() - interval '1 second' where id = ${id}`;

describe("POST /projects/:projectId/executions", () => {
  test("creates an execution with its declared tasks", async () => {
    const origin = { branch: "main", commit: "abc", pullRequest: "7", buildUrl: "https://ci/1", environment: "ci" };
    const { status, body } = await create({ key: "build 1", tasks: ["unit", "e2e"], ...origin });
    const counts = { passed: 0, failed: 0, skipped: 0, total: 0 };
    const task = {
      ...{ status: "queued", attempt: 0, ...counts, startedAt: null, completedAt: null },
      ...{ missingShards: [], runner: null, tags: [], reason: null, slower: null },
    };
    expect(status).toBe(201);
    expect(body).toEqual({
      ...{ id: expect.any(String), key: "build 1", status: "queued", mode: "report", trigger: "api", ...origin },
      ...{
        commitAuthor: null,
        commitSubject: null,
        baseBranch: null,
        queueRef: null,
        untrusted: false,
        probe: null,
        newTests: [],
        baselineId: null,
      },
      ...{ rerunOf: null, repeatedStatus: null, reason: null, verdict: null },
      tasks: ["unit", "e2e"].map((slug) => ({ slug, ...task })),
      ...{ ...counts, flaky: 0, durationMs: 0, machineTimeMs: 0 },
      ...{ createdAt: expect.any(String), startedAt: null, completedAt: null, url: expect.stringContaining(body.id) },
    });
    expect(await get(body.id)).toEqual(body);
  });

  test("an empty body is an execution without declarations", async () => {
    const { status, body } = await own.call("POST", "/executions");
    expect([status, body.tasks]).toEqual([201, []]);
  });

  test("completed with a declared task missing is not green", async () => {
    const { body } = await create({ tasks: ["a", "b"] });
    await upload(`execution_id=${body.id}&task_slug=a`, "pp");
    const { body: ended } = await act(body.id, "complete");
    expect(ended).toMatchObject({ status: "timed_out", verdict: "failed" });
    expect(ended.tasks[1]).toMatchObject({ slug: "b", status: "timed_out" });
  });

  test("a key that exists answers 200 with the same execution, however many ask at once", async () => {
    const answers = await Promise.all(Array.from({ length: 10 }, () => create({ key: "meet here", tasks: ["a"] })));
    expect(answers.map(({ status }) => status).sort()).toEqual([...Array(9).fill(200), 201]);
    expect(new Set(answers.map(({ body }) => body.id)).size).toBe(1);
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
});

describe("which build a report belongs to", () => {
  const head = "0123456789abcdef0123456789abcdef01234567";
  const otherHead = "fedcba9876543210fedcba9876543210fedcba98";
  const executionOf = async (query: string) => (await upload(query, "p")).body.executionId;

  test("build 7 of another branch is another execution, and its green is not the first one's", async () => {
    const main = await upload("execution_key=7&task_slug=t&branch=main", "pf");
    const fix = await upload("execution_key=7&task_slug=t&branch=feat/fix", "pp");
    expect(fix.body.executionId).not.toBe(main.body.executionId);
    expect(fix.body).toMatchObject({ verdict: "passed", flaky: 0, attempt: 1 });
    expect(fix.body.warnings).toEqual([
      'The execution_key "7" is known with branch "main", and this is branch "feat/fix": it began another execution. ' +
        "The jobs of one build name the same branch",
    ]);
    expect((await upload("execution_key=7&task_slug=t&branch=main", "fp")).body).toMatchObject({
      ...{ executionId: main.body.executionId, attempt: 2, flaky: 1, verdict: "failed" },
    });
  });

  test("a task with another commit never lands in the execution of the first, and is told so", async () => {
    const first = await upload(`execution_key=merge&task_slug=a&commit=${head}`, "p");
    const second = await upload(`execution_key=merge&task_slug=b&commit=${otherHead}`, "p");
    expect(first.body.warnings).toEqual([]);
    expect(second.body.warnings).toEqual([
      `The execution_key "merge" is known with commit "${head}", and this is commit "${otherHead}": it began another ` +
        "execution. The jobs of one build name the same commit, the head's",
    ]);
    expect((await get(first.body.executionId)).tasks.map(({ slug }: any) => slug)).toEqual(["a"]);
    expect(await executionOf(`execution_key=merge&task_slug=c&commit=${otherHead}`)).toBe(second.body.executionId);
    expect(await executionOf(`execution_key=merge&task_slug=c&commit=${head}`)).toBe(first.body.executionId);
  });

  test("who names neither commit nor branch joins, and is told where that may mean several", async () => {
    const first = await executionOf("execution_key=vague&task_slug=a&branch=one");
    const joined = await upload("execution_key=vague&task_slug=b", "p");
    expect([joined.body.executionId, joined.body.warnings]).toEqual([first, []]);
    expect((await upload("execution_key=vague&task_slug=c&branch=one", "p")).body.warnings).toEqual([]);
    const second = await executionOf("execution_key=vague&task_slug=a&branch=two");
    const unclear = await upload("execution_key=vague&task_slug=c", "p");
    const warning =
      'Several builds have the execution_key "vague", and this upload names neither commit nor branch: it was taken ' +
      "for the newest";
    expect([unclear.body.executionId, unclear.body.warnings]).toEqual([second, [warning]]);
  });

  test("who names the branch of several builds with one key, and no commit, is told that the newest was taken", async () => {
    await executionOf(`execution_key=twice&task_slug=a&branch=main&commit=${head}`);
    const newest = await executionOf(`execution_key=twice&task_slug=a&branch=main&commit=${otherHead}`);
    const { body } = await upload("execution_key=twice&task_slug=b&branch=main", "p");
    expect([body.executionId, body.warnings]).toEqual([
      newest,
      ['Several builds have the execution_key "twice", and this upload names no commit: it was taken for the newest'],
    ]);
  });

  test("refs/heads/main is main, and a whole hash takes the place of a short one", async () => {
    const id = await executionOf(`execution_key=refs&task_slug=a&branch=main&commit=${head.slice(0, 8)}`);
    expect(await executionOf(`execution_key=refs&task_slug=b&branch=refs/heads/main&commit=${head}`)).toBe(id);
    expect(await executionOf(`execution_key=refs&task_slug=c&branch=main&commit=${head.slice(0, 10)}`)).toBe(id);
    expect(await get(id)).toMatchObject({ branch: "main", commit: head });
  });

  test("what agrees in most is found, not what is newest", async () => {
    const exact = await executionOf(`execution_key=most&task_slug=a&branch=main&commit=${head}`);
    await executionOf(`execution_key=most&task_slug=a&branch=feat&commit=${otherHead}`);
    const { body } = await create({ key: "most", branch: "main" });
    expect(body.id).toBe(exact);
  });

  test("POST /executions finds the build as an upload does, and fills in what is not known of it yet", async () => {
    const id = await executionOf("execution_key=filled&task_slug=a&branch=main");
    expect((await create({ key: "filled", branch: "main", commit: head })).body).toMatchObject({ id, commit: head });
    expect((await create({ key: "filled", branch: "main", commit: otherHead })).status).toBe(201);
  });

  test("parallel uploads that fill in different commits of one execution do not end in it together", async () => {
    const { body } = await create({ key: "fill" });
    const commits = [head, otherHead, head, otherHead];
    const answers = await Promise.all(
      commits.map((commit, index) => upload(`execution_key=fill&task_slug=t${index}&commit=${commit}`, "p")),
    );
    const ids = answers.map(({ body }) => body.executionId);
    expect(ids).toContain(body.id);
    expect([ids[0] === ids[2], ids[1] === ids[3], ids[0] === ids[1]]).toEqual([true, true, false]);
  });

  test("a key whose execution ended 7 days ago is free again", async () => {
    const { body } = await upload("execution_key=weekly&task_slug=t&complete=true", "p");
    expect(await executionOf("execution_key=weekly&task_slug=u")).toBe(body.executionId);
    await database.pool`
      update execution set completed_at = now() - interval '7 days 1 minute' where id = ${body.executionId}`;
    const { body: fresh } = await upload("execution_key=weekly&task_slug=t", "p");
    expect([fresh.executionId === body.executionId, fresh.warnings]).toEqual([false, []]);
    expect((await create({ key: "weekly" })).body.id).toBe(fresh.executionId);
  });

  test("an upload that names the execution itself and another build is refused, and nothing is stored", async () => {
    const build = { branch: "main", commit: head };
    const { body } = await create(build);
    for (const [name, value] of Object.entries({ branch: "other", commit: otherHead })) {
      const refused = await upload(`execution_id=${body.id}&${name}=${value}`, "p");
      expect([refused.status, refused.body.error.message]).toEqual([
        400,
        `Cannot read "${name}": the execution of "execution_id" is of ${name} "${(build as any)[name]}", got "${value}"`,
      ]);
    }
    expect((await get(body.id)).tasks).toEqual([]);
    expect((await upload(`execution_id=${body.id}&branch=main&commit=${head.slice(0, 10)}`, "p")).status).toBe(201);
  });

  test("executions are listed by key, commit and pull request", async () => {
    const fresh = await freshProject();
    const send = async (query: string) => (await fresh.upload("p", query)).executionId;
    const one = await send(`execution_key=9&branch=a&commit=${head}&pull_request=12`);
    const two = await send(`execution_key=9&branch=b&commit=${otherHead}&pull_request=13`);
    const three = await send(`execution_key=10&branch=b&commit=${otherHead.slice(0, 9)}&pull_request=13`);
    const list = async (query: string) => (await fresh.list(`/executions?${query}`)).map(({ id }: any) => id);
    expect(await list("key=9")).toEqual([two, one]);
    expect(await list("key=none")).toEqual([]);
    expect(await list("pull_request=13")).toEqual([three, two]);
    expect(await list(`commit=${head}`)).toEqual([one]);
    expect(await list(`commit=${otherHead.toUpperCase()}`)).toEqual([three, two]);
    expect(await list(`commit=${otherHead.slice(0, 7)}`)).toEqual([three, two]);
    expect(await list(`commit=${otherHead.slice(0, 6)}`)).toEqual([]);
    expect(await list("key=9&pull_request=13")).toEqual([two]);
  });
});

describe("shards that never came", () => {
  const shard = (query: string, letters = "pp") => upload(`task_slug=t&${query}`, letters);
  const asText = (query: string, letters: string) => own.send(junit(letters), query, { accept: "text/plain" });
  const runOf = async (executionId: string) => await own.get(`/executions/${executionId}/test-runs/t`);

  test("make their run incomplete and red when the execution ends, and are named", async () => {
    const first = await shard("execution_key=never&shard=2/4");
    const waiting = { status: "running", verdict: "passed", arrivedShards: [2], missingShards: [1, 3, 4] };
    expect(first.body).toMatchObject(waiting);
    await shard("execution_key=never&shard=1/4");
    const id = first.body.executionId;
    expect((await get(id)).tasks).toMatchObject([{ status: "running", missingShards: [3, 4] }]);
    const { body } = await act(id, "complete");
    expect(body).toMatchObject({
      ...{ status: "failed", verdict: "failed", failed: 0 },
      tasks: [{ slug: "t", status: "incomplete", missingShards: [3, 4] }],
    });
    expect(await runOf(id)).toMatchObject({
      ...{ status: "incomplete", verdict: "failed", arrivedShards: [1, 2], missingShards: [3, 4] },
      warnings: ["The execution has ended without shards 3 and 4 of 4"],
    });
    expect(await runOf(id)).not.toHaveProperty("completedAt");
  });

  test("are told by the last upload itself, in JSON and as text", async () => {
    await shard("execution_key=last-of-all&shard=1/3");
    const { text } = await asText("task_slug=t&execution_key=last-of-all&shard=3/3&complete=true", "pf");
    expect(text).toStartWith("INCOMPLETE t: shard 2 of 3 missing; 1 passed, 1 failed");
    const { body } = await shard("execution_key=one-of-two&shard=1/2&complete=true");
    expect(body).toMatchObject({ status: "incomplete", verdict: "failed", missingShards: [2] });
  });

  test("complete their run when they come late after all, which is told to who brings them", async () => {
    const { body } = await shard("execution_key=late&shard=1/3&complete=true");
    const second = await shard("execution_key=late&shard=2/3", "p");
    const late =
      'The execution had ended before this upload, as "failed": its counts, comment and commit statuses are updated, and no messages are sent';
    expect(second.body).toMatchObject({
      ...{ status: "incomplete", verdict: "failed", missingShards: [3] },
      warnings: ["The execution has ended without shard 3 of 3", late],
    });
    const third = await shard("execution_key=late&shard=3/3", "ppp");
    expect(third.body).toMatchObject({
      status: "passed",
      verdict: "passed",
      missingShards: [],
      warnings: [late, late],
    });
    const tasks = [{ status: "passed", missingShards: [] }];
    expect(await get(body.executionId)).toMatchObject({ status: "passed", tasks });
  });
});

describe("the life of an execution", () => {
  test("declared tasks end it when all of them have reported", async () => {
    const { body } = await create({ tasks: ["a", "b"] });
    await upload(`execution_id=${body.id}&task_slug=a`, "pp");
    expect(await get(body.id)).toMatchObject({ status: "running", verdict: null, completedAt: null });
    await upload(`execution_id=${body.id}&task_slug=b`, "pf");
    expect(await get(body.id)).toMatchObject({
      ...{ status: "failed", verdict: "failed", passed: 3, failed: 1, total: 4, completedAt: expect.any(String) },
      tasks: [
        { slug: "a", status: "passed" },
        { slug: "b", status: "failed" },
      ],
    });
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
    const origin = { branch: "main", commit: "abc", pullRequest: "9", buildUrl: "https://ci.example.com/1" };
    const more = "branch=main&commit=abc&pull_request=9&build_url=https://ci.example.com/1";
    const { body } = await upload(`execution_key=origin&task_slug=b&${more}`, "p");
    await upload("execution_key=origin&task_slug=c&pull_request=10&build_url=https://ci.example.com/2", "p");
    expect(await get(body.executionId)).toMatchObject(origin);
  });

  test("an upload without an execution is one of its own, complete at once", async () => {
    const { body } = await upload("branch=main", "ps");
    const execution = await get(body.executionId);
    expect(execution).toMatchObject({ key: null, status: "passed", verdict: "passed", trigger: "upload" });
    expect(execution.completedAt).toBe(body.completedAt);
  });

  test("DELETE removes it with its runs and cases", async () => {
    const { body } = await upload("task_slug=gone", "pf");
    const path = `/executions/${body.executionId}`;
    const deleted = await own.call("DELETE", path);
    expect([deleted.status, deleted.text]).toEqual([204, ""]);
    expect((await own.call("DELETE", path)).status).toBe(404);
    for (const gone of [path, `${path}/test-runs/gone`, `${path}/test-runs/gone/cases`])
      expect((await own.call("GET", gone)).status).toBe(404);
    expect(await own.list(`/test-runs?execution_id=${body.executionId}`)).toEqual([]);
    const left = await database.pool`
      select run_id from case_result r where not exists (select from test_run t where t.id = r.run_id)`;
    expect(left.length).toBe(0);
  });
});

describe("GET /projects/:projectId/executions/:executionId?wait=", () => {
  test("answers as soon as the execution ends, also when another server ends it", async () => {
    const other = await createServer(database);
    const { body } = await create({ tasks: ["a"] });
    const waiting = own.call("GET", `/executions/${body.id}?wait=30`);
    await until(async () => {
      const listening = await database.pool`
        select from pg_stat_activity where query ilike 'listen%' and datname = current_database()`;
      return listening.length > 0;
    });
    await other.ask(`POST /projects/${acme.project}/executions/${body.id}/cancel`, acme);
    expect((await waiting).body.status).toBe("cancelled");
  });

  test("an execution that has ended is answered at once, and a missing one is a 404", async () => {
    const { body } = await upload("", "p");
    expect((await own.get(`/executions/${body.executionId}?wait=30`)).status).toBe("passed");
    expect((await own.call("GET", `/executions/${crypto.randomUUID()}?wait=30`)).status).toBe(404);
  });

  test("wait is 1 to 30 seconds", async () => {
    const { body } = await create();
    for (const wait of ["0", "31", "x"])
      expect((await own.call("GET", `/executions/${body.id}?wait=${wait}`)).status).toBe(400);
  });
});

describe("GET /projects/:projectId/executions", () => {
  test("filters by status, branch, environment, task and time of creation, newest first", async () => {
    const fresh = await freshProject();
    const post = (body: object) => fresh.post("/executions", body);
    const one = await post({ branch: "main", environment: "ci", tasks: ["unit"] });
    const two = await post({ branch: "feature", environment: "ci", tasks: ["unit", "e2e"] });
    const three = await post({ branch: "main" });
    await fresh.post(`/executions/${three.id}/cancel`);
    const list = async (query: string) => (await fresh.list(`/executions?${query}`)).map(({ id }) => id);
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
      expect((await fresh.call("GET", `/executions?created_after=${bad}`)).status).toBe(400);
    // Their offset leads out of the years that there are.
    for (const bad of ["1970-01-01T00:00:00+14:00", "9999-12-31T23:59:59-00:01"])
      for (const name of ["created_after", "created_before"]) {
        const { status, body } = await fresh.call("GET", `/executions?${name}=${encodeURIComponent(bad)}`);
        expect([status, body.error.message]).toEqual([400, expect.stringContaining(`"${name}"`)]);
      }
    expect(await list("created_before=9999-12-31T23:59:59.999Z&limit=100")).toHaveLength(3);
    expect(await list("created_before=1970-01-01T00:00:00Z")).toEqual([]);
  });
});
