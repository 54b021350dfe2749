import { beforeEach, describe, expect, test } from "bun:test";
import { type Asking, createAsking } from "../asking.ts";
import { createSnippets } from "../../src/rules/snippets.ts";
import { createHarness, junit } from "../harness.ts";
import { isFull } from "../depth.ts";

const { ask, acme, addProject, database, url } = await createHarness();

let own: Asking;
beforeEach(async () => {
  own = createAsking(ask, await addProject(acme));
});

const get = async () => await own.get("/onboarding");
const statuses = async () =>
  Object.fromEntries((await get()).steps.map(({ id, status }: { id: string; status: string }) => [id, status]));
const upload = (letters: string, query = "") => own.call("POST", `/test-runs?task_slug=t${query}`, junit(letters));

describe("steps", () => {
  test("are done by what happens, and tell when", async () => {
    expect(await statuses()).toEqual({
      first_run: "todo",
      report_format: "todo",
      commit_and_branch: "todo",
      environment: "todo",
      integration: "todo",
      automation: "todo",
      bug_triaged: "todo",
    });
    const { body } = await upload("pf");
    expect((await get()).steps[0]).toEqual({
      id: "first_run",
      title: expect.any(String),
      status: "done",
      doneAt: body.completedAt,
      hint: expect.any(String),
    });
    await upload("p", "&commit=a");
    expect((await statuses())["commit_and_branch"]).toBe("todo");
    await upload("p", "&commit=a&branch=main&environment=staging");
    await own.patch(`/bug-reports/${body.bugReports[0].id}`, { status: "resolved" });
    expect(await get()).toMatchObject({ completed: false, dismissed: false });
    const team = { key: acme.teamKey };
    const config = { url: "https://hooks.slack.com/services/T/B/abcdefgh" };
    const slack = await ask(`POST /teams/${acme.team}/integrations`, { ...team, body: { kind: "slack", config } });
    const actions = [{ type: "notify", integrationId: slack.body.id }];
    const automation = { name: "red", trigger: { event: "execution.failed" }, actions };
    const { body: created } = await ask(`POST /teams/${acme.team}/automations`, { ...team, body: automation });
    expect(await get()).toMatchObject({ completed: true, dismissed: false });
    expect((await get()).steps.map(({ doneAt }: { doneAt: string }) => doneAt).slice(4, 6)).toEqual([
      slack.body.createdAt,
      created.createdAt,
    ]);
    for (const path of [`integrations/${slack.body.id}`, `automations/${created.id}`])
      await ask(`DELETE /teams/${acme.team}/${path}`, team);
  });

  test.each([
    ["Vitest", `<testsuites name="vitest tests"`, "--reporter=json"],
    ["Jest", `<testsuites name="jest tests"`, "--json"],
    ["Mocha", `<testsuites name="Mocha Tests"`, "--reporter json"],
    [
      "Playwright",
      `<testsuites id="" name="" tests="1" failures="0" skipped="0" errors="0" time="1"`,
      "--reporter=json",
    ],
  ])("say once that %s has a format that keeps retries, until it is sent", async (tool, root, option) => {
    const send = (report: unknown) => own.call("POST", "/test-runs?task_slug=t", report);
    const step = async () => (await get()).steps[1];
    await send(`${root}><testsuite name="a"><testcase classname="a" name="b"/></testsuite></testsuites>`);
    expect(await step()).toMatchObject({ id: "report_format", status: "todo", doneAt: null });
    expect((await step()).hint).toContain(`JUnit XML of ${tool}`);
    expect((await step()).hint).toContain(option);
    const { body } = await send({ taskSlug: "t", passed: 1, failed: 0, skipped: 0 });
    expect(body.warnings).toEqual([]);
    expect(await step()).toMatchObject({ status: "done", doneAt: expect.any(String) });
  });

  test("are skipped and taken up again, and the whole is dismissed", async () => {
    const patch = (body: object) => own.call("PATCH", "/onboarding", body);
    expect((await patch({ skip: ["environment"] })).body.steps[3]).toMatchObject({ status: "skipped", doneAt: null });
    expect((await patch({ dismissed: true })).body).toMatchObject({ dismissed: true, completed: false });
    expect((await statuses())["environment"]).toBe("skipped");
    expect((await patch({ skip: [] })).body).toMatchObject({ dismissed: true });
    expect((await statuses())["environment"]).toBe("todo");
    expect((await patch({ skip: ["nap"], dismissed: 1 })).body.error.message).toMatch(/"skip.*"dismissed"/);
  });
});

test("snippets have the addresses of the server and of the project", async () => {
  expect((await get()).snippets).toEqual(createSnippets({ publicUrl: url, projectId: own.project }));
});

describe("sample data", () => {
  const path = "/onboarding/sample-data";
  const list = async (what: string) =>
    (await own.get(`/${what.includes("?") ? what : `${what}?`}limit=100`)).data as Record<string, unknown>[];
  /** Every row of the project, by table. */
  async function rows() {
    const tables = await database.pool<{ name: string }[]>`
      select c.relname as name from pg_class c join pg_attribute a on a.attrelid = c.oid
      where c.relkind in ('r', 'p') and not c.relispartition and a.attname = 'project_id' and c.relname <> 'api_key'
        and c.relnamespace = 'public'::regnamespace order by 1`;
    const counts: Record<string, number> = {};
    for (const { name } of tables) {
      const [row] =
        await database.pool`select count(*)::int as n from ${database.pool(name)} where project_id = ${own.project}`;
      counts[name] = row!["n"];
    }
    return counts;
  }

  test("is two weeks of runs, bugs and health, marked everywhere, once", async () => {
    const { status, body } = await own.call("POST", path);
    expect(status).toBe(201);
    expect(body).toEqual({ executions: 42, testCases: 22, bugReports: 2 });
    const again = await own.call("POST", path);
    expect([again.status, again.body]).toEqual([200, body]);
    for (const what of ["executions", "test-cases", "bug-reports"])
      expect((await list(what)).every(({ sample }) => sample === true)).toBe(true);
    const ages = (await list("executions")).map(({ createdAt }) => Date.now() - Date.parse(createdAt as string));
    expect(Math.min(...ages)).toBeGreaterThan(0);
    expect(Math.max(...ages) / 86_400_000).toBeWithin(13, 14);
    expect((await list("test-cases?health=flaky&")).map(({ name }) => name)).toEqual(["answers in time"]);
    const bugs = await list("bug-reports");
    expect(new Set(bugs.map(({ status }) => status))).toEqual(new Set(["open", "resolved"]));
    expect((await statuses())["first_run"]).toBe("todo");
  });

  test.skipIf(!isFull)("goes without a trace, beside real data that stays", async () => {
    const before = await rows();
    await own.call("POST", path);
    await list("test-cases");
    expect((await own.call("DELETE", path)).status).toBe(204);
    expect(await rows()).toEqual(before);

    await own.call("POST", path);
    const { body } = await upload("pf");
    await own.call("DELETE", path);
    expect((await list("test-cases")).map(({ name }) => name)).toEqual(["case 0", "case 1"]);
    expect(await list("executions")).toEqual([expect.objectContaining({ id: body.executionId })]);
    expect((await list("bug-reports")).length).toBe(1);
    expect((await upload("pfp")).body).toMatchObject({ total: 3 });
    expect(await list("test-cases")).toHaveLength(3);
  });
});
