/** Outages of a whole execution: many small tasks in which everything fails, in whichever order they report. */

import { beforeEach, describe, expect, test } from "bun:test";
import { createHarness, junit } from "../harness.ts";

const { ask, acme, addProject, database } = await createHarness();

let project: string;
let key: string;
beforeEach(async () => ({ project, key } = await addProject(acme)));

const upload = async (task: string, letters: string, query = "") => {
  const path = `POST /projects/${project}/test-runs?branch=main&task_slug=${task}${query}`;
  const { status, body } = await ask(path, { key, body: junit(letters, task) });
  expect(status).toBe(201);
  return body;
};
const read = async (path: string) => (await ask(`GET /projects/${project}${path}`, { key })).body;

const TASKS = ["a", "b", "c", "d", "e", "f"];
/** What the project tells in the end, whatever the order in which it was told. */
async function told(executionId: string) {
  const comparison = await read(`/executions/${executionId}/comparison`);
  const { data: runs } = await read(`/test-runs?execution_id=${executionId}&limit=100`);
  const { data: bugs } = await read("/bug-reports?limit=100");
  const { data: cases } = await read("/test-cases?limit=100");
  const details = await Promise.all(
    runs.map(({ taskSlug }: any) => read(`/executions/${executionId}/test-runs/${taskSlug}`)),
  );
  const events = await database.pool<{ data: any }[]>`
    select data from event where project_id = ${project} and type = 'execution.completed' order by id desc limit 1`;
  return {
    outages: details
      .filter(({ outage }) => outage)
      .map(({ taskSlug }) => taskSlug)
      .sort(),
    news: comparison.newFailures.map(({ taskSlug, name }: any) => `${taskSlug} ${name}`).sort(),
    bugs: bugs.map(({ status, occurrences }: any) => [status, occurrences]),
    failures: cases.reduce((sum: number, { failures }: any) => sum + failures, 0),
    isOutage: events[0]!.data.execution.outage ?? false,
  };
}

describe("an execution in which nearly everything failed, in tasks of few tests", () => {
  const orders = [TASKS, TASKS.toReversed(), ["c", "f", "a", "e", "b", "d"]];

  test.each(orders.map((order) => [order.join(""), order] as const))(
    "is an outage that blames nobody, in the order %s",
    async (_, order) => {
      for (const task of TASKS) await upload(task, "pppp");
      let id = "";
      for (const task of order) id = (await upload(task, "ffff", "&execution_key=1")).executionId;
      await ask(`POST /projects/${project}/executions/${id}/complete`, { key });
      expect(await told(id)).toEqual({
        outages: TASKS,
        news: [],
        bugs: expect.anything(),
        failures: 0,
        isOutage: true,
      });
    },
  );

  test("leaves one bug, and none of those that its first tasks had opened", async () => {
    let id = "";
    for (const task of TASKS) id = (await upload(task, "ffff", "&execution_key=1")).executionId;
    await ask(`POST /projects/${project}/executions/${id}/complete`, { key });
    const { data: bugs } = await read("/bug-reports?limit=100");
    // An outage occurs once in each task.
    expect(bugs).toMatchObject([{ occurrences: 6, severity: "critical", status: "open" }]);
  });

  test("is none where other tasks pass after all, in whichever order", async () => {
    const letters = { a: "ffff", b: "ffff", c: "ffff", d: "pppppppppp", e: "pppp" } as Record<string, string>;
    const seen = [];
    for (const order of [
      ["a", "b", "c", "d", "e"],
      ["d", "e", "a", "b", "c"],
      ["a", "d", "b", "e", "c"],
    ]) {
      ({ project, key } = await addProject(acme));
      for (const task of order) await upload(task, "pppppppppp".slice(0, letters[task]!.length));
      let id = "";
      for (const task of order) id = (await upload(task, letters[task]!, "&execution_key=1")).executionId;
      // What is mended by a retry is a sign of a flaky test: there was no outage.
      await upload("a", "pppp", "&execution_key=1");
      await ask(`POST /projects/${project}/executions/${id}/complete`, { key });
      const flaky = (await read("/test-cases?health=flaky&limit=100")).data.length;
      seen.push({ ...(await told(id)), flaky });
    }
    expect(seen[0]).toMatchObject({ outages: [], failures: 8, isOutage: false, flaky: 4 });
    expect(seen[0]!.news).toHaveLength(8);
    expect(seen[1]).toEqual(seen[0]!);
    expect(seen[2]).toEqual(seen[0]!);
  });

  test("leaves alone a task in which much passed, and bugs that somebody has taken", async () => {
    const first = await upload("a", "ffff", "&execution_key=1");
    const [bug] = first.bugReports;
    await ask(`PATCH /projects/${project}/bug-reports/${bug.id}`, { key, body: { assignee: "ada" } });
    await upload("b", "ffpp", "&execution_key=1");
    for (const task of ["c", "d", "e", "f"]) await upload(task, "fffffffff", "&execution_key=1");
    await ask(`POST /projects/${project}/executions/${first.executionId}/complete`, { key });
    expect((await told(first.executionId)).outages).toEqual(["a", "c", "d", "e", "f"]);
    expect(await read(`/bug-reports/${bug.id}`)).toMatchObject({ status: "open", assignee: "ada" });
  });

  test("of one task that failed as a whole is none, and counts at the end of the execution", async () => {
    const { executionId } = await upload("a", "ffff", "&execution_key=1");
    await upload("b", "pppp", "&execution_key=1&complete=true");
    expect(await told(executionId)).toMatchObject({ outages: [], failures: 4 });
  });
});
