/** `assay runner` as a process of its own, with a server that can go away and come back. */

import { afterAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { openCgroups } from "../../src/runner/cgroups.ts";
import { createHarness, junit, until } from "../harness.ts";
import { createPlace, guardProcess, removePlace } from "../places.ts";

const { url, ask, acme, addProject, database, regenerate } = await createHarness();
const ROOT = join(import.meta.dir, "../..");
const place = createPlace("runner");
afterAll(() => removePlace(place));
let folders = 0;

type Project = { project: string; key: string };
type Request = { method: string; path: string; body: string; at: number };

/** What the runner takes for the server: passes everything on and keeps it, and is away when it is told to be. */
function createFront() {
  const requests: Request[] = [];
  const answers: ((request: Request) => Response | undefined)[] = [];
  const serve = (port: number) =>
    Bun.serve({
      ...{ port, hostname: "127.0.0.1", development: false, idleTimeout: 0 },
      async fetch(request) {
        const bytes = new Uint8Array(await request.arrayBuffer());
        const isGzip = request.headers.get("content-encoding") === "gzip";
        const { pathname, search } = new URL(request.url);
        const body = Buffer.from(isGzip ? Bun.gunzipSync(bytes) : bytes).toString();
        const recorded = { method: request.method, path: pathname + search, body, at: performance.now() };
        requests.push(recorded);
        const scripted = answers[0]?.(recorded);
        if (scripted) {
          answers.shift();
          return scripted;
        }
        const passed = await fetch(url + pathname + search, {
          ...{ method: request.method, headers: request.headers, signal: request.signal },
          ...(request.method === "GET" ? {} : { body: bytes }),
        });
        return new Response(await passed.bytes(), { status: passed.status, headers: plain(passed.headers) });
      },
    });
  let server = serve(0);
  const { port } = server;
  afterAll(() => server.stop(true));
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    /** What is answered instead of what the server would say, once. */
    answerOnce: (answer: (request: Request) => Response | undefined) => void answers.push(answer),
    leave: () => server.stop(true),
    comeBack: () => void (server = serve(port!)),
  };
}

const readText = (path: string): string => {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
};

const plain = (headers: Headers) => {
  const kept = new Headers(headers);
  for (const name of ["content-encoding", "content-length", "transfer-encoding"]) kept.delete(name);
  return kept;
};

type RunnerOptions = { place: Project; tasks: object; args?: string[]; environment?: Record<string, string> };

