/** The page of a team's runners: what they do, what waits, and whether anybody will come for it. */

import { expect, test } from "bun:test";
import { selectTeamQueue } from "../../src/store/runners.ts";
import { createPages, nextOf } from "./browser.ts";

const { acme, rival, own, look, fill, url, database, createProject } = await createPages();
const page = `/teams/${acme.team}/runners`;

const sync = (runner: string, labels: string[], rest: object = {}) =>
  own.post("/leases", { runner, labels, free: 0, ...rest });

test("says how to start one where there is none", async () => {
  const seen = await look("viewer", page);
  expect(seen.words).toContain("No runners yet");
  expect(seen.words).toContain(`export ASSAY_URL=${url} ASSAY_PROJECT=${acme.project}`);
  expect(seen.html).not.toContain(acme.key);
});

test("tells what waits for a runner that is not online, for which labels, and what the others do", async () => {
  const tasks = ["unit", { slug: "e2e", shards: 2, labels: ["linux"] }, { slug: "ios", labels: ["macos"] }];
  await own.post("/executions", { mode: "run", key: "77", branch: "main", tasks });
  expect((await look("viewer", page)).words).toContain("4 tasks without a matching runner online");

  const { leases } = await sync("build-1 <b>", ["linux"], { free: 2 });
  await sync("build-1 <b>", ["linux"], { held: leases.map(({ id }: any) => ({ id })) });
  await sync("only-docs", ["macos"], { taskSlugs: ["docs"] });
  const seen = await look("member", page);
  expect(seen.words).toContain("1 task without a matching runner online");
  expect(seen.words).toMatch(/busy build-1 <b> Acme web linux (unit|e2e 1\/2) of #77/);
  expect(seen.words).toMatch(/idle only-docs Acme web, only docs macos –/);
  expect(seen.words).toContain("1 task in Acme web ios");
  expect(seen.words).toContain("nobody: no online runner of the project has these labels");
  expect(seen.words).toContain("a runner with these labels");
  expect(seen.words).toContain("--concurrency 2 --labels macos");
  expect(seen.html).not.toContain("build-1 <b>");

  await sync("mac-1", ["macos", "fast"]);
  expect((await look("member", page)).words).toMatch(/3 runners online, 1 busy, \d tasks? waiting/);
});

test("knows who has not asked for two minutes", async () => {
  await database.pool`update runner set seen_at = now() - interval '3 minutes' where name = 'mac-1'`;
  const { words } = await look("viewer", page);
  expect(words).toContain("offline mac-1 Acme web, offline");
  expect(words).toContain("1 task without a matching runner online");
});

test("tells what each of two runners of one name does in its project", async () => {
  const other = await createProject();
  for (const [{ post }, slug] of [[own, "mine"] as const, [other, "theirs"] as const]) {
    await post("/executions", { mode: "run", key: "78", tasks: [slug] });
    const call = (body: object) => post("/leases", { runner: "same-name", taskSlugs: [slug], ...body });
    const { leases } = await call({ free: 1 });
    await call({ free: 0, held: [{ id: leases[0].id }] });
  }
  const { words } = await look("viewer", page);
  expect(words).toContain("busy same-name Acme web, only mine no labels mine of #78 just now");
  expect(words).toContain("busy same-name other, only theirs no labels theirs of #78 just now");
  await database.pool`
    update lease set status = 'lost' where project_id = ${acme.project} and task_slug = 'mine'`;
  await own.post("/leases", { runner: "same-name", free: 0, held: [] });
  expect((await look("viewer", page)).words).toContain("idle same-name Acme web no labels – just now");
});

test("pauses a runner and resumes it, for members, and says why it gets nothing", async () => {
  await sync("mac-2", ["macos"]);
  const path = `${own.path}/runners/pause`;
  const fields = { runner: "mac-2", paused: "true" };
  expect((await fill("member", path, fields)).location).toBe(page);
  expect((await look("viewer", page)).words).toMatch(/paused mac-2 .*Paused: Paused by \S+/);
  expect((await look("viewer", page)).words).not.toContain("Resume mac-2");
  expect((await look("member", page)).words).toContain("Resume mac-2");
  await fill("member", path, { runner: "mac-2", paused: "false" });
  expect((await look("member", page)).words).toContain("Pause mac-2");
  expect((await fill("member", path, { ...fields, runner: "nobody" })).status).toBe(404);
  expect((await look("owner", `/teams/${acme.team}/audit`)).words).toMatch(/paused the runner mac-2/);
});

test("is of one team, a page at a time", async () => {
  await database.pool`
    insert into runner (project_id, name, labels, free, held, seen_at)
    select ${acme.project}, 'r' || to_char(i, 'FM000'), '{}', 1, 0, now() from generate_series(1, 110) i`;
  const first = await look("viewer", page);
  expect(first.words).not.toContain("r110");
  expect((await look("viewer", nextOf(first)!)).words).toContain("r110");
  const theirs = await look("rival", `/teams/${rival.team}/runners`);
  expect(theirs.words).not.toContain("build-1");
});

test("counts a runner that is busy among those that will come, whatever it asks for beside its work", async () => {
  const { project, post, list } = await createProject();
  const call = (body: object) => post("/leases", { runner: "busy", ...body });
  await post("/executions", { mode: "run", tasks: ["unit", "e2e"] });
  const { leases } = await call({ taskSlugs: ["unit"], free: 1 });
  const held = leases.map(({ id }: { id: string }) => ({ id }));
  // Another task of this runner writes the same report as "unit", so it asks only for a third one.
  await call({ taskSlugs: ["docs"], free: 1, held });
  const reasons = async () =>
    (await list("/executions")).flatMap(({ tasks }) => tasks.map(({ reason }: any) => reason));
  const waiting = (await selectTeamQueue(database.pool, acme.team, 50)).find(({ projectId }) => projectId === project);
  expect([waiting?.waiting, waiting?.unserved]).toEqual([1, 0]);
  expect(await reasons()).toEqual([null, null]);
  await database.pool`update runner set seen_at = now() - interval '3 minutes' where project_id = ${project}`;
  expect(await reasons()).toEqual([null, null]);
  await database.pool`update lease set expires_at = now() - interval '1 second' where project_id = ${project} and status = 'running'`;
  expect(await reasons()).toContain("No runner has been online in the last 2 minutes");
});
