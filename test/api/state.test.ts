import { describe, expect, test } from "bun:test";
import { type Asking, createAsking } from "../asking.ts";
import { createHarness, junit } from "../harness.ts";
import { expireExecutions } from "../../src/work/expire.ts";

const { ask, acme, addProject, database } = await createHarness();

type Place = Asking;
const fresh = async () => createAsking(ask, await addProject(acme));

const upload = async (place: Place, letters: string, query: string): Promise<string> =>
  (await place.upload(letters, query)).executionId;
const stateOf = (place: Place, branch?: string) =>
  place.get(`/state${branch === undefined ? "" : `?branch=${encodeURIComponent(branch)}`}`);
const post = (place: Place, path: string, body?: unknown) => place.post(path, body);
const executionOf = (place: Place, id: string) => place.get(`/executions/${id}`);

/** All that has waited for reports is out of time. */
const expire = async ({ project }: Place) => {
  await database.pool`update execution set expires_at = now() - interval '1 minute'
    where project_id = ${project} and expires_at is not null`;
  await expireExecutions(database);
};

describe("GET /projects/:projectId/state", () => {
  test("knows nothing of a branch without results", async () => {
    const place = await fresh();
    const nothing = { state: null, since: null, executionId: null, tasks: [], missing: [] };
    expect(await stateOf(place)).toEqual({ branch: "main", ...nothing });
    await upload(place, "f", "task_slug=unit&branch=fix&complete=true");
    expect(await stateOf(place)).toEqual({ branch: "main", ...nothing });
    expect(await stateOf(place, "fix")).toMatchObject({ branch: "fix", state: "failed" });
    expect(await stateOf(place, "nowhere")).toEqual({ branch: "nowhere", ...nothing });
  });

  test("is red while the newest result of one task is, whatever other tasks do in builds of their own", async () => {
    const place = await fresh();
    const e2e = "task_slug=e2e&branch=main&complete=true";
    const unit = "task_slug=unit&branch=main&complete=true";
    await upload(place, "pp", e2e);
    const began = await upload(place, "fp", e2e);
    await upload(place, "ppp", unit);
    const last = await upload(place, "ff", e2e);
    const green = await upload(place, "pppp", unit);
    const state = await stateOf(place);
    const { completedAt } = await executionOf(place, began);
    expect(state).toMatchObject({ state: "failed", since: completedAt, executionId: began });
    expect(state.tasks).toMatchObject([
      { slug: "e2e", status: "failed", executionId: began, lastExecutionId: last, passed: 0, failed: 2 },
      { slug: "unit", status: "passed", lastExecutionId: green, passed: 4, failed: 0 },
    ]);
    const mended = await upload(place, "pp", e2e);
    expect(await stateOf(place)).toMatchObject({ state: "passed", executionId: mended });
  });

  test("counts what names no branch as the default branch, and as no other one", async () => {
    const place = await fresh();
    await upload(place, "f", "task_slug=unit&complete=true");
    expect(await stateOf(place)).toMatchObject({ branch: "main", state: "failed" });
    expect(await stateOf(place, "fix")).toMatchObject({ state: null });
  });

  test("does not know of a fork's pull request, though its branch has the name of the default one", async () => {
    const place = await fresh();
    await upload(place, "pp", "task_slug=unit&branch=main&complete=true");
    const fork = "task_slug=unit&branch=main&pull_request=12&commit=abcdef1&complete=true";
    for (let push = 0; push < 6; push++) await upload(place, "fp", fork);
    expect(await stateOf(place)).toMatchObject({ state: "passed", tasks: [{ failed: 0 }] });
    const { data } = await place.get("/test-cases");
    // Neither broken nor flaky on the default branch, and no bug of it.
    expect(data).toMatchObject([{ failures: 6, flaky: null }, { failures: 0 }]);
    expect(data[0].health).not.toBe("broken");
    const bugs = await place.list("/bug-reports");
    expect(bugs).toEqual([]);
    const next = await upload(place, "fp", "task_slug=unit&branch=main&complete=true");
    const comparison = (await place.call("GET", `/executions/${next}/comparison`)).body;
    expect(comparison.newFailures).toHaveLength(1);
    expect(await stateOf(place)).toMatchObject({ state: "failed", executionId: next });
    await upload(place, "pp", fork);
    const events =
      await database.pool`select type from event where project_id = ${place.project} order by id desc limit 1`;
    expect(events[0]).toEqual({ type: "execution.recovered" });
    expect(await stateOf(place)).toMatchObject({ state: "failed", executionId: next });
  });

  test("follows the order in which the branch saw its commits, whenever they are built again", async () => {
    const place = await fresh();
    const build = (task: string, commit: string, letters: string) =>
      upload(place, letters, `task_slug=${task}&branch=main&commit=${commit}&complete=true`);
    await build("unit", "aaaaaaa1", "ffff");
    await build("unit", "bbbbbbb2", "pppp");
    // The job of a week ago, once more.
    await build("unit", "AAAAAAA1", "ffff");
    expect(await stateOf(place)).toMatchObject({ state: "passed" });
    // A slow task of the older commit is the newest result of that task.
    await build("e2e", "aaaaaaa1", "ffff");
    expect(await stateOf(place)).toMatchObject({ state: "failed", tasks: [{ slug: "e2e" }, { slug: "unit" }] });
    await build("e2e", "bbbbbbb2", "pppp");
    await build("e2e", "aaaaaaa1", "ffff");
    expect(await stateOf(place)).toMatchObject({ state: "passed" });
    // Built again without a new commit, the last one counts.
    await build("unit", "bbbbbbb2", "ffff");
    expect(await stateOf(place)).toMatchObject({ state: "failed", tasks: [{ slug: "unit" }, { slug: "e2e" }] });
  });

  test("old commits that are built again neither mend what is broken nor bring a bug back", async () => {
    const place = await fresh();
    const build = (commit: number, letters: string) =>
      upload(place, letters, `task_slug=unit&branch=main&commit=abcdef${commit}&complete=true`);
    const one = async () => (await place.list("/test-cases"))[0];
    await build(0, "pppp");
    for (let commit = 1; commit < 5; commit++) await build(commit, "fppp");
    await build(0, "pppp");
    await one();
    await build(5, "fppp");
    expect(await one()).toMatchObject({ health: "broken" });
    const bug = async () => (await place.list("/bug-reports"))[0];
    for (let commit = 6; commit < 9; commit++) await build(commit, "pppp");
    expect(await bug()).toMatchObject({ status: "resolved" });
    await build(3, "fppp");
    expect(await bug()).toMatchObject({ status: "resolved" });
    await build(9, "fppp");
    expect(await bug()).toMatchObject({ status: "open" });
  });

  test("knows a task by its result before the other tasks of its build have reported, and one that never did as red", async () => {
    const place = await fresh();
    const { id } = await post(place, "/executions", { tasks: ["unit", "e2e"], branch: "main" });
    expect(await stateOf(place)).toMatchObject({ state: null });
    await upload(place, "p", `task_slug=unit&execution_id=${id}`);
    expect(await stateOf(place)).toMatchObject({ state: "passed", tasks: [{ slug: "unit" }] });
    await expire(place);
    expect(await stateOf(place)).toMatchObject({
      state: "failed",
      executionId: id,
      tasks: [{ slug: "e2e", status: "timed_out" }, { slug: "unit" }],
    });
  });

  test("is that of another branch where that becomes the default", async () => {
    const place = await fresh();
    await upload(place, "f", "task_slug=unit&branch=develop&complete=true");
    await place.patch("", { defaultBranch: "develop" });
    expect(await stateOf(place)).toMatchObject({ branch: "develop", state: "failed" });
  });

  test("follows the order in which builds began, not that in which they are told", async () => {
    const place = await fresh();
    await upload(place, "p", "task_slug=unit&branch=main&complete=true");
    await upload(place, "f", "task_slug=unit&branch=main&complete=true&completed_at=2026-01-01T00:00:00Z");
    expect(await stateOf(place)).toMatchObject({ state: "passed" });
  });

  test("says that it may be red for longer, if all 200 executions that are read are", async () => {
    const place = await fresh();
    const fail = () => upload(place, "f", "task_slug=unit&branch=main&complete=true");
    await fail();
    expect(await stateOf(place)).not.toHaveProperty("isLonger");
    for (let part = 0; part < 4; part++) await Promise.all(Array.from({ length: 50 }, fail));
    expect(await stateOf(place)).toMatchObject({ state: "failed", isLonger: true, tasks: [{ isLonger: true }] });
  });
});

