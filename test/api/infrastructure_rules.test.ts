import { beforeEach, describe, expect, test } from "bun:test";
import { type Asking, createAsking, createRequests } from "../asking.ts";
import { countAll } from "../../src/work/count.ts";
import { createHarness } from "../harness.ts";

const { ask, acme, rival, addProject, database } = await createHarness();
const key = acme.teamKey;
const base = `/teams/${acme.team}/infrastructure-rules`;
const team = createRequests(ask, base, key);
let project: Asking;

beforeEach(async () => {
  for (const { id } of await team.list("?limit=100")) await team.call("DELETE", `/${id}`);
  project = createAsking(ask, await addProject(acme));
});

type Case = { name: string; status?: string; message?: string; stack?: string; output?: string; file?: string };
const REFUSED = "connect ECONNREFUSED 10.0.0.7:4873 registry.acme.example";

async function upload(cases: readonly Case[], parameters: Record<string, string> = {}): Promise<any> {
  const query = new URLSearchParams({ task_slug: "unit", branch: "main", ...parameters });
  const full = cases.map((one) => ({ suite: "s", status: one.message ? "failed" : "passed", durationMs: 1, ...one }));
  const count = (status: string) => full.filter((one) => one.status === status).length;
  const body = JSON.stringify({ passed: count("passed"), failed: count("failed"), skipped: 0, cases: full });
  const answer = await project.call("POST", `/test-runs?${query}`, body);
  expect([answer.status, answer.text]).toEqual([expect.any(Number), expect.any(String)]);
  return answer.body;
}

const create = async (rule: object) => {
  const answer = await team.call("POST", "", { name: "Package registry", ...rule });
  expect([answer.status, answer.text]).toEqual([201, expect.any(String)]);
  return answer.body;
};
const get = async (path: string) => await project.get(`${path}`);
const failuresOf = async ({ executionId }: any) => await get(`/executions/${executionId}/failures`);
const bugs = async () => (await get("/bug-reports?limit=100")).data;

