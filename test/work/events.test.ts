/** Events: written with what caused them, exactly once. */

import { describe, expect, test } from "bun:test";
import { expireExecutions } from "../../src/work/expire.ts";
import { countAll } from "../../src/work/count.ts";
import { createAsking, type Project } from "../asking.ts";
import { createHarness } from "../harness.ts";

const { ask, acme, addProject, database } = await createHarness();

/** The events of a project so far, oldest first. */
const eventsOf = async ({ project }: Project) =>
  await database.pool<{ type: string; data: any; depth: number }[]>`
    select type, data, depth from event where project_id = ${project} order by id`;
const typesOf = async (project: Project) => (await eventsOf(project)).map(({ type }) => type);

const fresh = async () => createAsking(ask, await addProject(acme));
type Asking = Awaited<ReturnType<typeof fresh>>;

const upload = (project: Asking, letters: string, parameters: Record<string, string> = {}) =>
  project.upload(letters, { branch: "main", task_slug: "unit", ...parameters });

describe("executions", () => {
  test("a passed one is completed, a failed one completed and failed, the first green after it recovered", async () => {
    const project = await fresh();
    for (const letters of ["pp", "pf", "pf", "pp", "pp"]) await upload(project, letters, { commit: "c1" });
    const types = (await typesOf(project)).filter((type) => type.startsWith("execution."));
    expect(types).toEqual([
      "execution.completed",
      ...["execution.completed", "execution.failed"],
      ...["execution.completed", "execution.failed"],
      ...["execution.completed", "execution.recovered"],
      "execution.completed",
    ]);
    const failed = (await eventsOf(project)).find(({ type }) => type === "execution.failed")!;
    const outcome = { status: "failed", branch: "main", commit: "c1", failed: 1, total: 2 };
    expect(failed.data.execution).toMatchObject(outcome);
    expect(failed.data.execution.tasks).toEqual([
      { slug: "unit", status: "failed", passed: 1, failed: 1, skipped: 0, verdict: "failed" },
    ]);
  });

  test("a rerun recovers its branch where it repeats the newest build, and not where it repeats an older one", async () => {
    const project = await fresh();
    const rerun = async (id: string, letters: string) => {
      const rerun = await project.post(`/executions/${id}/rerun`);
      await upload(project, letters, { execution_id: rerun.id });
    };
    const last = async () => (await typesOf(project)).at(-1);
    const { executionId: old } = await upload(project, "f");
    const { executionId: red } = await upload(project, "f");
    await rerun(old, "p");
    expect(await last()).toBe("execution.completed");
    await rerun(red, "p");
    expect(await last()).toBe("execution.recovered");
    await rerun(old, "f");
    await upload(project, "p");
    expect(await last()).toBe("execution.completed");
  });

  test("a task that comes after the end of its build joins it, and what failed in it is told", async () => {
    const project = await fresh();
    const build = (letters: string, task: string) =>
      upload(project, letters, { execution_key: "7", task_slug: task, complete: "true" });
    await build("p", "unit");
    await build("p", "lint");
    const ofExecution = (await typesOf(project)).filter((type) => type.startsWith("execution."));
    expect(ofExecution).toEqual(["execution.completed", "execution.changed"]);
    const { warnings } = await build("pf", "e2e");
    expect(warnings).toEqual(['The execution had ended before this upload, as "passed": this task is added to it']);
    const told = await eventsOf(project);
    expect(told.slice(-2).map(({ type }) => type)).toEqual(["execution.completed", "execution.failed"]);
    expect(told.at(-1)!.data.execution).toMatchObject({ status: "failed", passed: 3, failed: 1, taskCount: 3 });
    await build("p", "e2e");
    expect((await typesOf(project)).filter((type) => type === "execution.failed")).toHaveLength(1);
  });

  test("ten greens at once after a red recover once", async () => {
    const project = await fresh();
    await upload(project, "f");
    await Promise.all(Array.from({ length: 10 }, () => upload(project, "p")));
    expect((await typesOf(project)).filter((type) => type === "execution.recovered")).toHaveLength(1);
  });

  test("a run is announced at each attempt, and what comes after the end of its execution is not", async () => {
    const project = await fresh();
    await upload(project, "f", { execution_key: "b1" });
    await upload(project, "p", { execution_key: "b1" });
    await upload(project, "p", { execution_key: "b1", complete: "true", task_slug: "other" });
    const before = await eventsOf(project);
    expect(before.map(({ type, data }) => [type, data.testRun?.attempt, data.testRun?.verdict])).toEqual([
      ["bug_report.opened", undefined, undefined],
      ["test_run.completed", 1, "failed"],
      ["test_run.completed", 2, "passed"],
      ["test_run.completed", 1, "passed"],
      ["execution.completed", undefined, undefined],
    ]);
    await upload(project, "f", { execution_key: "b1" });
    const after = (await eventsOf(project)).filter(({ type }) => type !== "test_case.became_flaky");
    expect(after).toEqual(before);
  });

  test("a cancelled one has changed, one whose time is over has failed", async () => {
    const project = await fresh();
    const create = async () => (await project.post("/executions", { tasks: ["unit"], branch: "main" })).id;
    await project.post(`/executions/${await create()}/cancel`);
    expect(await typesOf(project)).toEqual(["execution.changed"]);
    await database.pool`update execution set expires_at = now() - interval '1 second' where project_id = ${project.project} and id = ${await create()}`;
    await expireExecutions(database);
    expect((await typesOf(project)).slice(1)).toEqual(["execution.completed", "execution.failed"]);
    await upload(project, "p");
    expect((await typesOf(project)).at(-1)).toBe("execution.recovered");
  });

  test("neither an upload that is refused nor sample data tells of anything", async () => {
    const project = await fresh();
    expect((await project.send("<nothing/>")).status).toBe(400);
    await project.post("/onboarding/sample-data");
    await countAll(database);
    expect(await typesOf(project)).toEqual([]);
  });
});

