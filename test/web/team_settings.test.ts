/** The settings of a team: its projects and keys, and what there is besides. */

import { describe, expect, test } from "bun:test";
import { createPages, formsOf, valueOf } from "./browser.ts";

const lines: string[] = [];
const { acme, rival, ask, look, fill, people } = await createPages({ log: (line) => void lines.push(line) });
const page = `/teams/${acme.team}/settings`;
const KEY = /svc_team_[0-9A-Za-z]{44}/;
const environments = `GET /teams/${acme.team}/environments`;

const generate = async (name: string) => {
  const newest = valueOf(await look("owner", page), "newest")!;
  return await fill("owner", `/teams/${acme.team}/keys`, { name, newest });
};

describe("the settings of a team", () => {
  test("list projects and keys, and repeat no menu", async () => {
    const seen = await look("owner", page);
    expect(seen.words).toContain("Acme web main svc_proj_");
    for (const name of ["Members", "Environments", "Audit log"]) {
      expect(seen.bar).toContain(name);
      expect(seen.words).not.toContain(name);
    }
    expect((await look("member", page)).html).not.toContain(`/teams/${acme.team}/audit`);
  });

  test("rename the team, for owners, and tell the audit log", async () => {
    expect((await fill("owner", `/teams/${acme.team}/name`, { name: " " })).status).toBe(400);
    const { location } = await fill("owner", `/teams/${acme.team}/name`, { name: " <b>Acme</b> 2 " });
    expect(location).toBe(`${page}?notice=renamed`);
    const seen = await look("viewer", page);
    expect(seen.words).toContain("<b>Acme</b> 2");
    expect(seen.html).not.toContain("<b>Acme</b>");
    expect((await look("owner", `/teams/${acme.team}/audit`)).words).toContain(
      "renamed the team to <b>Acme</b> 2 before: Acme",
    );
    await fill("owner", `/teams/${acme.team}/name`, { name: "Acme" });
  });

  test("create a project, and refuse one without a name", async () => {
    const refused = await fill("owner", `/teams/${acme.team}/projects`, { name: "  " });
    expect([refused.status, refused.words]).toEqual([400, expect.stringContaining("Name: expected")]);
    const { location } = await fill("owner", `/teams/${acme.team}/projects`, { name: `<b>shop</b>` });
    expect(location).toMatch(/^\/projects\/[0-9a-f-]{36}\/settings\/key$/);
    const seen = await look("viewer", page);
    expect(seen.words).toContain("<b>shop</b>");
    expect(seen.html).not.toContain("<b>shop</b>");
    expect((await look("owner", `/teams/${acme.team}/audit`)).words).toContain("shop");
  });
});

describe("a team key", () => {
  test("is shown once, works, and is not made again by a reload", async () => {
    const newest = valueOf(await look("owner", page), "newest")!;
    const shown = await fill("owner", `/teams/${acme.team}/keys`, { name: "terraform", newest });
    const key = KEY.exec(shown.html)![0];
    expect(shown.headers.get("cache-control")).toBe("no-store");
    expect((await ask(environments, { key })).status).toBe(200);
    const again = await fill("owner", `/teams/${acme.team}/keys`, { name: "terraform", newest });
    expect(again.location).toBe(`${page}?notice=shown#keys`);
    const seen = await look("owner", page);
    expect(seen.words.split("terraform svc_team_").length).toBe(2);
    expect(seen.words).toContain(`by ${people.owner.email}`);
    expect(seen.html).not.toContain(key);
    expect(lines.filter((line) => line.includes(key))).toEqual([]);
  });

  test("is revoked, with a word on what is lost before", async () => {
    const key = KEY.exec((await generate("old script")).html)![0];
    const before = await look("owner", page);
    expect(before.words).toContain(`Requests with ${key.slice(0, 17)}… will be refused. Never used.`);
    const [to] = formsOf(before).filter((path) => path.endsWith("/revoke"));
    expect((await ask(environments, { key })).status).toBe(200);
    expect((await fill("owner", to!)).location).toBe(`${page}?notice=revoked#keys`);
    expect((await ask(environments, { key })).status).toBe(401);
    expect((await look("viewer", page)).words).toMatch(/old script svc_team_\w+… .* revoked/);
  });

  test("of another team, or of a project, is not revoked here", async () => {
    const [theirs] = formsOf(await look("rival", `/teams/${rival.team}/settings`)).filter((to) =>
      to.endsWith("/revoke"),
    );
    const id = /keys\/([^/]+)/.exec(theirs!)![1];
    expect((await fill("owner", `/teams/${acme.team}/keys/${id}/revoke`)).status).toBe(404);
    const projectKey = valueOf(await look("owner", `/projects/${acme.project}/settings/key`), "replaces");
    expect((await fill("owner", `/teams/${acme.team}/keys/${projectKey}/revoke`)).status).toBe(404);
    expect((await ask(`GET /teams/${rival.team}/environments`, { key: rival.teamKey })).status).toBe(200);
    expect((await ask(`GET /projects/${acme.project}`, { key: acme.key })).status).toBe(200);
  });
});
