/** What the tools answer where the official clients do not look closely. */

import { beforeEach, describe, expect, test } from "bun:test";
import { insertFoundSearch } from "../culprit_searches.ts";
import { createAsking } from "../asking.ts";
import { createHarness } from "../harness.ts";
import { createAssistant } from "./assistant.ts";

const { ask, acme, addProject, database, url } = await createHarness();
const { call: callWith, request } = createAssistant(url);

let own: ReturnType<typeof createAsking>;
beforeEach(async () => void (own = createAsking(ask, await addProject(acme), "unit")));

const call = (tool: string, args: object) => callWith(tool, args, own.key);
const upload = (letters: string, query = "branch=main") => own.upload(letters, `complete=true&${query}`);

describe("why_is_it_red", () => {
  test("explains the default branch, with what is new, whose it is, and its bug", async () => {
    await upload("ppp", "branch=main&execution_key=1");
    const [{ id: testCaseId }] = await own.list("/test-cases");
    await own.patch(`/test-cases/${testCaseId}`, { owner: "ada" });
    const run = await upload("fpp", "branch=main&execution_key=2");
    const bugReport = { id: run.bugReports[0].id, number: 1, status: "open", known: false };
    const untrusted = { suite: "unit", name: "case 0", owner: "ada", taskSlug: "unit" };
    expect(await call("why_is_it_red", {})).toMatchObject({
      ...{ red: true, summary: "1 new", untrusted: { headline: "1 new failure since #1" }, leftOut: [], causeCount: 1 },
      branch: { state: "failed", untrusted: { branch: "main", sentence: "main is red: unit: 1 failure" } },
      execution: { id: run.executionId, status: "failed", tasks: [{ failed: 1, untrusted: { slug: "unit" } }] },
      causes: [
        {
          ...{ failed: 1, blame: "new", bugReport, untrusted: { message: "case 0 failed" } },
          reason: expect.stringMatching(/^It passed in the only result of other builds: 9\d % this change$/),
          tests: [{ testCaseId, since: { executionId: run.executionId }, untrusted }],
        },
      ],
    });
  });

  test("names a known bug, and the commit that broke its test as text that is not trusted", async () => {
    await upload("p", "branch=main&execution_key=1");
    const { bugReports } = await upload("f", "branch=main&execution_key=2");
    await upload("f", "branch=topic&execution_key=3");
    const searchId = await insertFoundSearch(database, { project: own.project, bugReportId: bugReports[0].id });
    const { causes } = await call("why_is_it_red", { branch: "topic" });
    expect(causes[0].bugReport).toMatchObject({
      ...{ id: bugReports[0].id, number: 1, status: "open", known: true },
      untrusted: { culprit: { searchId, author: "Ada", summary: expect.stringContaining("by Ada broke it") } },
    });
  });

  test("names the variant in which a test fails, and the tags that it fails with", async () => {
    await upload("pp", "branch=main&execution_key=1&tag=browser:chromium");
    await upload("fp", "branch=main&execution_key=1&tag=browser:webkit");
    const { causes, execution } = await call("why_is_it_red", {});
    const only = { taskSlug: "unit [browser:webkit]", onlyWith: ["browser:webkit"] };
    expect(causes[0].tests).toMatchObject([{ untrusted: only }]);
    expect(execution.tasks[0].untrusted).toEqual({ slug: "unit [browser:webkit]" });
    const { test: shown } = await call("test_history", { testCaseId: causes[0].tests[0].testCaseId });
    expect(shown.untrusted).toMatchObject({
      tags: ["browser:webkit"],
      variants: [
        { tags: ["browser:chromium"], failed: 0 },
        { tags: ["browser:webkit"], failed: 1 },
      ],
    });
    await upload("f", "branch=plain");
    const plain = await call("why_is_it_red", { branch: "plain" });
    expect(plain.causes[0].tests[0].untrusted).not.toHaveProperty("onlyWith");
  });

  test("says of a branch, a pull request and an execution whether it is red, and what goes on", async () => {
    const { executionId } = await upload("pf", "branch=topic&pull_request=12");
    const running = await own.post("/executions", { branch: "topic", pullRequest: "12", tasks: ["unit"] });
    for (const args of [{ branch: "topic" }, { pullRequest: "12" }]) {
      const found = await call("why_is_it_red", args);
      expect(found).toMatchObject({ red: true, execution: { id: executionId } });
      expect(found.newerExecutionStillRunning).toBe(running.id);
    }
    expect(await call("why_is_it_red", { executionId })).toMatchObject({ red: true, execution: { id: executionId } });
    await upload("pp", "branch=green");
    const green = await call("why_is_it_red", { branch: "green" });
    expect(green).toMatchObject({ red: false, summary: "no failures", causes: [] });
    expect(green.untrusted.headline).toStartWith("2 passed");
    const none = { red: false, summary: "There is no execution of this pull request" };
    expect(await call("why_is_it_red", { pullRequest: "99" })).toMatchObject(none);
  });

  test("says whether the gate forgives the failures of a red execution", async () => {
    await upload("fp", "branch=main");
    const { executionId } = await upload("fp", "branch=topic");
    expect((await call("why_is_it_red", { branch: "topic" })).gate).toEqual({
      ...{ mode: "new", pass: true, final: true, forgivenCount: 1, untrusted: { reasons: [] } },
    });
    expect((await call("why_is_it_red", { executionId })).gate.pass).toBe(true);
    await upload("pp", "branch=topic");
    expect("gate" in (await call("why_is_it_red", { branch: "topic" }))).toBe(false);
  });

  test("names the attachments of a failure, and stays small however many there are", async () => {
    const names = Array.from({ length: 12 }, (_, file) => `${"a".repeat(150)}-${file}.log`);
    const cases = Array.from({ length: 30 }, (_, index) => ({
      ...{ name: `case ${index}`, status: "failed", message: `message ${index}` },
      attachments: names.map((path) => ({ path, name: `log of ${path}` })),
    }));
    const form = new FormData();
    form.append("file", new Blob([JSON.stringify({ passed: 0, failed: 30, skipped: 0, cases })]), "report.json");
    for (const name of names) form.append("attachment", new Blob([`text of ${name}`]), name);
    const run = await own.uploadReport(form, "complete=true&branch=main");
    const found = await call("why_is_it_red", {});
    const [{ attachments, furtherAttachments }] = found.causes[0].tests;
    expect([attachments.length, furtherAttachments]).toEqual([3, 9]);
    expect(attachments[0]).toEqual({
      contentType: "text/plain",
      url: expect.stringContaining(`/projects/${own.project}/attachments/`),
      untrusted: { name: `log of ${names[0]}`, path: names[0] },
    });
    expect(Buffer.byteLength(JSON.stringify(found))).toBeLessThan(20_000);
    const failures = await call("get_failures", { executionId: run.executionId, limit: 25 });
    expect(failures.causes[0].tests[0].attachments[0].untrusted.path).toBe(names[0]);
    expect(Buffer.byteLength(JSON.stringify(failures))).toBeLessThan(20_000);
  });

  test("says that no test failed where something else made it red", async () => {
    const execution = await own.post("/executions", { branch: "main", tasks: ["unit"] });
    await own.post(`/executions/${execution.id}/complete`);
    const found = await call("why_is_it_red", {});
    const headline = "Timed out: unit: did not report";
    expect(found).toMatchObject({ red: true, summary: "no failing test", untrusted: { headline } });
  });
});