describe("a failure that matches a rule", () => {
  test("blames nobody, is in one list, and names the rule and its link", async () => {
    const rule = await create({ pattern: "econnrefused*registry", url: "https://wiki.acme.example/registry" });
    await upload([{ name: "a" }, { name: "b" }]);
    const run = await upload([
      { name: "a", message: REFUSED },
      { name: "b", message: "expected 1 to be 2" },
    ]);
    expect(run.verdict).toBe("failed");
    const { counts, causes } = await failuresOf(run);
    expect(counts).toEqual({
      ...{ newFailures: 1, unclearFailures: 0, flakyFailures: 0, alsoFailingOnMain: 0, stillFailing: 0 },
      ...{ quarantinedFailures: 0, incidentFailures: 1 },
    });
    const found = causes.flatMap(({ failures }: any) => failures);
    expect(found.find(({ name }: Case) => name === "a")).toMatchObject({
      blame: "incident",
      reason: `Matches the infrastructure rule "Package registry"`,
      infrastructureRule: { id: rule.id, name: "Package registry", url: "https://wiki.acme.example/registry" },
    });
    expect(found.find(({ name }: Case) => name === "b")).toMatchObject({ blame: "new", infrastructureRule: null });
  });

  test("is found in the message, the stack and the end of the output, whatever the case of its letters", async () => {
    await create({ pattern: "No Space Left on device" });
    const text = "write: no space left on device";
    await upload([{ name: "a" }, { name: "b" }, { name: "c" }, { name: "d" }]);
    const run = await upload([
      { name: "a", message: `Error\n${text}` },
      { name: "b", message: "Error", stack: `Error\n  ${text}` },
      { name: "c", message: "Error", output: `${"x".repeat(50_000)}\n${text}` },
      { name: "d", message: "Error", output: `${text}\n${"x".repeat(50_000)}` },
    ]);
    expect((await failuresOf(run)).counts).toMatchObject({ incidentFailures: 3, newFailures: 1 });
  });

  test("opens one bug of the project for each rule, however many tests and messages", async () => {
    await create({ pattern: "ECONNREFUSED" });
    await create({ name: "Disk", pattern: "no space left" });
    const names = ["a", "b", "c", "d", "e", "f"];
    const others = Array.from({ length: 12 }, (_, index) => ({ name: `p${index}` }));
    await upload([...names.map((name) => ({ name })), ...others]);
    const fail = () =>
      upload([
        ...names.slice(0, 4).map((name) => ({ name, message: `Test ${name}: ${REFUSED}`, file: `${name}.test.ts` })),
        ...names.slice(4).map((name) => ({ name, message: `${name}: No space left on device` })),
        ...others,
      ]);
    await fail();
    await fail();
    const found = await bugs();
    expect(found.map(({ title, occurrences }: any) => [title, occurrences]).sort()).toEqual([
      ["Infrastructure: Disk", 4],
      ["Infrastructure: Package registry", 8],
    ]);
  });

  test("counts neither in health nor as a sign of a flaky test", async () => {
    await create({ pattern: "ECONNREFUSED" });
    await upload([{ name: "a" }]);
    for (let run = 0; run < 6; run++) await upload([{ name: "a", message: REFUSED }], { commit: "1a2b3c4d" });
    await upload([{ name: "a" }], { commit: "1a2b3c4d" });
    await countAll(database);
    const [test] = (await get("/test-cases")).data;
    expect(test).toMatchObject({ runs: 2, failures: 0, flaky: null, flakeRate: 0, health: "new" });
  });

  test("is no sign of a flaky test either where a retry has passed, in the report or in a further one", async () => {
    await create({ pattern: "ECONNREFUSED" });
    const failure = (name: string, message: string) =>
      `<testcase name="${name}"><flakyFailure message="${message}"/></testcase>`;
    const body = `<testsuite name="s">${failure("a", REFUSED)}${failure("b", "expected 1 to be 2")}</testsuite>`;
    const path = `POST /projects/${project.project}/test-runs?task_slug=unit&branch=main`;
    expect((await ask(path, { key: project.key, body })).body.flaky).toBe(1);
    await upload(
      [
        { name: "c", message: REFUSED },
        { name: "d", message: "expected 1 to be 2" },
      ],
      { execution_key: "k" },
    );
    const { executionId, flaky } = await upload([{ name: "c" }, { name: "d" }], { execution_key: "k" });
    expect(flaky).toBe(1);
    const cases = (await get(`/executions/${executionId}/test-runs/unit/cases`)).data;
    expect(cases.map(({ name, flaky }: any) => [name, flaky])).toEqual([
      ["c", false],
      ["d", true],
    ]);
    await countAll(database);
    const found = (await get("/test-cases")).data;
    expect(found.map(({ name, flaky }: any) => [name, flaky !== null]).sort()).toEqual([
      ["a", false],
      ["b", true],
      ["c", false],
      ["d", true],
    ]);
  });

  test("of a quarantined test stays quarantined, and counts in its health no more than others", async () => {
    await create({ pattern: "ECONNREFUSED" });
    await upload([{ name: "a" }, { name: "b" }]);
    const [one] = (await get("/test-cases")).data;
    const patch = { quarantine: { reason: "#12" } };
    await project.patch(`/test-cases/${one.id}`, patch);
    const run = await upload([{ name: "a", message: REFUSED }, { name: "b" }]);
    expect(run.verdict).toBe("passed");
    const { counts, causes } = await failuresOf(run);
    expect(counts).toMatchObject({ quarantinedFailures: 1, incidentFailures: 0 });
    expect(causes[0].failures[0].reason).toBe(
      `Quarantined: its failures do not count. It also matches the infrastructure rule "Package registry"`,
    );
    await countAll(database);
    expect((await get("/test-cases")).data[0]).toMatchObject({ runs: 1, failures: 0 });
  });

  test("is a trend by day", async () => {
    await create({ pattern: "ECONNREFUSED" });
    await upload([{ name: "a", message: REFUSED }, { name: "b", message: "expected 1 to be 2" }, { name: "c" }]);
    const { days, tasks } = await get("/trends?days=1");
    expect(days[0]).toMatchObject({ testFailures: 2, infrastructureFailures: 1 });
    expect(tasks[0].days[0]).toMatchObject({ testFailures: 2, infrastructureFailures: 1 });
  });

  test("of an earlier attempt is judged anew with the next one", async () => {
    await create({ pattern: "ECONNREFUSED" });
    await upload([{ name: "a", message: REFUSED }], { execution_key: "k" });
    const run = await upload([{ name: "a", message: "expected 1 to be 2" }], { execution_key: "k" });
    expect((await failuresOf(run)).counts).toMatchObject({ incidentFailures: 0, newFailures: 1 });
    expect((await get("/trends?days=1")).days[0]).toMatchObject({ testFailures: 1, infrastructureFailures: 0 });
  });

  test("is judged once: a rule that is deleted or created later changes nothing", async () => {
    const rule = await create({ pattern: "ECONNREFUSED" });
    const run = await upload([{ name: "a", message: REFUSED }]);
    expect((await team.call("DELETE", `/${rule.id}`)).status).toBe(204);
    expect((await failuresOf(run)).causes[0].failures[0].reason).toContain("Package registry");
    const next = await upload([{ name: "b", message: "disk quota exceeded" }]);
    await create({ pattern: "disk quota" });
    expect((await failuresOf(next)).counts).toMatchObject({ incidentFailures: 0 });
  });

  test("is matched by the rules of its own team only", async () => {
    await ask(`POST /teams/${rival.team}/infrastructure-rules`, {
      key: rival.teamKey,
      body: { name: "theirs", pattern: "ECONNREFUSED" },
    });
    const run = await upload([{ name: "a", message: REFUSED }]);
    expect((await failuresOf(run)).counts).toMatchObject({ incidentFailures: 0 });
  });
});

