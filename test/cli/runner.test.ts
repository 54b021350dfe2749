/** The tasks of `assay runner`: how they run, and what their executions have of them. */

import { describe, expect, test } from "bun:test";
import { hostname } from "node:os";
import { join } from "node:path";
import { createFolder, run } from "../commands.ts";
import { createHarness, until } from "../harness.ts";
import { awaitFile, createRunners, lives, pidIn, readText, report, stopped, task } from "../runners.ts";

const harness = await createHarness();
const { ask, database } = harness;
const { startRunner, fresh, start, see, logOf, casesOf, ends } = createRunners(harness);
const place = createFolder();
let sources = 0;

/** The environment of a task, which it has written into a file. */
async function environmentOf(path: string): Promise<Record<string, string>> {
  await until(() => readText(path).includes("\nPWD="));
  const lines = readText(path)
    .split("\n")
    .filter((line) => line.includes("="));
  return Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]));
}

describe("a task", () => {
  test("runs, and its results and its log are in the execution", async () => {
    const project = await fresh();
    const id = await start(project, { branch: "main", commit: "abcdef1" });
    const command = `echo "hello €"; echo "on $ASSAY_BRANCH $ASSAY_COMMIT" >&2; ${report("ppf")}`;
    const runner = startRunner({ place: project, tasks: { unit: task(command) }, args: ["--name", "machine 1"] });
    const execution = await ends(project, id);
    expect(execution).toMatchObject({ status: "failed", passed: 2, failed: 1 });
    expect(execution.tasks[0]).toMatchObject({ slug: "unit", runner: "machine 1", passed: 2, failed: 1 });
    expect(await logOf(project, id)).toMatchObject({ offset: 0, text: "hello €\non main abcdef1\n", ended: true });
    await stopped(runner);
    expect(runner.output()).toContain('"Task ended"');
    // Nothing that waits meanwhile is said to have no runner.
    expect(runner.syncs().some(({ free }) => free === 0)).toBe(true);
    for (const { taskSlugs } of runner.syncs()) expect(taskSlugs).toEqual(["unit"]);
    expect(runner.errors()).toBe("");
  });

  test("goes to no runner that does not know it, or has not its labels", async () => {
    const project = await fresh();
    const id = await start(project, { tasks: ["other", { slug: "unit", labels: ["linux", "gpu"] }] });
    const tasks = { unit: task(report("p")) };
    const without = startRunner({ place: project, tasks, args: ["--labels", "linux"] });
    await until(() => without.syncs().length > 0);
    expect(without.syncs()[0]).toMatchObject({ taskSlugs: ["unit"], labels: ["linux"], free: 1, waitSeconds: 55 });
    const having = startRunner({ place: project, tasks, args: ["--labels", "gpu, linux"] });
    await until(async () => (await see(project, id)).tasks[1].status === "passed");
    expect((await see(project, id)).tasks[0].status).toBe("queued");
    await Promise.all([stopped(without), stopped(having)]);
  });

  test("of shards tells each which it is, and its reports in several files are one", async () => {
    const project = await fresh();
    const id = await start(project, { tasks: [{ slug: "unit", shards: 3 }] });
    const command = `i=\${ASSAY_SHARD%/*}; ${report("pp", "a-$i.xml")}; sed -i "s/name=.case/&$i/g" a-$i.xml
      ${report("f", "b-$i.xml")}; sed -i "s/name=.case/&late$i/g" b-$i.xml; echo "shard $ASSAY_SHARD"`;
    const where = "d-$ASSAY_SHARD";
    const unit = { command: `mkdir -p ${where}; cd ${where}; ${command}`, report: "d-*/**/*.xml" };
    const runner = startRunner({ place: project, tasks: { unit } });
    const execution = await ends(project, id);
    expect(execution.tasks[0]).toMatchObject({ passed: 6, failed: 3 });
    await stopped(runner);
  });

  test("of shards takes its files batch after batch, without the key, and passes where none is left for it", async () => {
    const project = await fresh();
    const id = await start(project, { tasks: [{ slug: "unit", shards: 2 }] });
    const index = "${ASSAY_SHARD%/*}";
    const command = `env > env-${index}; ${awaitFile(`go-${index}`)}; cp ran-${index}/*.xml results/; true`;
    const before = "rm -rf results; mkdir results";
    const runner = startRunner({ place: project, tasks: { unit: { command, before, report: "results/*.xml" } } });
    const taken: string[] = [];
    for (const shard of [1, 2]) {
      const env = await environmentOf(runner.file(`env-${shard}`));
      expect(env["ASSAY_KEY"]).toBeUndefined();
      await Bun.write(runner.file(`ran-${shard}/.keep`), "");
      for (let batch = 1; ; batch++) {
        const { code, output } = await run(["split", "--next", "a.ts", "b.ts", "c.ts"], { env, cwd: runner.directory });
        expect(code).toBe(0);
        if (output === "") break;
        taken.push(...output.trim().split("\n"));
        const xml = `<testsuite name="s"><testcase name="${batch} of ${shard}"/></testsuite>`;
        await Bun.write(runner.file(`ran-${shard}/${batch}.xml`), xml);
      }
      await Bun.write(runner.file(`go-${shard}`), "");
    }
    const ended = await ends(project, id);
    expect([ended.status, ended.failed, ended.tasks[0].reason]).toEqual(["passed", 0, null]);
    expect(taken.sort()).toEqual(["a.ts", "b.ts", "c.ts"]);
    await stopped(runner);
  });

  test("of a repository runs in a work tree of the commit, several at once, prepared once for each commit", async () => {
    const project = await fresh();
    const source = join(place, `source-${sources++}`);
    const git = `git -c user.name=a -c user.email=a@example.com`;
    await Bun.$`sh -ec ${`${git} init -q -b main ${source}; cd ${source}; echo one > text; git add .; ${git} commit -qm one; echo two > text; ${git} commit -qam two`}`;
    const [one, two] = (await Bun.$`git -C ${source} rev-parse HEAD~1 HEAD`.text()).trim().split("\n");
    const checkout = { git: source, prepare: `echo "prepared $(cat text)" >> ${source}.log; mkdir sub`, keep: 3 };
    const command = `touch ${source}.$ASSAY_EXECUTION_ID; echo "$(cat ../text) in $(pwd)"
      until [ $(ls ${source}.* | wc -l) -gt 2 ]; do sleep 0.05; done; ${report("p")}`;
    const unit = { checkout, workingDirectory: "sub", command, report: "report.xml" };
    const runner = startRunner({ place: project, tasks: { unit }, args: ["--concurrency", "2"] });
    const ids = [await start(project, { commit: one!.slice(0, 9) }), await start(project, { branch: "main" })];
    const [first, second] = [await ends(project, ids[0]!), await ends(project, ids[1]!)];
    expect([first.status, second.status, second.commit]).toEqual(["passed", "passed", two]);
    const [, where] = /one in (.*)/.exec((await logOf(project, ids[0]!)).text)!;
    expect((await logOf(project, ids[1]!)).text).toMatch(/two in /);
    const again = await start(project, { commit: one! });
    expect((await ends(project, again)).status).toBe("passed");
    expect((await logOf(project, again)).text).toContain(`one in ${where}`);
    expect(readText(`${source}.log`).trim().split("\n").sort()).toEqual(["prepared one", "prepared two"]);
    const missing = await ends(project, await start(project, { commit: "1234567" }));
    expect([missing.status, missing.failed]).toEqual(["failed", 1]);
    const [{ message }] = await casesOf(project, missing.id);
    expect(message).toBe('Cannot check out: The repository has no commit "1234567", or several with this prefix');
    await stopped(runner);
  });

  test("of a commit that does not build fails at once and blames no runner, and builds each commit once", async () => {
    const project = await fresh();
    const source = join(place, `source-${sources++}`);
    const git = `git -c user.name=a -c user.email=a@example.com`;
    await Bun.$`sh -ec ${`${git} init -q -b main ${source}; cd ${source}; echo exit 2 > make; git add .; ${git} commit -qm broken; echo touch built > make; ${git} commit -qam fixed`}`;
    const checkout = {
      ...{ git: source, prepare: `echo prepared >> ${source}.log` },
      build: `echo "building $(cat make)" >> ${source}.log; sh ./make`,
    };
    const unit = { checkout, command: `test -f built; ${report("p")}`, report: "report.xml" };
    const runner = startRunner({ place: project, tasks: { unit } });
    const commit = (await Bun.$`git -C ${source} rev-parse main~1`.text()).trim();
    const broken = await ends(project, await start(project, { commit }));
    expect([broken.status, broken.tasks[0].status, broken.failed]).toEqual(["failed", "failed", 1]);
    const [{ message }] = await casesOf(project, broken.id);
    expect(message).toBe(`The commit does not build: ${JSON.stringify(checkout.build)} ended with 2`);
    for (let run = 0; run < 2; run++)
      expect((await ends(project, await start(project, { branch: "main" }))).status).toBe("passed");
    // A failure of the machine would have been tried again.
    expect(readText(`${source}.log`).trim().split("\n")).toEqual([
      ...["prepared", "building exit 2"],
      ...["prepared", "building touch built"],
    ]);
    await stopped(runner);
  });

  test("with {slot} in its folder and its report runs as often at once as the runner has places", async () => {
    const project = await fresh();
    const command = `mkdir -p out; touch ../here-\${ASSAY_SHARD%/*}
      until [ $(ls .. | grep -c here) = 2 ]; do sleep 0.05; done; ${report("p", "out/report.xml")}`;
    const unit = { command, workingDirectory: "slot-{slot}", report: "out/*.xml", before: "true" };
    const runner = startRunner({ place: project, tasks: { unit }, args: ["--concurrency", "2"] });
    for (const slot of [1, 2]) await Bun.write(runner.file(`slot-${slot}/x`), "");
    const id = await start(project, { tasks: [{ slug: "unit", shards: 2 }] });
    expect((await ends(project, id)).status).toBe("passed");
    await stopped(runner);
  });

  test("of shards finds the plan of its shard, which is asked for until it comes", async () => {
    const project = await fresh();
    const { key } = project;
    const files = ["a", "b", "c", "d"].map((name) => `<testcase name="in ${name}" file="${name}.test.ts" time="1"/>`);
    const past = `POST /projects/${project.project}/test-runs?task_slug=unit&branch=main`;
    await ask(past, { key, body: `<testsuite name="unit">${files.join("")}</testsuite>` });
    const id = await start(project, { tasks: [{ slug: "unit", shards: 2 }] });
    const index = "${ASSAY_SHARD%/*}";
    const command = `env > env-${index}; ${awaitFile(`go-${index}`)}; ${report("p", `${index}.xml`)}`;
    const runner = startRunner({ place: project, tasks: { unit: task(command) } });
    runner.front.answerOnce(({ path }) => (path.includes("/plan?") ? new Response("", { status: 503 }) : undefined));
    for (const letter of "abcd") await Bun.write(runner.file(`${letter}.test.ts`), "");
    const parts: string[][] = [];
    for (const shard of [1, 2]) {
      const env = await environmentOf(runner.file(`env-${shard}`));
      const { output } = await run(["split", "*.test.ts"], { env, cwd: runner.directory });
      parts.push(output.trim().split("\n"));
      await Bun.write(runner.file(`go-${shard}`), "");
    }
    await ends(project, id);
    expect(parts.map(({ length }) => length)).toEqual([2, 2]);
    expect(parts.flat().sort()).toEqual(["a.test.ts", "b.test.ts", "c.test.ts", "d.test.ts"]);
    expect(runner.front.requests.filter(({ path }) => path.includes("/plan?"))).toHaveLength(5);
    await stopped(runner);
  });

  test("of shards that skip files of their plan is incomplete, with the number and names of the files", async () => {
    const project = await fresh();
    const id = await start(project, { tasks: [{ slug: "unit", shards: 2 }] });
    const index = "${ASSAY_SHARD%/*}";
    const command = `env > env-${index}; ${awaitFile(`go-${index}`)}; cp ran-${index} ${index}.xml`;
    const runner = startRunner({ place: project, tasks: { unit: task(command, { report: "?.xml" }) } });
    const files = Array.from({ length: 12 }, (_, at) => `t/${at}.test.ts`);
    const skipped: string[] = [];
    for (const shard of [1, 2]) {
      const env = await environmentOf(runner.file(`env-${shard}`));
      const { output } = await run(["split", ...files], { env, cwd: runner.directory });
      const [first, ...others] = output.trim().split("\n");
      skipped.push(first!);
      const cases = others.map((file) => `<testcase name="a" classname="${file}" file="${file}"/>`);
      await Bun.write(runner.file(`ran-${shard}`), `<testsuite name="s">${cases.join("")}</testsuite>`);
      await Bun.write(runner.file(`go-${shard}`), "");
    }
    const ended = await ends(project, id);
    expect([ended.status, ended.failed, ended.passed]).toEqual(["failed", 0, 10]);
    const { tasks } = await see(project, id);
    expect(tasks[0]).toMatchObject({ status: "failed", reason: "report is incomplete" });
    const path = `/projects/${project.project}/executions/${id}/test-runs/unit`;
    const { warnings } = (await ask(`GET ${path}`, { key: project.key })).body;
    const said = skipped.map((file) => `1 file of the split went to this shard and is in no report: ${file}`);
    expect(warnings).toEqual(expect.arrayContaining(said));
    await stopped(runner);
  });

  test("that leaves no report is a failure with its exit code, and the end of its log", async () => {
    const project = await fresh();
    const id = await start(project);
    const tasks = { unit: task("echo 'before it broke'; exit 3") };
    const runner = startRunner({ place: project, tasks });
    expect((await ends(project, id)).status).toBe("failed");
    const cases = await casesOf(project, id);
    expect(cases).toHaveLength(1);
    expect(cases[0].status).toBe("failed");
    expect(JSON.stringify(cases)).toContain('The command ended with 3, no report: \\"*.xml\\"');
    expect((await logOf(project, id)).text).toBe("before it broke\n");
    const [lease] = await database.pool`select status, exit_code from lease where execution_id = ${id}`;
    expect(lease).toMatchObject({ status: "failed", exit_code: 3 });
    await stopped(runner);
  });

  test.each([
    ["with a report", task(report("p"))],
    ["without a report", task("exit 3")],
  ])("%s says on which machine it ran", async (_, unit) => {
    const project = await fresh();
    const id = await start(project);
    const runner = startRunner({ place: project, tasks: { unit } });
    await ends(project, id);
    const path = `/projects/${project.project}/executions/${id}/test-runs/unit`;
    const { ranOn } = (await ask(`GET ${path}`, { key: project.key })).body;
    const system = `${process.platform} ${process.arch}`;
    expect(ranOn).toEqual([{ shard: null, host: hostname(), system, image: null }]);
    await stopped(runner);
  });

  test("that leaves an old report, an unreadable one, or a good one with a bad exit code is not green", async () => {
    const project = await fresh();
    const ids = await Promise.all(["old", "broken", "red"].map((slug) => start(project, { tasks: [slug] })));
    const tasks = {
      old: { command: "true", report: "old.xml", before: report("p", "old.xml") },
      broken: { command: "echo 'no report' > broken.xml", report: "broken.xml" },
      red: { command: `${report("pp", "red.xml")}; exit 2`, report: "red.xml" },
    };
    const runner = startRunner({ place: project, tasks, args: ["--concurrency", "3"] });
    for (const id of ids) expect((await ends(project, id)).status).toBe("failed");
    const said = await Promise.all(["old", "broken", "red"].map((slug, at) => casesOf(project, ids[at]!, slug)));
    expect(said.map((cases) => cases.map(({ status }: any) => status))).toEqual([
      ...[["failed"], ["failed"], ["failed", "passed", "passed"]],
    ]);
    expect(JSON.stringify(said[0])).toContain("the report is older than the task");
    expect(JSON.stringify(said[1])).toContain('The report \\"broken.xml\\" was refused: ');
    await stopped(runner);
  });

  const HANGS = `echo "pid $$"; sleep 1000`;
  const SAYS_TIME = "Timed out after 1 s";
  const SAYS_SILENCE = "The command printed nothing for 1 s";
  test.each([
    ["time is over", HANGS, { timeoutSeconds: 1 }, SAYS_TIME],
    ["time is over, with a green report", `${report("pp")}; ${HANGS}`, { timeoutSeconds: 1 }, SAYS_TIME],
    ["command is silent", HANGS, { silenceSeconds: 1 }, SAYS_SILENCE],
    ["command is silent, with a green report", `${report("pp")}; ${HANGS}`, { silenceSeconds: 1 }, SAYS_SILENCE],
    ["command crashes, with a green report", `${report("pp")}; kill -SEGV $$`, {}, "The command was ended by SIGSEGV"],
  ])("whose %s is red, and reason, test case and log say why", async (_, command, more, message) => {
    const project = await fresh();
    const id = await start(project);
    const runner = startRunner({ place: project, tasks: { unit: task(command, more) } });
    const ended = await ends(project, id);
    expect([ended.status, ended.failed, ended.tasks[0].status]).toEqual(["failed", 1, "failed"]);
    expect(ended.reason.toLowerCase()).toBe(`failed: unit: ${message.toLowerCase()}`);
    const failed = (await casesOf(project, id)).filter(({ status }: { status: string }) => status === "failed");
    expect(failed.map((one: { message: string }) => one.message)).toEqual([message]);
    const { text } = await logOf(project, id);
    if (command.includes(HANGS)) expect(lives(pidIn(text))).toBe(false);
    if (command.includes(HANGS)) expect(text.split("\n")).toContain(`[assay] ${message}`);
    await stopped(runner);
  });
});
