import { beforeAll, describe, expect, test } from "bun:test";
import {
  insertOccurrences,
  type Occurrence,
  type OccurrenceRun,
  withdrawOccurrences,
} from "../../src/store/bug_occurrences.ts";
import { cartReport, createPages } from "./browser.ts";
import { countImpacts } from "../../src/work/impact.ts";

const { people, rival, ask, own, look, fill, walk, report, createProject, database } = await createPages();
const base = `${own.path}/bugs`;

const open = (title: string, more: Record<string, unknown> = {}) => own.post("/bug-reports", { title, ...more });
const read = (id: string) => own.get(`/bug-reports/${id}`);

const HOSTILE = `<script>alert("x")</script> total`;
// Bug 1 is found by itself in four executions, the others are opened by hand.
beforeAll(async () => {
  for (let build = 1; build <= 4; build++)
    await report("pf", { execution_key: String(build), commit: `${build}abcdef0`, says: HOSTILE });
  await open("slow start", { severity: "critical", labels: ["perf"], assignee: "ann" });
  await open("a typo", { severity: "trivial", description: "see <b>the</b> page" });
  await open("came back", { severity: "minor" });
  await database.pool`update bug_report set regressed = true where title = 'came back'`;
});
const found = async () => (await own.list("/bug-reports?source=automatic"))[0];

