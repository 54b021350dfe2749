/** `assay runner` with a server that can go away and come back. */

import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { createFolder, run } from "../commands.ts";
import { createHarness, junit, until } from "../harness.ts";
import {
  awaitFile,
  createRunners,
  lives,
  pidIn,
  readText,
  report,
  stopped,
  task,
  type RunnerProject,
  type RunnerRequest,
} from "../runners.ts";

const harness = await createHarness();
const { url, ask, acme, database, regenerate } = harness;
const { startRunner, fresh, start, see, logOf, casesOf, ends, runs } = createRunners(harness);
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
    const without = startRunner({ place: project, tasks: { unit: task(report("p")) }, args: ["--labels", "linux"] });
    await until(() => without.syncs().length > 0);
    expect(without.syncs()[0]).toMatchObject({ taskSlugs: ["unit"], labels: ["linux"], free: 1, waitSeconds: 55 });
    const having = startRunner({
      place: project,
      tasks: { unit: task(report("p")) },
      args: ["--labels", "gpu, linux"],
    });
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
    const runner = startRunner({
      place: project,
      tasks: { unit: { command: `mkdir -p ${where}; cd ${where}; ${command}`, report: "d-*/**/*.xml" } },
    });
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
    const command = `echo "$(cat ../text) in $(pwd)"; until [ $(ls ${source}.* | wc -l) -gt 2 ]; do sleep 0.05; done; ${report("p")}`;
    const runner = startRunner({
      place: project,
      tasks: {
        unit: {
          checkout,
          workingDirectory: "sub",
          command: `touch ${source}.$ASSAY_EXECUTION_ID; ${command}`,
          report: "report.xml",
        },
      },
      args: ["--concurrency", "2"],
    });
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
    const command = `mkdir -p out; touch ../here-$ASSAY_SHARD_NAME; until [ $(ls .. | grep -c here) = 2 ]; do sleep 0.05; done; ${report("p", "out/report.xml")}`;
    const runner = startRunner({
      place: project,
      tasks: {
        unit: {
          command: command.replace("$ASSAY_SHARD_NAME", "${ASSAY_SHARD%/*}"),
          workingDirectory: "slot-{slot}",
          report: "out/*.xml",
          before: "true",
        },
      },
      args: ["--concurrency", "2"],
    });
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
    expect(runner.front.requests.filter(({ path }) => path.includes("/plan?"))).toHaveLength(3);
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

  test("whose time is over is ended, and failed", async () => {
    const project = await fresh();
    const id = await start(project, { tasks: [{ slug: "unit", timeoutSeconds: 1 }] });
    const runner = startRunner({ place: project, tasks: { unit: task(`echo "pid $$"; sleep 1000`) } });
    expect((await ends(project, id)).tasks[0].status).toBe("failed");
    expect(JSON.stringify(await casesOf(project, id))).toContain("Timed out after 1 s");
    expect(lives(pidIn((await logOf(project, id)).text))).toBe(false);
    await stopped(runner);
  });
});

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

test("a variable of the execution that the task does not accept is refused, by the execution and before it begins", async () => {
  const project = await fresh();
  const runner = startRunner({ place: project, tasks: { unit: task(`touch begun; ${report("p")}`) } });
  await Bun.write(runner.file("theirs.sh"), "touch theirs");
  const id = await start(project, { variables: { BASH_ENV: "./theirs.sh", ENV: "./theirs.sh" } });
  expect((await ends(project, id)).status).toBe("failed");
  expect(JSON.stringify(await casesOf(project, id))).toContain(
    'The execution sets \\"BASH_ENV\\", \\"ENV\\", which the task \\"unit\\" does not accept',
  );
  expect([await Bun.file(runner.file("begun")).exists(), await Bun.file(runner.file("theirs")).exists()]).toEqual([
    ...[false, false],
  ]);
  await stopped(runner);
});

