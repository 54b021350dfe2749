/** The deletion of projects and teams: who may, what is asked for, and that nothing of them is reached afterwards. */

import { describe, expect, test } from "bun:test";
import { generateNamedKey } from "../../src/operations/people/keys.ts";
import { invite } from "../../src/operations/people/members.ts";
import { createShare } from "../../src/operations/people/shares.ts";
import { SERVER } from "../../src/schema/audit.ts";
import { insertProject, insertTeam } from "../../src/store/projects.ts";
import { openStream } from "../event_stream.ts";
import { junit, until } from "../harness.ts";
import { createPerson } from "../people.ts";
import { beginUpload } from "../slow_upload.ts";
import { createVisits, formsOf, valueOf } from "./browser.ts";

const lines: string[] = [];
const visits = await createVisits({ log: (line) => void lines.push(line) });
const { acme, rival, ask, visit, send, owner, member, viewer, stranger, addProject, database, url } = visits;
const { pool, begin } = database;

type Own = { project: string; key: string };

const upload = ({ project, key }: Own, letters = "pf") =>
  ask(`POST /projects/${project}/test-runs?task_slug=unit&branch=main`, { key, body: junit(letters) });
const statusOf = async (path: string, key: string) => (await ask(path, { key })).status;
const isDeleted = async (project: string) =>
  (await pool`select from stored_project where id = ${project} and deleted_at is not null`).length === 1;

/** Every way in which a project can be used from outside, by name; each answers a status. */
async function createUses(own: Own) {
  const { project, key } = own;
  const { body: uploaded } = await upload(own);
  const named = (await begin((sql) => generateNamedKey(sql, project, { name: "ci", scope: "read" }, SERVER)))!.key;
  const { body: runner } = await ask(`POST /projects/${project}/runners`, { key, body: { runner: "r1" } });
  const share = (what: Parameters<typeof createShare>[3]) =>
    createShare(database, { ...owner }, { teamId: acme.team, id: project, name: "other" }, what);
  const [link, badge] = [
    await share({ kind: "project" }),
    await share({ kind: "badge", shows: "status", branch: null }),
  ];
  return {
    project: () => statusOf(`GET /projects/${project}`, key),
    "named key": () => statusOf(`GET /projects/${project}/test-runs`, named),
    runner: async () =>
      (await ask(`POST /projects/${project}/leases`, { key: runner.key, body: { runner: "r1", free: 0 } })).status,
    link: async () => (await visit(undefined, `/shared/${link.token}`)).status,
    badge: async () => (await visit(undefined, `/badge/${badge.token}.svg`)).status,
    page: async () => (await visit(owner, `/projects/${project}`)).status,
    execution: async () => (await visit(owner, `/projects/${project}/executions/${uploaded.executionId}`)).status,
    settings: async () => (await visit(owner, `/projects/${project}/settings`)).status,
    deletion: async () => (await visit(owner, `/projects/${project}/settings/delete`)).status,
    form: async () => (await send(owner, `/projects/${project}/settings/delete`, { confirm: "other" })).status,
  };
}

async function outcomes(uses: Record<string, () => Promise<number>>): Promise<Record<string, number>> {
  const found: Record<string, number> = {};
  for (const [name, use] of Object.entries(uses)) found[name] = await use();
  return found;
}