describe("the list", () => {
  test("says what is open by severity; regressed bugs come first in the order of severity", async () => {
    const { words, html } = await look("viewer", `${base}?sort=severity`);
    expect(words).toContain("4 open bugs: 1 critical, 1 major, 1 minor, 1 trivial; 1 regressed");
    const order = ["came back", "slow start", "alert", "a typo"].map((title) => words.lastIndexOf(title));
    expect(order).toEqual(order.toSorted((a, b) => a - b));
    expect(html.length).toBeLessThan(30_000);
  });

  test("is sorted by the number of executions of the last 14 days in which a bug occurred", async () => {
    await countImpacts(database.pool, new Date());
    const { words } = await look("viewer", base);
    const order = ["Bug 1 ", "Bug 4 ", "Bug 3 ", "Bug 2 "].map((title) => words.indexOf(title));
    expect(order).toEqual(order.toSorted((a, b) => a - b));
    expect((await own.list("/bug-reports?sort=impact")).map(({ impact }: { impact: number }) => impact)).toEqual([
      4, 0, 0, 0,
    ]);
  });

  test("counts the impact anew when a bug occurs again, and lets it end after 14 days", async () => {
    const impacts = async () => (await found()).impact;
    await countImpacts(database.pool, new Date());
    const [due] = await database.pool`select impact_due_at > now() as later from bug_report where impact = 4`;
    expect(due).toEqual({ later: true });
    await countImpacts(database.pool, new Date(Date.now() + 15 * 86_400_000));
    expect(await impacts()).toBe(0);
    const [last] = await database.pool<(Omit<Occurrence, "run"> & Omit<OccurrenceRun, "onDefaultBranch">)[]>`
      select o.bug_report_id as "bugId", o.test_case as "testCase", o.message, o.run_id as id, e.id as "executionId", e.branch,
        e.commit, o.seen_at as "seenAt"
      from bug_occurrence o join test_run r on r.id = o.run_id join execution e on e.id = r.execution_id
      order by o.run_id desc limit 1`;
    const run = { ...last!, onDefaultBranch: true };
    await database.begin((sql) => withdrawOccurrences(sql, own.project, run));
    await countImpacts(database.pool, new Date(Date.now() + 1_000));
    expect(await impacts()).toBe(3);
    await database.begin((sql) => insertOccurrences(sql, own.project, [{ ...last!, run }]));
    await countImpacts(database.pool, new Date(Date.now() + 1_000));
    expect(await impacts()).toBe(4);
  });

  test("shows of each bug its test, its days and how many executions it broke; the navigation says how many are open", async () => {
    const { words, html } = await look("viewer", base);
    expect(words).toMatch(/Bug 1 \S.* unit › case 1 4 failures · unit 4 failed executions/);
    expect(html).toContain('aria-label="4 failures in 14 days, most on ');
    expect(html).toMatch(/Bugs<span class="count">\s*4/);
  });

  test("is filtered by its address", async () => {
    const titles = async (query: string) => {
      const { words, status } = await look("viewer", `${base}?${query}`);
      expect([query, status]).toEqual([query, 200]);
      return ["came back minor", "slow start", "alert(", "a typo"].filter((title) => words.includes(title));
    };
    expect(await titles("q=severity:critical")).toEqual(["slow start"]);
    expect(await titles("q=is:automatic")).toEqual(["alert("]);
    expect(await titles("q=assignee:ann&sort=newest")).toEqual(["slow start"]);
    expect(await titles("q=task:unit")).toEqual(["alert("]);
    expect(await titles("q=TYPO&sort=occurrences")).toEqual(["a typo"]);
    expect(await titles("q=is:resolved,ignored&sort=lastSeenAt")).toEqual([]);
    for (const query of ["status=x", "sort=x", "cursor=back", "cursor=x", "severity=x", "q=severity:x"])
      expect([query, (await look("viewer", `${base}?${query}`)).status]).toEqual([query, 400]);
  });

  test("writes what is chosen beside the field into it", async () => {
    const to = async (query: string) =>
      new URL((await look("viewer", `${base}?${query}`)).location!, "http://assay.example").searchParams.toString();
    const words = (q: string, rest = {}) => new URLSearchParams({ q, ...rest }).toString();
    expect(await to("q=is:open+typo&status=in_progress&severity=&source=manual")).toBe(
      words("is:in_progress is:manual typo"),
    );
    expect(await to("status=open,in_progress,resolved,ignored&sort=newest")).toBe(words("is:any", { sort: "newest" }));
    expect(await to("owner=%40acme/cart&assignee=ann+b&task=unit&severity=minor&changed=take&bug=3")).toBe(
      words('severity:minor task:unit assignee:"ann b" owner:@acme/cart', { changed: "take", bug: "3" }),
    );
  });

  test("is walked exactly once in every order, regressed bugs first in the order of severity", async () => {
    const { project, path, post } = await createProject();
    for (let index = 0; index < 50; index++)
      await post("/bug-reports", { title: `walked ${index}`, severity: ["minor", "major", "trivial"][index % 3] });
    await database.pool`update bug_report set regressed = number % 2 = 0 where project_id = ${project}`;
    for (const sort of ["", "severity", "newest", "lastSeenAt", "occurrences"]) {
      const pages = await walk("viewer", `${path}/bugs?sort=${sort}`, ({ html }) =>
        [...html.matchAll(/<b>Bug (\d+)<\/b>/g)].map(([, number]) => Number(number)),
      );
      const seen = pages.flat();
      expect([sort, seen.length, new Set(seen).size]).toEqual([sort, 50, 50]);
      if (sort === "severity")
        expect(seen.map((number) => number % 2)).toEqual([...Array(25).fill(0), ...Array(25).fill(1)]);
    }
  });

  test("is triaged in one click, and stays the view that it was", async () => {
    const { id, number } = await open("to be triaged");
    let undo: string | null = null;
    const click = async (verb: string) => {
      const fields = { do: `${verb} ${number}`, back: "q=severity%3Amajor" };
      const { status, location } = await fill("member", `${base}/triage`, fields);
      const address = new URL(location!, "http://assay.example");
      expect([status, address.pathname, address.searchParams.get("q")]).toEqual([303, base, "severity:major"]);
      undo = address.searchParams.get("undo");
      const { words } = await look("member", location!);
      expect(words).toContain(`Bug ${number} is `);
      const { status: now, severity, assignee } = await read(id);
      return { now, severity, assignee };
    };
    expect(await click("take")).toMatchObject({ assignee: people.member.name });
    expect(await click(undo!)).toMatchObject({ assignee: null });
    await click("take");
    expect(await click("start")).toMatchObject({ now: "in_progress" });
    expect(await click("critical")).toMatchObject({ severity: "critical" });
    expect(await click(undo!)).toMatchObject({ severity: "major" });
    expect(await click("critical")).toMatchObject({ severity: "critical" });
    expect(await click("ignore")).toMatchObject({ now: "ignored" });
    expect(await click(undo!)).toMatchObject({ now: "in_progress" });
    expect(await click("reopen")).toMatchObject({ now: "open" });
    expect(await click("resolve")).toEqual({ now: "resolved", severity: "critical", assignee: people.member.name });
    for (const what of ["constructor 1", "resolve 999999", "delete 1", "resolve 1; x"])
      expect([what, (await fill("member", `${base}/triage`, { do: what, back: "" })).status]).toEqual([what, 400]);
    const outside = await fill("member", `${base}/triage`, { do: `take ${number}`, back: "//evil.example" });
    expect(outside.location).toBe(`${base}?changed=take&bug=${number}`);
  });
});

