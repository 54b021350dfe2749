/** Keys, scopes, rate limits and the audit log: the endpoint for assistants lets nobody do more than the API does. */

import { beforeEach, describe, expect, test } from "bun:test";
import { TOOLS } from "../../src/mcp/tools.ts";
import { createKey } from "../../src/secrets/keys.ts";
import { selectAuditEntries } from "../../src/store/audit.ts";
import { createAsking } from "../asking.ts";
import { createHarness, createServer } from "../harness.ts";
import { createAssistant } from "./assistant.ts";

const { ask, acme, rival, addProject, database, url, regenerate } = await createHarness();
const { post, request, call } = createAssistant(url);

type Project = ReturnType<typeof createAsking>;
const createProject = async () => createAsking(ask, await addProject(acme), "unit");
let own: Project;
beforeEach(async () => void (own = await createProject()));

const addKey = (scope: string): Promise<{ id: string; key: string }> => own.post("/keys", { name: scope, scope });

/** An execution with a failure, a bug and a test case. */
async function createRed({ upload, list }: Project) {
  const { executionId, bugReports } = await upload("pf", "branch=main&complete=true");
  const [, { id }] = (await list("/test-cases")) as [unknown, { id: string }];
  return { executionId: executionId as string, bugReportId: bugReports[0].id as string, testCaseId: id };
}

const WRITING = TOOLS.filter(({ scope }) => scope === "triage").map(({ name }) => name);
const namesFor = async (key: string) =>
  (await request("tools/list", {}, key)).body.result.tools.map(({ name }: { name: string }) => name);

describe("a key", () => {
  test("is needed, live, and of a project", async () => {
    const { key: runnerKey } = await own.post("/runners", { runner: "one" });
    const refused = [null, "nonsense", acme.teamKey, createKey("project").key, "svc_pat_abcdefgh", runnerKey];
    for (const key of refused)
      for (const method of ["server/discover", "tools/list", "tools/call"]) {
        const { status, headers, body } = await request(method, { name: "flaky_tests" }, key);
        expect([key, method, status, body.error.code]).toEqual([key, method, 401, "UNAUTHORIZED"]);
        expect(headers.get("www-authenticate")).toBe("Bearer");
      }
  });

  test("that is revoked is refused from then on, also for what it did before", async () => {
    const { id, key } = await addKey("triage");
    await call("flaky_tests", {}, key);
    await own.call("DELETE", `/keys/${id}`);
    for (const method of ["server/discover", "tools/list", "tools/call"])
      expect((await request(method, { name: "flaky_tests" }, key)).status).toBe(401);
    const handshake = { jsonrpc: "2.0", id: 1, method: "initialize", params: {} };
    expect((await post(handshake, key)).status).toBe(401);
    expect((await post({ jsonrpc: "2.0", method: "notifications/initialized" }, key)).status).toBe(401);
    const fresh = await regenerate({ ...acme, project: own.project });
    expect((await request("tools/list", {}, own.key)).status).toBe(401);
    expect((await request("tools/list", {}, fresh)).status).toBe(200);
  });

  test("that is revoked meanwhile has written what was answered, and nothing else", async () => {
    const { bugReportId } = await createRed(own);
    const { id, key } = await addKey("triage");
    const calls = Array.from({ length: 30 }, (_, index) =>
      request("tools/call", { name: "triage_bug", arguments: { bugReportId, title: `title ${index}` } }, key),
    );
    await calls[0];
    await own.call("DELETE", `/keys/${id}`);
    const written = async () => {
      const entries = await selectAuditEntries(database.pool, acme.team, { limit: 1_000 });
      return entries.filter(({ actor, action }) => actor === `key ${key.slice(0, 17)}` && action === "bug.changed")
        .length;
    };
    const afterRevocation = await written();
    const answers = await Promise.all(calls);
    const done = answers.filter(({ status, body }) => status === 200 && body.result.structuredContent);
    for (const answer of answers) if (!done.includes(answer)) expect(answer.status).toBe(401);
    expect([done.length, await written()]).toEqual([afterRevocation, afterRevocation]);
  });

  test("of a scope that reads neither lists nor calls the tools that write", async () => {
    const { bugReportId } = await createRed(own);
    for (const scope of ["read", "upload", "run"]) {
      const { key } = await addKey(scope);
      expect(await namesFor(key)).toEqual(TOOLS.map(({ name }) => name).filter((name) => !WRITING.includes(name)));
      for (const name of WRITING) {
        const { status, body } = await request("tools/call", { name, arguments: { bugReportId } }, key);
        const message = `A key of scope "${scope}" cannot call ${name}: use the project's own key, or one of scope "triage"`;
        expect([status, body.error]).toEqual([200, { code: -32602, message }]);
      }
    }
    expect((await own.get(`/bug-reports/${bugReportId}`)).status).toBe("open");
  });

  test("of scope triage, and the project's own, write what the API would, and the audit log has it", async () => {
    const triage = await addKey("triage");
    for (const key of [triage.key, own.key]) {
      expect(await namesFor(key)).toEqual(TOOLS.map(({ name }) => name));
      const { executionId, bugReportId, testCaseId } = await createRed(own);
      expect(await call("quarantine", { testCaseIds: [testCaseId], reason: "#12" }, key)).toMatchObject({ changed: 1 });
      const test = await own.get(`/test-cases/${testCaseId}`);
      expect(test.quarantine).toMatchObject({ reason: "#12", until: null });
      expect(await call("quarantine", { testCaseIds: [testCaseId], reason: null }, key)).toMatchObject({ changed: 1 });
      const changed = await call("triage_bug", { bugReportId, assignee: "ada", status: "in_progress" }, key);
      expect(changed.bugReport).toMatchObject({ status: "in_progress", untrusted: { assignee: "ada" } });
      const rerun = await call("rerun_failed", { executionId }, key);
      expect(rerun.execution).toMatchObject({ rerunOf: executionId, status: "queued", trigger: "rerun" });
    }
    const entries = (await selectAuditEntries(database.pool, acme.team, { limit: 100 })).toReversed();
    const actors = [triage.key, own.key].map((key) => `key ${key.slice(0, 17)}`);
    const theirs = entries.filter(({ actor, action }) => actors.includes(actor) && action !== "key.generated");
    expect(theirs.map(({ actor, action }) => [actor, action])).toEqual(
      actors.flatMap((actor) => [
        [actor, "test_case.changed"],
        [actor, "test_case.changed"],
        [actor, "bug.changed"],
      ]),
    );
  });
});