function startRunner({ place: { project, key }, tasks, args = [], environment = {} }: RunnerOptions) {
  const front = createFront();
  const directory = join(place, `runner-${folders++}`);
  const config = join(directory, "assay.yaml");
  const written = Bun.write(config, JSON.stringify({ tasks }));
  const child = written.then(() => {
    const child = Bun.spawn([process.execPath, "src/cli/assay.ts", "runner", "--config", config, ...args], {
      cwd: ROOT,
      env: { ...process.env, ASSAY_URL: front.url, ASSAY_PROJECT: project, ASSAY_KEY: key, ...environment },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    guardProcess(child);
    return child;
  });
  let [output, errors] = ["", ""];
  const reading = child.then(async ({ stdout, stderr }) => {
    const read = async (stream: ReadableStream<Uint8Array>, add: (text: string) => void) => {
      for await (const chunk of stream) add(Buffer.from(chunk).toString());
    };
    await Promise.all([read(stdout, (text) => (output += text)), read(stderr, (text) => (errors += text))]);
  });
  return {
    front,
    directory,
    file: (name: string) => join(directory, name),
    output: () => output,
    errors: () => errors,
    signal: async (name: NodeJS.Signals) => (await child).kill(name),
    pid: async () => (await child).pid,
    ended: child.then(async (child) => {
      await Promise.all([child.exited, reading]);
      return child.exitCode ?? child.signalCode;
    }),
    syncs: () => front.requests.filter(({ path }) => path.endsWith("/leases")).map(({ body }) => JSON.parse(body)),
  };
}

type Started = ReturnType<typeof startRunner>;

/** A project of its own: queues are a project's. */
const fresh = (): Promise<Project> => addProject(acme);
const start = async ({ project, key }: Project, more: object = {}) => {
  const body = { mode: "run", tasks: ["unit"], ...more };
  const answer = await ask(`POST /projects/${project}/executions`, { key, body });
  expect(answer.status).toBe(201);
  return answer.body.id as string;
};
const see = async ({ project, key }: Project, id: string) =>
  (await ask(`GET /projects/${project}/executions/${id}`, { key })).body;
const logOf = async ({ project, key }: Project, id: string, task = "unit") => {
  const answer = await ask(`GET /projects/${project}/executions/${id}/test-runs/${task}/log`, { key });
  expect([answer.status, answer.text]).toEqual([200, expect.anything()]);
  return answer.body;
};
const casesOf = async ({ project, key }: Project, id: string, task = "unit") =>
  (await ask(`GET /projects/${project}/executions/${id}/test-runs/${task}/cases`, { key })).body.data;
const ends = async (place: Project, id: string) => {
  await until(async () => !["queued", "running"].includes((await see(place, id)).status));
  return await see(place, id);
};
const runs = (place: Project, id: string) => until(async () => (await see(place, id)).tasks[0].status === "running");

const report = (letters: string, name = "report.xml") => `printf '%s' '${junit(letters)}' > "${name}"`;
const task = (command: string, more: object = {}) => ({ command, report: "*.xml", ...more });
/** Until a file is there. */
const awaitFile = (name: string) => `while [ ! -e ${name} ]; do sleep 0.02; done`;

async function stopped(runner: Started): Promise<void> {
  await runner.signal("SIGTERM");
  expect(await runner.ended).toBe(0);
}

function lives(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}
const pidIn = (text: string) => Number(/pid (\d+)/.exec(text)![1]);

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
    const command = `
      while ${process.execPath} ${join(ROOT, "src/cli/assay.ts")} split --next a.ts b.ts c.ts > files.txt || exit 1; [ -s files.txt ]; do
        for file in $(cat files.txt); do echo "$file$ASSAY_KEY" >> ran; done
        n=$((n + 1)); echo '<testsuite name="s"><testcase name="'$n' of '$ASSAY_SHARD'"/></testsuite>' > results/$n.xml
      done`;
    const before = "rm -rf results; mkdir results";
    const runner = startRunner({ place: project, tasks: { unit: { command, before, report: "results/*.xml" } } });
    const ended = await ends(project, id);
    expect([ended.status, ended.failed, ended.tasks[0].reason]).toEqual(["passed", 0, null]);
    expect(readText(runner.file("ran")).trim().split("\n").sort()).toEqual(["a.ts", "b.ts", "c.ts"]);
    await stopped(runner);
  });

  test("of a repository runs in a work tree of the commit, several at once, prepared once for each commit", async () => {
    const project = await fresh();
    const source = join(place, `source-${folders++}`);
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
    const source = join(place, `source-${folders++}`);
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
    const split = `${process.execPath} ${join(ROOT, "src/cli/assay.ts")} split '*.test.ts'`;
    const name = "$(echo $ASSAY_SHARD | tr / -)";
    const runner = startRunner({
      place: project,
      tasks: { unit: task(`${split} > ${name}.txt; ${report("p", `${name}.xml`)}`) },
    });
    runner.front.answerOnce(({ path }) => (path.includes("/plan?") ? new Response("", { status: 503 }) : undefined));
    for (const letter of "abcd") await Bun.write(runner.file(`${letter}.test.ts`), "");
    await ends(project, id);
    const parts = await Promise.all(
      ["1-2.txt", "2-2.txt"].map(async (name) => (await Bun.file(runner.file(name)).text()).trim().split("\n")),
    );
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
  ])("%s says on which machine it ran, which an older server does not take", async (_, unit) => {
    const project = await fresh();
    const id = await start(project);
    const runner = startRunner({ place: project, tasks: { unit } });
    await ends(project, id);
    const ranOn = async (id: string) => {
      const path = `/projects/${project.project}/executions/${id}/test-runs/unit`;
      return (await ask(`GET ${path}`, { key: project.key })).body.ranOn;
    };
    const system = `${process.platform} ${process.arch}`;
    expect(await ranOn(id)).toEqual([{ shard: null, host: hostname(), system, image: null }]);
    runner.front.answerOnce(({ path }) =>
      path.includes("/test-runs?") || path.endsWith("/fail")
        ? Response.json({ error: { code: "VALIDATION_ERROR", message: 'Unknown field "host"' } }, { status: 400 })
        : undefined,
    );
    const second = await start(project);
    expect((await ends(project, second)).status).toBe((await see(project, id)).status);
    expect(await ranOn(second)).toEqual([]);
    await stopped(runner);
  });

  test("of a server that knows no probes is taken all the same", async () => {
    const project = await fresh();
    const runner = startRunner({ place: project, tasks: { unit: task(report("p"), { checkout: "own" }) } });
    runner.front.answerOnce(({ path }) =>
      path.endsWith("/leases")
        ? Response.json({ error: { code: "VALIDATION_ERROR", message: 'Unknown field "probeSlugs"' } }, { status: 400 })
        : undefined,
    );
    const id = await start(project);
    expect((await ends(project, id)).status).toBe("passed");
    expect(runner.syncs().map(({ probeSlugs }) => probeSlugs)[0]).toEqual([]);
    for (const { probeSlugs } of runner.syncs().slice(1)) expect(probeSlugs).toBeUndefined();
    await stopped(runner);
    expect(runner.errors()).toBe("");
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

  test("of 50 MB takes no memory, and its end is there", async () => {
    const project = await fresh();
    const id = await start(project);
    const print = `yes 'a line of what is printed' | head -c 52428800; echo the end; touch done; ${awaitFile("go")}`;
    const runner = startRunner({ place: project, tasks: { unit: task(`${print}; ${report("p")}`) } });
    await until(() => Bun.file(runner.file("done")).exists());
    const status = readFileSync(`/proc/${await runner.pid()}/status`, "utf8");
    await Bun.write(runner.file("go"), "");
    expect((await ends(project, id)).status).toBe("passed");
    expect(Number(/VmHWM:\s+(\d+) kB/.exec(status)![1]) / 1_024).toBeLessThan(250);
    const path = `GET /projects/${project.project}/executions/${id}/test-runs/unit/log`;
    const { text } = await ask(path, { key: project.key, headers: { accept: "text/plain" } });
    expect(text.slice(-8)).toBe("the end\n");
    expect(text.length).toBeGreaterThan(1_000_000);
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
  const slug = `e-${folders}`;
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
    await runner.signal("SIGTERM");
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
    await runner.signal("SIGTERM");
    await until(() => runner.output().includes('"Stopping'));
    await runner.signal("SIGINT");
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
  later: "a field of a newer server",
};

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
    await runner.signal("SIGKILL");
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
  await until(
    async () =>
      (await Bun.file(runner.file("pid"))
        .text()
        .catch(() => "")) !== "",
  );
  const pid = Number(await Bun.file(runner.file("pid")).text());
  const [lease] = await database.pool`select id from lease where execution_id = ${id}`;
  expect(lives(pid)).toBe(true);
  await runner.signal("SIGKILL");
  await runner.ended;
  await until(async () => (await Bun.$`grep -sl ${lease!["id"]} /proc/[0-9]*/environ`.nothrow().text()) === "");
  await until(() => !lives(pid));
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
    const lose = ({ path, body }: Request) => {
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
    await runner.signal("SIGTERM");
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
  const once = (project: Project, more: object, command: string) =>
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
    ["a failure that its mode does not forgive", { gate: "quarantine" }, `${report("fpp")}; exit 1`],
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
    const path = join(place, `key-${folders}`);
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
