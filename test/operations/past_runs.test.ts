/** What an upload with `completed_at` in the past dates, and what it leaves to newer runs. */

import { beforeEach, describe, expect, test } from "bun:test";
import { createAsking } from "../asking.ts";
import { createHarness } from "../harness.ts";

const { ask, acme, addProject, database } = await createHarness();

let project: ReturnType<typeof createAsking>;
beforeEach(async () => {
  project = createAsking(ask, await addProject(acme));
});

const DAY = 86_400_000;
const daysAgo = (days: number) => new Date(Date.now() - days * DAY).toISOString();

const upload = (letters: string, query = "") => project.upload(letters, query);
const at = (time: string, query = "") => `completed_at=${time}&${query}`;
const get = (path: string) => project.get(path);
const execution = (id: string) => get(`/executions/${id}`);
const one = async () => (await project.list("/test-cases?limit=100"))[0];
const history = async () => await project.list(`/test-cases/${(await one()).id}/results`);

describe("the execution that the upload makes", () => {
  test("alone began and ended then, and takes its place among the others", async () => {
    const time = daysAgo(40);
    const recent = await upload("p", "branch=main&commit=b");
    const old = await upload("p", at(time, "branch=main&commit=a"));
    const when = { startedAt: time, completedAt: time };
    expect(await execution(old.executionId)).toMatchObject({ createdAt: time, ...when, tasks: [when] });
    const ids = async (query = "") => (await project.list(`/executions${query}`)).map(({ id }) => id);
    expect(await ids()).toEqual([recent.executionId, old.executionId]);
    expect(await ids(`?created_before=${daysAgo(30)}`)).toEqual([old.executionId]);
    // What is measured by the branch is measured by its newest run, not by what was sent last.
    const { executionId } = await upload("p", "branch=x");
    expect(await get(`/executions/${executionId}/comparison`)).toMatchObject({ baselineId: recent.executionId });
  });

  test("with others lasts from the first of its runs to the last, in whichever order they come", async () => {
    const [early, middle, late] = [daysAgo(3), daysAgo(2), daysAgo(1)];
    const query = "execution_key=build";
    const send = (slug: string, time: string, more = "") => upload("p", at(time, `task_slug=${slug}&${query}${more}`));
    await send("b", middle);
    await send("c", late);
    const { executionId } = await send("a", early, "&complete=true");
    expect(await execution(executionId)).toMatchObject({ status: "passed", startedAt: early, completedAt: late });
  });

  test("lets one that somebody has created begin then, and leaves its creation as it is", async () => {
    const body = await project.post("/executions", { tasks: ["t"] });
    const time = daysAgo(1);
    await upload("p", at(time, `execution_id=${body.id}`));
    expect(await execution(body.id)).toMatchObject({ createdAt: body.createdAt, startedAt: time, completedAt: time });
  });
});

