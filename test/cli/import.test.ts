/** `assay import`, which uploads folders of old reports to a server. */

import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { utimesSync } from "node:fs";
import { join } from "node:path";
import { countAll } from "../../src/work/count.ts";
import { createAsking, type Project } from "../asking.ts";
import { createFolder, start as startCommand, variablesOf } from "../commands.ts";
import { createHarness, createServer, junit, until } from "../harness.ts";
import { createReceiver } from "../receiver.ts";

setDefaultTimeout(60_000);
const { ask, acme, addProject, database, url } = await createHarness();

const start = (project: Project, args: string[], server = url) =>
  startCommand(["import", ...args], { env: variablesOf(server, project) });
const run = (project: Project, args: string[], server?: string) => start(project, args, server).ended;

const DAY_MS = 86_400_000;
const dayBefore = (days: number) => new Date(Date.now() - days * DAY_MS).toISOString().slice(0, 10);
const get = (project: Project, path: string) => createAsking(ask, project).get(path);
/** Oldest first. */
const executions = async (project: Project) => (await get(project, "/executions?limit=100")).data.toReversed();
const runs = async (project: Project) => (await get(project, "/test-runs?limit=100")).data;

/** With a time as tools write it. */
const timed = (letters: string, time: string) =>
  junit(letters).replace("<testsuite ", `<testsuite timestamp="${time}" `);

describe("a folder of reports", () => {
  test("becomes builds at the times of their reports, in chronological order, whatever their names", async () => {
    const project = await addProject(acme);
    const folder = createFolder({
      "c/report.xml": timed("pp", `${dayBefore(9)}T10:00:00Z`),
      "a/unit.xml": timed("pf", `${dayBefore(3)}T10:00:00Z`),
      "a/deep/more.xml": timed("p", `${dayBefore(3)}T11:00:00Z`),
      "a/screenshot.png": "no report",
      "b.xml": timed("ppp", `${dayBefore(5)}T10:00:00`),
    });
    const { code, output, errors } = await run(project, [
      folder,
      "--branch",
      "main",
      "--task",
      "unit",
      "--utc-offset",
      "+02:00",
    ]);
    expect([code, errors]).toEqual([0, ""]);
    expect(output).toContain(`Found 3 builds, ${dayBefore(9)} to ${dayBefore(3)}\n`);
    expect(output).toContain('Ignored 1 file that is not a test report, such as "a/screenshot.png"\n');
    expect(output).toContain(`1/3  ${dayBefore(9)}T10:00:00Z  c  main\n`);
    expect(output).toEndWith("Imported 3 builds\n");
    expect(await executions(project)).toMatchObject([
      { status: "passed", branch: "main", passed: 2, completedAt: `${dayBefore(9)}T10:00:00.000Z` },
      { status: "passed", branch: "main", passed: 3, completedAt: `${dayBefore(5)}T08:00:00.000Z` },
      { status: "failed", branch: "main", passed: 2, failed: 1, completedAt: expect.stringContaining(dayBefore(3)) },
    ]);
  });

  test("has dates in the names of its folders and files, and builds of one day keep the order of their numbers", async () => {
    const project = await addProject(acme);
    const compact = dayBefore(4).replaceAll("-", "");
    const folder = createFolder({
      [`${dayBefore(4)}-10/a/unit.xml`]: junit("p"),
      [`${dayBefore(4)}-10/b/unit.xml`]: junit("f"),
      [`${dayBefore(4)}-9.xml`]: junit("pp"),
      [`${compact}T040506Z-11/unit.xml`]: junit("ppp"),
      "notes-12/unit.xml": junit("p"),
    });
    const { code, output } = await run(project, [folder, "--branch", "main"]);
    expect(code).toBe(1);
    expect(output).toEndWith(
      "1 problem:\n  notes-12: Cannot find its date: its reports contain no time, its name does not begin with a date; " +
        "--date-from mtime takes the time when its files were changed\n",
    );
    expect(await executions(project)).toMatchObject([
      { passed: 2, completedAt: `${dayBefore(4)}T00:00:00.000Z` },
      { passed: 1, failed: 1, completedAt: `${dayBefore(4)}T00:00:00.001Z` },
      { passed: 3, completedAt: `${dayBefore(4)}T04:05:06.000Z` },
    ]);
  });

  test("without a date has those of its files, if they are asked for", async () => {
    const project = await addProject(acme);
    const folder = createFolder({ "a.xml": junit("p") });
    const at = new Date(`${dayBefore(6)}T12:00:00Z`);
    utimesSync(join(folder, "a.xml"), at, at);
    expect((await run(project, [folder, "--date-from", "report,mtime"])).code).toBe(0);
    expect(await executions(project)).toMatchObject([{ completedAt: at.toISOString() }]);
  });

  test("is printed without a request by --dry-run", async () => {
    const folder = createFolder({ "a.xml": timed("p", `${dayBefore(2)}T10:00:00Z`) });
    const nobody = { project: acme.project, key: "none" };
    const { code, output } = await run(nobody, [folder, "--dry-run"], "http://127.0.0.1:1");
    expect(code).toBe(0);
    expect(output).toBe(
      `Found 1 build, ${dayBefore(2)} to ${dayBefore(2)}\n  ${dayBefore(2)}T10:00:00Z  a.xml\n` +
        "Builds that are older than the project keeps results are left out as well\n",
    );
    const json = JSON.parse((await run(nobody, [folder, "--dry-run", "--json"], "http://127.0.0.1:1")).output);
    expect(json).toMatchObject({
      builds: [{ key: `import a.xml ${dayBefore(2)}T10:00:00.000Z`, recent: false }],
      problems: [],
    });
  });

  test("is marked by --dry-run if it is too recent to be imported", async () => {
    const folder = createFolder({ "a.xml": timed("p", new Date().toISOString()) });
    const plan = async (...more: string[]) => (await run(acme, [folder, "--dry-run", ...more])).output;
    expect(await plan()).toContain("a.xml  (left out: less than a day old)\n");
    expect(await plan("--include-recent")).not.toContain("left out: less");
    expect(JSON.parse((await run(acme, [folder, "--dry-run", "--json"])).output).builds).toMatchObject([
      { recent: true },
    ]);
  });
});

