/** Probes of a real repository by `assay runner`, and what they leave unchanged. */

import { describe, expect, test } from "bun:test";
import { createAsking } from "../asking.ts";
import { createHarness, junit, until } from "../harness.ts";
import { createProbedRepository, startProbeRunner } from "../probing.ts";
import {
  cancelProbes,
  countFreeRunners,
  createProbes,
  refuseUnlessProbeable,
} from "../../src/operations/probes/probes.ts";
import { selectProbes } from "../../src/store/probes.ts";

const { url, ask, acme, database, addProject } = await createHarness();
const { pool, begin } = database;

const fresh = async () => createAsking(ask, await addProject(acme));
type Project = Awaited<ReturnType<typeof fresh>>;

/** A build of the default branch that a CI system reports: the test cases become known. */
async function report(project: Project, commit: string): Promise<{ testCaseId: string }> {
  const body = `<testsuite name="cart"><testcase classname="cart" name="adds"/><testcase classname="cart" name="prints"/></testsuite>`;
  await project.send(body, { task_slug: "unit", branch: "main", commit });
  const [{ id }] = await project.list("/test-cases?q=adds");
  return { testCaseId: id };
}

const create = (project: Project, testCaseId: string, commits: readonly string[], owner: { verificationId: string }) =>
  begin((sql) => createProbes(sql, project.project, { testCaseId, taskSlug: "unit", commits, owner, now: new Date() }));

const owner = () => ({ verificationId: crypto.randomUUID() });