describe("the test case", () => {
  test("tells when it last ran, passed and failed, and its history is in order", async () => {
    const times = [daysAgo(9), daysAgo(8), daysAgo(7), daysAgo(6)] as const;
    await upload("f", at(times[2], "commit=3"));
    await upload("p", at(times[0], "commit=1"));
    await upload("p", at(times[3], "commit=4"));
    await upload("f", at(times[1], "commit=2"));
    expect(await one()).toMatchObject({ lastStatus: "passed", lastRunAt: times[3], runs: 4, failures: 2 });
    expect(await one()).toMatchObject({ lastPassedAt: times[3], lastFailedAt: times[2] });
    const told = (await history()).map(({ commit, completedAt }: Record<string, string>) => [commit, completedAt]);
    expect(told).toEqual(["4", "3", "2", "1"].map((commit) => [commit, times[Number(commit) - 1]]));
  });

  test("is what newer runs say of it, whenever an older one comes", async () => {
    await upload("p", "branch=main");
    const now = await one();
    for (let days = 9; days > 3; days--) {
      await upload("f", at(daysAgo(days), "branch=main"));
      // Counted before the next one comes.
      await one();
    }
    const lastFailedAt = (await history()).at(1).completedAt;
    const last = { lastStatus: "passed", lastRunAt: now.lastRunAt, lastPassedAt: now.lastPassedAt, lastFailedAt };
    expect(await one()).toMatchObject({ health: "healthy", ...last, runs: 7, failures: 6 });
    await upload("f", "branch=main");
    expect(await one()).toMatchObject({ lastStatus: "failed", health: "healthy", failures: 7 });
  });

  test("is flaky by what it did in the past, whenever that arrives", async () => {
    for (let run = 0; run < 3; run++) await upload("p", `commit=${run}`);
    await one();
    for (const [letter, days] of [
      ["f", 60],
      ["p", 59],
    ] as const) {
      await upload(letter, at(daysAgo(days), "commit=old"));
      await one();
    }
    expect(await one()).toMatchObject({
      health: "flaky",
      runs: 5,
      failures: 1,
      flakeFailures: 1,
      lastStatus: "passed",
    });
  });

  test("keeps the later of two that were completed side by side, in whichever order they come", async () => {
    const [first, second] = [Date.now() - 60_000, Date.now() - 30_000].map((ms) => new Date(ms).toISOString());
    await upload("f", at(second!, "execution_key=b&complete=true"));
    await one();
    await upload("p", at(first!, "execution_key=a"));
    expect(await one()).toMatchObject({ lastStatus: "failed", lastRunAt: second, lastPassedAt: first, runs: 2 });
  });

  test("is not held back by a clock that is ahead", async () => {
    await upload("p", at(daysAgo(-1 / 48), "branch=main"));
    await one();
    for (let run = 0; run < 5; run++) await upload("f", "branch=main");
    expect(await one()).toMatchObject({ lastStatus: "failed", health: "broken" });
  });

  test("ran last when the last attempt was completed", async () => {
    const [first, second] = [daysAgo(2), daysAgo(1)];
    await upload("f", at(first, "execution_key=a&complete=true"));
    expect(await one()).toMatchObject({ lastStatus: "failed", lastRunAt: first, lastPassedAt: null });
    await upload("p", at(second, "execution_key=a"));
    expect(await one()).toMatchObject({ lastStatus: "passed", lastRunAt: second, lastPassedAt: second });
  });
});

describe("the bug report", () => {
  const bug = async () => (await project.list("/bug-reports"))[0];

  test("was seen first and last when its runs were completed, in whichever order they come", async () => {
    const [early, middle, late] = [daysAgo(9), daysAgo(8), daysAgo(7)];
    const send = async (time: string, commit: string) =>
      (await upload("f", at(time, `branch=main&commit=${commit}`))).executionId;
    await send(middle, "2");
    const last = await send(late, "3");
    const first = await send(early, "1");
    const ends = { firstSeenAt: early, lastSeenAt: late, firstExecutionId: first, lastExecutionId: last };
    expect(await bug()).toMatchObject({ occurrences: 3, ...ends, commit: "3" });
    const occurrences = await project.list(`/bug-reports/${(await bug()).id}/occurrences`);
    expect(occurrences.map(({ seenAt }) => seenAt)).toEqual([late, middle, early]);
  });

  test("is not resolved by passes from before it was seen, and old failures do not undo those from after", async () => {
    await upload("f", "branch=main");
    for (const days of [9, 8, 7, 6]) await upload("p", at(daysAgo(days), `branch=main&commit=${days}`));
    expect((await bug()).status).toBe("open");
    for (const commit of ["a", "b"]) await upload("p", `branch=main&commit=${commit}`);
    await upload("f", at(daysAgo(5), "branch=main"));
    expect((await bug()).status).toBe("open");
    await upload("p", "branch=main&commit=c");
    expect((await bug()).status).toBe("resolved");
  });

  test("of imported builds is resolved and regresses in the time of those builds", async () => {
    const send = (letter: string, days: number) => upload(letter, at(daysAgo(days), `branch=main&commit=${days}`));
    await send("f", 20);
    for (const days of [19, 18, 17]) await send("p", days);
    expect(await bug()).toMatchObject({ status: "resolved" });
    expect((await send("f", 16)).bugReports[0]).toMatchObject({ change: "regressed", status: "open" });
  });
});

test("nobody is told of what was completed more than a day ago", async () => {
  const select = () => database.pool`select distinct type from event where project_id = ${project.project} order by 1`;
  const types = async () => (await select()).map(({ type }) => type);
  const send = (letters: string, days: number, more = "") => upload(letters, at(daysAgo(days), `branch=main${more}`));
  await send("f", 1.1, "&execution_key=a");
  await send("p", 1.1, "&execution_key=a&complete=true");
  await send("f", 1.01);
  await get("/test-cases");
  expect(await types()).toEqual([]);
  await send("f", 0.9);
  expect(await types()).toEqual(["execution.completed", "execution.failed", "test_run.completed"]);
});
