/** The settings of a project and its key. */

import { describe, expect, test } from "bun:test";
import { junit, until } from "../harness.ts";
import { createVisits, formsOf, valueOf } from "./browser.ts";

const lines: string[] = [];
const { acme, rival, ask, visit, send, owner, member, viewer, stranger, addProject, url } = await createVisits({
  log: (line) => void lines.push(line),
});
const page = `/projects/${acme.project}/settings`;
const KEY = /svc_proj_[0-9A-Za-z]{44}/;

describe("the export", () => {
  test("is a file for everybody who may see the project, with what the API exports", async () => {
    const { project, key } = await addProject(acme);
    await ask(`POST /projects/${project}/test-runs?task_slug=unit`, { key, body: junit("pf") });
    const to = `/projects/${project}/export`;
    expect((await visit(viewer, `/projects/${project}/settings`)).html).toContain(`href="${to}"`);
    const { status, headers, html } = await visit(viewer, to);
    expect([status, headers.get("content-type")]).toEqual([200, "application/x-ndjson"]);
    expect(headers.get("content-disposition")).toMatch(/^attachment; filename="assay-export-\d{4}-\d\d-\d\d\.ndjson"$/);
    const { text } = await ask(`GET ${to}`, { key });
    const withoutTime = (lines: string) => lines.replace(/"takenAt":"[^"]*"/, "");
    expect(withoutTime(html)).toBe(withoutTime(text));
    expect((await visit(stranger, to)).status).toBe(404);
  });
});

describe("the ownership file", () => {
  test("is shown with where it came from, its mistakes, and the tests that it leaves without an owner", async () => {
    const { project, key } = await addProject(acme);
    const to = `/projects/${project}/settings/owners`;
    expect((await visit(viewer, to)).words).toContain("No ownership file yet");
    await ask(`POST /projects/${project}/test-runs?task_slug=unit`, { key, body: junit("ppp") });
    await ask(`PUT /projects/${project}/owners?path=CODEOWNERS&branch=main`, {
      key,
      body: "class:unit @unit <b>\n/docs/ @docs\n",
    });
    const { words, html } = await visit(viewer, to);
    expect(words).toContain("From CODEOWNERS on main");
    expect(words).toContain("3 of 3 tests without an owner");
    expect(words).toContain('Line 1: expected an owner such as "@name"');
    expect(html).toContain("1  class:unit @unit &lt;b&gt;\n2  /docs/ @docs");
    expect((await visit(viewer, `/projects/${project}/tests?owned=false`)).words).toContain("unit › case 0");
    expect((await visit(stranger, to)).status).toBe(404);
  });

  test("gives tests their owners on their pages", async () => {
    const { project, key } = await addProject(acme);
    await ask(`POST /projects/${project}/test-runs?branch=main&task_slug=unit`, { key, body: junit("fp") });
    await ask(`PUT /projects/${project}/owners?path=CODEOWNERS`, { key, body: "* @all\nclass:unit @cart @pay\n" });
    const { body } = await ask(`GET /projects/${project}/test-cases`, { key });
    const test = await visit(viewer, `/projects/${project}/tests/${body.data[0].id}`);
    expect(test.words).toContain("owners @cart, @pay, by line 2 of CODEOWNERS");
    const [{ id }] = (await ask(`GET /projects/${project}/executions`, { key })).body.data;
    expect((await visit(viewer, `/projects/${project}/executions/${id}`)).words).toContain("owner @cart, @pay");
    const owned = await visit(viewer, `/projects/${project}/bugs?owner=%40cart`);
    expect(owned.words).toContain("Unassigned @cart, @pay");
    expect((await visit(viewer, `/projects/${project}/bugs?owner=%40all`)).words).toContain("No bugs match");
    expect((await visit(viewer, `/projects/${project}/tests?owner=%40pay`)).words).toContain("case 0");
  });
});