test("a report that was cut off is imported with a warning that names it", async () => {
  const project = await addProject(acme);
  const whole = timed("pp", `${dayBefore(2)}T10:00:00Z`);
  const folder = createFolder({ "a.xml": whole.slice(0, whole.lastIndexOf("<testcase") + 20) });
  const { output } = await run(project, [folder]);
  expect(output).toMatch(/^ {2}Warning: a\.xml: .+$/m);
});

describe("a build that cannot be imported", () => {
  test("is named at the end with its reason, and the others are imported", async () => {
    const project = await addProject(acme);
    const good = timed("p", `${dayBefore(2)}T10:00:00Z`);
    const folder = createFolder({
      "1/report.xml": good,
      // Without one of its reports a build would look better than it was.
      "2/report.xml": good,
      "2/broken.json": '{"numTotalTests": 3, "testResults": [',
      "3/empty.xml": "",
      "4.xml": timed("", `${dayBefore(2)}T10:00:00Z`),
      "coverage.xml": '<coverage line-rate="1"/>',
    });
    const { code, output } = await run(project, [folder]);
    expect(code).toBe(1);
    expect(output).toContain("Imported 1 build\n4 problems:\n");
    expect(output).toMatch(/2\/broken.json: malformed JSON/);
    expect(output).toContain("  3/empty.xml: it is empty\n");
    expect(output).toContain("  2: left out, because one of its files cannot be read\n");
    expect(output).toContain("  4.xml: The report holds no test case");
    expect(await executions(project)).toHaveLength(1);
  });

  test("because of its age is counted, and so is one that is less than a day old", async () => {
    const project = await addProject(acme);
    const folder = createFolder({
      "old.xml": timed("p", `${dayBefore(400)}T10:00:00Z`),
      "new.xml": timed("p", new Date(Date.now() - 60_000).toISOString()),
      "fine.xml": timed("p", `${dayBefore(10)}T10:00:00Z`),
    });
    const { code, output } = await run(project, [folder]);
    expect(code).toBe(0);
    expect(output).toContain("1 build left out: older than the 90 days");
    expect(output).toContain("1 build left out: less than a day old");
    expect(await executions(project)).toHaveLength(1);
    expect((await run(project, [folder, "--include-recent", "--json"])).output).toContain('"imported":1,"existing":1');
    expect(await executions(project)).toHaveLength(2);
  });
});