describe("somebody else's project", () => {
  test("looks like one that does not exist", async () => {
    const theirs = await createRed(own);
    const ask = async (ids: typeof theirs) => {
      const calls: [name: string, args: object][] = [
        ["why_is_it_red", { executionId: ids.executionId }],
        ["get_failures", { executionId: ids.executionId }],
        ["test_history", { testCaseId: ids.testCaseId }],
        ["bug_reports", { bugReportId: ids.bugReportId }],
        ["culprit", { bugReportId: ids.bugReportId }],
        ["get_log", { executionId: ids.executionId, task: "unit" }],
        ["compare", { executionId: ids.executionId }],
        ["quarantine", { testCaseIds: [ids.testCaseId], reason: "x" }],
        ["triage_bug", { bugReportId: ids.bugReportId, status: "resolved" }],
        ["rerun_failed", { executionId: ids.executionId }],
      ];
      const answers = [];
      for (const [name, args] of calls)
        answers.push((await request("tools/call", { name, arguments: args }, rival.key)).body);
      return JSON.parse(JSON.stringify(answers).replaceAll(ids.testCaseId, "ID"));
    };
    const missing = () => crypto.randomUUID();
    const nowhere = { executionId: missing(), bugReportId: missing(), testCaseId: missing() };
    const answers = await ask(theirs);
    expect(answers).toEqual(await ask(nowhere));
    for (const { result } of answers) expect(result.isError).toBe(true);
    expect(await call("why_is_it_red", {}, rival.key)).toMatchObject({
      red: false,
      summary: "There is no execution of this branch",
    });
    expect((await call("list_executions", {}, rival.key)).executions).toEqual([]);
    expect((await call("flaky_tests", {}, rival.key)).tests).toEqual([]);
    expect((await call("test_history", { name: "case" }, rival.key)).tests).toEqual([]);
    expect((await call("bug_reports", {}, rival.key)).bugReports).toEqual([]);
  });
});

describe("the rate limit", () => {
  test("is that of the key on the API: both count together, and each message of a batch", async () => {
    const limited = await createServer(database, { rateLimitPerMinute: 10 });
    const assistant = createAssistant(limited.url);
    const { key } = await addKey("read");
    const remaining = ({ headers }: { headers: Headers }) => Number(headers.get("x-ratelimit-remaining"));
    expect(remaining(await assistant.request("tools/list", {}, key))).toBe(9);
    expect(remaining(await limited.ask(`GET /projects/${own.project}/executions`, { key }))).toBe(8);
    const ping = (id: number) => ({ jsonrpc: "2.0", id, method: "ping" });
    expect(remaining(await assistant.post([ping(1), ping(2), ping(3)], key))).toBe(5);
    // A tool that asks the API several times is one request.
    expect(remaining(await assistant.request("tools/call", { name: "why_is_it_red", arguments: {} }, key))).toBe(4);
    const refused = await assistant.post([1, 2, 3, 4, 5, 6].map(ping), key);
    expect([refused.status, refused.body.error.code]).toEqual([429, "RATE_LIMITED"]);
    expect(refused.headers.get("retry-after")).toBeTruthy();
    expect((await assistant.request("tools/list", {}, key)).status).toBe(429);
    // Every other key has a limit of its own.
    expect((await assistant.request("tools/list", {}, own.key)).status).toBe(200);
  });

  test("is that of the address without a key", async () => {
    const limited = await createServer(database, { rateLimitPerMinute: 2 });
    const assistant = createAssistant(limited.url);
    const statuses = [];
    for (let count = 0; count < 3; count++) statuses.push((await assistant.request("tools/list", {}, null)).status);
    expect(statuses).toEqual([401, 401, 429]);
  });
});

test("many assistants at once get each their own answer", async () => {
  const other = await createProject();
  const [mine, theirs] = [await createRed(own), await createRed(other)];
  const answers = await Promise.all(
    Array.from({ length: 40 }, (_, index) => call("why_is_it_red", {}, (index % 2 === 0 ? own : other).key)),
  );
  for (const [index, { execution }] of answers.entries())
    expect(execution.id).toBe((index % 2 === 0 ? mine : theirs).executionId);
});
