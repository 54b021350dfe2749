/** A rerun replaces only what it repeats: histories over HTTP, and what state, badge, gate, messages and the next build make of them. */

import { describe, expect, test } from "bun:test";
import { type Asking, createAsking } from "../asking.ts";
import { createHarness } from "../harness.ts";

const { ask, acme, addProject, database } = await createHarness();
const fresh = async () => createAsking(ask, await addProject(acme), "unit");

const FAILURE = '<failure message="expected true">Error: expected true</failure>';
/** A report by the letters of its tests: `{ one: "f", two: "p", three: "s" }`. */
const report = (tests: Record<string, "f" | "p" | "s">): string =>
  `<testsuite name="s">${Object.entries(tests)
    .map(([name, letter]) => {
      const inner = letter === "f" ? FAILURE : letter === "s" ? "<skipped/>" : "";
      return `<testcase classname="s" name="${name}">${inner}</testcase>`;
    })
    .join("")}</testsuite>`;

const RED = { one: "f", two: "f", three: "p", four: "p" } as const;
const MAIN = "branch=main&complete=true";

async function rerun(place: Asking, build: string, tests: Parameters<typeof report>[0], more = ""): Promise<any> {
  const { id } = await place.post(`/executions/${build}/rerun`, {});
  return await place.uploadReport(report(tests), `execution_id=${id}&complete=true${more}`);
}

const eventsOf = async ({ project }: Asking): Promise<string[]> =>
  (await database.pool<{ type: string }[]>`select type from event where project_id = ${project} order by id`).map(
    ({ type }) => type,
  );

