/** The deletion of projects and teams: who may, what is asked for, and that nothing of them is reached afterwards. */

import { describe, expect, test } from "bun:test";
import { generateNamedKey } from "../../src/operations/people/keys.ts";
import { invite } from "../../src/operations/people/members.ts";
import { createShare } from "../../src/operations/people/shares.ts";
import { SERVER } from "../../src/schema/audit.ts";
import { insertProject, insertTeam } from "../../src/store/projects.ts";
import { createAsking } from "../asking.ts";
import { openStream } from "../event_stream.ts";
import { junit, until } from "../harness.ts";
import { beginUpload } from "../slow_upload.ts";
import { createBrowser, createPages, formsOf, valueOf } from "./browser.ts";

const lines: string[] = [];
// Deleted projects wait in the database until they are removed: other files count those.
const harness = await createPages({ ownDatabase: true, log: (line) => void lines.push(line) });
const { acme, rival, ask, look, fill, people, createProject, addProject, database, url } = harness;
const { pool, begin } = database;

type Own = Awaited<ReturnType<typeof createProject>>;

const statusOf = async (path: string, key: string) => (await ask(path, { key })).status;
const isDeleted = async (project: string) =>
  (await pool`select from stored_project where id = ${project} and deleted_at is not null`).length === 1;

/** Every way in which a project can be used from outside, by name; each answers a status. */
async function createUses({ project, path, upload, post, call }: Own) {
  const { executionId } = await upload("pf", "branch=main");
  const named = (await begin((sql) => generateNamedKey(sql, project, { name: "ci", scope: "read" }, SERVER)))!.key;
  const runner = await post("/runners", { runner: "r1" });
  const share = (what: Parameters<typeof createShare>[3]) =>
    createShare(database, people.owner, { teamId: acme.team, id: project, name: "other" }, what);
  const [link, badge] = [
    await share({ kind: "project" }),
    await share({ kind: "badge", shows: "status", branch: null }),
  ];
  return {
    project: async () => (await call("GET", "")).status,
    "named key": () => statusOf(`GET ${path}/test-runs`, named),
    runner: async () => (await ask(`POST ${path}/leases`, { key: runner.key, body: { runner: "r1", free: 0 } })).status,
    link: async () => (await look("nobody", `/shared/${link.token}`)).status,
    badge: async () => (await look("nobody", `/badge/${badge.token}.svg`)).status,
    page: async () => (await look("owner", path)).status,
    execution: async () => (await look("owner", `${path}/executions/${executionId}`)).status,
    settings: async () => (await look("owner", `${path}/settings`)).status,
    deletion: async () => (await look("owner", `${path}/settings/delete`)).status,
    form: async () => (await fill("owner", `${path}/settings/delete`, { confirm: "other" })).status,
  };
}

async function outcomes(uses: Record<string, () => Promise<number>>): Promise<Record<string, number>> {
  const found: Record<string, number> = {};
  for (const [name, use] of Object.entries(uses)) found[name] = await use();
  return found;
}

