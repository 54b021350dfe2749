/** One run of each important program as a process of its own; all that they do is tested in process. */

import { expect, test } from "bun:test";
import { join } from "node:path";
import { createFolder, startProgram, variablesOf } from "./commands.ts";
import { createBareDatabase, createHarness, databaseVariables, junit, SECRET_KEY, until } from "./harness.ts";
import { createPlace, removePlace } from "./places.ts";
import { createRunners, report, task } from "./runners.ts";

// A backup holds the whole database.
const harness = await createHarness({ ownDatabase: true });
const { acme, ask, url, connection } = harness;
const env = variablesOf(url, acme);

test("the first start prints lines that work as they are, and SIGTERM ends the server", async () => {
  const place = createPlace("start");
  const env = { DATA_DIR: join(place, "data"), PORT: "0", LOG_LEVEL: "info" };
  // Bun reads how JSX is compiled from tsconfig.json of the working directory.
  const server = startProgram(["start"], { cwd: join(import.meta.dir, ".."), env });
  await until(() => server.output().includes('"message":"Assay is ready"') || server.child.exitCode !== null);
  // It is no terminal, and what it prints may be kept in a log.
  expect(server.output()).not.toMatch(/svc_(proj|team)_/);
  const [show] = server.output().match(/^cat .+first-start\.txt$/m)!;
  const lines = (await Bun.$`sh -c ${show}`.quiet().text()).split("\n");
  const [upload, list] = lines.filter((line) => line.startsWith("curl "));
  const shell = async (line = "") => JSON.parse(await Bun.$`sh -c ${line}`.quiet().text());
  expect(await shell(upload)).toMatchObject({ taskSlug: "hello", passed: 1, failed: 1, verdict: "failed" });
  expect((await shell(list)).data).toMatchObject([{ taskSlug: "hello", total: 2 }]);
  server.signal("SIGTERM");
  expect((await server.ended).code).toBe(0);
  await removePlace(place);
});

test("assay upload runs the tests, uploads their report and keeps their exit code", async () => {
  const command = `cat > report.xml; echo ran; echo warned >&2; exit 3`;
  const args = ["upload", "report.xml", "--branch", "main", "--", "sh", "-c", command];
  const { code, output, errors } = await startProgram(args, { env, stdin: junit("pf") }).ended;
  expect([code, output]).toEqual([3, "ran\n"]);
  expect(errors).toMatch(/^warned\nFAILED unit: 1 passed, 1 failed \(1 new\), 0 skipped, attempt 1 \S+\n$/);
  const { body } = await ask(`GET /projects/${acme.project}/test-runs`, { key: acme.key });
  expect(body.data).toMatchObject([{ taskSlug: "unit", passed: 1, failed: 1 }]);
});

test("assay split prints the files of a shard, of which each has its own", async () => {
  const names = ["a", "b", "c", "d"].map((name) => `${name}.test.ts`);
  const cwd = createFolder(Object.fromEntries(names.map((name) => [name, ""])));
  const split = (shard: string) =>
    startProgram(["split", "--shard", shard, "--execution-key", "1", "-"], { cwd, env, stdin: names.join("\n") }).ended;
  const shards = await Promise.all([split("1/2"), split("2/2")]);
  expect(shards.map(({ code }) => code)).toEqual([0, 0]);
  const files = shards.flatMap(({ output }) => output.split("\n").slice(0, -1));
  expect(files.sort()).toEqual(names);
});

test("assay runner runs a task, and ends with its result", async () => {
  const { startRunner, fresh, start, see, logOf } = createRunners(harness);
  const project = await fresh();
  const id = await start(project);
  const tasks = { unit: task(`echo hello; ${report("pf")}`) };
  const runner = startRunner({ place: project, tasks, args: ["--once"], isProcess: true });
  expect([await runner.ended, runner.errors()]).toEqual([1, ""]);
  expect(await see(project, id)).toMatchObject({ status: "failed", passed: 1, failed: 1 });
  expect((await logOf(project, id)).text).toBe("hello\n");
});

test("assay backup and assay restore bring a database into another one", async () => {
  const bare = await createBareDatabase();
  const folder = createFolder();
  const own = { DATA_DIR: join(folder, "data"), SECRET_KEY: Buffer.from(SECRET_KEY).toString("base64") };
  const backup = startProgram(["backup", "all.assay"], {
    cwd: folder,
    env: { ...own, ...databaseVariables(connection) },
  });
  expect(await backup.ended).toMatchObject({ code: 0, errors: "" });
  const there = { ...own, ...databaseVariables(bare.connection) };
  const restore = startProgram(["restore", "all.assay", "--as-of-backup"], { cwd: folder, env: there });
  expect(await restore.ended).toMatchObject({ code: 0, errors: "" });
  const projects = ({ pool }: typeof harness.database) => pool`select id, name from project order by id`;
  expect([...(await projects(bare.database))]).toEqual([...(await projects(harness.database))]);
});