describe("one bug", () => {
  test("says what it is, why its failures are one bug, where it occurred and what became of it", async () => {
    const { words, html } = await look("viewer", `${base}/${(await found()).id}`);
    expect(words).toContain("Bug 1: open, major, not assigned, 4 failures");
    expect(words).toContain("Why these failures are one bug");
    expect(words).toMatch(/The failures have the same message: .*, from (src\/work.ts|work.ts work)/);
    expect(words).toContain("Occurrences 4 failures, newest first");
    expect(words).toContain("unit › case 1");
    expect(words.indexOf("#4")).toBeLessThan(words.lastIndexOf("#1"));
    expect(words).toContain("resolved automatically when all of them pass in three consecutive runs of main");
    expect(words).toMatch(/Activity .*opened just now/);
    expect(html).not.toContain("<script>alert");
    expect(html.length).toBeLessThan(30_000);
  });

  test("shows its newest failure first, and how often it occurred", async () => {
    const { words } = await look("viewer", `${base}/${(await found()).id}`);
    expect(words).toMatch(/Newest failure just now unit › unit › case 1 Message \S.* Open full result/);
    expect(words).toMatch(/Occurrences per day: 4 failures in the last 30 days/);
    expect(words.indexOf("Newest failure")).toBeLessThan(words.indexOf("First seen"));
  });

  test("its occurrences and its tests are listed a page at a time", async () => {
    const { path, uploadReport, list } = await createProject();
    const failure = { message: "the disk is full", stack: "Error: the disk is full\n at write (src/disk.ts:3:1)" };
    const cases = Array.from({ length: 370 }, (_, index) => ({ name: `case ${index}`, ...(index < 70 && failure) }));
    await uploadReport(cartReport(cases), "branch=main");
    const [bug] = await list("/bug-reports");
    const one = `${path}/bugs/${bug.id}`;
    const pages = await walk("viewer", one, ({ html }) =>
      /Occurrences, newest first[^]*?<\/table>/.exec(html)![0].match(/(?<=tests\/)[0-9a-f-]{36}/g)!,
    );
    const occurrences = pages.flat();
    expect([occurrences.length, new Set(occurrences).size]).toEqual([70, 70]);
    const more = (html: string) => /href="([^"]+\?cases=[^"]+)">More tests/.exec(html)![1]!;
    const first = await look("viewer", more((await look("viewer", one)).html));
    const rest = more(first.html);
    const inTable = (html: string) =>
      /The tests of this bug[^]*?<\/table>/.exec(html)![0].match(/tests\/[0-9a-f-]{36}/g)!.length;
    expect(inTable(first.html) + inTable((await look("viewer", rest)).html)).toBe(70);
  });

  test("is resolved with the commit of its fix, opened again, begun and ignored", async () => {
    const { id } = await open("to be resolved");
    const path = `${base}/${id}`;
    const fixed = await fill("member", `${path}/status`, { status: "resolved", fixedInCommit: "9f8e7d6c5b" });
    expect(fixed.location).toBe(path);
    expect(await read(id)).toMatchObject({ status: "resolved", fixedInCommit: "9f8e7d6c5b" });
    expect((await look("viewer", path)).words).toMatch(/Fixed in 9f8e7d6/);
    await fill("member", `${path}/status`, { status: "open" });
    await fill("member", `${path}/status`, { status: "in_progress" });
    await fill("member", `${path}/take`);
    const { words } = await look("viewer", path);
    expect(words).toContain(`in progress, major, assigned to ${people.member.name}`);
    expect(words).toMatch(/open → in progress manually .*resolved → open manually .*open → resolved manually .*opened/);
    expect((await fill("member", `${path}/status`, { status: "gone" })).status).toBe(400);
  });

  test("is edited as a whole; what is emptied is nothing", async () => {
    const { id } = await open("old", { assignee: "ann", labels: ["a"], externalUrl: "https://tracker.example/1" });
    const path = `${base}/${id}`;
    const kept = { title: "new <i>", severity: "minor", externalUrl: "https://tracker.example/2?a=1&b=2" };
    const typed = { description: "one\r\n\r\n  two", assignee: "", labels: " perf, ,disk ", fixedInCommit: "" };
    const fields = { ...kept, ...typed };
    expect((await fill("member", path, fields)).status).toBe(303);
    const taken = { description: "one\n\n  two", assignee: null, labels: ["perf", "disk"], fixedInCommit: null };
    expect(await read(id)).toMatchObject({ ...kept, ...taken });
    const { html } = await look("viewer", path);
    expect(html).toContain(`href="https://tracker.example/2?a=1&amp;b=2" rel="noopener noreferrer"`);
    expect(html).toContain("one\n\n  two");
    const bad = [{ title: "" }, { externalUrl: "javascript:alert(1)" }, { severity: "x" }, { labels: "x".repeat(101) }];
    for (const wrong of bad) expect((await fill("member", path, { ...fields, ...wrong })).status).toBe(400);
    await database.pool`update bug_report set external_url = 'javascript:alert(1)' where project_id = ${own.project} and id = ${id}`;
    expect((await look("member", path)).html).not.toContain(`href="javascript:`);
  });

  test("is merged into another that is searched by number or title", async () => {
    const [from, into] = [await open("same thing"), await open("the thing itself")];
    const path = `${base}/${from.id}/merge`;
    expect((await look("member", `${path}?q=${into.number}`)).words).toContain(`Merge into bug ${into.number}`);
    expect((await look("member", `${path}?q=thing+itself`)).words).toContain(`Bug ${into.number} the thing itself`);
    expect((await look("member", `${path}?q=${from.number}`)).words).toContain("No bugs match");
    expect((await look("member", `${path}?q=99999`)).words).toContain("No bugs match");
    const { location } = await fill("member", path, { into: into.id });
    expect(location).toBe(`${base}/${into.id}`);
    expect(await read(from.id)).toMatchObject({ status: "resolved", mergedInto: into.id });
    const merged = await look("member", `${base}/${from.id}`);
    expect(merged.words).toContain(`Merged into bug ${into.number}: the thing itself`);
    const again = await fill("member", path, { into: into.id });
    expect(again.words).toContain(`bug report ${from.number} was merged into`);
    const itself = await fill("member", `${base}/${into.id}/merge`, { into: into.id });
    expect(itself.words).toContain("expected another bug report");
  });

  test("is opened by hand, also about a test", async () => {
    const [testCaseId] = (await found()).testCaseIds;
    const { words, html } = await look("member", `${base}/new?test=${testCaseId}`);
    expect(words).toContain("Linked test: unit › case 1");
    expect(html).toContain(`name="tests" value="${testCaseId}"`);
    const given = { title: "by hand", severity: "minor" };
    const fields = { ...given, description: "d", assignee: "", labels: "", externalUrl: "", fixedInCommit: "" };
    const { location } = await fill("member", base, { ...fields, tests: testCaseId });
    const id = location!.split("/").at(-1)!;
    expect(await read(id)).toMatchObject({ ...given, source: "manual", testCaseIds: [testCaseId] });
    const unknown = await fill("member", base, { ...fields, tests: crypto.randomUUID() });
    expect(unknown.words).toContain("expected only test cases of this project");
    expect((await fill("member", base, { ...fields, tests: "nonsense" })).status).toBe(400);
    expect((await look("member", `${base}/new`)).words).toContain("New bug");
  });
});

test("a bug of another project cannot be merged into", async () => {
  const request = { key: rival.key, body: { title: "secret" } };
  const { body: foreign } = await ask(`POST /projects/${rival.project}/bug-reports`, request);
  const merged = await fill("owner", `${base}/${(await found()).id}/merge`, { into: foreign.id });
  expect([merged.status, merged.words.includes("secret")]).toEqual([400, false]);
});

test("an execution that was deleted is told of, and not linked to", async () => {
  const gone = { execution_key: "gone", branch: "main", says: "Error: gone with its build" };
  const { body } = await report("f", gone, "vanishes");
  const bug = body.bugReports[0];
  await own.call("DELETE", `/executions/${body.executionId}`);
  const { html, words } = await look("viewer", `${base}/${bug.id}`);
  expect(words).toContain("in an execution that has been deleted");
  expect(html).not.toContain(body.executionId);
});