describe("a rerun of a part of the failed tests", () => {
  test.each([
    ["one of them", { one: "p" }, ["two"], { passed: 3, failed: 1 }],
    ["a test that had not failed", { four: "p" }, ["one", "two"], { passed: 2, failed: 2 }],
    ["one of them, the other skipped", { one: "p", two: "s" }, ["two"], { passed: 3, failed: 1 }],
  ] as const)("(%s) leaves task, branch and build red, and names the others", async (_, tests, notRerun, counts) => {
    const place = await fresh();
    const { executionId: build } = await place.uploadReport(report(RED), MAIN);
    const run = await rerun(place, build, tests);
    expect(run).toMatchObject({ verdict: "failed", status: "failed", notRerun: { count: notRerun.length } });
    expect(run.notRerun.testCases.map(({ name }: { name: string }) => name)).toEqual([...notRerun]);
    const words =
      notRerun.length === 1 ? "1 failed test of the build was not rerun" : "2 failed tests of the build were not rerun";
    expect(run.reason).toBe(words);
    expect(await place.get("/state")).toMatchObject({
      state: "failed",
      executionId: build,
      tasks: [{ slug: "unit", status: "failed", executionId: build, lastExecutionId: run.executionId, ...counts }],
    });
    expect(await place.get(`/executions/${build}`)).toMatchObject({ status: "failed", repeatedStatus: null });
    expect(await place.get(`/executions/${run.executionId}`)).toMatchObject({
      status: "failed",
      reason: `Failed: unit: ${words}`,
    });
    expect(await eventsOf(place)).not.toContain("execution.recovered");
    for (const gate of ["quarantine", "new"])
      expect(await place.get(`/executions/${build}/verdict?gate=${gate}`)).toMatchObject({ pass: false });
  });

  test("turns the branch green with the rerun that passes the last of them, and says so once", async () => {
    const place = await fresh();
    const { executionId: build } = await place.uploadReport(report(RED), MAIN);
    await rerun(place, build, { one: "p" });
    const last = await rerun(place, build, { two: "p" });
    expect(last).toMatchObject({ verdict: "passed", notRerun: { count: 0, testCases: [] } });
    expect(await place.get("/state")).toMatchObject({ state: "passed", tasks: [{ passed: 4, failed: 0 }] });
    expect(await place.get(`/executions/${build}`)).toMatchObject({ repeatedStatus: "passed" });
    expect((await eventsOf(place)).filter((type) => type === "execution.recovered")).toHaveLength(1);
    const next = await place.uploadReport(report({ ...RED, two: "p" }), MAIN);
    // What the rerun had passed was green before the next build.
    expect(next.counts).toMatchObject({ stillFailing: 0 });
  });

  test("turns it green as well where the reruns report at one moment", async () => {
    const place = await fresh();
    const { executionId: build } = await place.uploadReport(report(RED), MAIN);
    const ids = [];
    for (let number = 0; number < 2; number++) ids.push((await place.post(`/executions/${build}/rerun`, {})).id);
    const parts = [{ one: "p" }, { two: "p" }] as const;
    await Promise.all(
      ids.map((id, index) => place.uploadReport(report(parts[index]!), `execution_id=${id}&complete=true`)),
    );
    expect(await place.get("/state")).toMatchObject({ state: "passed", tasks: [{ passed: 4, failed: 0 }] });
    expect(await place.get(`/executions/${build}`)).toMatchObject({ repeatedStatus: "passed" });
  });

  test("is red again once the rerun that passed the others is deleted, or reports that one fails", async () => {
    const place = await fresh();
    const { executionId: build } = await place.uploadReport(report(RED), MAIN);
    const first = await rerun(place, build, { one: "p" });
    await rerun(place, build, { two: "p" });
    await place.uploadReport(report({ one: "f" }), `execution_id=${first.executionId}`);
    expect(await place.get("/state")).toMatchObject({ state: "failed", tasks: [{ passed: 3, failed: 1 }] });
    await place.uploadReport(report({ one: "p", five: "p" }), `execution_id=${first.executionId}`);
    expect(await place.get("/state")).toMatchObject({ state: "passed", tasks: [{ passed: 5, failed: 0 }] });
    await place.call("DELETE", `/executions/${first.executionId}`);
    expect(await place.get("/state")).toMatchObject({ state: "failed", tasks: [{ passed: 3, failed: 1 }] });
    expect(await place.get(`/executions/${build}`)).toMatchObject({ repeatedStatus: null });
  });

  test("passes where the others are in quarantine, and forgives them as the build did", async () => {
    const place = await fresh();
    const { executionId: build } = await place.uploadReport(report(RED), MAIN);
    const two = (await place.list("/test-cases?q=two"))[0];
    await place.patch(`/test-cases/${two.id}`, { quarantine: { reason: "known" } });
    const run = await rerun(place, build, { one: "p" });
    expect(run).toMatchObject({ verdict: "passed", notRerun: { count: 1 } });
    expect(await place.get("/state")).toMatchObject({ state: "passed", tasks: [{ passed: 3, failed: 1 }] });
  });

  test("is compared with the next build as the build and its rerun together", async () => {
    const place = await fresh();
    const { executionId: build } = await place.uploadReport(report(RED), MAIN);
    await rerun(place, build, { one: "p" });
    const next = await place.uploadReport(report(RED), "branch=topic&complete=true");
    const names = (list: { name: string }[]) => list.map(({ name }) => name);
    expect(names(next.stillFailing)).toEqual(["two"]);
    const { data } = { data: await place.get(`/executions/${next.executionId}/comparison`) };
    expect(names(data.stillFailing)).toEqual(["two"]);
    // A failure that the rerun leaves is forgiven to others as before, and so is it in the rerun of their build.
    const again = await rerun(place, next.executionId, { one: "p" }, "&gate=new");
    expect(again.gate).toMatchObject({
      pass: true,
      forgivenCount: 1,
      forgiven: [{ name: "two", list: "still_failing" }],
    });
    expect(await place.get(`/executions/${next.executionId}/verdict?gate=new`)).toMatchObject({
      pass: true,
      forgivenCount: 1,
    });
  });
});
