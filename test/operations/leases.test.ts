/** Tasks whose variables do not open are not handed out, and hold up nobody. */

import { expect, test } from "bun:test";
import { createHarness, SECRET_KEY } from "../harness.ts";
import { syncRunner } from "../../src/operations/executions/leases.ts";
import { createSeal } from "../../src/secrets/seal.ts";

const lines: string[] = [];
const { ask, acme, database, addProject } = await createHarness({
  ownDatabase: true,
  log: (line) => void lines.push(line),
});
const { pool, begin } = database;
const environments = `/teams/${acme.team}/environments`;

type Project = { project: string; key: string };

/** With a variable. */
async function addEnvironment(slug: string): Promise<string> {
  const { body } = await ask(`POST ${environments}`, { key: acme.teamKey, body: { slug } });
  await ask(`PUT ${environments}/${body.id}/variables/TOKEN`, { key: acme.teamKey, body: { value: "hunter2" } });
  return body.id;
}

const start = async ({ project, key }: Project, more: object) =>
  (await ask(`POST /projects/${project}/executions`, { key, body: { mode: "run", tasks: ["unit"], ...more } })).body;
const sync = async ({ project, key }: Project, more: object = {}) =>
  await ask(`POST /projects/${project}/leases`, { key, body: { runner: "r1", waitSeconds: 0, ...more } });
const see = async ({ project, key }: Project, id: string) =>
  (await ask(`GET /projects/${project}/executions/${id}`, { key })).body;

/** As after a hand at the database, or a restored one. */
const damage = (environmentId: string) => pool`
  update variable set sealed = set_byte(sealed, 20, get_byte(sealed, 20) # 1) where environment_id = ${environmentId}`;

test("a task whose variables were changed in the database ends and says why, and the next one is handed out", async () => {
  const place = await addProject(acme);
  const environmentId = await addEnvironment("damaged");
  await damage(environmentId);
  await addEnvironment("whole");
  // More than are looked through at once.
  const broken = [];
  for (let index = 0; index < 3; index++) broken.push(await start(place, { environment: "damaged" }));
  const good = await start(place, { environment: "whole" });
  const { status, body } = await sync(place, { free: 1 });
  expect([status, body.leases.map((lease: any) => [lease.execution.id, lease.variables])]).toEqual([
    200,
    [[good.id, { TOKEN: "hunter2" }]],
  ]);
  const reason =
    `Cannot decrypt the variable "TOKEN" of the environment "damaged", which is to be set anew: ` +
    "SECRET_KEY or the stored value has changed";
  for (const { id } of broken) {
    const execution = await see(place, id);
    const [task] = execution.tasks;
    expect([execution.status, task.status, task.reason]).toEqual(["failed", "cancelled", reason]);
  }
  expect((await sync(place, { free: 5 })).body.leases).toEqual([]);
  const told = lines.filter((line) => line.includes("Cannot hand out a task: the task was ended"));
  expect(told).toHaveLength(3);
  expect(lines.join()).not.toContain("hunter2");
  // Once the variable is set anew the task is run by asking for it again.
  await ask(`PUT ${environments}/${environmentId}/variables/TOKEN`, { key: acme.teamKey, body: { value: "new" } });
  const again = await ask(`POST /projects/${place.project}/executions/${broken[0].id}/rerun`, {
    key: place.key,
    body: {},
  });
  expect(again.status).toBe(201);
  const [lease] = (await sync(place, { free: 5 })).body.leases;
  expect([lease.execution.id, lease.variables]).toEqual([again.body.id, { TOKEN: "new" }]);
});

test("a task with variables of its own that do not open ends as well", async () => {
  const place = await addProject(acme);
  const { id } = await start(place, { variables: { OWN: "hunter2" } });
  await pool`
    update execution set variables = set_byte(variables, 20, get_byte(variables, 20) # 1)
    where project_id = ${place.project} and id = ${id}`;
  expect((await sync(place, { free: 1 })).body.leases).toEqual([]);
  expect((await see(place, id)).tasks[0]).toMatchObject({
    status: "cancelled",
    reason: "Cannot decrypt the variables of the execution: SECRET_KEY or the stored value has changed",
  });
});

test("a server that still has the key from before a rotation leaves what it cannot open to the others", async () => {
  const place = await addProject(acme);
  const stale = await addEnvironment("rotated");
  const fresh = createSeal(new Uint8Array(32).fill(9), SECRET_KEY);
  const sealed = fresh.seal(["variable", acme.team, stale, "TOKEN"], "resealed");
  await pool`update variable set sealed = ${sealed} where environment_id = ${stale}`;
  await pool`update instance set secret_key_digest = ${fresh.keyDigest}`;
  const { id } = await start(place, { environment: "rotated" });
  const open = await start(place, {});
  const first = (await sync(place, { free: 5 })).body;
  expect(first.leases.map((lease: any) => lease.execution.id)).toEqual([open.id]);
  expect((await see(place, id)).tasks[0]).toMatchObject({ status: "queued" });
  expect(lines.join()).toContain("SECRET_KEY of this server is not that of the database");
  const asker = { runner: "r2", labels: [], taskSlugs: undefined, probeSlugs: [] };
  const synced = await begin((sql) =>
    syncRunner(sql, fresh, place.project, asker, { free: 5, held: [], returned: [], waitSeconds: 0 }),
  );
  expect(synced.leases.map((lease) => [lease.execution.id, lease.variables])).toEqual([[id, { TOKEN: "resealed" }]]);
});