describe("a project", () => {
  test("is deleted by owners, on a page that says what is lost", async () => {
    const own = await addProject(acme);
    const settings = `/projects/${own.project}/settings`;
    for (const person of [member, viewer]) {
      expect((await visit(person, settings)).words).not.toContain("Danger zone");
      expect((await visit(person, `${settings}/delete`)).status).toBe(403);
      expect((await send(person, `${settings}/delete`, { confirm: "other" })).status).toBe(403);
    }
    expect((await send(stranger, `${settings}/delete`, { confirm: "other" })).status).toBe(404);
    const shown = await visit(owner, settings);
    expect(shown.words).toEndWith("cannot be undone. Delete this project…");
    expect(shown.html).toContain(`href="${settings}/delete"`);

    await upload(own, "pff");
    const page = await visit(owner, `${settings}/delete`);
    for (const loss of [
      "1 execution with",
      "3 test cases with",
      "2 bug reports",
      "1 API key and 0 runners",
      "0 shared links",
    ])
      expect(page.words).toContain(loss);
    expect(formsOf(page)).toEqual([`${settings}/delete`]);
  });

  test("stays where another name is typed, and the form says so", async () => {
    const own = await addProject(acme);
    const path = `/projects/${own.project}/settings/delete`;
    for (const confirm of ["", "Other", "other 2"]) {
      const refused = await send(owner, path, { confirm });
      expect(refused.status).toBe(400);
      expect(refused.words).toContain(`Name: expected the name of the project, "other", got "${confirm}"`);
      expect(valueOf(refused, "confirm") ?? "").toBe(confirm);
    }
    expect([await statusOf(`GET /projects/${own.project}`, own.key), await isDeleted(own.project)]).toEqual([
      200,
      false,
    ]);
  });

  test("whose name has line breaks and blanks is confirmed as its page shows it", async () => {
    const project = (await begin((sql) => insertProject(sql, acme.team, " a\n  <b> \u00e9")))!;
    const path = `/projects/${project}/settings/delete`;
    expect((await visit(owner, path)).html).toContain("&lt;b&gt;");
    expect((await send(owner, path, { confirm: "a <b> e\u0301" })).location).toBe(
      `/teams/${acme.team}/settings?notice=deleted`,
    );
    expect(await isDeleted(project)).toBe(true);
  });

  test("is not reached by anything from the commit on, and others go on", async () => {
    const [own, other] = [await addProject(acme), await addProject(acme)];
    const uses = await createUses(own);
    expect(Object.values(await outcomes({ ...uses, form: async () => 200 })).filter((status) => status >= 300)).toEqual(
      [],
    );
    const slow = await beginUpload(url, own, junit("ffff"));
    const stream = await openStream(url, own.project, own);
    await until(() => stream.lastId !== undefined);
    const poll = ask(`POST /projects/${own.project}/leases`, { key: own.key, body: { runner: "r2", waitSeconds: 50 } });
    await until(
      async () => (await pool`select from runner where project_id = ${own.project} and name = 'r2'`).length === 1,
    );

    const path = `/projects/${own.project}/settings/delete`;
    expect((await send(owner, path, { confirm: "other" })).location).toBe(
      `/teams/${acme.team}/settings?notice=deleted`,
    );

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
    const [home, team] = [await visit(owner, "/"), await visit(owner, `/teams/${acme.team}/settings?notice=deleted`)];
    expect(team.words).toContain("Project deleted.");
    for (const { html } of [home, team]) {
      expect(html).not.toContain(own.project);
      expect(html).toContain(other.project);
    }
    expect((await upload(other)).status).toBe(201);
    const audit = (await visit(owner, `/teams/${acme.team}/audit`)).words;
    expect(audit).toContain(`${owner.email} deleted the project other revoked keys: 2`);
  });
});

describe("a team", () => {
  async function createTeam() {
    const team = await begin((sql) => insertTeam(sql, "Doomed"));
    return { team, person: await createPerson(database, { team, role: "owner" }) };
  }

  test("is deleted by owners who type its name", async () => {
    const path = `/teams/${acme.team}/settings`;
    for (const person of [member, viewer]) {
      expect((await visit(person, path)).words).not.toContain("Danger zone");
      expect((await visit(person, `${path}/delete`)).status).toBe(403);
      expect((await send(person, `${path}/delete`, { confirm: "Acme" })).status).toBe(403);
    }
    expect((await visit(owner, path)).words).toEndWith("cannot be undone. Delete this team…");
    const page = await visit(owner, `${path}/delete`);
    for (const loss of ["projects with", "3 memberships and 0 open invitations; accounts are kept", "1 team key"])
      expect(page.words).toContain(loss);
    const refused = await send(owner, `${path}/delete`, { confirm: "acme" });
    expect([refused.status, valueOf(refused, "confirm")]).toEqual([400, "acme"]);
    expect(refused.words).toContain('Name: expected the name of the team, "Acme", got "acme"');
    expect(await statusOf(`GET /teams/${acme.team}/environments`, acme.teamKey)).toBe(200);
  });

  test("is gone with its projects, keys, invitations and memberships; its people keep their accounts", async () => {
    const { team, person } = await createTeam();
    const company = { ...acme, team };
    const own = await addProject(company);
    await upload(own);
    const teamKey = await send(person, `/teams/${team}/keys`, { name: "t", newest: "none" });
    const key = /svc_team_[0-9A-Za-z]{44}/.exec(teamKey.html)![0];
    const { token } = await invite(database, person, team, { role: "member", email: undefined });
    expect(await statusOf(`GET /teams/${team}/environments`, key)).toBe(200);
    const invitation = await visit(undefined, `/invitations/${token}`);

    expect((await send(person, `/teams/${team}/settings/delete`, { confirm: "Doomed" })).location).toBe("/");

    expect(await statusOf(`GET /teams/${team}/environments`, key)).toBe(401);
    expect((await upload(own)).status).toBe(401);
    for (const path of [
      `/teams/${team}/settings`,
      `/teams/${team}/members`,
      `/teams/${team}/audit`,
      `/projects/${own.project}`,
    ])
      expect([path, (await visit(person, path)).status]).toEqual([path, 404]);
    expect((await send(person, `/teams/${team}/settings/delete`, { confirm: "Doomed" })).status).toBe(404);
    expect((await visit(undefined, `/invitations/${token}`)).words).not.toBe(invitation.words);
    expect((await visit(person, "/")).words).toContain("You are not a member of a team yet");
    expect((await visit(person, "/account")).status).toBe(200);
    expect(lines.map((line) => JSON.parse(line))).toContainEqual(
      expect.objectContaining({ message: "A team was deleted", teamId: team, name: "Doomed", deletedBy: person.email }),
    );
    expect(await statusOf(`GET /projects/${rival.project}`, rival.key)).toBe(200);
  });
});
