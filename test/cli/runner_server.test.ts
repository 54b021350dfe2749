/** `assay runner` and its server, which can go away and come back, and how the runner is called and stopped. */

import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { createFolder } from "../commands.ts";
import { createHarness, until } from "../harness.ts";
import {
  awaitFile,
  createRunners,
  handedOut,
  lives,
  pidIn,
  readText,
  report,
  stopped,
  task,
  type RunnerRequest,
} from "../runners.ts";

const harness = await createHarness();
const { url, regenerate, acme } = harness;
const { startRunner, fresh, start, see, logOf, ends, runs } = createRunners(harness);
const place = createFolder();

describe("SIGTERM", () => {
  test("lets an idle runner go at once, and its poll is answered before", async () => {
    const project = await fresh();
    const runner = startRunner({ place: project, tasks: { unit: task("true") } });
    await until(() => runner.syncs().length === 1);
    await stopped(runner);
    expect(runner.syncs().at(-1)).toMatchObject({ free: 0, waitSeconds: 0, stopping: true });
    expect(runner.syncs()).toHaveLength(3);
  });

  test("lets what runs end, and takes nothing new", async () => {
    const project = await fresh();
    const runner = startRunner({ place: project, tasks: { unit: task(`${awaitFile("go")}; ${report("p")}`) } });
    const id = await start(project);
    await runs(project, id);
    runner.signal("SIGTERM");
    await until(() => runner.output().includes('"Stopping'));
    const next = await start(project);
    await Bun.write(runner.file("go"), "");
    expect(await runner.ended).toBe(0);
    expect([(await see(project, id)).status, (await see(project, next)).status]).toEqual(["passed", "queued"]);
  });

  test("a second time ends what runs, which another runner gets, and no test is to blame", async () => {
    const project = await fresh();
    const command = `echo "pid $$"; ${report("p")}; touch begun; sleep 1000`;
    const runner = startRunner({ place: project, tasks: { unit: task(command) } });
    const id = await start(project);
    await until(() => Bun.file(runner.file("begun")).exists());
    runner.signal("SIGTERM");
    await until(() => runner.output().includes('"Stopping'));
    runner.signal("SIGINT");
    expect(await runner.ended).toBe(0);
    const { text } = await logOf(project, id);
    expect([lives(pidIn(text)), text]).toEqual([false, expect.stringContaining("[assay] The runner was stopped\n")]);
    const other = startRunner({ place: project, tasks: { unit: task(report("pp")) }, args: ["--once"] });
    expect(await other.ended).toBe(0);
    expect(await see(project, id)).toMatchObject({ status: "passed", passed: 2, failed: 0 });
  });

  test("gives back what comes in the last moment", async () => {
    const project = await fresh();
    const runner = startRunner({ place: project, tasks: { unit: task(report("p")) } });
    await until(() => runner.syncs().length === 1);
    // As if the task had been handed out to the poll when the stop came.
    const lease = { ...handedOut, id: crypto.randomUUID() };
    let asked = 0;
    runner.front.answerOnce(({ path }) =>
      path.endsWith("/leases") && ++asked === 1
        ? Response.json({ leases: [lease], held: [], nextSeconds: 20 })
        : undefined,
    );
    await stopped(runner);
    expect(runner.syncs().at(-2)).toMatchObject({ free: 0, returned: [lease.id] });
  });
});

