/** Outages of a whole execution: many small tasks in which everything fails, in whichever order they report. */

import { beforeEach, describe, expect, test } from "bun:test";
import { createAsking } from "../asking.ts";
import { createHarness } from "../harness.ts";

const { ask, acme, addProject, database } = await createHarness();

let project: ReturnType<typeof createAsking>;
const begin = async () => {
  project = createAsking(ask, await addProject(acme));
};
beforeEach(begin);

const upload = (task: string, letters: string, query: Record<string, string> = {}) =>
  project.upload(letters, { branch: "main", task_slug: task, ...query }, task);
const KEYED = { execution_key: "1" };

const TASKS = ["a", "b", "c", "d", "e", "f"];
/** What the project tells in the end, whatever the order in which it was told. */
async function told(executionId: string) {
  const comparison = await project.get(`/executions/${executionId}/comparison`);
  const runs = await project.list(`/test-runs?execution_id=${executionId}&limit=100`);
  const bugs = await project.list("/bug-reports?limit=100");
  const cases = await project.list("/test-cases?limit=100");
  const details = await Promise.all(
    runs.map(({ taskSlug }: any) => project.get(`/executions/${executionId}/test-runs/${taskSlug}`)),
  );
  const events = await database.pool<{ data: any }[]>`
    select data from event where project_id = ${project.project} and type = 'execution.completed' order by id desc limit 1`;
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
      for (const task of order) id = (await upload(task, "ffff", KEYED)).executionId;
      await project.post(`/executions/${id}/complete`);
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
    for (const task of TASKS) id = (await upload(task, "ffff", KEYED)).executionId;
    await project.post(`/executions/${id}/complete`);
    const bugs = await project.list("/bug-reports?limit=100");
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
      await begin();
      for (const task of order) await upload(task, "pppppppppp".slice(0, letters[task]!.length));
      let id = "";
      for (const task of order) id = (await upload(task, letters[task]!, KEYED)).executionId;
      // What is mended by a retry is a sign of a flaky test: there was no outage.
      await upload("a", "pppp", KEYED);
      await project.post(`/executions/${id}/complete`);
      const flaky = (await project.list("/test-cases?health=flaky&limit=100")).length;
      seen.push({ ...(await told(id)), flaky });
    }
    expect(seen[0]).toMatchObject({ outages: [], failures: 8, isOutage: false, flaky: 4 });
    expect(seen[0]!.news).toHaveLength(8);
    expect(seen[1]).toEqual(seen[0]!);
    expect(seen[2]).toEqual(seen[0]!);
  });

  test("leaves alone a task in which much passed, and bugs that somebody has taken", async () => {
    const first = await upload("a", "ffff", KEYED);
    const [bug] = first.bugReports;
    await project.patch(`/bug-reports/${bug.id}`, { assignee: "ada" });
    await upload("b", "ffpp", KEYED);
    for (const task of ["c", "d", "e", "f"]) await upload(task, "fffffffff", KEYED);
    await project.post(`/executions/${first.executionId}/complete`);
    expect((await told(first.executionId)).outages).toEqual(["a", "c", "d", "e", "f"]);
    expect(await project.get(`/bug-reports/${bug.id}`)).toMatchObject({ status: "open", assignee: "ada" });
  });

  test("of one task that failed as a whole is none, and counts at the end of the execution", async () => {
    const { executionId } = await upload("a", "ffff", KEYED);
    await upload("b", "pppp", { ...KEYED, complete: "true" });
    expect(await told(executionId)).toMatchObject({ outages: [], failures: 4 });
  });
});
