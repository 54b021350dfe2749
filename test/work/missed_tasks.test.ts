/** What a schedule has asked for and has not got is told, once. */

import { beforeEach, describe, expect, test } from "bun:test";
import { createLog } from "../../src/log.ts";
import { runSchedules } from "../../src/work/automate.ts";
import { expireExecutions } from "../../src/work/expire.ts";
import { reclaimLeases } from "../../src/work/reclaim.ts";
import { createHarness, junit } from "../harness.ts";

const { ask, acme, addProject, database } = await createHarness();
const log = createLog("debug", () => {}, false);
let project: { project: string; key: string };
beforeEach(async () => {
  project = await addProject(acme);
});

/** The execution that a schedule has begun. */
async function begin(more: object = {}): Promise<string> {
  const action = { type: "start_execution", projectId: project.project, tasks: ["unit", "e2e"], ...more };
  const body = { name: "nightly", trigger: { schedule: "0 3 * * *" }, actions: [action] };
  const path = `/teams/${acme.team}/automations`;
  const { id } = (await ask(`POST ${path}`, { key: acme.teamKey, body })).body;
  await database.pool`update automation set next_run_at = now() - interval '1 minute' where id = ${id}`;
  await runSchedules(database, "https://assay.test", new Date(), log);
  await ask(`DELETE ${path}/${id}`, { key: acme.teamKey });
  const [execution] = (await ask(`GET /projects/${project.project}/executions`, project)).body.data;
  return execution.id;
}

const upload = (executionId: string, query: string, letters = "p") =>
  ask(`POST /projects/${project.project}/test-runs?execution_id=${executionId}&${query}`, {
    key: project.key,
    body: junit(letters),
  });
const act = (id: string, action: string) =>
  ask(`POST /projects/${project.project}/executions/${id}/${action}`, { key: project.key });
const get = async (id: string) => (await ask(`GET /projects/${project.project}/executions/${id}`, project)).body;

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
const SILENCE = "No report arrived in time";

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
    await upload(id, "task_slug=unit", "f");
    await upload(id, "task_slug=lint&shard=1/2");
    await expire(id);
    expect(await missed()).toEqual([
      ["e2e", SILENCE],
      ["docs", SILENCE],
    ]);
  });

  test("nothing is missed where all report, in time or at the last moment", async () => {
    const id = await begin();
    await Promise.all([upload(id, "task_slug=unit"), upload(id, "task_slug=e2e", "f")]);
    await expire(id);
    expect(await missed()).toEqual([]);
  });

  test("nothing is missed that somebody has cancelled", async () => {
    const id = await begin();
    await upload(id, "task_slug=unit");
    await act(id, "cancel");
    expect(await missed()).toEqual([]);
  });

  test("what is completed by hand misses the rest", async () => {
    const id = await begin();
    await upload(id, "task_slug=unit");
    await act(id, "complete");
    expect(await missed()).toEqual([["e2e", "The execution was completed without this task"]]);
  });

  test("a report that comes late is counted, and takes back and repeats nothing", async () => {
    const id = await begin();
    await expire(id);
    await upload(id, "task_slug=unit");
    await upload(id, "task_slug=e2e");
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
  const sync = async (body: object) =>
    (await ask(`POST /projects/${project.project}/leases`, { key: project.key, body: { runner: "r", ...body } })).body;

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
    const path = `/projects/${project.project}/leases/${failing.id}/fail`;
    await ask(`POST ${path}`, { key: project.key, body: { exitCode: 1, message: "It does not even start" } });
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
  const body = { tasks: ["unit"] };
  const { id } = (await ask(`POST /projects/${project.project}/executions`, { key: project.key, body })).body;
  await expire(id);
  expect([(await get(id)).status, await missed()]).toEqual(["timed_out", []]);
});
