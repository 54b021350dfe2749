/** Logs, secrets and gates of the tasks of `assay runner`, and how many run at once. */

import { describe, expect, test } from "bun:test";
import { readFileSync, symlinkSync } from "node:fs";
import { createAsking, type Project } from "../asking.ts";
import { createHarness, until } from "../harness.ts";
import { hashShard } from "../../src/rules/plan.ts";
import { awaitFile, createRunners, lives, pidIn, report, stopped, task } from "../runners.ts";

const harness = await createHarness();
const { ask, acme, database } = harness;
const { startRunner, fresh, start, see, logOf, casesOf, ends, runs } = createRunners(harness);
let sources = 0;

describe("the log", () => {
  test("is what a program prints, whatever that is, in whole characters", async () => {
    const project = await fresh();
    const id = await start(project);
    const bytes = Uint8Array.from({ length: 700_000 }, (_, at) => (at % 3 === 0 ? at >> 4 : at) & 0xff);
    const runner = startRunner({ place: project, tasks: { unit: task(`cat bytes; ${report("p")}`) } });
    await Bun.write(runner.file("bytes"), bytes);
    expect((await ends(project, id)).status).toBe("passed");
    const path = `GET /projects/${project.project}/executions/${id}/test-runs/unit/log`;
    const { text } = await ask(path, { key: project.key, headers: { accept: "text/plain" } });
    const whole = Buffer.from(new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes));
    const [lease] = await database.pool`select log_bytes from lease where execution_id = ${id}`;
    expect(Number(lease!["log_bytes"])).toBe(whole.length);
    const last = Buffer.from(text);
    expect(last.length).toBeGreaterThanOrEqual(Math.min(whole.length, 1_048_576));
    expect(whole.subarray(whole.length - last.length).equals(last)).toBe(true);
    for (const { body } of runner.front.requests) expect(Buffer.byteLength(body)).toBeLessThan(1_048_576);
    await stopped(runner);
  });
});

describe("never more than --concurrency", () => {
  test("tasks are at work, and each is run once", async () => {
    const project = await fresh();
    const slugs = Array.from({ length: 9 }, (_, at) => `t${at}`);
    const id = await start(project, { tasks: slugs });
    const command = (slug: string) =>
      `echo + >> ../ledger; sleep 0.3; echo - >> ../ledger; ${report("p", `${slug}.xml`)}; echo ${slug} >> ../runs`;
    const tasks = Object.fromEntries(
      slugs.map((slug) => [slug, { command: command(slug), report: `${slug}.xml`, workingDirectory: "w" }]),
    );
    const runner = startRunner({ place: project, tasks, args: ["--concurrency", "3"] });
    await Bun.write(runner.file("w/.keep"), "");
    expect(await ends(project, id)).toMatchObject({ status: "passed", passed: 9 });
    await stopped(runner);
    let [now, most] = [0, 0];
    for (const sign of readFileSync(runner.file("ledger"), "utf8").trim().split("\n")) {
      now += sign === "+" ? 1 : -1;
      most = Math.max(most, now);
    }
    expect([now, most]).toEqual([0, 3]);
    expect(readFileSync(runner.file("runs"), "utf8").trim().split("\n").sort()).toEqual(slugs);
  });
});

test("two that write the same report are not at work together, and what is free runs something else meanwhile", async () => {
  const project = await fresh();
  const ids = [await start(project), await start(project)];
  const write = `printf '<testsuite name="u"><testcase name="%s"/></testsuite>' "$ASSAY_EXECUTION_ID"`;
  const command = `echo + >> begun; ${awaitFile("go")}; ${write} > report.xml`;
  const tasks = {
    unit: { command, report: "report.xml" },
    wide: { command: "true", report: "../*/*.xml" },
    other: { command: report("pp", "other/o.xml"), report: "other/o.xml" },
  };
  const runner = startRunner({ place: project, tasks, args: ["--concurrency", "3"] });
  await Bun.write(runner.file("other/.keep"), "");
  await until(() => runner.syncs().some(({ returned }) => returned.length === 1));
  const other = await start(project, { tasks: ["other"] });
  expect((await ends(project, other)).status).toBe("passed");
  await until(() => runner.syncs().at(-1).free === 1);
  expect(runner.syncs().at(-1)).toMatchObject({ taskSlugs: ["other"], held: [expect.anything()] });
  expect(await Bun.file(runner.file("begun")).text()).toBe("+\n");
  await Bun.write(runner.file("go"), "");
  for (const id of ids) {
    expect((await ends(project, id)).status).toBe("passed");
    expect((await casesOf(project, id)).map(({ name }: any) => name)).toEqual([id]);
  }
  await stopped(runner);
});

