/** The settings of a project and its key. */

import { describe, expect, test } from "bun:test";
import { until } from "../harness.ts";
import { createPages, formsOf, valueOf } from "./browser.ts";

const lines: string[] = [];
const { acme, ask, own, look, fill, people, createProject, url, database } = await createPages({
  log: (line) => void lines.push(line),
});
const page = `/projects/${acme.project}/settings`;
const KEY = /svc_proj_[0-9A-Za-z]{44}/;

describe("the export", () => {
  test("is a file for everybody who may see the project, with what the API exports", async () => {
    const { path, key, upload } = await createProject();
    await upload("pf");
    const to = `${path}/export`;
    expect((await look("viewer", `${path}/settings`)).html).toContain(`href="${to}"`);
    const { status, headers, html } = await look("viewer", to);
    expect([status, headers.get("content-type")]).toEqual([200, "application/x-ndjson"]);
    expect(headers.get("content-disposition")).toMatch(/^attachment; filename="assay-export-\d{4}-\d\d-\d\d\.ndjson"$/);
    const { text } = await ask(`GET ${to}`, { key });
    const withoutTime = (lines: string) => lines.replace(/"takenAt":"[^"]*"/, "");
    expect(withoutTime(html)).toBe(withoutTime(text));
  });
});

test("owners see on every page of a project that old data will be deleted, and how to stop it", async () => {
  const { path } = await createProject();
  await database.pool`
    insert into planned_deletion select id, 'results', 30, 1234, now(), now() from project where ${path} like '%' || id`;
  const notice = "the results of 1,234 test runs, older than 30 days";
  expect((await look("owner", path)).words).toContain(notice);
  expect((await look("member", path)).words).not.toContain(notice);
});

describe("the ownership file", () => {
  test("is shown with where it came from, its mistakes, and the tests that it leaves without an owner", async () => {
    const { path, upload, call } = await createProject();
    const to = `${path}/settings/owners`;
    expect((await look("viewer", to)).words).toContain("No ownership file yet");
    await upload("ppp");
    await call("PUT", "/owners?path=CODEOWNERS&branch=main", "class:unit @unit <b>\n/docs/ @docs\n");
    const { words, html } = await look("viewer", to);
    expect(words).toContain("From CODEOWNERS on main");
    expect(words).toContain("3 of 3 tests without an owner");
    expect(words).toContain('Line 1: expected an owner such as "@name"');
    expect(html).toContain("1  class:unit @unit &lt;b&gt;\n2  /docs/ @docs");
    expect((await look("viewer", `${path}/tests?q=is:unowned`)).words).toContain("unit › case 0");
  });

  test("gives tests their owners on their pages", async () => {
    const { path, upload, call, list } = await createProject();
    await upload("fp", "branch=main");
    await call("PUT", "/owners?path=CODEOWNERS", "* @all\nclass:unit @cart @pay\n");
    const words = async (page: string) => (await look("viewer", `${path}${page}`)).words;
    const [testCase] = await list("/test-cases");
    expect(await words(`/tests/${testCase.id}`)).toContain("owners @cart, @pay, by line 2 of CODEOWNERS");
    const [{ id }] = await list("/executions");
    expect(await words(`/executions/${id}`)).toContain("owner @cart, @pay");
    expect(await words("/bugs?q=owner:%40cart")).toContain("Unassigned @cart, @pay");
    expect(await words("/bugs?q=owner:%40all")).toContain("No bugs match");
    expect(await words("/tests?q=owner:%40pay")).toContain("case 0");
  });
});

describe("the settings of a project", () => {
  test("are shown to viewers and members without a form, to owners with one", async () => {
    const seen = await look("viewer", page);
    expect(seen.words).toContain("Retention server setting: 90 days");
    expect(seen.words).toContain("Default branch main");
    expect(seen.words).toContain("Owners of the team can change this");
    expect(formsOf(seen)).toEqual([]);
    expect(seen.html).not.toContain(`"${page}/key"`);
    for (const to of ["key", "keys", "ci"]) expect((await look("member", page)).html).toContain(`"${page}/${to}"`);
    expect(formsOf(await look("owner", page))).toEqual([page, `${page}/gate-share`]);
  });

  test("are changed by owners, and what is empty is left to the server", async () => {
    const { path, get } = await createProject();
    const to = `${path}/settings`;
    const fields = {
      name: " shop ",
      defaultBranch: "trunk",
      longLivedBranches: "release/* v1",
      executionTimeoutMinutes: "45",
      retentionDays: "0",
    };
    expect((await fill("owner", to, fields)).location).toBe(`${to}?notice=saved`);
    expect(await get("")).toMatchObject({
      name: "shop",
      defaultBranch: "trunk",
      longLivedBranches: ["release/*", "v1"],
      executionTimeoutMinutes: 45,
      retentionDays: 0,
    });
    expect((await look("owner", `${to}?notice=saved`)).words).toContain("Settings saved");
    await fill("owner", to, { ...fields, retentionDays: "" });
    expect((await get("")).retentionDays).toBe(90);
  });

  test("that make no sense come back with what was typed and what is wrong with it", async () => {
    const fields = {
      name: "",
      defaultBranch: "trunk",
      longLivedBranches: "",
      executionTimeoutMinutes: "soon",
      retentionDays: "",
    };
    const refused = await fill("owner", page, fields);
    expect(refused.status).toBe(400);
    expect(refused.words).toContain("Name: expected a text of 1 to 200 characters");
    expect(refused.words).toContain("Execution time-out: expected an integer from 1 to 10080");
    expect(valueOf(refused, "executionTimeoutMinutes")).toBe("soon");
    expect((await own.get("")).defaultBranch).toBe("main");
  });
});

