/** `assay runner` as a process: its memory, its environment, and what is left when it is killed. */

import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { openCgroups } from "../../../src/runner/cgroups.ts";
import { createHarness, until } from "../../harness.ts";
import { awaitFile, createRunners, lives, readText, report, stopped, task } from "../../runners.ts";

const harness = await createHarness();
const { ask, database } = harness;
const { fresh, start, logOf, ends, runs, ...runners } = createRunners(harness);
const startRunner: typeof runners.startRunner = (options) => runners.startRunner({ ...options, isProcess: true });

test("a log of 50 MB takes no memory, and its end is there", async () => {
  const project = await fresh();
  const id = await start(project);
  const print = `yes 'a line of what is printed' | head -c 52428800; echo the end; touch done; ${awaitFile("go")}`;
  const runner = startRunner({ place: project, tasks: { unit: task(`${print}; ${report("p")}`) } });
  await until(() => Bun.file(runner.file("done")).exists());
  const status = readFileSync(`/proc/${runner.pid()}/status`, "utf8");
  await Bun.write(runner.file("go"), "");
  expect((await ends(project, id)).status).toBe("passed");
  expect(Number(/VmHWM:\s+(\d+) kB/.exec(status)![1]) / 1_024).toBeLessThan(250);
  const path = `GET /projects/${project.project}/executions/${id}/test-runs/unit/log`;
  const { text } = await ask(path, { key: project.key, headers: { accept: "text/plain" } });
  expect(text.slice(-8)).toBe("the end\n");
  expect(text.length).toBeGreaterThan(1_000_000);
  await stopped(runner);
});
test("neither the environment nor the memory of the runner is open to its tasks, unless they are root's", async () => {
  const project = await fresh();
  const id = await start(project);
  const command = `ls -ln /proc/$PPID/environ | cut -d' ' -f1-4; stat -c %u /proc/$PPID/environ; ${report("p")}`;
  const runner = startRunner({ place: project, tasks: { unit: task(command) } });
  await ends(project, id);
  const { text } = await logOf(project, id);
  expect(text.split("\n").slice(0, 2)).toEqual([expect.stringContaining("-r--------"), "0"]);
  const isRoot = process.getuid?.() === 0;
  expect(runner.output()).toContain(`"isShielded":${!isRoot}`);
  expect(runner.output().split("The runner runs as root")).toHaveLength(isRoot ? 2 : 1);
  await stopped(runner);
});

const hasCgroups = (await openCgroups()) !== undefined;

test.skipIf(!hasCgroups)(
  "a kill -9 leaves no process behind that has left its session, parent and environment (skipped where cgroups v2 cannot be written)",
  async () => {
    const project = await fresh();
    const command = `setsid env -i sh -c 'sh -c "echo \\$\\$ > stray; exec sleep 6690" &' & sleep 6691`;
    const runner = startRunner({ place: project, tasks: { unit: task(command) } });
    await start(project);
    const stray = () => Number(readText(runner.file("stray")));
    await until(() => stray() > 0 && readText(`/proc/${stray()}/cmdline`).startsWith("sleep"));
    expect(JSON.parse(runner.output().split("\n")[0]!)).toMatchObject({ hasCgroups: true });
    runner.kill();
    await runner.ended;
    await until(() => !lives(stray()));
  },
);

test("a kill -9 leaves no process behind", async () => {
  const project = await fresh();
  const command = `echo "pid $$"; echo $$ > pid; (setsid sleep 1000) & sleep 1000`;
  const runner = startRunner({ place: project, tasks: { unit: task(command) } });
  const id = await start(project);
  await runs(project, id);
  await until(() => readText(runner.file("pid")) !== "");
  const pid = Number(await Bun.file(runner.file("pid")).text());
  const [lease] = await database.pool`select id from lease where execution_id = ${id}`;
  expect(lives(pid)).toBe(true);
  runner.kill();
  await runner.ended;
  await until(async () => (await Bun.$`grep -sl ${lease!["id"]} /proc/[0-9]*/environ`.nothrow().text()) === "");
  await until(() => !lives(pid));
});

test("a runner that is killed keeps its folder until the processes of its task are gone", async () => {
  const project = await fresh();
  const tasks = {
    stubborn: task(`trap '' TERM HUP; echo $$ > pid; while :; do sleep 0.05; done`, { report: "one.xml" }),
    unit: task(`if kill -0 $(cat pid); then exit 9; fi; ${report("p", "two.xml")}`, { report: "two.xml" }),
  };
  const killed = startRunner({ place: project, tasks });
  await start(project, { tasks: ["stubborn"] });
  await until(() => readText(killed.file("pid")) !== "");
  const id = await start(project);
  const other = startRunner({ place: project, tasks, directory: killed.directory, args: ["--once"] });
  await until(() => other.output().includes("Another runner works in this folder"));
  killed.kill();
  expect(await other.ended).toBe(0);
  expect(await ends(project, id)).toMatchObject({ status: "passed", passed: 1 });
});
