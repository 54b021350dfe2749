/** Results that took longer than usual: what answers say of them, and what confirms them. */

import { describe, expect, test } from "bun:test";
import { type Asking, createAsking } from "../asking.ts";
import { countAll } from "../../src/work/count.ts";
import { createHarness } from "../harness.ts";

const { ask, acme, addProject, database } = await createHarness();

type Project = Asking;
type Durations = Record<string, number | "failed">;

/** Durations in seconds. */
const toReport = (durations: Durations): string =>
  `<testsuite name="cart">${Object.entries(durations)
    .map(([name, seconds]) =>
      seconds === "failed"
        ? `<testcase name="${name}" time="9"><failure message="boom"/></testcase>`
        : `<testcase name="${name}" time="${seconds}"/>`,
    )
    .join("")}</testsuite>`;

let builds = 0;

/** Each upload is a build of its own, unless `query` names one. */
async function upload(project: Project, durations: Durations, query: Record<string, string> = {}) {
  builds++;
  const body = await project.uploadReport(toReport(durations), {
    ...{ task_slug: "unit", execution_key: `${builds}`, commit: Bun.SHA1.hash(`${builds}`, "hex") },
    ...{ branch: "main", complete: "true", ...query },
  });
  await countAll(database);
  return body;
}

const usual = (build: number): Durations => ({ adds: 0.8 + (build % 5) / 20, sums: 0.02 });

/** Twelve builds of the default branch in which "adds" takes 0.8 to 1.0 s, and "sums" 20 ms. */
async function createProject(): Promise<Project> {
  const mine = createAsking(ask, await addProject(acme));
  for (let build = 1; build <= 12; build++)
    expect(await upload(mine, usual(build))).toMatchObject({ slower: null, slowerTests: [] });
  return mine;
}

const ADDS = { suite: "cart", name: "adds", usualMs: 900, longestMs: 1_000 };
const read = (project: Project, path: string) => project.get(`/${path}`);

describe("slower than usual", () => {
  test("is a test case in the second build of the default branch, and its run", async () => {
    const mine = await createProject();
    const first = await upload(mine, { ...usual(1), adds: 6.2 });
    expect(first).toMatchObject({ verdict: "passed", slower: null, slowerTests: [] });
    const second = await upload(mine, { ...usual(2), adds: 6.4, sums: 1.5 });
    expect(second).toMatchObject({
      ...{ verdict: "passed", status: "passed", slowerTests: [{ ...ADDS, durationMs: 6_400 }] },
      slower: { usualMs: 920, longestMs: 1_020 },
    });
    const { executionId } = second;
    expect(await read(mine, `executions/${executionId}/test-runs/unit`)).toMatchObject({
      ...{ slower: second.slower, slowerTests: second.slowerTests },
    });
    expect(await read(mine, `executions/${executionId}`)).toMatchObject({
      ...{ status: "passed", tasks: [{ slug: "unit", slower: second.slower }] },
    });
    expect(await read(mine, `executions/${executionId}/comparison`)).toMatchObject({
      ...{ counts: { slower: 1 }, slower: second.slowerTests },
    });
  });

  test("is said in one line of text", async () => {
    const mine = await createProject();
    await upload(mine, { adds: 6.2, sums: 2 });
    const parameters = "task_slug=unit&branch=main&commit=abcdef1&execution_key=text&complete=true";
    const { text } = await ask(`POST /projects/${mine.project}/test-runs?${parameters}`, {
      ...{ key: mine.key, body: toReport({ adds: 6.4, sums: 2 }), headers: { accept: "text/plain" } },
    });
    const [run, slower, ...rest] = text.split("\n");
    expect(run).toStartWith("PASSED unit: 2 passed, 0 failed, 0 skipped, attempt 1 ");
    expect(slower).toBe("Slower than usual: cart > adds (6.4 s, usually 900 ms) and 1 more");
    expect(rest).toEqual([""]);
  });

  test("is a test case on a branch in the second build of that branch", async () => {
    const mine = await createProject();
    const onBranch = (branch: string, adds: Durations["adds"] = 6.2) => upload(mine, { ...usual(3), adds }, { branch });
    expect(await onBranch("topic")).toMatchObject({ slowerTests: [], slower: null });
    // A pause in one build of each branch is no slowdown.
    expect(await onBranch("other")).toMatchObject({ slowerTests: [], slower: null });
    const second = await onBranch("topic");
    expect(second).toMatchObject({ slowerTests: [{ ...ADDS, durationMs: 6_200 }], slower: { usualMs: 920 } });
    // What branches took is not what is usual.
    expect(await onBranch("topic", 0.9)).toMatchObject({ slowerTests: [], slower: null });
    expect(await onBranch("topic", 6)).toMatchObject({ slowerTests: [{ ...ADDS, durationMs: 6_000 }] });
  });

  test("a pull request is judged by its own builds, whatever its branch is called", async () => {
    const mine = await createProject();
    const ofPull = (pull_request: string) => upload(mine, { adds: 6.2 }, { branch: "main", pull_request });
    expect(await ofPull("7")).toMatchObject({ slowerTests: [] });
    expect(await ofPull("8")).toMatchObject({ slowerTests: [] });
    expect(await ofPull("7")).toMatchObject({ slowerTests: [ADDS] });
  });

  test("an untrusted build is compared with untrusted builds and changes nothing else", async () => {
    const mine = await createProject();
    const fork = { branch: "patch-1", pull_request: "9", untrusted: "true" };
    await upload(mine, { ...usual(1), adds: 6.2 }, fork);
    expect(await upload(mine, { ...usual(1), adds: 6.2 }, fork)).toMatchObject({ slowerTests: [ADDS] });
    expect(await upload(mine, { ...usual(1), adds: 6.2 }, { branch: "patch-1", pull_request: "9" })).toMatchObject({
      slowerTests: [],
    });
  });

  test("is taken back by a further attempt of the run that is quick", async () => {
    const mine = await createProject();
    await upload(mine, { ...usual(1), adds: 6.2 });
    const build = { execution_key: "again", commit: "0123456", complete: "false" };
    const first = await upload(mine, { ...usual(1), adds: 6.2 }, build);
    expect(first.slowerTests).toMatchObject([ADDS]);
    const { executionId } = await upload(mine, { adds: 0.9 }, build);
    expect((await read(mine, `executions/${executionId}/test-runs/unit`)).slowerTests).toEqual([]);
  });

  test("the same report again is answered with the same tests", async () => {
    const mine = await createProject();
    await upload(mine, { ...usual(1), adds: 6.2 });
    const { executionId, slowerTests } = await upload(mine, { adds: 6.5 });
    const parameters = `task_slug=unit&execution_id=${executionId}`;
    const { status, body } = await ask(`POST /projects/${mine.project}/test-runs?${parameters}`, {
      ...{ key: mine.key, body: toReport({ adds: 6.5 }) },
    });
    expect({ status, slowerTests: body.slowerTests }).toEqual({ status: 200, slowerTests });
    expect(slowerTests).toHaveLength(1);
  });

  test("goes with its execution", async () => {
    const mine = await createProject();
    await upload(mine, { adds: 6.2 });
    const { executionId } = await upload(mine, { adds: 6.2 });
    const stored = async () =>
      (await database.pool`select from slower_result where project_id = ${mine.project}`).length;
    expect(await stored()).toBe(1);
    await mine.call("DELETE", `/executions/${executionId}`);
    expect(await stored()).toBe(0);
  });
});