describe("lists", () => {
  test("go on with their cursors, and no element is lost", async () => {
    for (let build = 0; build < 5; build++) await upload("pf", `branch=main&execution_key=${build}`);
    const seen: string[] = [];
    let cursor: string | undefined;
    for (let pages = 0; pages < 3; pages++) {
      const page = await call("list_executions", { branch: "main", limit: 2, ...(cursor ? { cursor } : {}) });
      seen.push(...page.executions.map(({ id }: { id: string }) => id));
      expect(page.leftOut.length).toBe(pages === 2 ? 0 : 1);
      cursor = page.nextCursor ?? undefined;
    }
    expect([seen.length, new Set(seen).size, cursor]).toEqual([5, 5, undefined]);
  });
});

describe("test_history", () => {
  test("finds a test by its name or a part of it, and lists several", async () => {
    await upload("pppppppppppf");
    const { test: exact, results } = await call("test_history", { name: "case 1" });
    expect([exact.untrusted.name, results.length]).toEqual(["case 1", 1]);
    const several = await call("test_history", { name: "ase 1" });
    expect(several.tests.map(({ untrusted }: any) => untrusted.name)).toEqual(["case 1", "case 10", "case 11"]);
    expect(several.leftOut).toEqual(["results: call again with the testCaseId of one of these tests"]);
    expect(await call("test_history", { name: "nothing" })).toMatchObject({ found: 0, tests: [] });
  });
});