describe("a rerun", () => {
  const unit = "task_slug=unit&branch=main&complete=true";

  test("that passes makes the build that it repeats green, and is no build of its own", async () => {
    const place = await fresh();
    await upload(place, "ppp", unit);
    const red = await upload(place, "fpp", unit);
    const { id } = await post(place, `/executions/${red}/rerun`, { failedOnly: true });
    expect(await stateOf(place)).toMatchObject({ state: "failed", executionId: red });
    expect((await executionOf(place, red)).repeatedStatus).toBeNull();
    await upload(place, "p", `task_slug=unit&execution_id=${id}`);
    expect(await stateOf(place)).toMatchObject({ state: "passed", tasks: [{ slug: "unit", lastExecutionId: id }] });
    expect(await executionOf(place, red)).toMatchObject({ status: "failed", repeatedStatus: "passed" });
    expect(await executionOf(place, id)).toMatchObject({ status: "passed", repeatedStatus: null, rerunOf: red });
    const { days } = await place.get("/trends?days=2&branch=main");
    expect(days.at(-1)).toMatchObject({ executions: 2, runs: 2, passed: 2, failed: 0 });
    const mine = await place.post("/test-runs?task_slug=unit&branch=x&complete=true", junit("ppp"));
    // What has results of a part only is nobody's baseline.
    expect((await executionOf(place, mine.executionId)).baselineId).toBe(red);
  });

  test("of a rerun is a part of the first build, and one that is deleted counts no more", async () => {
    const place = await fresh();
    const red = await upload(place, "fpp", unit);
    const { id: first } = await post(place, `/executions/${red}/rerun`, { failedOnly: true });
    await upload(place, "f", `task_slug=unit&execution_id=${first}`);
    const { id: second } = await post(place, `/executions/${first}/rerun`, { failedOnly: true });
    await upload(place, "p", `task_slug=unit&execution_id=${second}`);
    expect(await executionOf(place, red)).toMatchObject({ repeatedStatus: "passed" });
    expect(await stateOf(place)).toMatchObject({ state: "passed" });
    await place.call("DELETE", `/executions/${second}`);
    expect(await executionOf(place, red)).toMatchObject({ repeatedStatus: null });
    expect(await stateOf(place)).toMatchObject({ state: "failed", executionId: red });
    await place.call("DELETE", `/executions/${red}`);
    expect(await stateOf(place)).toMatchObject({ state: null });
  });

  test("that fails makes a green build red", async () => {
    const place = await fresh();
    const green = await upload(place, "ppp", unit);
    const { id } = await post(place, `/executions/${green}/rerun`, {});
    await upload(place, "fpp", `task_slug=unit&execution_id=${id}`);
    expect(await stateOf(place)).toMatchObject({ state: "failed", executionId: green });
    expect(await executionOf(place, green)).toMatchObject({ status: "passed", repeatedStatus: "failed" });
  });

  test("that nobody answers is cancelled, and changes nothing", async () => {
    const place = await fresh();
    const green = await upload(place, "ppp", unit);
    const { id } = await post(place, `/executions/${green}/rerun`, {});
    await expire(place);
    expect(await executionOf(place, id)).toMatchObject({
      status: "cancelled",
      verdict: null,
      tasks: [{ status: "cancelled", reason: "No report arrived within 30 minutes" }],
    });
    expect(await stateOf(place)).toMatchObject({ state: "passed", executionId: green });
    expect(await executionOf(place, green)).toMatchObject({ repeatedStatus: null });
    const { count } = (
      await database.pool`select count(*)::int as count from event where project_id = ${place.project} and type = 'execution.failed'`
    )[0]!;
    expect(count).toBe(0);
  });

  test("of which one task is answered counts for that task", async () => {
    const place = await fresh();
    const build = await upload(place, "fp", "task_slug=unit&branch=main&execution_key=7");
    await upload(place, "f", "task_slug=e2e&branch=main&execution_key=7&complete=true");
    const { id } = await post(place, `/executions/${build}/rerun`, { failedOnly: true });
    await upload(place, "p", `task_slug=unit&execution_id=${id}`);
    await expire(place);
    expect(await executionOf(place, id)).toMatchObject({ status: "passed" });
    expect(await executionOf(place, build)).toMatchObject({ status: "failed", repeatedStatus: null });
    expect(await stateOf(place)).toMatchObject({
      state: "failed",
      tasks: [
        { slug: "e2e", status: "failed" },
        { slug: "unit", status: "passed" },
      ],
    });
  });

  test("of an old build does not move the state of what was built since", async () => {
    const place = await fresh();
    const old = await upload(place, "ppp", unit);
    await upload(place, "fpp", unit);
    const { id } = await post(place, `/executions/${old}/rerun`, {});
    await upload(place, "ppp", `task_slug=unit&execution_id=${id}`);
    expect(await stateOf(place)).toMatchObject({ state: "failed" });
  });
});
