/** Reports of forks: shown and compared, and counted nowhere. */

import { beforeEach, describe, expect, test } from "bun:test";
import { type Asking, createAsking, filledLists } from "../asking.ts";
import { createHarness, junit } from "../harness.ts";

const { ask, acme, addProject, database } = await createHarness();

let own: Asking;
beforeEach(async () => {
  own = createAsking(ask, await addProject(acme));
});

const send = (body: string, query: Record<string, string> = {}) => {
  const parameters = new URLSearchParams({ task_slug: "t", complete: "true", ...query });
  return own.call("POST", `/test-runs?${parameters}`, body);
};
async function upload(letters: string, query: Record<string, string> = {}) {
  const { status, body } = await send(junit(letters), query);
  expect(status).toBe(201);
  return body;
}
const FORK = { untrusted: "true", branch: "alice:main", pull_request: "7", commit: "abcdef0" };
const fork = (letters: string, query: Record<string, string> = {}) => upload(letters, { ...FORK, ...query });
const refusal = ({ status, body }: { status: number; body: any }) => [status, body.error?.message];

describe("an untrusted report", () => {
  test("is compared with the default branch, and shown with its pull request", async () => {
    await upload("fpp", { branch: "main" });
    const run = await fork("ffp");
    expect(filledLists(run)).toEqual({ stillFailing: 1, newFailures: 1 });
    expect(run).toMatchObject({ verdict: "failed", bugReports: [] });
    const { data } = await own.get("/executions?pull_request=7");
    expect(data).toMatchObject([{ id: run.executionId, untrusted: true, verdict: "failed", branch: "alice:main" }]);
    const failures = await own.get(`/executions/${run.executionId}/failures`);
    expect(failures.counts).toMatchObject({ newFailures: 1, stillFailing: 1 });
    const comparison = await own.get(`/executions/${run.executionId}/comparison`);
    expect(comparison.newFailures).toMatchObject([{ name: "case 1" }]);
  });

  test("is found by a filter", async () => {
    const [trusted, untrusted] = [await upload("p", { branch: "main" }), await fork("p")];
    const found = async (query: string) => (await own.get(`/executions${query}`)).data.map(({ id }: any) => id);
    expect(await found("")).toEqual([untrusted.executionId, trusted.executionId]);
    expect(await found("?untrusted=true")).toEqual([untrusted.executionId]);
    expect(await found("?untrusted=false")).toEqual([trusted.executionId]);
    expect(refusal(await own.call("GET", "/executions?untrusted=maybe"))).toEqual([
      400,
      `Cannot read "untrusted": expected "true" or "false", got "maybe"`,
    ]);
    const runs = (await own.get("/test-runs")).data.map(({ executionId }: any) => executionId);
    expect(runs).toEqual([trusted.executionId]);
    expect((await own.get(`/test-runs?execution_id=${untrusted.executionId}`)).data).toHaveLength(1);
  });

  test("never belongs to a trusted execution, nor the other way round", async () => {
    const build = { branch: "main", commit: "abcdef0", execution_key: "7", complete: "false" };
    const trusted = await upload("p", build);
    const untrusted = await upload("f", { ...build, untrusted: "true" });
    expect(untrusted.executionId).not.toBe(trusted.executionId);
    const again = { ...build, task_slug: "u" };
    expect((await upload("p", again)).executionId).toBe(trusted.executionId);
    expect((await upload("p", { ...again, untrusted: "true" })).executionId).toBe(untrusted.executionId);
    const to = (execution_id: string, more: Record<string, string> = {}) =>
      send(junit("p"), { execution_id, task_slug: "v", ...more });
    expect(refusal(await to(trusted.executionId, { untrusted: "true" }))).toEqual([
      400,
      `Cannot read "untrusted": expected false, as the execution of "execution_id" was created, got true`,
    ]);
    expect(refusal(await to(untrusted.executionId))).toEqual([
      400,
      `Cannot read "untrusted": expected true, as the execution of "execution_id" was created, got false`,
    ]);
    expect((await to(untrusted.executionId, { untrusted: "true" })).status).toBe(201);
  });

  test("adds no test case to the catalogue, and renames none", async () => {
    const suite = (file: string, name: string) =>
      `<testsuite name="s"><testcase classname="c" name="${name}" file="${file}"/></testsuite>`;
    await send(suite("a.ts", "known"), { branch: "main" });
    const before = await own.get("/test-cases");
    const { body: run } = await send(
      suite("b.ts", "known").replace("/>", `/>${"<testcase classname='c' name='theirs'/>"}`),
      FORK,
    );
    expect(await own.get("/test-cases")).toEqual(before);
    const { data: cases } = await own.get(`/executions/${run.executionId}/test-runs/t/cases`);
    expect(cases.map(({ name }: any) => name)).toEqual(["known", "theirs"]);
    const [{ testCaseId }] = cases;
    expect(await own.get(`/test-cases/${testCaseId}`)).toMatchObject({ name: "known", file: "b.ts", health: "new" });
    const { data: results } = await own.get(`/test-cases/${testCaseId}/results`);
    expect(results).toMatchObject([{ executionId: run.executionId, status: "passed" }]);
    const quarantine = { quarantine: { reason: "theirs" } };
    const patched = await own.call("PATCH", `/test-cases/${testCaseId}`, quarantine);
    expect(patched.status).toBe(404);
    // The same names again are the same test cases, and the next trusted one is the second of the catalogue.
    const { body: next } = await send(suite("b.ts", "known"), { ...FORK, commit: "1234567" });
    const { data: again } = await own.get(`/executions/${next.executionId}/test-runs/t/cases`);
    expect(again.map((one: any) => one.testCaseId)).toEqual([testCaseId]);
    await send(suite("a.ts", "ours"), { branch: "main" });
    const numbers = await database.pool<{ number: number }[]>`
      select number from test_case where project_id = ${own.project} order by number`;
    expect(numbers.map(({ number }) => number)).toEqual([1, 2, 2 ** 30, 2 ** 30 + 1]);
  });

  test("merges with further attempts, and its results are read page by page", async () => {
    const many = "p".repeat(299);
    await upload(`${many}p`, { branch: "main" });
    const build = { ...FORK, execution_key: "9", complete: "false" };
    await upload(`${many}f`, build);
    const run = await upload(`f${many.slice(1)}p`, build);
    expect(run).toMatchObject({ attempt: 2, passed: 299, failed: 1, flaky: 1 });
    const cases = await own.walk(`/executions/${run.executionId}/test-runs/t/cases?limit=100`);
    expect(cases[0]).toMatchObject({ name: "case 0", status: "failed" });
    expect(new Set(cases.map(({ name }) => name)).size).toBe(300);
  });
});

describe("an untrusted execution", () => {
  const create = (body: Record<string, unknown>) =>
    own.call("POST", "/executions", { untrusted: true, tasks: ["t"], ...body });

  test("is created apart from a trusted one with its key", async () => {
    const [untrusted, trusted] = [await create({ key: "7" }), await create({ key: "7", untrusted: false })];
    expect([untrusted.status, trusted.status, (await create({ key: "7" })).status]).toEqual([201, 201, 200]);
    expect([untrusted.body.untrusted, trusted.body.untrusted]).toEqual([true, false]);
    const run = await fork("f", { execution_key: "7", branch: "", commit: "" });
    expect(run.executionId).toBe(untrusted.body.id);
    const { tasks } = await own.get(`/executions/${trusted.body.id}`);
    expect(tasks).toMatchObject([{ slug: "t", status: "queued" }]);
  });

  test("runs nothing", async () => {
    const only = `Cannot read "untrusted": an untrusted execution only takes reports`;
    expect(refusal(await create({ mode: "run" }))).toEqual([400, only]);
    const { executionId } = await fork("f");
    expect(refusal(await own.call("POST", `/executions/${executionId}/rerun`, {}))).toEqual([
      400,
      expect.stringContaining("it is untrusted"),
    ]);
  });
});
