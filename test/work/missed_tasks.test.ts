/** What a schedule has asked for and has not got is told, once. */

import { beforeEach, describe, expect, test } from "bun:test";
import { createLog } from "../../src/log.ts";
import { runSchedules } from "../../src/work/automate.ts";
import { expireExecutions } from "../../src/work/expire.ts";
import { reclaimLeases } from "../../src/work/reclaim.ts";
import { createAsking } from "../asking.ts";
import { createAutomating, PUBLIC_URL } from "../automating.ts";
import { createHarness } from "../harness.ts";

const harness = await createHarness();
const { ask, acme, addProject, database } = harness;
const { call, automate } = createAutomating(harness, acme);
const log = createLog("debug", () => {}, false);
let project: ReturnType<typeof createAsking>;
beforeEach(async () => {
  project = createAsking(ask, await addProject(acme));
});

/** The execution that a schedule has begun. */
async function begin(more: object = {}): Promise<string> {
  const action = { type: "start_execution", projectId: project.project, tasks: ["unit", "e2e"], ...more };
  const id = await automate({ trigger: { schedule: "0 3 * * *" }, actions: [action] });
  await database.pool`update automation set next_run_at = now() - interval '1 minute' where id = ${id}`;
  await runSchedules(database, PUBLIC_URL, new Date(), log);
  await call("DELETE", `/automations/${id}`);
  const [execution] = await project.list("/executions");
  return execution.id;
}

const upload = (execution_id: string, task_slug: string, letters = "p") =>
  project.upload(letters, { execution_id, task_slug });
const act = (id: string, action: string) => project.call("POST", `/executions/${id}/${action}`);
const get = (id: string) => project.get(`/executions/${id}`);

/** Its time is over, and so many servers find that at once. */
async function expire(id: string, servers = 1): Promise<void> {
  await database.pool`update execution set expires_at = now() - interval '1 second' where id = ${id}`;
  await Promise.all(Array.from({ length: servers }, () => expireExecutions(database)));
}

const missed = async () => {
  const rows = await database.pool<{ task: string; reason: string }[]>`
    select data ->> 'taskSlug' as task, data ->> 'reason' as reason from event
    where project_id = ${project.project} and type = 'task.missed' order by id`;
  return rows.map(({ task, reason }) => [task, reason]);
};
const SILENCE = "No report arrived within 30 minutes";

describe("of a scheduled execution", () => {
  test("all tasks are missed where nothing arrives", async () => {
    await expire(await begin());
    expect(await missed()).toEqual([
      ["unit", SILENCE],
      ["e2e", SILENCE],
    ]);
  });

  test("only those are missed that did not report; half of the shards are a report, a failure is one", async () => {
    const id = await begin({ tasks: ["unit", "e2e", "lint", "docs"] });
    await upload(id, "unit", "f");
    await project.upload("p", { execution_id: id, task_slug: "lint", shard: "1/2" });
    await expire(id);
    expect(await missed()).toEqual([
      ["e2e", SILENCE],
      ["docs", SILENCE],
    ]);
  });

  test("nothing is missed where all report, in time or at the last moment", async () => {
    const id = await begin();
    await Promise.all([upload(id, "unit"), upload(id, "e2e", "f")]);
    await expire(id);
    expect(await missed()).toEqual([]);
  });

  test("nothing is missed that somebody has cancelled", async () => {
    const id = await begin();
    await upload(id, "unit");
    await act(id, "cancel");
    expect(await missed()).toEqual([]);
  });

  test("what is completed by hand misses the rest", async () => {
    const id = await begin();
    await upload(id, "unit");
    await act(id, "complete");
    expect(await missed()).toEqual([["e2e", "The execution was completed without this task"]]);
  });

  test("a report that comes late is counted, and takes back and repeats nothing", async () => {
    const id = await begin();
    await expire(id);
    await upload(id, "unit");
    await upload(id, "e2e");
    expect(await get(id)).toMatchObject({ status: "passed", passed: 2 });
    await expire(id);
    await act(id, "complete");
    expect(await missed()).toHaveLength(2);
  });

  test("several servers that find its time over at once tell it once", async () => {
    await expire(await begin(), 6);
    expect(await missed()).toHaveLength(2);
  });
});

describe("of a scheduled execution of mode run", () => {
  const sync = async (body: object) => project.post("/leases", { runner: "r", ...body });

  test("a task that no runner took is missed", async () => {
    await expire(await begin({ mode: "run" }), 4);
    expect(await missed()).toEqual([
      ["unit", "No runner took the task in time"],
      ["e2e", "No runner took the task in time"],
    ]);
  });

  test("a task whose runners were lost is missed, with what became of them; one that failed is not", async () => {
    const id = await begin({ mode: "run" });
    const failing = (await sync({ taskSlugs: ["e2e"] })).leases[0];
    await sync({ held: [{ id: failing.id }], free: 0 });
    await project.call("POST", `/leases/${failing.id}/fail`, { exitCode: 1, message: "It does not even start" });
    for (const runner of ["a", "b"]) {
      const [lease] = (await sync({ runner })).leases;
      await sync({ runner, held: [{ id: lease.id }], free: 0 });
      await database.pool`update lease set expires_at = now() - interval '1 second' where id = ${lease.id}`;
      await reclaimLeases(database);
    }
    expect(await get(id)).toMatchObject({ status: "timed_out" });
    expect(await missed()).toEqual([["unit", "The runner b was lost, like the one before it"]]);
  });
});

test("of an execution that nobody scheduled nothing is missed", async () => {
  const { id } = await project.post("/executions", { tasks: ["unit"] });
  await expire(id);
  expect([(await get(id)).status, await missed()]).toEqual(["timed_out", []]);
});