describe("get_log", () => {
  test("answers the end of a log, the errors before it, and reads backwards", async () => {
    const execution = await own.post("/executions", { mode: "run", tasks: ["unit"] });
    const sync = (body: object) => own.post("/leases", { runner: "r1", waitSeconds: 0, ...body });
    const [lease] = (await sync({ free: 1 })).leases;
    const text = `Error: \x1b[31mthe beginning\x1b[0m\n${"a line of the log\n".repeat(1_000)}the end\n`;
    await sync({ free: 0, held: [{ id: lease.id, log: { offset: 0, text } }] });
    const args = { executionId: execution.id, task: "unit" };
    const end = await call("get_log", args);
    expect(end.untrusted.log.endsWith("a line of the log\nthe end\n")).toBe(true);
    expect(end.untrusted.errorLinesBefore).toEqual(["Error: the beginning"]);
    const rest = `${end.start} characters before: call again with skipFromEnd ${end.length - end.start}`;
    expect(end.leftOut).toEqual([rest]);
    const pieces = [end.untrusted.log];
    for (let start = end.start; start > 0;) {
      const before = await call("get_log", { ...args, skipFromEnd: end.length - start });
      pieces.unshift(before.untrusted.log);
      ({ start } = before);
    }
    expect(pieces.join("")).toBe(text.replace(/\x1b\[\d+m/g, ""));
  });

  test("says where there is none", async () => {
    const { executionId } = await upload("p");
    const found = await call("get_log", { executionId, task: "unit" });
    expect(found.leftOut).toEqual(["no log: no runner of this server ran the task, or it printed nothing"]);
  });
});

describe("culprit", () => {
  test("answers the proven commit with its files, and the suspects", async () => {
    const { bugReports } = await upload("pf");
    const bugReportId = bugReports[0].id;
    const none = await request("tools/call", { name: "culprit", arguments: { bugReportId } }, own.key);
    expect(none.body.result.isError).toBe(true);
    await insertFoundSearch(database, { project: own.project, bugReportId });
    const untrusted = { author: "Ada", subject: "Round prices to cents", files: ["src/cart/3.ts", "package.json"] };
    expect(await call("culprit", { bugReportId })).toMatchObject({
      search: { bugReportId, status: "completed", verdict: "culprit", commitCount: 5, maxProbes: 30 },
      ...{ culprit: { untrusted }, parent: { untrusted: { subject: "Update the packages" } } },
      suspects: [{ chance: 0.997, untrusted: { author: "Ada" } }],
      probes: [{ result: "passed" }, { result: "no_build" }, {}, {}, { result: "passed" }],
    });
  });
});

describe("bug_reports", () => {
  test("lists them sorted, page by page", async () => {
    await upload("pff");
    const list = async (args: object) => await call("bug_reports", { sort: "impact", limit: 1, ...args });
    const first = await list({});
    const second = await list({ cursor: first.nextCursor });
    expect([first, second].map(({ bugReports }) => bugReports[0].number).sort()).toEqual([1, 2]);
    expect([first.leftOut.length, second.nextCursor]).toEqual([1, null]);
  });

  test("answers one of them with the reasons for its grouping and its history", async () => {
    const { bugReports } = await upload("pf");
    const found = await call("bug_reports", { bugReportId: bugReports[0].id });
    expect(found).toMatchObject({
      bugReport: { number: 1, status: "open", occurrences: 1, untrusted: { title: "case 1 failed" } },
      grouping: [{ kind: "message", untrusted: { message: "case <n> failed" } }, { kind: "case" }],
      history: [{ to: "open", cause: "opened" }],
    });
  });
});
