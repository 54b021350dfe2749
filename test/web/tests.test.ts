import { beforeAll, describe, expect, test } from "bun:test";
import { createPages } from "./browser.ts";

const { own, look, fill, walk, report, createProject } = await createPages();
const base = `${own.path}/tests`;

const commitOf = (index: number) => Bun.SHA256.hash(`commit ${index}`, "hex").slice(0, 40);
const idOf = async (name: string): Promise<string> =>
  (await own.list("/test-cases?limit=100")).find((one) => one.name === name).id;

// case 0 passes always, case 1 is flaky by a retry, case 2 fails since build 5
beforeAll(async () => {
  for (let build = 1; build <= 10; build++) {
    const broken = build >= 5 ? "f" : "p";
    const of = { execution_key: String(build), commit: commitOf(build), says: `total is ${build} <b>now</b>` };
    if (build === 8) await report("pf" + broken, of);
    await report("pp" + broken, of);
  }
  await report("f", { execution_key: "h", task_slug: "other", branch: "feature" }, "another");
});

describe("the catalogue", () => {
  test("says what is rotten before it lists anything", async () => {
    const { status, words, html } = await look("viewer", base);
    expect(status).toBe(200);
    expect(words).toContain("1 broken test, 1 flaky test");
    expect(words).toContain("Broken");
    expect(words.indexOf("broken unit › case 2")).toBeLessThan(words.indexOf("All tests"));
    expect(words).toMatch(/passed last just now/);
    expect(words).toMatch(/slowest: case 2, 300 ms/);
    // In figures: failures of runs.
    expect(words).toContain("6 of 10");
    expect(html.length).toBeLessThan(30_000);
  });

  test("is filtered and sorted by its address, and says which filter is on", async () => {
    const flaky = await look("viewer", `${base}?q=is:flaky`);
    expect(flaky.words).toContain("case 1");
    expect(flaky.words).not.toContain("case 0");
    expect(flaky.html).toContain(`value="is:flaky"`);
    expect((await look("viewer", `${base}?q=CASE+2&sort=p95Ms`)).words).not.toContain("case 1");
    expect((await look("viewer", `${base}?q=task:other`)).words).not.toContain("case 0");
    expect((await look("viewer", `${base}?owner=&q=is:unquarantined`)).words).toContain("case 0");
    expect((await look("viewer", `${base}?q=nothing+like+it`)).words).toContain("No tests match the filters");
  });

  test("writes what is chosen beside the field into it, in place of what it said before", async () => {
    const to = async (query: string) => {
      const { status, location } = await look("viewer", `${base}?${query}`);
      expect([query, status]).toEqual([query, 303]);
      const { searchParams } = new URL(location!, "http://assay.example");
      return Object.fromEntries(searchParams);
    };
    expect(await to("q=is%3Abroken+case+is%3Aowned&health=flaky&task=&sort=failures")).toEqual({
      q: "is:owned is:flaky case",
      sort: "failures",
    });
    expect(await to("q=tag%3Aa%3Ab&tag=c%3Ad,a%3Ab&owner=the+web+team&owned=false&quarantined=true")).toEqual({
      q: 'tag:a:b tag:c:d owner:"the web team" is:unowned is:quarantined',
    });
    expect(await to("task=unit&changed=2")).toEqual({ q: "task:unit", changed: "2" });
  });

  test("says beside the field what a word must be, and shows no tests", async () => {
    const wrong = await look("viewer", `${base}?q=case+is%3A%3Cill%3E`);
    expect(wrong.status).toBe(400);
    expect(wrong.words).toContain("Cannot read the search: expected one of healthy, flaky, broken,");
    expect(wrong.words).toContain('in "is:<ill>"');
    expect(wrong.html).toContain('aria-invalid="true"');
    expect(wrong.words).not.toContain("case 0");
  });

  test("names what is wrong with an address, and takes no place that it has not given", async () => {
    for (const query of ["health=ill", "sort=name", "cursor=1"])
      expect([query, (await look("viewer", `${base}?${query}`)).status]).toEqual([query, 400]);
  });

  test("is walked exactly once in every order", async () => {
    const { path, uploadReport } = await createProject();
    const cases = Array.from(
      { length: 60 },
      (_, index) =>
        `<testcase classname="s" name="walked ${index}" time="0.${index % 9}">${index % 3 === 0 ? `<failure message="x"/>` : ""}</testcase>`,
    );
    await uploadReport(`<testsuite name="s">${cases.join("")}</testsuite>`);
    for (const sort of ["", "failures", "p95Ms", "lastRunAt", "firstSeen"]) {
      const pages = await walk("member", `${path}/tests?sort=${sort}`, ({ html }) =>
        [...html.matchAll(/name="case\d+" value="([^"]+)"/g)].map(([, id]) => id!),
      );
      const seen = pages.flat();
      expect([sort, seen.length, new Set(seen).size]).toEqual([sort, 60, 60]);
    }
  });

  test("quarantines, frees and gives away the ticked ones, and comes back to the view", async () => {
    const [a, b] = [await idOf("case 0"), await idOf("case 1")];
    const ticked = { case0: a, case7: b, back: "q=case&sort=p95Ms" };
    const done = await fill("member", `${base}/change`, {
      ...ticked,
      do: "quarantine",
      reason: "tax <moved>",
      until: "2999-12-31",
    });
    expect([done.status, done.location]).toEqual([303, `${base}?q=case&sort=p95Ms&changed=2`]);
    expect((await look("viewer", done.location!)).words).toContain("2 tests changed");
    expect((await own.get(`/test-cases/${a}`)).quarantine).toMatchObject({
      reason: "tax <moved>",
      until: "2999-12-31T23:59:59.999Z",
    });
    expect((await look("viewer", `${base}?q=is:quarantined`)).words).toContain("2 quarantined");
    await fill("member", `${base}/change`, { ...ticked, do: "release" });
    await fill("member", `${base}/change`, { ...ticked, do: "own", owner: "ann" });
    expect((await look("viewer", `${base}?q=owner:ann`)).words).toContain("case 1");
    expect(await own.get(`/test-cases/${b}`)).toMatchObject({ quarantine: null, owner: "ann" });
    await fill("member", `${base}/change`, { ...ticked, do: "own", owner: "" });
    expect((await own.get(`/test-cases/${b}`)).owner).toBeNull();
  });

  test("refuses what makes no sense in words, and leads nowhere else", async () => {
    const ticked = { case0: await idOf("case 0"), back: "" };
    const refused = async (fields: Record<string, string>, words: string) => {
      const seen = await fill("member", `${base}/change`, fields);
      expect([seen.status, seen.words.includes(words)]).toEqual([400, true]);
    };
    await refused({ back: "", do: "release" }, "Select at least one test");
    await refused({ ...ticked, do: "quarantine" }, "A quarantine needs a reason");
    await refused({ ...ticked, do: "quarantine", reason: "x", until: "2001-01-01" }, "expected a time in the future");
    await refused({ ...ticked, do: "quarantine", reason: "x", until: "soon" }, "expected a date");
    await refused({ ...ticked, case1: crypto.randomUUID(), do: "own", owner: "x" }, "this project has no test case");
    const { location } = await fill("member", `${base}/change`, {
      ...ticked,
      back: "//evil.example\r\nX: y",
      do: "release",
    });
    expect(location).toStartWith(`${base}?`);
    expect(location).not.toContain("//evil");
  });
});