describe("a project", () => {
  test("is deleted by owners, on a page that says what is lost", async () => {
    const own = await createProject();
    const settings = `${own.path}/settings`;
    expect((await look("member", settings)).words).not.toContain("Danger zone");
    const shown = await look("owner", settings);
    expect(shown.words).toEndWith("cannot be undone. Delete this project…");
    expect(shown.html).toContain(`href="${settings}/delete"`);

    await own.upload("pff", "branch=main");
    const page = await look("owner", `${settings}/delete`);
    const losses = ["1 execution with", "3 test cases with", "2 bug reports", "1 API key and 0 runners"];
    for (const loss of [...losses, "0 shared links"]) expect(page.words).toContain(loss);
    expect(formsOf(page)).toEqual([`${settings}/delete`]);
  });

  test("stays where another name is typed, and the form says so", async () => {
    const own = await createProject();
    const path = `${own.path}/settings/delete`;
    for (const confirm of ["", "Other", "other 2"]) {
      const refused = await fill("owner", path, { confirm });
      expect(refused.status).toBe(400);
      expect(refused.words).toContain(`Name: expected the name of the project, "other", got "${confirm}"`);
      expect(valueOf(refused, "confirm") ?? "").toBe(confirm);
    }
    expect(await statusOf(`GET /projects/${own.project}`, own.key)).toBe(200);
    expect(await isDeleted(own.project)).toBe(false);
  });

  test("whose name has line breaks and blanks is confirmed as its page shows it", async () => {
    const project = (await begin((sql) => insertProject(sql, acme.team, " a\n  <b> \u00e9")))!;
    const path = `/projects/${project}/settings/delete`;
    expect((await look("owner", path)).html).toContain("&lt;b&gt;");
    const deleted = await fill("owner", path, { confirm: "a <b> e\u0301" });
    expect(deleted.location).toBe(`/teams/${acme.team}/settings?notice=deleted`);
    expect(await isDeleted(project)).toBe(true);
  });

  test("is not reached by anything from the commit on, and others go on", async () => {
    const [own, other] = [await createProject(), await createProject()];
    const uses = await createUses(own);
    const before = Object.values(await outcomes({ ...uses, form: async () => 200 }));
    expect(before.filter((status) => status >= 300)).toEqual([]);
    const slow = await beginUpload(url, own, junit("ffff"));
    const stream = await openStream(url, own.project, own);
    await until(() => stream.lastId !== undefined);
    const poll = own.call("POST", "/leases", { runner: "r2", waitSeconds: 50 });
    await until(
      async () => (await pool`select from runner where project_id = ${own.project} and name = 'r2'`).length === 1,
    );

    const deleted = await fill("owner", `${own.path}/settings/delete`, { confirm: "other" });
    expect(deleted.location).toBe(`/teams/${acme.team}/settings?notice=deleted`);

    expect((await poll).status).toBe(401);
    await stream.over;
    expect(stream.told.at(-1)).toMatchObject({ event: "end", data: { reason: "revoked" } });
    slow.finish();
    expect(await slow.answered).toStartWith("HTTP/1.1 401");
    const [{ runs }] = await pool<[{ runs: number }]>`
      select count(*)::int as runs from attempt where project_id = ${own.project}`;
    expect(runs).toBe(1);
    expect(await outcomes(uses)).toEqual({
      ...{ project: 401, "named key": 401, runner: 401, link: 404, badge: 404 },
      ...{ page: 404, execution: 404, settings: 404, deletion: 404, form: 404 },
    });
    const [home, team] = [await look("owner", "/"), await look("owner", `/teams/${acme.team}/settings?notice=deleted`)];
    expect(team.words).toContain("Project deleted.");
    for (const { html } of [home, team]) {
      expect(html).not.toContain(own.project);
      expect(html).toContain(other.project);
    }
    await other.upload("p");
    const audit = (await look("owner", `/teams/${acme.team}/audit`)).words;
    expect(audit).toContain(`${people.owner.email} deleted the project other revoked keys: 2`);
  });
});

describe("a team", () => {
  test("is deleted by owners who type its name", async () => {
    const path = `/teams/${acme.team}/settings`;
    expect((await look("member", path)).words).not.toContain("Danger zone");
    expect((await look("owner", path)).words).toEndWith("cannot be undone. Delete this team…");
    const page = await look("owner", `${path}/delete`);
    for (const loss of ["projects with", "3 memberships and 0 open invitations; accounts are kept", "1 team key"])
      expect(page.words).toContain(loss);
    const refused = await fill("owner", `${path}/delete`, { confirm: "acme" });
    expect([refused.status, valueOf(refused, "confirm")]).toEqual([400, "acme"]);
    expect(refused.words).toContain('Name: expected the name of the team, "Acme", got "acme"');
    expect(await statusOf(`GET /teams/${acme.team}/environments`, acme.teamKey)).toBe(200);
  });

  test("is gone with its projects, keys, invitations and memberships; its people keep their accounts", async () => {
    const team = await begin((sql) => insertTeam(sql, "Doomed"));
    const { get, send, person } = await createBrowser(harness, { team, role: "owner" });
    const own = createAsking(ask, await addProject({ ...acme, team }));
    await own.upload("pf");
    const teamKey = await send(`/teams/${team}/keys`, { name: "t", newest: "none" });
    const key = /svc_team_[0-9A-Za-z]{44}/.exec(teamKey.html)![0];
    const { token } = await invite(database, person!, team, { role: "member", email: undefined });
    expect(await statusOf(`GET /teams/${team}/environments`, key)).toBe(200);
    const invitation = await look("nobody", `/invitations/${token}`);

    expect((await send(`/teams/${team}/settings/delete`, { confirm: "Doomed" })).location).toBe("/");

    expect(await statusOf(`GET /teams/${team}/environments`, key)).toBe(401);
    expect((await own.send(junit("p"))).status).toBe(401);
    const pages = ["settings", "members", "audit"].map((page) => `/teams/${team}/${page}`);
    for (const path of [...pages, `/projects/${own.project}`])
      expect([path, (await get(path)).status]).toEqual([path, 404]);
    expect((await send(`/teams/${team}/settings/delete`, { confirm: "Doomed" })).status).toBe(404);
    expect((await look("nobody", `/invitations/${token}`)).words).not.toBe(invitation.words);
    expect((await get("/")).words).toContain("You are not a member of a team yet");
    expect((await get("/account")).status).toBe(200);
    const logged = { message: "A team was deleted", teamId: team, name: "Doomed", deletedBy: person!.email };
    expect(lines.map((line) => JSON.parse(line))).toContainEqual(expect.objectContaining(logged));
    expect(await statusOf(`GET /projects/${rival.project}`, rival.key)).toBe(200);
  });
});
