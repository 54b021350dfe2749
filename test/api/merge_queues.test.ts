/** Builds of merge queues and merge trains: each is a build of its pull request against the base branch. */

import { beforeEach, describe, expect, test } from "bun:test";
import { type Asking, createAsking, filledLists } from "../asking.ts";
import { createHarness } from "../harness.ts";

const { ask, acme, addProject, database } = await createHarness();

let own: Asking;
beforeEach(async () => {
  own = createAsking(ask, await addProject(acme));
});

const get = (path: string) => own.get(path);
const upload = (letters: string, query: Record<string, string>) => own.upload(letters, { complete: "true", ...query });

const queue = (pullRequest: number, base = "main") =>
  `gh-readonly-queue/${base}/pr-${pullRequest}-${String(pullRequest).padStart(40, "c")}`;

describe("a build of a merge queue", () => {
  test("is compared with the last result of its base branch, whatever was in the queue before", async () => {
    await upload("fppp", { branch: "main" });
    expect(filledLists(await upload("fpff", { branch: queue(12) }))).toEqual({ stillFailing: 1, newFailures: 2 });
    expect(filledLists(await upload("fpff", { branch: queue(13) }))).toEqual({ stillFailing: 1, newFailures: 2 });
    await upload("ppfp", { branch: "develop" });
    const { stillFailing } = await upload("fpfp", { branch: queue(14, "develop") });
    expect(stillFailing).toMatchObject([{ name: "case 2" }]);
  });

  test("is a build of its pull request, and of no branch", async () => {
    const { executionId } = await upload("p", { branch: queue(12), execution_key: "4711", commit: "abcdef0" });
    const build = { branch: null, pullRequest: "12", baseBranch: "main", queueRef: queue(12), key: "4711" };
    expect(await get(`/executions/${executionId}`)).toMatchObject(build);
    expect((await get("/executions?pull_request=12")).data).toMatchObject([build]);
    for (const branch of ["main", queue(12)])
      expect((await get(`/executions?branch=${encodeURIComponent(branch)}`)).data).toEqual([]);
    const [red] = await database.pool`select count(*)::int from red_task where project_id = ${own.project}`;
    expect(red).toEqual({ count: 0 });
  });

  test("does not change the state, the trend or the open bugs of its base branch", async () => {
    await upload("ppp", { branch: "main" });
    await upload("fpp", { branch: "main" });
    const [before] = (await get("/bug-reports")).data;
    for (const letters of ["ppp", "ppp", "ppp", "ppp"]) await upload(letters, { branch: queue(12) });
    expect(await get("/state?branch=main")).toMatchObject({ state: "failed" });
    expect((await get("/bug-reports")).data).toEqual([before]);
    await upload("ppp", { branch: "main" });
    await upload("fff", { branch: queue(12) });
    expect(await get("/state?branch=main")).toMatchObject({ state: "passed" });
    const days = (await get("/trends?branch=main")).days;
    expect(days.at(-1)).toMatchObject({ executions: 3, passed: 2, failed: 1 });
  });

  test("is red and recovers as its pull request", async () => {
    const events = async () => {
      const rows = await database.pool<{ type: string; pull: string }[]>`
        select type, data #>> '{execution,pullRequest}' as pull from event
        where project_id = ${own.project} and type in ('execution.failed', 'execution.recovered') order by id`;
      return rows.map(({ type, pull }) => `${type} ${pull}`);
    };
    await upload("p", { branch: "main" });
    await upload("f", { branch: queue(12) });
    await upload("p", { branch: "main" });
    await upload("p", { branch: queue(13) });
    expect(await events()).toEqual(["execution.failed 12"]);
    await upload("p", { branch: `${queue(12)}`.replace(/c/g, "d") });
    expect(await events()).toEqual(["execution.failed 12", "execution.recovered 12"]);
  });

  test("fails with the change of a pull request in front of it: that explains nothing, in the queue or outside", async () => {
    const send = async (branch: string, more: Record<string, string> = {}, message?: string) => {
      const failure = message === undefined ? "" : `<failure message="${message}">at f (src/pay.ts:3:1)</failure>`;
      const body = `<testsuite name="s"><testcase classname="c" name="a" file="a.ts">${failure}</testcase></testsuite>`;
      return filledLists(await own.uploadReport(body, { complete: "true", branch, ...more }));
    };
    const GONE = "the session of the buyer is gone";
    await send("main");
    // Red on its own branch, and put into the queue all the same: the batch has its change.
    expect(await send("topic", { pull_request: "12" }, GONE)).toEqual({ newFailures: 1 });
    for (const number of [12, 13, 14]) expect(await send(queue(number), {}, GONE)).toEqual({ newFailures: 1 });
    expect(await send("topic", { pull_request: "12" }, GONE)).toEqual({ newFailures: 1 });
  });

  test("of several jobs is one build, and another ref with the same key another one", async () => {
    const one = await upload("p", { branch: queue(12), execution_key: "7", complete: "false" });
    const same = await upload("p", { branch: queue(12), execution_key: "7", task_slug: "u", complete: "false" });
    expect(same.executionId).toBe(one.executionId);
    for (const branch of [queue(13), "main"]) {
      const other = await upload("p", { branch, execution_key: "7", complete: "false" });
      expect(other.executionId).not.toBe(one.executionId);
      expect(other.warnings).toEqual([expect.stringContaining(`is known with branch "gh-readonly-queue/main/pr-1`)]);
    }
  });

  test("is found by the request that creates an execution, and read by a runner as its ref", async () => {
    const create = (body: unknown) => own.call("POST", "/executions", body);
    const { body: created } = await create({ key: "9", branch: queue(12), tasks: ["t"] });
    expect(created).toMatchObject({ branch: null, pullRequest: "12", baseBranch: "main", queueRef: queue(12) });
    const uploaded = await upload("p", { branch: queue(12), execution_key: "9" });
    expect(uploaded.executionId).toBe(created.id);
    await create({ key: "10", mode: "run", branch: queue(12), tasks: ["t"] });
    const body = await own.post("/leases", { runner: "r" });
    expect(body.leases).toMatchObject([{ execution: { branch: queue(12), pullRequest: "12" } }]);
  });
});

test("a build of a merge train names its base branch beside the ref, by default the default branch", async () => {
  await upload("fp", { branch: "main" });
  await upload("pf", { branch: "develop" });
  const train = "refs/merge-requests/31/train";
  const onMain = await upload("ff", { branch: train, commit: "1234567" });
  expect(onMain.stillFailing).toMatchObject([{ name: "case 0" }]);
  const ofMain = { branch: null, pullRequest: "31", baseBranch: "main", queueRef: train };
  expect(await get(`/executions/${onMain.executionId}`)).toMatchObject(ofMain);
  const onDevelop = await upload("ff", { branch: train, base_branch: "develop", commit: "89abcde" });
  expect(onDevelop.stillFailing).toMatchObject([{ name: "case 1" }]);
  expect(await get(`/executions/${onDevelop.executionId}`)).toMatchObject({ ...ofMain, baseBranch: "develop" });
});