test("two runners in one folder work one after the other, also under two names of it, and beside others", async () => {
  const project = await fresh();
  const id = await start(project, { tasks: [{ slug: "unit", shards: 2 }] });
  const write = `printf '<testsuite name="u"><testcase name="%s"/></testsuite>' "$ASSAY_SHARD"`;
  const tasks = {
    unit: {
      command: `mkdir alone || exit 9; ${awaitFile("go")}; ${write} > report.xml; rmdir alone`,
      report: "report.xml",
    },
  };
  const one = startRunner({ place: project, tasks });
  await runs(project, id);
  symlinkSync(one.directory, `${one.directory}-link`);
  const two = startRunner({ place: project, tasks, directory: `${one.directory}-link` });
  await until(() => two.output().includes("Another runner works in this folder"));
  await until(() => two.syncs().length > 0);
  expect(two.syncs()[0]).toMatchObject({ free: 0, waitSeconds: 5 });
  const elsewhere = startRunner({ place: project, tasks: { unit: task(`${write} > own.xml`) }, args: ["--once"] });
  expect(await elsewhere.ended).toBe(0);
  const next = await start(project);
  await Bun.write(one.file("go"), "");
  expect([await ends(project, id), await ends(project, next)]).toMatchObject([
    { status: "passed", passed: 2, failed: 0 },
    { status: "passed", passed: 1, failed: 0 },
  ]);
  expect((await casesOf(project, id)).map(({ name }: any) => name).sort()).toEqual(["1/2", "2/2"]);
  await Promise.all([stopped(one), stopped(two)]);
});

test.each([
  ["without a report", "true"],
  ["with an empty report", "echo '<testsuites/>' > report.xml"],
])("a shard passes %s if the split gave it no files, and says so; all of them do not", async (_, leave) => {
  const project = await fresh();
  const askFor = (files: string) =>
    `curl -s --unix-socket "$ASSAY_QUEUE" -d '{"files":${files}}' http://runner/plan > answer; `;
  const write = `if [ "$ASSAY_SHARD" = 1/2 ]; then ${report("p")}; else ${leave}; fi`;
  const own = Array.from({ length: 9 }, (_, at) => `f${at}.ts`).find((file) => hashShard(file, 2) === 1)!;
  const tasks = { unit: task(askFor(JSON.stringify([own])) + write), none: task(askFor("[]") + leave) };
  const runner = startRunner({ place: project, tasks });
  const id = await start(project, { tasks: [{ slug: "unit", shards: 2 }] });
  expect(await ends(project, id)).toMatchObject({ status: "passed", passed: 1, failed: 0 });
  const { warnings } = await createAsking(ask, project).get(`/executions/${id}/test-runs/unit`);
  expect(warnings).toEqual(["The split gave shard 2 of 2 no files"]);
  const none = await start(project, { tasks: [{ slug: "none", shards: 2 }] });
  expect((await ends(project, none)).status).toBe("failed");
  await stopped(runner);
});

test("a cancelled execution ends the processes, and nothing is reported", async () => {
  const project = await fresh();
  const id = await start(project);
  const tasks = { unit: task(`(trap "" HUP; setsid sleep 1000) & echo "pid $$"; ${report("p")}; sleep 1000`) };
  const runner = startRunner({ place: project, tasks });
  await runs(project, id);
  await until(async () => await Bun.file(runner.file("report.xml")).exists());
  await ask(`POST /projects/${project.project}/executions/${id}/cancel`, { key: project.key });
  await until(() => runner.output().includes('"Task ended"'));
  expect(lives(pidIn((await logOf(project, id)).text))).toBe(false);
  const [lease] = await database.pool`select id, status from lease where execution_id = ${id}`;
  expect(lease!["status"]).toBe("cancelled");
  expect(await Bun.$`grep -sl ${lease!["id"]} /proc/[0-9]*/environ`.nothrow().text()).toBe("");
  expect(await see(project, id)).toMatchObject({ status: "cancelled", failed: 0, passed: 0 });
  await stopped(runner);
});

