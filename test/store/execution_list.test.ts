/** The lists of executions of the API and of the pages show the same executions, with the same figures. */

import { expect, test } from "bun:test";
import {
  selectExecution,
  selectExecutions,
  selectSummaries,
  type TimedExecutionRow,
} from "../../src/store/execution_list.ts";
import { selectBuild } from "../../src/store/overview.ts";
import { createAsking } from "../asking.ts";
import { createHarness } from "../harness.ts";

const { ask, database, acme } = await createHarness();
const { project } = acme;
const { pool } = database;

const asking = createAsking(ask, acme);
const create = async (body: object): Promise<string> => (await asking.post("/executions", body)).id;
const upload = (id: string, taskSlug: string, letters: string) =>
  asking.upload(letters, { execution_id: id, task_slug: taskSlug }, taskSlug);

const silent = await create({ key: "silent", tasks: [] });
const green = await create({ key: "green", tasks: ["unit", "e2e"], branch: "main", environment: "ci" });
await upload(green, "unit", "ppps");
await upload(green, "e2e", "p");
const red = await create({
  ...{ key: "red", tasks: ["unit", "e2e"], branch: "main", commit: "9f8e7d6c5b4a3928", pullRequest: "7" },
});
await upload(red, "unit", "pfff");
await asking.post(`/executions/${red}/complete`);
const waiting = await create({
  ...{ key: "waiting", tasks: ["unit", "e2e", "docs"], branch: "feature/1", environment: "ci" },
});
await upload(waiting, "docs", "pf");

const sum = ({ tasks }: TimedExecutionRow, name: "passed" | "failed" | "skipped" | "flaky") =>
  tasks.reduce((total, task) => total + task[name], 0);
const idsOf = (rows: readonly { id: string }[]) => rows.map(({ id }) => id);

test("the totals of pages are the sums of the tasks that the API lists", async () => {
  const [listed, builds] = [await selectExecutions(pool, project, 10, {}), await selectSummaries(pool, project, 10)];
  expect(idsOf(listed)).toEqual([waiting, red, green, silent]);
  const totals = builds.map(({ passed, failed, skipped, flaky, tasks, openTasks, durationMs, redTasks, id }) => ({
    ...{ id, passed, failed, skipped, flaky, tasks, openTasks, durationMs },
    redTasks: redTasks.map(({ slug }) => slug),
  }));
  expect(totals).toEqual(
    listed.map((row) => {
      const { id, tasks, durationMs, status } = row;
      const isRed = ["failed", "timed_out"].includes(status);
      return {
        ...{ id, durationMs, passed: sum(row, "passed"), failed: sum(row, "failed") },
        ...{ skipped: sum(row, "skipped"), flaky: sum(row, "flaky"), tasks: tasks.length },
        openTasks: tasks.filter(({ status }) => status === "queued" || status === "running").length,
        redTasks: isRed ? tasks.filter(({ status }) => status !== "passed").map(({ slug }) => slug) : [],
      };
    }),
  );
  expect(builds.map(({ tasks, newFailures, redTasks }) => [tasks, newFailures, redTasks.length])).toEqual([
    [3, 1, 0],
    [2, 3, 2],
    [2, 0, 0],
    [0, 0, 0],
  ]);
});

test("one execution is the same as in the list, also without tasks", async () => {
  const listed = await selectExecutions(pool, project, 10, {});
  const builds = await selectSummaries(pool, project, 10);
  expect(listed).toHaveLength(4);
  for (const [index, { id }] of listed.entries()) {
    expect(await selectExecution(pool, project, id)).toEqual(listed[index]!);
    expect(await selectBuild(pool, project, id)).toEqual(builds[index]!);
  }
  expect(listed[3]!).toMatchObject({ id: silent, tasks: [], durationMs: 0, machineTimeMs: 0 });
  expect(await selectExecution(pool, acme.team, silent)).toBeUndefined();
});

test("both lists choose by the same filters", async () => {
  const filters = [
    [{ branch: "main" }, [red, green]],
    [{ status: "failed" }, []],
    [{ status: "timed_out" }, [red]],
    [{ environment: "ci" }, [waiting, green]],
    [{ key: "silent" }, [silent]],
    [{ commit: "9f8e7d6c" }, [red]],
    [{ branch: "main", environment: "ci" }, [green]],
  ] as const;
  for (const [filter, ids] of filters) {
    expect(idsOf(await selectExecutions(pool, project, 10, filter))).toEqual([...ids]);
    expect(idsOf(await selectSummaries(pool, project, 10, filter))).toEqual([...ids]);
  }
  expect(idsOf(await selectExecutions(pool, project, 10, { task_slug: "docs" }))).toEqual([waiting]);
  expect(idsOf(await selectExecutions(pool, project, 10, { pull_request: "7" }))).toEqual([red]);
  expect(idsOf(await selectSummaries(pool, project, 10, { q: "#silent" }))).toEqual([silent]);
  expect(idsOf(await selectSummaries(pool, project, 10, { before: red, from: green }))).toEqual([green]);
  expect(idsOf(await selectExecutions(pool, project, 1, { before: red }))).toEqual([green, silent]);
});