describe("the server", () => {
  test("may be away while a task runs and while its report comes: nothing is lost or repeated", async () => {
    const project = await fresh();
    const command = `echo one; ${awaitFile("go")}; echo two; ${report("pp")}`;
    const runner = startRunner({ place: project, tasks: { unit: task(command) } });
    const id = await start(project);
    await runs(project, id);
    await runner.front.leave();
    await Bun.write(runner.file("go"), "");
    await until(() => runner.output().includes('"The server does not respond"'));
    runner.front.comeBack();
    expect(await ends(project, id)).toMatchObject({ status: "passed", passed: 2 });
    expect((await logOf(project, id)).text).toBe("one\ntwo\n");
    await stopped(runner);
  });

  test("may lose its answer to a report: the same again is the same", async () => {
    const project = await fresh();
    const runner = startRunner({ place: project, tasks: { unit: task(report("p")) }, args: ["--once"] });
    await until(() => runner.syncs().length === 1);
    let lost = 0;
    const lose = ({ path, body }: RunnerRequest) => {
      if (!path.includes("/test-runs?")) return undefined;
      lost++;
      void fetch(url + path, { method: "POST", headers: { authorization: `Bearer ${project.key}` }, body });
      return new Response("gone", { status: 502 });
    };
    runner.front.answerOnce(lose);
    const id = await start(project);
    expect(await runner.ended).toBe(0);
    expect(lost).toBe(1);
    expect((await see(project, id)).tasks[0]).toMatchObject({ passed: 1, attempt: 1 });
  });

  test("that says 429 is left alone until it says", async () => {
    const project = await fresh();
    const runner = startRunner({ place: project, tasks: { unit: task(report("p")) } });
    const headers = { "Retry-After": "1" };
    runner.front.answerOnce(() =>
      Response.json({ error: { code: "RATE_LIMITED", message: "Too many" } }, { status: 429, headers }),
    );
    const id = await start(project);
    expect((await ends(project, id)).status).toBe("passed");
    const [first, second] = runner.front.requests;
    expect(second!.at - first!.at).toBeGreaterThanOrEqual(990);
    await stopped(runner);
  });

  test("that refuses the key ends the runner and its tasks", async () => {
    const project = await fresh();
    const runner = startRunner({ place: project, tasks: { unit: task(`echo $$ > pid; sleep 1000`) } });
    const id = await start(project);
    await runs(project, id);
    await until(() => readText(runner.file("pid")) !== "");
    await regenerate({ ...acme, ...project });
    runner.signal("SIGTERM");
    expect(await runner.ended).toBe(1);
    expect(runner.errors()).toStartWith("The server refuses the key: Invalid API key");
    expect(lives(Number(await Bun.file(runner.file("pid")).text()))).toBe(false);
  });

  test("that does not know the project or the key says so, and the runner ends", async () => {
    const project = await fresh();
    const wrong = startRunner({ place: { ...project, project: crypto.randomUUID() }, tasks: { unit: task("true") } });
    expect(await wrong.ended).toBe(1);
    expect(wrong.errors()).toStartWith("Cannot request tasks: ");
  });
});

describe("--once", () => {
  test.each([
    ["passed", report("pp"), 0],
    ["failed", report("pf"), 1],
    ["left no report", "exit 0", 1],
  ])("ends after one task, with the exit code of one that %s", async (_, command, code) => {
    const project = await fresh();
    const ids = [await start(project), await start(project)];
    const runner = startRunner({ place: project, tasks: { unit: task(`echo 1; ${command}`) }, args: ["--once"] });
    expect(await runner.ended).toBe(code);
    const states = await Promise.all(ids.map(async (id) => (await see(project, id)).status));
    expect(states).toEqual([code === 0 ? "passed" : "failed", "queued"]);
    expect(runner.syncs().filter(({ free }) => free > 0)).toHaveLength(1);
  });
});

describe("how it is called", () => {
  test.each([
    [["--concurrency", "0"], "Cannot read --concurrency: expected an integer from 1 to 64"],
    [["--concurrency", "many"], "Cannot read --concurrency"],
    [["--no-such"], "--no-such"],
    [["extra"], "extra"],
  ])("%p is a wrong usage", async (args, message) => {
    const runner = startRunner({ place: await fresh(), tasks: { unit: task("true") }, args });
    expect(await runner.ended).toBe(2);
    expect(runner.errors()).toContain(message);
  });

  test("without an address or with an assay.yaml that is wrong it says what is missing", async () => {
    const project = await fresh();
    const nowhere = startRunner({
      place: project,
      tasks: { unit: task("true") },
      environment: { ASSAY_URL: "", ASSAY_KEY: "" },
    });
    expect([await nowhere.ended, nowhere.errors()]).toEqual([2, expect.stringContaining("Set ASSAY_URL, ASSAY_KEY")]);
    const wrong = startRunner({ place: project, tasks: { unit: { command: "true" } } });
    expect([await wrong.ended, wrong.errors()]).toEqual([
      1,
      expect.stringContaining('missing field "tasks.unit.report"'),
    ]);
  });

  test("the key may be in a file", async () => {
    const project = await fresh();
    const path = join(place, "key");
    await Bun.write(path, `${project.key}\n`);
    const id = await start(project);
    const tasks = { unit: task(report("p")) };
    const runner = startRunner({
      place: project,
      tasks,
      args: ["--once"],
      environment: { ASSAY_KEY: "", ASSAY_KEY_FILE: path },
    });
    expect(await runner.ended).toBe(0);
    expect((await see(project, id)).status).toBe("passed");
    const gone = startRunner({ place: project, tasks, environment: { ASSAY_KEY: "", ASSAY_KEY_FILE: `${path}-gone` } });
    expect([await gone.ended, gone.errors()]).toEqual([2, expect.stringContaining("Cannot read ASSAY_KEY_FILE")]);
  });
});