test("variables reach the task, and the values of the secret ones are found nowhere", async () => {
  const project = await fresh();
  const [token, certificate] = ["hunter2&<tok>en", "-----BEGIN-----\nabcdefghijkl\n-----END-----"];
  const slug = `e-${sources++}`;
  const team = { key: acme.teamKey };
  const { body } = await ask(`POST /teams/${acme.team}/environments`, {
    ...team,
    body: { slug, name: slug, baseUrl: "http://app.test" },
  });
  const variables = { TOKEN: token, CERTIFICATE: certificate, OPEN: { value: "in the clear", secret: false } };
  expect(
    (await ask(`PUT /teams/${acme.team}/environments/${body.id}/variables`, { ...team, body: variables })).status,
  ).toBe(200);
  const id = await start(project, { environment: slug, variables: { MORE: "of this execution" } });
  const script = `
    const { TOKEN, CERTIFICATE, OPEN, MORE, ASSAY_BASE_URL, ASSAY_KEY } = process.env;
    console.log(TOKEN, OPEN, MORE, ASSAY_BASE_URL, ASSAY_KEY);
    console.error(CERTIFICATE + "|" + btoa("user:" + TOKEN) + "|" + encodeURIComponent(TOKEN) + "|" + JSON.stringify({ CERTIFICATE }));
    for (const part of TOKEN) { await Bun.write(Bun.stdout, part); await Bun.sleep(2); }
    const xml = TOKEN.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
    await Bun.write("report.xml", \`<testsuite name="unit"><testcase name="with \${xml}"><failure message="\${xml} ok">\${CERTIFICATE}</failure></testcase></testsuite>\`);
    await Bun.write("wide.xml", Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(\`<testsuite name="wide"><testcase name="\${xml}"/></testsuite>\`, "utf16le")]));`;
  const tasks = { unit: task(`${process.execPath} script.ts`, { accept: ["MORE"] }) };
  const runner = startRunner({ place: project, tasks });
  await Bun.write(runner.file("script.ts"), script);
  await ends(project, id);
  const { text } = await logOf(project, id);
  expect(text).toContain("*** in the clear of this execution http://app.test undefined\n***");
  const cases = await casesOf(project, id);
  expect(cases.map(({ name }: any) => name).sort()).toEqual(["***", "with ***"]);
  await stopped(runner);
  const everything = [
    text,
    JSON.stringify(cases),
    runner.output(),
    ...runner.front.requests.map(({ body }) => body),
  ].join("\n");
  const parts = await database.pool<{ bytes: Buffer }[]>`select bytes from lease_log order by lease_id, start`;
  const stored = Buffer.concat(parts.map(({ bytes }) => bytes)).toString();
  for (const hidden of [
    token,
    "hunter2",
    "abcdefghijkl",
    btoa(`user:${token}`).slice(8, -4),
    encodeURIComponent(token),
    project.key,
  ])
    expect([hidden, everything.includes(hidden), stored.includes(hidden)]).toEqual([hidden, false, false]);
});

describe("a task with a gate", () => {
  const prepare = async () => {
    const project = await fresh();
    await createAsking(ask, project).upload("fpp", { task_slug: "unit", branch: "main" });
    return { project, id: await start(project, { branch: "x" }) };
  };
  const once = (project: Project, more: object, command: string) =>
    startRunner({ place: project, tasks: { unit: { ...task(command), ...more } }, args: ["--once"] });

  test("passes for --once when its failures are forgiven, and the execution stays red", async () => {
    const { project, id } = await prepare();
    const runner = once(project, { gate: "new" }, `${report("fpp")}; exit 1`);
    expect(await runner.ended).toBe(0);
    expect(runner.output() + runner.errors()).toMatch(/Task ended.*forgiven.{0,3}1/);
    expect((await see(project, id)).status).toBe("failed");
    const run = await createAsking(ask, project).get(`/executions/${id}/test-runs/unit`);
    expect(run).toMatchObject({ forgiven: 1, gates: [{ pass: true }] });
  });

  test.each([
    ["a new failure", { gate: "new" }, `${report("ffp")}; exit 1`],
    ["a crash", { gate: "new" }, `${report("fpp")}; exit 139`],
    ["no report", { gate: "new" }, "exit 1"],
    ["no gate", {}, `${report("fpp")}; exit 1`],
  ])("fails with %s", async (_, more, command) => {
    const { project } = await prepare();
    expect(await once(project, more, command).ended).toBe(1);
  });
});