describe("one test", () => {
  test("that fails says since when, by which commit, and between which two builds it began", async () => {
    const { words, html } = await look("viewer", `${base}/${await idOf("case 2")}`);
    expect(words).toContain(`Broken on main: failed the last 6 times, first at ${commitOf(5).slice(0, 7)} just now`);
    expect(words).toContain("First failure on main");
    expect(words).toContain(`passed last #4 ${commitOf(4).slice(0, 7)}`);
    expect(words).toContain(`failed first #5 ${commitOf(5).slice(0, 7)}`);
    expect(words).toContain(`git log ${commitOf(4).slice(0, 12)}..${commitOf(5).slice(0, 12)}`);
    expect(words).toContain("Last failure #10");
    expect(words).toContain("at work (src/work.ts:7:1)");
    expect(words).toMatch(/Bug \d+ Error: total is \d+ <b>now<\/b>/);
    expect(words).toContain("The last 10 results on all branches: 4 passed, 6 failed; newest right");
    expect(html.length).toBeLessThan(30_000);
  });

  test("that is flaky says how often, why it counts as that, and when it will have recovered", async () => {
    const { words } = await look("viewer", `${base}/${await idOf("case 1")}`);
    expect(words).toContain("Flaky: failed 1 of the last 10 results");
    expect(words).toContain("it passed on retry within one run, on the same code");
    expect(words).toMatch(/It recovers after \d+ more passes in a row: 2 of \d+ so far/);
    expect(words).toContain("and passed on retry");
  });

  test("that is sound says how often it has passed", async () => {
    const { words } = await look("viewer", `${base}/${await idOf("case 0")}`);
    expect(words).toContain("Healthy: passed the last 10 times");
    expect(words).not.toContain("Last failure");
  });

  test("links its strip to the executions, oldest left, and tells its durations in a table as well", async () => {
    const { html, words } = await look("viewer", `${base}/${await idOf("case 2")}`);
    const strip = /<div class="bars">[^]*?<\/svg>/.exec(html)![0];
    const links = [...strip.matchAll(/<a href="([^"]+)"><title>[^<]*<\/title><rect class="(\w+)"/g)];
    expect(links.map(([, , status]) => status)).toEqual([...Array(4).fill("passed"), ...Array(6).fill("failed")]);
    const first = new URL(links[0]![1]!, `http://x${base}/id`).pathname;
    expect(first).toMatch(new RegExp(`^${own.path}/executions/[0-9a-f-]{36}$`));
    expect(words).toContain("View as table Execution Result Duration #1 main passed 300 ms");
  });

  test("filters its history by status and branch, a page at a time", async () => {
    const path = `${base}/${await idOf("case 2")}`;
    const history = (words: string) => words.slice(words.indexOf("History"));
    const passed = history((await look("viewer", `${path}?status=passed`)).words);
    expect([passed.includes("#4"), passed.includes("#5")]).toEqual([true, false]);
    expect(history((await look("viewer", `${path}?branch=other`)).words)).toContain("No results match the filters");
    expect((await look("viewer", `${path}?cursor=x`)).status).toBe(400);
    expect((await look("viewer", `${path}?status=broken`)).status).toBe(400);
  });

  test("says how often it failed in each of the last weeks", async () => {
    const { path, upload, list } = await createProject();
    const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString();
    for (const [days, letters] of [
      [80, "f"],
      [15, "p"],
      [15, "f"],
      [8, "s"],
      [0, "p"],
    ] as const)
      await upload(letters, `completed_at=${daysAgo(days)}`);
    await upload("f", "execution_key=again");
    await upload("p", "execution_key=again");
    const [{ id }] = await list("/test-cases");
    const { words } = await look("viewer", `${path}/tests/${id}`);
    expect(words).toContain("Failures by week 2 failures in 8 weeks");
    expect(words).toContain(`this week last: ${"no results, ".repeat(5)}1 of 2, no results, 1 of 2`);
  });

  test("is quarantined, freed and given to somebody on its own page", async () => {
    const path = `${base}/${await idOf("case 2")}`;
    const { status, location } = await fill("member", `${path}/quarantine`, { reason: "known <i>", until: "" });
    expect([status, location]).toEqual([303, path]);
    expect((await look("viewer", path)).words).toContain("Quarantined just now, with no end date");
    const soon = new Date(Date.now() + 5 * 86_400_000).toISOString().slice(0, 10);
    await fill("member", `${path}/quarantine`, { reason: "known", until: soon, skip: "true" });
    expect((await look("viewer", path)).words).toContain("from now: jobs leave it out. known");
    expect((await look("viewer", `${base}?q=is:quarantined`)).words).toContain("skipped, last run");
    expect((await fill("member", `${path}/quarantine`, { reason: "known", until: "", skip: "true" })).status).toBe(400);
    await fill("owner", `${path}/owner`, { owner: "@acme/cart" });
    expect((await look("viewer", path)).words).toContain("owner @acme/cart");
    await fill("member", `${path}/release`);
    expect((await look("viewer", path)).words).not.toContain("Quarantined");
  });
});