describe("rules", () => {
  test("are created, listed, changed and deleted", async () => {
    const first = await create({ pattern: "a b" });
    expect(first).toEqual({
      ...{ id: expect.any(String), name: "Package registry", pattern: "a b", url: null },
      ...{ createdAt: expect.any(String), updatedAt: expect.any(String) },
    });
    const second = await create({ pattern: "c" });
    expect((await team.walk("?limit=1")).map(({ id }) => id)).toEqual([first.id, second.id]);
    const patch = { pattern: "c*d", url: "https://wiki.acme.example/c" };
    expect(await team.patch(`/${second.id}`, patch)).toMatchObject(patch);
    const refused = await team.call("PATCH", `/${first.id}`, { pattern: " * " });
    expect(refused.body.error.message).toBe(
      `Cannot read "pattern": expected a text that is not blank and more than *, got " * "`,
    );
    expect(await team.get(`/${first.id}`)).toEqual(first);
    expect((await team.call("DELETE", `/${first.id}`)).status).toBe(204);
    expect((await team.call("GET", `/${first.id}`)).status).toBe(404);
    const actions = await database.pool`
      select action from audit_entry where team_id = ${acme.team} and action like 'infrastructure%' order by id desc limit 2`;
    expect(actions.map(({ action }: any) => action)).toEqual([
      "infrastructure_rule.deleted",
      "infrastructure_rule.changed",
    ]);
  });

  test("a team has at most 50, also if several requests come at the same moment", async () => {
    for (let index = 0; index < 48; index++) await create({ pattern: `x${index}` });
    const answers = await Promise.all(
      Array.from({ length: 5 }, (_, index) => team.call("POST", "", { name: "x", pattern: `y${index}` })),
    );
    expect(answers.map(({ status }: any) => status).sort()).toEqual([201, 201, 400, 400, 400]);
  });
});

describe("POST …/try", () => {
  test("returns what the rule would match in each project, and stores nothing", async () => {
    await upload([
      { name: "a", message: REFUSED },
      { name: "b", message: "expected 1 to be 2" },
    ]);
    await upload([{ name: "c", message: REFUSED }], { branch: "fork", pull_request: "7", untrusted: "true" });
    const { status, body } = await team.call("POST", "/try", { pattern: "econnrefused" });
    expect(status).toBe(200);
    const found = body.projects.find(({ projectId }: any) => projectId === project.project);
    expect(found).toMatchObject({ failures: 2, matched: 1 });
    expect(found.examples).toEqual([
      {
        ...{ executionId: expect.any(String), testCaseId: expect.any(String), taskSlug: "unit" },
        ...{ suite: "s", name: "a", file: null, message: REFUSED },
      },
    ]);
    expect(await team.list("")).toEqual([]);
  });
});
