/** Uploads that wait for others, and what they are told of what has become of it meanwhile. */

import { describe, expect, test } from "bun:test";
import { createAsking } from "../asking.ts";
import { removeExecution } from "../../src/operations/executions/executions.ts";
import { createHarness, junit, until } from "../harness.ts";

const harness = await createHarness();
const { ask, acme, database, addProject } = harness;

const ctrf = (status: "passed" | "failed", branchName: string) =>
  JSON.stringify({
    reportFormat: "CTRF",
    specVersion: "0.0.0",
    results: {
      tool: { name: "x" },
      summary: { tests: 1, passed: 1, failed: 0, skipped: 0, pending: 0, other: 0, start: 0, stop: 1 },
      tests: [{ name: "case", status, duration: 5 }],
      environment: { branchName },
    },
  });

const eventsOf = async (project: string): Promise<string[]> =>
  (await database.pool`select type from event where project_id = ${project} order by xact, id`).map(({ type }) => type);
const redOf = async (project: string) =>
  [...(await database.pool<{ branch: string }[]>`select branch from red_task where project_id = ${project}`)].map(
    ({ branch }) => branch,
  );

describe("red and green: an execution of mode run without a branch is of the default branch, whatever reports name", () => {
  test("by a lease, whose report names a branch itself", async () => {
    const own = createAsking(ask, await addProject(acme));
    const { project } = own;
    const run = async (status: "passed" | "failed") => {
      await own.post("/executions", { mode: "run", tasks: ["unit"] });
      const [{ id }] = (await own.post("/leases", { runner: "r1" })).leases;
      await own.post("/leases", { runner: "r1", free: 0, held: [{ id }] });
      await own.post(`/test-runs?lease_id=${id}`, ctrf(status, "feature"));
    };
    await run("failed");
    expect(await redOf(project)).toEqual(["main"]);
    await run("passed");
    expect(await redOf(project)).toEqual([]);
    expect(await eventsOf(project)).toContain("execution.recovered");
  });
});

describe("what is red when an upload ends its execution", () => {
  test("counts although the upload had to wait, and it turned red meanwhile", async () => {
    const own = createAsking(ask, await addProject(acme));
    const { project } = own;
    const upload = (letters: string, query: string) =>
      own.call("POST", `/test-runs?branch=main&task_slug=unit${query}`, junit(letters));
    await own.post("/executions", { key: "2", branch: "main", tasks: ["unit"] });
    const { id } = await own.post("/executions", { key: "1", branch: "main", tasks: ["unit"] });
    const [isHeld, isOver] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    // As any other upload to the execution, a large one for example.
    const other = database.begin(async (sql) => {
      await sql`select from execution where project_id = ${project} and id = ${id} for update`;
      isHeld.resolve();
      await isOver.promise;
    });
    await isHeld.promise;
    const green = upload("p", `&execution_id=${id}`);
    await until(async () => {
      const [row] = await database.pool<{ waits: boolean }[]>`
        select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock') as waits`;
      return row!.waits;
    });
    expect((await upload("f", "&execution_key=2")).status).toBe(201);
    await own.post("/test-runs?branch=main&task_slug=unit&execution_key=2&complete=true", junit("ff"));
    expect(await redOf(project)).toEqual(["main"]);
    isOver.resolve();
    await other;
    expect((await green).status).toBe(201);
    expect(await redOf(project)).toEqual([]);
    expect(await eventsOf(project)).toContain("execution.recovered");
  });
});

describe("an upload that waited while its execution was deleted", () => {
  test("begins another one and is not told of a build that is gone", async () => {
    const own = createAsking(ask, await addProject(acme));
    const { project } = own;
    const upload = () =>
      own.call("POST", "/test-runs?branch=main&commit=abcdef1&execution_key=1&complete=true", junit("p"));
    const { executionId } = (await upload()).body;
    const [isHeld, isOver] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const deletion = database.begin(async (sql) => {
      await removeExecution(sql, project, executionId);
      isHeld.resolve();
      await isOver.promise;
    });
    await isHeld.promise;
    const again = upload();
    await until(async () => {
      const [row] = await database.pool<{ waits: boolean }[]>`
        select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock') as waits`;
      return row!.waits;
    });
    isOver.resolve();
    await deletion;
    const { status, body } = await again;
    expect([status, body.warnings]).toEqual([201, []]);
    expect(body.executionId).not.toBe(executionId);
    const [row] =
      await database.pool`select baseline_id from execution where project_id = ${project} and id = ${body.executionId}`;
    expect(row!.baseline_id).toBeNull();
  });
});