test("a task whose secrets are too large to be hidden is refused before it begins", async () => {
  const names = Array.from({ length: 140 }, (_, at) => `FILE_${at}`);
  const large = () => Buffer.from(crypto.getRandomValues(new Uint8Array(48_000))).toString("base64");
  const variables = Object.fromEntries(names.map((name) => [name, large()]));
  const lease = { ...handedOut, id: crypto.randomUUID(), variables, secretNames: names };
  const runner = startRunner({ place: await fresh(), tasks: { unit: task("echo began > began") } });
  runner.front.answerOnce(({ path }) =>
    path.endsWith("/leases") ? Response.json({ leases: [lease], held: [], nextSeconds: 20 }) : undefined,
  );
  const failures = () => runner.front.requests.filter(({ path }) => path.endsWith(`/leases/${lease.id}/fail`));
  await until(() => failures().length > 0, 30);
  expect(JSON.parse(failures()[0]!.body)).toEqual({
    message: "The secret variables are too large to be masked",
    host: hostname(),
    system: expect.any(String),
  });
  await stopped(runner);
  expect(await Bun.file(runner.file("began")).exists()).toBe(false);
});

describe("SIGTERM", () => {
  test("lets an idle runner go at once, and its poll is answered before", async () => {
    const project = await fresh();
    const runner = startRunner({ place: project, tasks: { unit: task("true") } });
    await until(() => runner.syncs().length === 1);
    await stopped(runner);
    expect(runner.syncs().at(-1)).toMatchObject({ free: 0, waitSeconds: 0 });
    expect(runner.syncs()).toHaveLength(2);
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

  test("a second time ends what runs, which failed then", async () => {
    const project = await fresh();
    const runner = startRunner({ place: project, tasks: { unit: task(`echo "pid $$"; touch begun; sleep 1000`) } });
    const id = await start(project);
    await until(() => Bun.file(runner.file("begun")).exists());
    runner.signal("SIGTERM");
    await until(() => runner.output().includes('"Stopping'));
    runner.signal("SIGINT");
    expect(await runner.ended).toBe(0);
    expect((await see(project, id)).status).toBe("failed");
    expect(JSON.stringify(await casesOf(project, id))).toContain("The runner was stopped");
    expect(lives(pidIn((await logOf(project, id)).text))).toBe(false);
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
    expect(runner.syncs().at(-1)).toMatchObject({ free: 0, returned: [lease.id] });
  });
});

const handedOut = {
  timeoutSeconds: 60,
  execution: { id: crypto.randomUUID(), key: null, branch: null, commit: null, baseUrl: null, later: "unknown" },
  taskSlug: "unit",
  attempt: 1,
  variables: {},
  secretNames: [],
  executionNames: [],
  later: "a field of a newer server",
};

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
    await until(
      async () =>
        (await Bun.file(runner.file("pid"))
          .text()
          .catch(() => "")) !== "",
    );
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

describe("a task with a gate", () => {
  const prepare = async () => {
    const project = await fresh();
    const path = `POST /projects/${project.project}/test-runs?task_slug=unit&branch=main`;
    await ask(path, { key: project.key, body: junit("fpp") });
    return { project, id: await start(project, { branch: "x" }) };
  };
  const once = (project: RunnerProject, more: object, command: string) =>
    startRunner({ place: project, tasks: { unit: { ...task(command), ...more } }, args: ["--once"] });

  test("passes for --once when its failures are forgiven, and the execution stays red", async () => {
    const { project, id } = await prepare();
    const runner = once(project, { gate: "new" }, `${report("fpp")}; exit 1`);
    expect(await runner.ended).toBe(0);
    expect(runner.output() + runner.errors()).toMatch(/Task ended.*forgiven.{0,3}1/);
    expect((await see(project, id)).status).toBe("failed");
    const path = `GET /projects/${project.project}/executions/${id}/test-runs/unit`;
    expect((await ask(path, { key: project.key })).body).toMatchObject({ forgiven: 1, gates: [{ pass: true }] });
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
