/** The settings of a team: its projects and keys, and what there is besides. */

import { describe, expect, test } from "bun:test";
import { createVisits, formsOf, valueOf } from "./browser.ts";

const lines: string[] = [];
const { acme, rival, ask, visit, send, owner, member, viewer, stranger } = await createVisits({
  log: (line) => void lines.push(line),
});
const page = `/teams/${acme.team}/settings`;
const KEY = /svc_team_[0-9A-Za-z]{44}/;
const environments = `GET /teams/${acme.team}/environments`;

const generate = async (name: string) => {
  const newest = valueOf(await visit(owner, page), "newest")!;
  return await send(owner, `/teams/${acme.team}/keys`, { name, newest });
};

describe("the settings of a team", () => {
  test("list projects and keys, and repeat no menu", async () => {
    const seen = await visit(owner, page);
    expect(seen.words).toContain("Acme web main svc_proj_");
    for (const name of ["Members", "Environments", "Audit log"]) {
      expect(seen.bar).toContain(name);
      expect(seen.words).not.toContain(name);
    }
    expect((await visit(member, page)).html).not.toContain(`/teams/${acme.team}/audit`);
  });

  test("rename the team, for owners, and tell the audit log", async () => {
    expect((await send(owner, `/teams/${rival.team}/name`, { name: "Mine" })).status).toBe(404);
    expect((await send(member, `/teams/${acme.team}/name`, { name: "Mine" })).status).toBe(403);
    expect((await send(owner, `/teams/${acme.team}/name`, { name: " " })).status).toBe(400);
    const { location } = await send(owner, `/teams/${acme.team}/name`, { name: " <b>Acme</b> 2 " });
    expect(location).toBe(`${page}?notice=renamed`);
    const seen = await visit(viewer, page);
    expect(seen.words).toContain("<b>Acme</b> 2");
    expect(seen.html).not.toContain("<b>Acme</b>");
    expect((await visit(owner, `/teams/${acme.team}/audit`)).words).toContain(
      "renamed the team to <b>Acme</b> 2 before: Acme",
    );
    await send(owner, `/teams/${acme.team}/name`, { name: "Acme" });
  });

  test("have forms for owners alone", async () => {
    expect(formsOf(await visit(owner, page))).toEqual(
      expect.arrayContaining([`/teams/${acme.team}/projects`, `/teams/${acme.team}/keys`]),
    );
    for (const person of [member, viewer]) {
      expect(formsOf(await visit(person, page))).toEqual([]);
      for (const path of ["projects", "keys"])
        expect((await send(person, `/teams/${acme.team}/${path}`, { name: "x", newest: "none" })).status).toBe(403);
    }
    expect((await visit(stranger, page)).status).toBe(404);
    expect((await send(stranger, `/teams/${acme.team}/projects`, { name: "x" })).status).toBe(404);
    expect((await visit(undefined, page)).location).toStartWith("/login");
  });

  test("create a project, and refuse one without a name", async () => {
    const refused = await send(owner, `/teams/${acme.team}/projects`, { name: "  " });
    expect([refused.status, refused.words]).toEqual([400, expect.stringContaining("Name: expected")]);
    const { location } = await send(owner, `/teams/${acme.team}/projects`, { name: `<b>shop</b>` });
    expect(location).toMatch(/^\/projects\/[0-9a-f-]{36}\/settings\/key$/);
    const seen = await visit(viewer, page);
    expect(seen.words).toContain("<b>shop</b>");
    expect(seen.html).not.toContain("<b>shop</b>");
    expect((await visit(owner, `/teams/${acme.team}/audit`)).words).toContain("shop");
  });
});

describe("a team key", () => {
  test("is shown once, works, and is not made again by a reload", async () => {
    const newest = valueOf(await visit(owner, page), "newest")!;
    const shown = await send(owner, `/teams/${acme.team}/keys`, { name: "terraform", newest });
    const key = KEY.exec(shown.html)![0];
    expect(shown.headers.get("cache-control")).toBe("no-store");
    expect((await ask(environments, { key })).status).toBe(200);
    const again = await send(owner, `/teams/${acme.team}/keys`, { name: "terraform", newest });
    expect(again.location).toBe(`${page}?notice=shown#keys`);
    const seen = await visit(owner, page);
    expect(seen.words.split("terraform svc_team_").length).toBe(2);
    expect(seen.words).toContain(`by ${owner.email}`);
    expect(seen.html).not.toContain(key);
    expect(lines.filter((line) => line.includes(key))).toEqual([]);
  });

  test("is revoked, with a word on what is lost before", async () => {
    const key = KEY.exec((await generate("old script")).html)![0];
    const before = await visit(owner, page);
    expect(before.words).toContain(`Requests with ${key.slice(0, 17)}… will be refused. Never used.`);
    const [to] = formsOf(before).filter((path) => path.endsWith("/revoke"));
    expect((await send(member, to!)).status).toBe(403);
    expect((await ask(environments, { key })).status).toBe(200);
    expect((await send(owner, to!)).location).toBe(`${page}?notice=revoked#keys`);
    expect((await ask(environments, { key })).status).toBe(401);
    expect((await visit(viewer, page)).words).toMatch(/old script svc_team_\w+… .* revoked/);
  });

  test("of another team, or of a project, is not revoked here", async () => {
    const [theirs] = formsOf(await visit(stranger, `/teams/${rival.team}/settings`)).filter((to) =>
      to.endsWith("/revoke"),
    );
    const id = /keys\/([^/]+)/.exec(theirs!)![1];
    expect((await send(owner, `/teams/${acme.team}/keys/${id}/revoke`)).status).toBe(404);
    const projectKey = valueOf(await visit(owner, `/projects/${acme.project}/settings/key`), "replaces");
    expect((await send(owner, `/teams/${acme.team}/keys/${projectKey}/revoke`)).status).toBe(404);
    expect((await ask(`GET /teams/${rival.team}/environments`, { key: rival.teamKey })).status).toBe(200);
    expect((await ask(`GET /projects/${acme.project}`, { key: acme.key })).status).toBe(200);
  });
});
