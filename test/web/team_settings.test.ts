/** The settings of a team: its projects and keys, and what there is besides. */

import { describe, expect, test } from "bun:test";
import { createPages, valueOf } from "./browser.ts";

const { acme, ask, look, fill } = await createPages();
const page = `/teams/${acme.team}/settings`;

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

test("an owner creates a team, owns it, and is refused one without a name or too many of them", async () => {
  const create = (name: string, who: "owner" | "member" = "owner") => fill(who, `/teams/${acme.team}/teams`, { name });
  expect((await look("member", page)).words).not.toContain("New team");
  expect((await look("member", "/")).words).not.toContain("New team");
  expect((await look("owner", "/")).html).toContain(`href="${page}#new-team"`);
  expect((await create("Mobile", "member")).status).toBe(403);
  const refused = await create(" ");
  expect([refused.status, refused.words]).toEqual([400, expect.stringContaining("Name: expected")]);
  const { location } = await create(" Mobile <b> ");
  expect(location).toMatch(/^\/teams\/[0-9a-f-]{36}\/settings$/);
  const seen = await look("owner", location!);
  expect(seen.words).toContain("Mobile <b> You are an owner of this team. Projects No projects yet. Create one below.");
  expect((await look("member", location!)).status).toBe(404);
  const audit = (await look("owner", location!.replace("settings", "audit"))).words;
  expect(audit).toContain("created the team Mobile <b>");
  expect(audit).toMatch(/role: owner · by: creation of the team/);
  let last = await create("3");
  for (let team = 4; team <= 51; team++) last = await create(String(team));
  expect([last.status, last.words]).toEqual([
    400,
    expect.stringContaining("Cannot create the team: you are in 50 teams, the maximum is 50"),
  ]);
});

test("the key of a project is not revoked as one of its team", async () => {
  const id = valueOf(await look("owner", `/projects/${acme.project}/settings/key`), "replaces");
  expect((await fill("owner", `/teams/${acme.team}/keys/${id}/revoke`)).status).toBe(404);
  expect((await ask(`GET /projects/${acme.project}`, { key: acme.key })).status).toBe(200);
});
