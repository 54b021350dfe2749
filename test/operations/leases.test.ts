/** Tasks whose variables do not open are not handed out, and hold up nobody. */

import { expect, test } from "bun:test";
import { createAsking } from "../asking.ts";
import { createAutomating } from "../automating.ts";
import { createHarness, SECRET_KEY } from "../harness.ts";
import { syncRunner } from "../../src/operations/executions/leases.ts";
import { createSeal } from "../../src/secrets/seal.ts";

const lines: string[] = [];
const harness = await createHarness({ ownDatabase: true, log: (line) => void lines.push(line) });
const { ask, acme, database, addProject } = harness;
const { pool, begin } = database;
const { call } = createAutomating(harness, acme);

const addPlace = async () => createAsking(ask, await addProject(acme));
type Project = Awaited<ReturnType<typeof addPlace>>;

/** With a variable. */
async function addEnvironment(slug: string): Promise<string> {
  const { id } = (await call("POST", "/environments", { slug })).body;
  await setToken(id, "hunter2");
  return id;
}
const setToken = (environmentId: string, value: string) =>
  call("PUT", `/environments/${environmentId}/variables/TOKEN`, { value });

const start = (place: Project, more: object) => place.post("/executions", { mode: "run", tasks: ["unit"], ...more });
const sync = async (place: Project, more: object = {}): Promise<any[]> =>
  (await place.post("/leases", { runner: "r1", waitSeconds: 0, ...more })).leases;
const see = (place: Project, id: string) => place.get(`/executions/${id}`);

/** As after a hand at the database, or a restored one. */
const damage = (environmentId: string) => pool`
  update variable set sealed = set_byte(sealed, 20, get_byte(sealed, 20) # 1) where environment_id = ${environmentId}`;

test("a task whose variables were changed in the database ends and says why, and the next one is handed out", async () => {
  const place = await addPlace();
  const environmentId = await addEnvironment("damaged");
  await damage(environmentId);
  await addEnvironment("whole");
  // More than are looked through at once.
  const broken = [];
  for (let index = 0; index < 3; index++) broken.push(await start(place, { environment: "damaged" }));
  const good = await start(place, { environment: "whole" });
  const leases = await sync(place, { free: 1 });
  expect(leases).toMatchObject([{ execution: { id: good.id }, variables: { TOKEN: "hunter2" } }]);
  const reason =
    `Cannot decrypt the variable "TOKEN" of the environment "damaged", which is to be set anew: ` +
    "SECRET_KEY or the stored value has changed";
  for (const { id } of broken) {
    const execution = await see(place, id);
    const [task] = execution.tasks;
    expect([execution.status, task.status, task.reason]).toEqual(["failed", "cancelled", reason]);
  }
  expect(await sync(place, { free: 5 })).toEqual([]);
  const told = lines.filter((line) => line.includes("Cannot hand out a task: the task was ended"));
  expect(told).toHaveLength(3);
  expect(lines.join()).not.toContain("hunter2");
  // Once the variable is set anew the task is run by asking for it again.
  await setToken(environmentId, "new");
  const again = await place.post(`/executions/${broken[0].id}/rerun`, {});
  const [lease] = await sync(place, { free: 5 });
  expect([lease.execution.id, lease.variables]).toEqual([again.id, { TOKEN: "new" }]);
});

test("a task with variables of its own that do not open ends as well", async () => {
  const place = await addPlace();
  const { id } = await start(place, { variables: { OWN: "hunter2" } });
  await pool`
    update execution set variables = set_byte(variables, 20, get_byte(variables, 20) # 1)
    where project_id = ${place.project} and id = ${id}`;
  expect(await sync(place, { free: 1 })).toEqual([]);
  expect((await see(place, id)).tasks[0]).toMatchObject({
    status: "cancelled",
    reason: "Cannot decrypt the variables of the execution: SECRET_KEY or the stored value has changed",
  });
});

test("a server that still has the key from before a rotation leaves what it cannot open to the others", async () => {
  const place = await addPlace();
  const stale = await addEnvironment("rotated");
  const fresh = createSeal(new Uint8Array(32).fill(9), SECRET_KEY);
  const sealed = fresh.seal(["variable", acme.team, stale, "TOKEN"], "resealed");
  await pool`update variable set sealed = ${sealed} where environment_id = ${stale}`;
  await pool`update instance set secret_key_digest = ${fresh.keyDigest}`;
  const { id } = await start(place, { environment: "rotated" });
  const open = await start(place, {});
  expect((await sync(place, { free: 5 })).map(({ execution }) => execution.id)).toEqual([open.id]);
  expect((await see(place, id)).tasks[0]).toMatchObject({ status: "queued" });
  expect(lines.join()).toContain("SECRET_KEY of this server is not that of the database");
  const asker = { runner: "r2", labels: [], taskSlugs: undefined, probeSlugs: [] };
  const synced = await begin((sql) =>
    syncRunner(sql, fresh, place.project, asker, { free: 5, held: [], returned: [], waitSeconds: 0 }),
  );
  expect(synced.leases.map((lease) => [lease.execution.id, lease.variables])).toEqual([[id, { TOKEN: "resealed" }]]);
});
