/** The page of a team's runners: what they do, what waits, and whether anybody will come for it. */

import { expect, test } from "bun:test";
import { selectTeamQueue } from "../../src/store/runners.ts";
import { createVisits } from "./browser.ts";

const { acme, rival, ask, visit, send, viewer, member, owner, stranger, url, database, addProject } =
  await createVisits();
const page = `/teams/${acme.team}/runners`;
const P = `/projects/${acme.project}`;

const sync = async (runner: string, labels: string[], rest: object = {}) =>
  (await ask(`POST ${P}/leases`, { key: acme.key, body: { runner, labels, free: 0, ...rest } })).body;

test("says how to start one where there is none", async () => {
  const seen = await visit(viewer, page);
  expect(seen.words).toContain("No runners yet");
  expect(seen.words).toContain(`export ASSAY_URL=${url} ASSAY_PROJECT=${acme.project}`);
  expect(seen.html).not.toContain(acme.key);
});

test("tells what waits for a runner that is not online, for which labels, and what the others do", async () => {
  const tasks = ["unit", { slug: "e2e", shards: 2, labels: ["linux"] }, { slug: "ios", labels: ["macos"] }];
  await ask(`POST ${P}/executions`, { key: acme.key, body: { mode: "run", key: "77", branch: "main", tasks } });
  expect((await visit(viewer, page)).words).toContain("4 tasks without a matching runner online");

  const { leases } = await sync("build-1 <b>", ["linux"], { free: 2 });
  await sync("build-1 <b>", ["linux"], { held: leases.map(({ id }: any) => ({ id })) });
  await sync("only-docs", ["macos"], { taskSlugs: ["docs"] });
  const seen = await visit(member, page);
  expect(seen.words).toContain("1 task without a matching runner online");
  expect(seen.words).toMatch(/busy build-1 <b> Acme web linux (unit|e2e 1\/2) of #77/);
  expect(seen.words).toMatch(/idle only-docs Acme web, only docs macos –/);
  expect(seen.words).toContain("1 task in Acme web ios");
  expect(seen.words).toContain("nobody: no online runner of the project has these labels");
  expect(seen.words).toContain("a runner with these labels");
  expect(seen.words).toContain("--concurrency 2 --labels macos");
  expect(seen.html).not.toContain("build-1 <b>");

  await sync("mac-1", ["macos", "fast"]);
  expect((await visit(member, page)).words).toMatch(/3 runners online, 1 busy, \d tasks? waiting/);
});

test("knows who has not asked for two minutes", async () => {
  await database.pool`update runner set seen_at = now() - interval '3 minutes' where name = 'mac-1'`;
  const { words } = await visit(viewer, page);
  expect(words).toContain("offline mac-1 Acme web, offline");
  expect(words).toContain("1 task without a matching runner online");
});

test("tells what each of two runners of one name does in its project", async () => {
  const other = await addProject(acme);
  const busy = { [acme.project]: "mine", [other.project]: "theirs" };
  for (const { project, key } of [acme, other]) {
    const at = `/projects/${project}`;
    const slug = busy[project]!;
    await ask(`POST ${at}/executions`, { key, body: { mode: "run", key: "78", tasks: [slug] } });
    const call = async (body: object) =>
      (await ask(`POST ${at}/leases`, { key, body: { runner: "same-name", taskSlugs: [slug], ...body } })).body;
    const { leases } = await call({ free: 1 });
    await call({ free: 0, held: [{ id: leases[0].id }] });
  }
  const { words } = await visit(viewer, page);
  expect(words).toContain("busy same-name Acme web, only mine no labels mine of #78 just now");
  expect(words).toContain("busy same-name other, only theirs no labels theirs of #78 just now");
  const idle = { runner: "same-name", free: 0, held: [] };
  await database.pool`
    update lease set status = 'lost' where project_id = ${acme.project} and task_slug = 'mine'`;
  await ask(`POST ${P}/leases`, { key: acme.key, body: idle });
  expect((await visit(viewer, page)).words).toContain("idle same-name Acme web no labels – just now");
});

test("pauses a runner and resumes it, for members, and says why it gets nothing", async () => {
  await sync("mac-2", ["macos"]);
  const path = `${P}/runners/pause`;
  const fields = { runner: "mac-2", paused: "true" };
  expect((await send(viewer, path, fields)).status).toBe(403);
  expect((await send(member, path, fields)).location).toBe(page);
  expect((await visit(viewer, page)).words).toMatch(/paused mac-2 .*Paused: Paused by \S+/);
  expect((await visit(viewer, page)).words).not.toContain("Resume mac-2");
  expect((await visit(member, page)).words).toContain("Resume mac-2");
  await send(member, path, { runner: "mac-2", paused: "false" });
  expect((await visit(member, page)).words).toContain("Pause mac-2");
  expect((await send(member, path, { ...fields, runner: "nobody" })).status).toBe(404);
  expect((await visit(owner, `/teams/${acme.team}/audit`)).words).toMatch(/paused the runner mac-2/);
});

test("is of one team, a page at a time", async () => {
  await database.pool`
    insert into runner (project_id, name, labels, free, held, seen_at)
    select ${acme.project}, 'r' || to_char(i, 'FM000'), '{}', 1, 0, now() from generate_series(1, 110) i`;
  const first = await visit(viewer, page);
  expect(first.words).not.toContain("r110");
  const next = /<a rel="next" href="([^"]*)"/.exec(first.html)![1]!.replaceAll("&amp;", "&");
  expect((await visit(viewer, next)).words).toContain("r110");
  const theirs = await visit(stranger, `/teams/${rival.team}/runners`);
  expect(theirs.words).not.toContain("build-1");
  expect((await visit(stranger, page)).status).toBe(404);
  expect((await visit(undefined, page)).location).toStartWith("/login");
});

test("counts a runner that is busy among those that will come, whatever it asks for beside its work", async () => {
  const { project, key } = await addProject(acme);
  const start = async () =>
    await ask(`POST /projects/${project}/executions`, { key, body: { mode: "run", tasks: ["unit", "e2e"] } });
  const call = async (body: object) =>
    (await ask(`POST /projects/${project}/leases`, { key, body: { runner: "busy", ...body } })).body;
  await start();
  const { leases } = await call({ taskSlugs: ["unit"], free: 1 });
  const held = leases.map(({ id }: { id: string }) => ({ id }));
  // Another task of this runner writes the same report as "unit", so it asks only for a third one.
  await call({ taskSlugs: ["docs"], free: 1, held });
  const reasons = async () =>
    (await ask(`GET /projects/${project}/executions`, { key })).body.data.flatMap(({ tasks }: any) =>
      tasks.map(({ reason }: any) => reason),
    );
  const waiting = (await selectTeamQueue(database.pool, acme.team, 50)).find(({ projectId }) => projectId === project);
  expect([waiting?.waiting, waiting?.unserved]).toEqual([1, 0]);
  expect(await reasons()).toEqual([null, null]);
  await database.pool`update runner set seen_at = now() - interval '3 minutes' where project_id = ${project}`;
  expect(await reasons()).toEqual([null, null]);
  await database.pool`update lease set expires_at = now() - interval '1 second' where project_id = ${project} and status = 'running'`;
  expect(await reasons()).toContain("No runner has been online in the last 2 minutes");
});