describe("a second start", () => {
  const many = () =>
    createFolder(
      Object.fromEntries(
        Array.from({ length: 12 }, (_, index) => [
          `${index}.xml`,
          timed("pf", `${dayBefore(20)}T10:00:${10 + index}Z`),
        ]),
      ),
    );

  test("uploads nothing that is there", async () => {
    const project = await addProject(acme);
    const folder = many();
    await run(project, [folder]);
    const before = [await executions(project), await runs(project)];
    const { code, output } = await run(project, [folder]);
    expect([code, output]).toEqual([0, expect.stringContaining("Imported 0 builds, 12 already there\n")]);
    expect([await executions(project), await runs(project)]).toEqual(before);
  });

  test("continues after an interruption, and each build is there once", async () => {
    const project = await addProject(acme);
    const folder = many();
    const first = start(project, [folder]);
    await until(async () => (await executions(project)).length >= 2);
    first.signal("SIGINT");
    const { code, output } = await first.ended;
    if (code !== 0) expect([code, output]).toEqual([130, expect.stringContaining("Stopped: Interrupted")]);
    expect((await run(project, [folder])).code).toBe(0);
    const all = await executions(project);
    expect(all).toHaveLength(12);
    expect(all.every(({ tasks }: { tasks: { attempt: number }[] }) => tasks[0]!.attempt === 1)).toBe(true);
  });

  test("for another task adds it to the builds of the same date", async () => {
    const project = await addProject(acme);
    const folder = createFolder({ [`${dayBefore(8)}-1/report.xml`]: junit("p") });
    for (const task of ["unit", "e2e"])
      expect((await run(project, [folder, "--task", task, "--branch", "main"])).output).toContain("Imported 1 build\n");
    const [execution, ...others] = await executions(project);
    const slugs = execution.tasks.map(({ slug }: { slug: string }) => slug);
    expect([others, slugs.toSorted()]).toEqual([[], ["e2e", "unit"]]);
    await run(project, [folder, "--task", "unit", "--branch", "other"]);
    expect(await executions(project)).toHaveLength(2);
  });
});

describe("old builds", () => {
  test("cause no events, and do not become the state after newer ones", async () => {
    const project = await addProject(acme);
    await createAsking(ask, project).upload("pp", { task_slug: "unit", branch: "main" });
    const state = () => get(project, "/state?branch=main");
    const before = await state();
    const countEvents = () => database.pool`select count(*) from event where project_id = ${project.project}`;
    const eventsBefore = await countEvents();
    const folder = createFolder(
      Object.fromEntries(
        Array.from({ length: 8 }, (_, index) => [
          `${dayBefore(30 - index)}/unit.xml`,
          junit(index % 2 === 0 ? "pf" : "fp"),
        ]),
      ),
    );
    const options = ["--task", "unit", "--branch", "main"];
    expect((await run(project, [folder, ...options])).code).toBe(0);
    await countAll(database);
    expect([...(await countEvents())]).toEqual([...eventsBefore]);
    expect(await state()).toEqual(before);
    const { data } = await get(project, "/test-cases?limit=100");
    expect(data).toHaveLength(2);
    for (const testCase of data) expect(testCase).toMatchObject({ lastStatus: "passed", runs: 9, failures: 4 });
  });
});

describe("a server", () => {
  test("that limits its rate is waited for", async () => {
    const project = await addProject(acme);
    // The project, the list of executions, and one build more than the limit allows in its first window.
    const limited = await createServer(database, { rateLimitPerMinute: 3 });
    const folder = createFolder({
      "1.xml": timed("p", `${dayBefore(4)}T10:00:00Z`),
      "2.xml": timed("p", `${dayBefore(3)}T10:00:00Z`),
    });
    const { code, output } = await run(project, [folder, "--patience", "0"], limited.url);
    expect([code, output]).toEqual([3, expect.stringContaining("Start the same command again to continue")]);
    expect(await executions(project)).toHaveLength(1);
  });

  test("that answers 429 with Retry-After gets the same report again", async () => {
    const limited = {
      ...{ status: 429, headers: { "Retry-After": "0" } },
      body: { error: { code: "RATE_LIMITED", message: "Slow down" } },
    };
    const refused = { status: 400, body: { error: { code: "VALIDATION_ERROR", message: "No such task" } } };
    const receiver = createReceiver(
      { status: 200, body: { defaultBranch: "main", retentionDays: 0 } },
      { status: 200, body: { data: [], pagination: { hasMore: false } } },
      ...[limited, limited, refused],
    );
    const folder = createFolder({ "1.xml": timed("p", `${dayBefore(4)}T10:00:00Z`) });
    const { code, output } = await run({ project: acme.project, key: "svc_proj_x" }, [folder], receiver.url);
    expect([code, output]).toEqual([1, expect.stringContaining("1.xml: No such task")]);
    const posts = receiver.requests.filter(({ method }) => method === "POST");
    expect(posts).toHaveLength(3);
    expect(new Set(posts.map(({ headers }) => headers["idempotency-key"])).size).toBe(1);
  });

  test("that refuses the key, or is not there, ends the import at once", async () => {
    const folder = createFolder({ "1.xml": timed("p", `${dayBefore(4)}T10:00:00Z`) });
    const refused = await run({ project: acme.project, key: "svc_proj_wrong" }, [folder]);
    expect([refused.code, refused.output]).toEqual([1, expect.stringContaining("Stopped: Invalid API key")]);
    const away = await run(acme, [folder, "--patience", "0"], "http://127.0.0.1:1");
    expect([away.code, away.output]).toEqual([3, expect.stringContaining("Stopped: Cannot reach http://127.0.0.1:1")]);
  });
});