describe("the share up to which gates forgive", () => {
  test("is chosen beside what each choice would have done with stored builds", async () => {
    const { path, upload, get } = await createProject();
    const to = `${path}/settings`;
    await upload("fp", "branch=main");
    await upload("fp", "branch=x");
    expect((await look("owner", to)).words).toContain(
      "Strict 0.05: 20 to 1 against the change 0 of 1 1 of 1 Normal 0.2: 4 to 1 against the change 0 of 1 0 of 1",
    );
    const form = `${to}/gate-share`;
    const tried = await fill("owner", form, { choice: "normal", share: ".01", action: "try" });
    expect(tried.location).toBe(`${to}?share=0.01#gates`);
    const shown = await look("owner", `${to}?share=0.01`);
    expect([valueOf(shown, "share"), shown.words]).toEqual([
      "0.01",
      expect.stringContaining("Another number 99 to 1 against the change 0 of 1"),
    ]);
    expect((await get("")).gateShare).toBe(0.2);
    expect((await fill("owner", form, { choice: "strict", share: "", action: "save" })).location).toBe(
      `${to}?notice=saved#gates`,
    );
    expect((await get("")).gateShare).toBe(0.05);
    await fill("owner", form, { choice: "own", share: "0.125", action: "save" });
    expect((await get("")).gateShare).toBe(0.125);
    const seen = await look("viewer", to);
    expect(seen.words).toContain("Another number (chosen) 0.125: 7 to 1 against the change");
    // Other settings are saved without it.
    const fields = {
      name: "a",
      defaultBranch: "main",
      longLivedBranches: "",
      executionTimeoutMinutes: "5",
      retentionDays: "",
    };
    await fill("owner", to, fields);
    expect((await get("")).gateShare).toBe(0.125);
  });

  test.each(["0.6", "strict", "", "1e-1"])("is refused where it is %j", async (share) => {
    for (const action of ["save", "try"]) {
      const refused = await fill("owner", `${page}/gate-share`, { choice: "own", share, action });
      expect([refused.status, valueOf(refused, "share")]).toEqual([400, share]);
      expect(refused.words).toContain("expected a number from 0.01 to 0.5");
    }
    expect((await own.get("")).gateShare).toBe(0.2);
  });
});

describe("the key of a project", () => {
  test("says what stops working, is shown once, and works; the one before does not", async () => {
    const { project, path, key: before, upload, post } = await createProject();
    await upload("p", "branch=main&execution_key=7");
    await post("/leases", { runner: "build-1", free: 1 });
    const settings = `${path}/settings`;
    const statusOf = async (key: string) => (await ask(`GET ${path}`, { key })).status;
    // That a key was used is noted beside the request.
    await until(async () => (await look("member", `${settings}/key`)).words.includes("Last used just now"));
    const warning = await look("member", `${settings}/key`);
    expect(warning.words).toContain(`The key ${before.slice(0, 17)}… stops working immediately`);
    expect(warning.words).toContain("Last used just now");
    expect(warning.words).toContain("Latest execution: #7 on main, just now");
    expect(warning.words).toContain("1 runner: build-1");
    expect(warning.html).not.toMatch(KEY);
    expect(await statusOf(before)).toBe(200);

    const fields = { replaces: valueOf(warning, "replaces")! };
    const shown = await fill("member", `${settings}/key`, fields);
    const key = KEY.exec(shown.html)![0];
    expect([shown.status, shown.headers.get("cache-control")]).toEqual([200, "no-store"]);
    expect(shown.html).toContain(`<pre data-copy>${key}</pre>`);
    expect(shown.words).toContain(
      `curl -H "Authorization: Bearer ${key}" --data-binary @report.xml "${url}/api/v1/projects/${project}/test-runs"`,
    );
    expect(await statusOf(key)).toBe(200);
    expect(await statusOf(before)).toBe(401);

    // A reload sends the form again.
    const again = await fill("member", `${settings}/key`, fields);
    expect([again.status, again.location]).toEqual([303, `${settings}?notice=shown`]);
    expect(await statusOf(key)).toBe(200);
    const after = await look("owner", `${settings}?notice=shown`);
    expect(after.words).toContain("The key was shown once");
    expect(after.words).toContain(`Key ${key.slice(0, 17)}…`);
    expect(after.words).toContain(`by ${people.member.email}`);
    expect(after.html).not.toContain(key);
    expect(lines.filter((line) => line.includes(key))).toEqual([]);
  });

  test("that nobody has yet is generated without a warning", async () => {
    const { location } = await fill("owner", `/teams/${acme.team}/projects`, { name: "new one" });
    const settings = location!.replace(/\/key$/, "");
    expect((await look("owner", settings)).words).toContain("This project has no key yet");
    const asked = await look("owner", location!);
    expect(asked.words).not.toContain("stops working");
    const shown = await fill("owner", location!, { replaces: valueOf(asked, "replaces")! });
    const project = /projects\/([^/]+)/.exec(location!)![1];
    expect((await ask(`GET /projects/${project}`, { key: KEY.exec(shown.html)![0] })).body.name).toBe("new one");
  });
});

test("a named key that reads or triages has the line for an assistant", async () => {
  const path = `${page}/keys`;
  for (const scope of ["read", "triage", "upload", "run"]) {
    const newest = valueOf(await look("member", path), "newest")!;
    const { words } = await fill("member", path, { name: scope, scope, days: "", newest });
    const isShown = words.includes("claude mcp add --transport http assay");
    expect([scope, isShown]).toEqual([scope, scope === "read" || scope === "triage"]);
  }
});