describe("probes", () => {
  test("run one test case at each commit, with its log, and say how it ended", async () => {
    const project = await fresh();
    const repository = await createProbedRepository([
      { test: "exit 0" },
      { test: "echo too little; exit 1" },
      { test: "exit 0", builds: false },
      { test: "exit 77" },
      { test: "touch crash; exit 0" },
    ]);
    const [good, bad, broken, skipping, crashing] = repository.commits as [string, string, string, string, string];
    const { testCaseId } = await report(project, good);
    const mine = owner();
    const unknown = "1234567890123456789012345678901234567890";
    const tasks = { unit: repository.task };
    const runner = await startProbeRunner({ url, project, tasks, args: ["--concurrency", "2"] });
    await until(async () => (await countFreeRunners(pool, project.project, "unit")) > 0);
    // A test that passed says nothing where its command was ended.
    const commits = [good, bad, broken, skipping, unknown, crashing];
    const ids = await create(project, testCaseId, commits, mine);
    await until(async () => (await selectProbes(pool, project.project, mine)).every(({ endedAt }) => endedAt), 30);
    const probes = await selectProbes(pool, project.project, mine);
    expect(probes.map(({ executionId, commit, result }) => [executionId, commit, result])).toEqual(
      ["passed", "failed", "no_build", "no_result", "no_build", "no_result"].map((result, at) => [
        ids[at]!,
        commits[at]!,
        result,
      ]),
    );
    const failure =
      await pool`select cause from case_detail where project_id = ${project.project} and message = 'too little'`;
    expect(probes.map(({ fingerprint }) => fingerprint)).toEqual([null, failure[0]!["cause"], null, null, null, null]);

    const shown = await project.get(`/executions/${ids[1]}`);
    expect(shown).toMatchObject({
      ...{ status: "failed", trigger: "probe", commit: bad, untrusted: false, passed: 0, failed: 1 },
      probe: { testCase: { testCaseId, name: "adds" }, result: "failed", ...mine, culpritSearchId: null },
    });
    const { text } = await project.get(`/executions/${ids[1]}/test-runs/unit/log`);
    expect(text).toContain("[assay] The test case runs alone");
    expect(await project.get(`/executions/${ids[2]}/test-runs/unit/log`)).toMatchObject({ text: "broken\n" });
    expect(await runner.stop()).toBe(0);
  });

  test("are in no list unless it asks for them, and counted nowhere", async () => {
    const project = await fresh();
    const repository = await createProbedRepository([{ test: "echo too little; exit 1" }]);
    const [commit] = repository.commits as [string];
    const { testCaseId } = await report(project, commit);
    const paths = ["/test-runs", "/test-cases", `/test-cases/${testCaseId}`, `/test-cases/${testCaseId}/results`];
    const others = [...paths, "/bug-reports", "/events", "/state", "/trends"];
    const all = async () => ({
      executions: (await project.get("/executions")).data.map(({ id }: { id: string }) => id),
      others: await Promise.all(others.map((path) => project.get(path))),
    });
    const before = await all();
    const runner = await startProbeRunner({ url, project, tasks: { unit: repository.task } });
    const mine = owner();
    const ids = await create(project, testCaseId, [commit, commit], mine);
    await until(async () => (await selectProbes(pool, project.project, mine)).every(({ endedAt }) => endedAt), 30);
    expect(await all()).toEqual(before);
    const listed = await project.get("/executions?probe=true");
    expect(listed.data.map(({ id }: { id: string }) => id)).toEqual(ids.toReversed());
    const rerun = await project.call("POST", `/executions/${ids[0]}/rerun`, {});
    expect([rerun.status, rerun.body.error.message]).toEqual([400, "Cannot rerun the execution: it is a probe"]);
    await runner.stop();
  });

  test("wait behind other tasks, and only for runners that take probes of their task", async () => {
    const project = await fresh();
    const { testCaseId } = await report(project, "abcdef1");
    const sync = (more: object) => project.post("/leases", { runner: "r", ...more });
    await expect(refuseUnlessProbeable(pool, project.project, "unit")).rejects.toThrow(
      `Cannot run the test case alone: no runner that was seen within the last hour has "checkout" with "git", and "rerun", for the task "unit" in its assay.yaml`,
    );
    const [probe] = await create(project, testCaseId, ["abcdef1"], owner());
    expect((await sync({ taskSlugs: ["unit"] })).leases).toEqual([]);
    const { id } = await project.post("/executions", { mode: "run", tasks: ["unit"] });
    const { leases } = await sync({ taskSlugs: ["unit"], probeSlugs: ["unit"], free: 2 });
    expect(leases.map(({ execution, probe, only }: any) => [execution.id, probe, only])).toEqual([
      [id, undefined, undefined],
      [probe, true, [{ suite: "cart", name: "adds", file: null }]],
    ]);
    await refuseUnlessProbeable(pool, project.project, "unit");
  });

  test("end without a result when they are cancelled", async () => {
    const project = await fresh();
    const { testCaseId } = await report(project, "abcdef1");
    const mine = owner();
    const ids = await create(project, testCaseId, ["abcdef1", "abcdef1"], mine);
    await project.post(`/executions/${ids[0]}/cancel`);
    const results = async () => (await selectProbes(pool, project.project, mine)).map(({ result }) => result);
    expect(await results()).toEqual(["no_result", null]);
    await begin((sql) => cancelProbes(sql, project.project, mine, "Enough"));
    expect(await results()).toEqual(["no_result", "no_result"]);
    const ended = { status: "cancelled", tasks: [{ reason: "Enough" }] };
    expect(await project.get(`/executions/${ids[1]}`)).toMatchObject(ended);
  });

  test("run as the task was run before: with its labels, environment and concurrency group", async () => {
    const project = await fresh();
    const { testCaseId } = await report(project, "abcdef1");
    await ask(`POST /teams/${acme.team}/environments`, { key: acme.teamKey, body: { slug: "staging" } });
    const task = { slug: "unit", labels: ["linux"], concurrencyGroup: "database", timeoutSeconds: 77 };
    const body = { mode: "run", tasks: [task], environment: "staging" };
    await project.post("/executions", body);
    const given = { runner: "r", labels: ["linux"], probeSlugs: ["unit"], free: 2 };
    const sync = async (more: object) => (await project.post("/leases", { ...given, ...more })).leases;
    const [first] = await sync({});
    await create(project, testCaseId, ["abcdef1"], owner());
    // The task that runs holds the group.
    expect(await sync({ held: [{ id: first.id }] })).toEqual([]);
    await project.call("POST", `/test-runs?lease_id=${first.id}`, junit("p"));
    expect(await sync({ labels: [] })).toEqual([]);
    expect(await sync({})).toMatchObject([{ probe: true, timeoutSeconds: 77, execution: { environment: "staging" } }]);
  });
});
