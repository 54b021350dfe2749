import { expect, test } from "bun:test";
import { createHarness } from "../harness.ts";

const { ask, acme, database } = await createHarness();
const path = `/projects/${acme.project}`;

test("GET /projects/:projectId answers the project", async () => {
  const { status, body } = await ask(`GET ${path}`, acme);
  expect(status).toBe(200);
  expect(body).toEqual({
    id: acme.project,
    name: "Acme web",
    defaultBranch: "main",
    longLivedBranches: ["release/*", "release-*", "releases/*"],
    executionTimeoutMinutes: 30,
    retentionDays: 90,
    gateShare: 0.2,
    createdAt: expect.any(String),
  });
});

test("PATCH /projects/:projectId changes what is given and nothing else", async () => {
  const patch = (body: object) => ask(`PATCH ${path}`, { key: acme.key, body });
  const { body } = await patch({ defaultBranch: "trunk" });
  expect(body).toMatchObject({ name: "Acme web", defaultBranch: "trunk", executionTimeoutMinutes: 30 });
  const bad = await patch({ id: "x", createdAt: "x", executionTimeoutMinutes: 1.5, name: "" });
  expect(bad.status).toBe(400);
  for (const name of ["id", "createdAt", "executionTimeoutMinutes", "name"])
    expect(bad.body.error.message).toContain(`"${name}"`);
  expect((await ask(`GET ${path}`, acme)).body).toEqual(body);
});

test("the project's timeout is that of its new executions, unless they have their own", async () => {
  await ask(`PATCH ${path}`, { key: acme.key, body: { executionTimeoutMinutes: 5 } });
  await ask(`POST ${path}/executions`, { key: acme.key, body: { key: "a" } });
  await ask(`POST ${path}/executions`, { key: acme.key, body: { key: "b", timeoutMinutes: 60 } });
  const rows = await database.pool`
    select timeout_minutes as minutes from execution where project_id = ${acme.project} order by key`;
  expect(rows.map(({ minutes }) => minutes)).toEqual([5, 60]);
});