describe("a verification", () => {
  test("is begun and cancelled on the page of its test, which links to its failed runs", async () => {
    const path = `${base}/${await idOf("case 1")}`;
    const fields = { commit: commitOf(10), runs: "50" };
    const refused = await fill("member", `${path}/verify`, fields);
    expect([refused.status, refused.words]).toEqual([400, expect.stringContaining("Cannot run the test case alone")]);
    const sync = (more: object) => own.post("/leases", { runner: "r", probeSlugs: ["unit"], ...more });
    await sync({ free: 0 });
    expect((await look("member", path)).html).toMatch(
      /name="commit" value="\w*" required minlength="7" maxlength="64"/,
    );
    const begun = await fill("member", `${path}/verify`, fields);
    expect([begun.status, begun.location]).toEqual([303, `${path}#verifications`]);
    const { leases } = await sync({ free: 1 });
    const body = `<testsuite name="unit"><testcase classname="unit" name="case 1"><failure message="late"/></testcase></testsuite>`;
    await own.call("POST", `/test-runs?lease_id=${leases[0].id}`, body);
    const probe = `${own.path}/executions/${leases[0].execution.id}`;
    const page = await look("member", path);
    expect(page.words).toContain("running");
    expect(page.html).toContain(`<a href="${probe}">probe 1</a>`);
    expect((await look("viewer", probe)).words).toContain(
      "Probe: this execution runs case 1 alone, at one commit, for a verification. It failed.",
    );
    expect((await look("viewer", `${own.path}/executions`)).html).not.toContain(probe);
    expect((await look("viewer", `${own.path}/executions?probe=true`)).html).toContain(probe);
    const [, cancel] = /action="([^"]*\/verifications\/[^"]*\/cancel)"/.exec(page.html)!;
    await fill("member", cancel!);
    expect((await look("viewer", path)).words).toContain("Cancelled after 1 of 50 runs");
  });
});