describe("bug reports", () => {
  test("are opened, resolved by three clean runs, and regress, each told once", async () => {
    const project = await fresh();
    for (const letters of ["f", "f", "p", "p", "p"]) await upload(project, letters);
    await Promise.all(Array.from({ length: 8 }, () => upload(project, "f")));
    const events = (await eventsOf(project)).filter(({ type }) => type.startsWith("bug_report."));
    const types = ["opened", "resolved", "regressed"].map((what) => `bug_report.${what}`);
    expect(events.map(({ type }) => type)).toEqual(types);
    expect(events[0]!.data.bugReport).toMatchObject({
      ...{ number: 1, status: "open", severity: "major", taskSlugs: ["unit"], branch: "main" },
    });
    expect(events[1]!.data.bugReport).toMatchObject({ status: "resolved" });
  });

  test("opened and resolved by hand are told as well, other changes are not", async () => {
    const project = await fresh();
    const { id } = await project.post("/bug-reports", { title: "by hand" });
    const changes = [{ severity: "minor" }, { status: "in_progress" }, { status: "resolved" }, { status: "resolved" }];
    for (const change of changes) await project.patch(`/bug-reports/${id}`, change);
    expect(await typesOf(project)).toEqual(["bug_report.opened", "bug_report.resolved"]);
  });
});

describe("test cases", () => {
  test("become flaky once and recover with the twentieth clean result", async () => {
    const project = await fresh();
    await upload(project, "pp");
    for (const letters of ["fp", "pp"]) await upload(project, letters, { execution_key: "b1" });
    for (const letters of ["fp", "pp"]) await upload(project, letters, { execution_key: "b2" });
    await countAll(database);
    const told = async () => (await eventsOf(project)).filter(({ type }) => type.startsWith("test_case."));
    expect((await told()).map(({ type, data }) => [type, data.testCase.name])).toEqual([
      ["test_case.became_flaky", "case 0"],
    ]);
    for (let run = 0; run < 20; run++) {
      await countAll(database);
      expect(await told()).toHaveLength(1);
      await upload(project, "pp");
    }
    await countAll(database);
    expect((await told()).map(({ type }) => type)).toEqual(["test_case.became_flaky", "test_case.recovered"]);
    expect((await project.list("/test-cases"))[0].health).toBe("healthy");
  });
});

describe("POST …/executions/{executionId}/rerun", () => {
  test("asks for the failed tasks again, in an execution linked to the first", async () => {
    const project = await fresh();
    const parameters = { execution_key: "b1", commit: "c1" };
    await upload(project, "f", parameters);
    const { executionId } = await upload(project, "p", { ...parameters, task_slug: "lint", complete: "true" });
    const rerun = await project.post(`/executions/${executionId}/rerun`, { failedOnly: true });
    expect(rerun).toMatchObject({
      ...{ status: "queued", rerunOf: executionId, trigger: "rerun", branch: "main", commit: "c1" },
      tasks: [{ slug: "unit" }],
    });
    expect((await project.post(`/executions/${executionId}/rerun`)).tasks).toHaveLength(2);
    expect((await upload(project, "p", { execution_id: rerun.id })).verdict).toBe("passed");
    expect((await project.get(`/executions/${rerun.id}`)).status).toBe("passed");
    const again = await project.call("POST", `/executions/${rerun.id}/rerun`, { failedOnly: true });
    const message = "Cannot rerun the execution: none of its tasks failed";
    expect(again).toMatchObject({ status: 400, body: { error: { message } } });
  });
});