describe("the settings of a project", () => {
  test("are shown to viewers and members without a form, to owners with one", async () => {
    const seen = await visit(viewer, page);
    expect(seen.words).toContain("Retention server setting: 90 days");
    expect(seen.words).toContain("Default branch main");
    expect(seen.words).toContain("Owners of the team can change this");
    expect(formsOf(seen)).toEqual([]);
    expect(seen.html).not.toContain(`"${page}/key"`);
    expect((await visit(member, page)).html).toContain(`${page}/key`);
    expect(formsOf(await visit(owner, page))).toEqual([page]);
  });

  test("are changed by owners, and what is empty is left to the server", async () => {
    const { project, key } = await addProject(acme);
    const to = `/projects/${project}/settings`;
    const fields = {
      name: " shop ",
      defaultBranch: "trunk",
      longLivedBranches: "release/* v1",
      executionTimeoutMinutes: "45",
      retentionDays: "0",
    };
    expect((await send(owner, to, fields)).location).toBe(`${to}?notice=saved`);
    const { body } = await ask(`GET /projects/${project}`, { key });
    expect(body).toMatchObject({
      name: "shop",
      defaultBranch: "trunk",
      longLivedBranches: ["release/*", "v1"],
      executionTimeoutMinutes: 45,
      retentionDays: 0,
    });
    expect((await visit(owner, `${to}?notice=saved`)).words).toContain("Settings saved");
    await send(owner, to, { ...fields, retentionDays: "" });
    expect((await ask(`GET /projects/${project}`, { key })).body.retentionDays).toBe(90);
  });

  test("that make no sense come back with what was typed and what is wrong with it", async () => {
    const fields = {
      name: "",
      defaultBranch: "trunk",
      longLivedBranches: "",
      executionTimeoutMinutes: "soon",
      retentionDays: "",
    };
    const refused = await send(owner, page, fields);
    expect(refused.status).toBe(400);
    expect(refused.words).toContain("Name: expected a text of 1 to 200 characters");
    expect(refused.words).toContain("Execution time-out: expected an integer from 1 to 10080");
    expect(valueOf(refused, "executionTimeoutMinutes")).toBe("soon");
    expect((await ask(`GET /projects/${acme.project}`, { key: acme.key })).body.defaultBranch).toBe("main");
  });

  test("are nobody else's", async () => {
    const fields = {
      name: "x",
      defaultBranch: "x",
      longLivedBranches: "",
      executionTimeoutMinutes: "1",
      retentionDays: "",
    };
    expect((await visit(undefined, page)).location).toStartWith("/login");
    expect((await visit(stranger, page)).status).toBe(404);
    expect((await send(stranger, page, fields)).status).toBe(404);
    expect((await send(undefined, page, fields)).location).toBe("/login");
    for (const person of [viewer, member]) expect((await send(person, page, fields)).status).toBe(403);
    expect((await ask(`GET /projects/${acme.project}`, { key: acme.key })).body.name).toBe("Acme web");
  });

  test("show hostile names as text", async () => {
    const { project } = await addProject(acme);
    const fields = {
      name: `<script>alert("1")</script>`,
      defaultBranch: `"><img src=x>`,
      longLivedBranches: "",
      executionTimeoutMinutes: "30",
      retentionDays: "",
    };
    await send(owner, `/projects/${project}/settings`, fields);
    for (const person of [owner, viewer]) {
      const { html } = await visit(person, `/projects/${project}/settings`);
      expect(html).not.toContain("<script>alert");
      expect(html).not.toContain("<img");
      expect(html).toContain("&lt;script&gt;alert");
    }
  });
});

describe("the key of a project", () => {
  test("says what stops working, is shown once, and works; the one before does not", async () => {
    const { project, key: before } = await addProject(acme);
    await ask(`POST /projects/${project}/test-runs?branch=main&execution_key=7`, { key: before, body: junit("p") });
    await ask(`POST /projects/${project}/leases`, { key: before, body: { runner: "build-1", free: 1 } });
    const settings = `/projects/${project}/settings`;
    // That a key was used is noted beside the request.
    await until(async () => (await visit(member, `${settings}/key`)).words.includes("Last used just now"));
    const warning = await visit(member, `${settings}/key`);
    expect(warning.words).toContain(`The key ${before.slice(0, 17)}… stops working immediately`);
    expect(warning.words).toContain("Last used just now");
    expect(warning.words).toContain("Latest execution: #7 on main, just now");
    expect(warning.words).toContain("1 runner: build-1");
    expect(warning.html).not.toMatch(KEY);
    expect((await ask(`GET /projects/${project}`, { key: before })).status).toBe(200);

    const fields = { replaces: valueOf(warning, "replaces")! };
    const shown = await send(member, `${settings}/key`, fields);
    const key = KEY.exec(shown.html)![0];
    expect([shown.status, shown.headers.get("cache-control")]).toEqual([200, "no-store"]);
    expect(shown.html).toContain(`<pre data-copy>${key}</pre>`);
    expect(shown.words).toContain(
      `curl -H "Authorization: Bearer ${key}" --data-binary @report.xml "${url}/api/v1/projects/${project}/test-runs"`,
    );
    expect((await ask(`GET /projects/${project}`, { key })).status).toBe(200);
    expect((await ask(`GET /projects/${project}`, { key: before })).status).toBe(401);

    // A reload sends the form again.
    const again = await send(member, `${settings}/key`, fields);
    expect([again.status, again.location]).toEqual([303, `${settings}?notice=shown`]);
    expect((await ask(`GET /projects/${project}`, { key })).status).toBe(200);
    const after = await visit(owner, `${settings}?notice=shown`);
    expect(after.words).toContain("The key was shown once");
    expect(after.words).toContain(`Key ${key.slice(0, 17)}…`);
    expect(after.words).toContain(`by ${member.email}`);
    expect(after.html).not.toContain(key);
    expect(lines.filter((line) => line.includes(key))).toEqual([]);
  });

  test("that nobody has yet is generated without a warning", async () => {
    const { location } = await send(owner, `/teams/${acme.team}/projects`, { name: "new one" });
    const settings = location!.replace(/\/key$/, "");
    expect((await visit(owner, settings)).words).toContain("This project has no key yet");
    const asked = await visit(owner, location!);
    expect(asked.words).not.toContain("stops working");
    const shown = await send(owner, location!, { replaces: valueOf(asked, "replaces")! });
    const project = /projects\/([^/]+)/.exec(location!)![1];
    expect((await ask(`GET /projects/${project}`, { key: KEY.exec(shown.html)![0] })).body.name).toBe("new one");
  });

  test("is not for viewers and strangers", async () => {
    for (const [person, status] of [
      [viewer, 403],
      [stranger, 404],
      [undefined, 303],
    ] as const) {
      expect((await visit(person, `${page}/key`)).status).toBe(status);
      const sent = await send(person, `${page}/key`, { replaces: "none" });
      expect([sent.status, KEY.test(sent.html)]).toEqual([status, false]);
    }
    expect((await ask(`GET /projects/${acme.project}`, { key: acme.key })).status).toBe(200);
    expect((await ask(`GET /projects/${rival.project}`, { key: rival.key })).status).toBe(200);
  });
});
