/** `assay upload`, as a CI job calls it, against a server. */

import { describe, expect, spyOn, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, readFileSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { dirname, join } from "node:path";
import { type Reports, sendReports } from "../../src/cli/upload_request.ts";
import { createFolder, home, start as startCommand, type Variables, variablesOf } from "../commands.ts";
import { createHarness, junit, until } from "../harness.ts";
import { createReceiver, createResettingReceiver } from "../receiver.ts";

const { ask, acme, addProject, regenerate, url } = await createHarness();

type Project = Awaited<ReturnType<typeof addProject>>;
type Run = { folder?: string; variables?: Variables; input?: string };

const start = (of: Project, args: string[], { folder, variables, input }: Run = {}) =>
  startCommand(["upload", ...args], { cwd: folder, env: { ...variablesOf(url, of), ...variables }, stdin: input });
const upload = (project: Project, args: string[], run?: Run) => start(project, args, run).ended;

const list = async ({ project, key }: Project) =>
  (await ask(`GET /projects/${project}/executions?limit=100`, { key })).body.data;
/** The only run of the project's only execution. */
async function onlyRun(project: Project) {
  const [{ id, tasks }, ...others] = await list(project);
  expect([others, tasks.length]).toEqual([[], 1]);
  const path = `/projects/${project.project}/executions/${id}/test-runs/${encodeURIComponent(tasks[0].slug)}`;
  return (await ask(`GET ${path}`, { key: project.key })).body;
}
const project = await addProject(acme);
/** An answer as the server gives it, for a receiver to give. */
const SAMPLE = (await ask(`POST /projects/${project.project}/test-runs`, { key: project.key, body: junit("p") })).body;

/** For servers that never come back. */
const SOON = ["--patience", "0.5"];
const script = (text: string) => ["--", "sh", "-c", text];
const writes = (letters: string, name = "report.xml") => `printf '%s' '${junit(letters)}' > ${name}`;

describe("reports", () => {
  test("go as one run, with where they come from, and the verdict is told", async () => {
    const project = await addProject(acme);
    const folder = createFolder({ "a.xml": junit("pf", "a"), "b.xml": junit("pp", "b") });
    const options = ["--task", "unit", "--branch", "feat/a", "--commit", "0123456789abcdef", "--pull-request", "7"];
    const more = [
      "--build-url",
      "https://ci.test/1",
      "--environment",
      "staging",
      "--execution-key",
      "42",
      "--complete",
    ];
    const { code, output, errors } = await upload(project, ["*.xml", ...options, ...more], { folder });
    expect([code, errors]).toEqual([0, ""]);
    expect(output).toMatch(/^FAILED unit: 3 passed, 1 failed \(1 new\), 0 skipped, attempt 1 http\S+\n$/);
    expect(await list(project)).toEqual([
      expect.objectContaining({
        key: "42",
        status: "failed",
        branch: "feat/a",
        commit: "0123456789abcdef",
        pullRequest: "7",
        buildUrl: "https://ci.test/1",
        environment: "staging",
        passed: 3,
        failed: 1,
      }),
    ]);
  });

  test("take what the CI system says where no option says it, and shards of a build meet", async () => {
    const project = await addProject(acme);
    const circle = (index: string): Run => ({
      folder: createFolder({ "r.xml": junit("p", `s${index}`) }),
      variables: {
        CIRCLECI: "true",
        CIRCLE_WORKFLOW_ID: "w-1",
        CIRCLE_JOB: "unit",
        CIRCLE_SHA1: "abc1234",
        CIRCLE_BRANCH: "main",
        CIRCLE_NODE_INDEX: index,
        CIRCLE_NODE_TOTAL: "2",
      },
    });
    expect((await upload(project, ["r.xml", "--branch", "", "--commit", "def5678"], circle("0"))).output).toStartWith(
      "WAITING unit: 1 of 2 shards, missing shard 2; 1 passed",
    );
    expect((await upload(project, ["r.xml", "--commit", "def5678"], circle("1"))).output).toStartWith(
      "PASSED unit: 2 passed",
    );
    expect(await list(project)).toEqual([expect.objectContaining({ key: "w-1", branch: "main", commit: "def5678" })]);
  });

  test("say where they ran, and options win", async () => {
    const ranOn = async (options: string[], variables: Variables) => {
      const project = await addProject(acme);
      await upload(project, ["r.xml", ...options], { folder: createFolder({ "r.xml": junit("p") }), variables });
      return (await onlyRun(project)).ranOn;
    };
    const system = `${process.platform} ${process.arch}`;
    const gitlab = { GITLAB_CI: "true", CI_RUNNER_DESCRIPTION: "ci-3", CI_JOB_IMAGE: "node:24" };
    expect(await ranOn([], gitlab)).toEqual([{ shard: null, host: "ci-3", system, image: "node:24" }]);
    const options = ["--host", "ci-9", "--system", "android arm64", "--image", "pixel-9"];
    expect(await ranOn(options, gitlab)).toEqual([
      { shard: null, host: "ci-9", system: "android arm64", image: "pixel-9" },
    ]);
    expect(await ranOn([], {})).toEqual([{ shard: null, host: hostname(), system, image: null }]);
  });

  test("of a matrix have tags: from options, else from the environment, there also as GitHub writes a matrix", async () => {
    const project = await addProject(acme);
    const folder = createFolder({ "report.xml": junit("p") });
    const send = async (options: string[], variables: Variables) => {
      const args = ["report.xml", "--task", "e2e", "--execution-key", "1", ...options];
      const { code, output, errors } = await upload(project, args, { folder, variables });
      expect([code, errors]).toEqual([0, ""]);
      return /^PASSED (.+): 1 passed/.exec(output)?.[1];
    };
    const ASSAY_TAGS = "os:linux, browser:webkit";
    const tags = ["--tag", "browser:firefox", "--tag=os:linux", "--tag", ""];
    expect(await send(tags, { ASSAY_TAGS })).toBe("e2e [browser:firefox, os:linux]");
    expect(await send(["--tag", ""], { ASSAY_TAGS })).toBe("e2e [browser:webkit, os:linux]");
    expect(await send([], { ASSAY_TAGS: JSON.stringify({ browser: "edge", node: 22 }, null, 2) })).toBe(
      "e2e [browser:edge, node:22]",
    );
    expect(await send([], { ASSAY_TAGS: "" })).toBe("e2e");
    expect((await list(project))[0].tasks).toHaveLength(4);
  });

  test("with tags that cannot be read are a wrong usage, before any command runs", async () => {
    const project = await addProject(acme);
    const folder = createFolder();
    const args = ["report.xml", "--tag", "browser:", "--", "touch", "ran"];
    const { code, errors } = await upload(project, args, { folder });
    expect(code).toBe(2);
    expect(errors).toContain("--tag: expected a tag such as browser:webkit");
    expect(existsSync(join(folder, "ran"))).toBe(false);
  });

  test("join the execution that the environment names", async () => {
    const project = await addProject(acme);
    const { body } = await ask(`POST /projects/${project.project}/executions`, { key: project.key, body: {} });
    const variables = { ASSAY_EXECUTION_ID: body.id, BITBUCKET_BUILD_NUMBER: "42" };
    const { code } = await upload(project, ["r.xml"], { folder: createFolder({ "r.xml": junit("p") }), variables });
    expect([code, (await list(project)).map(({ id }: { id: string }) => id)]).toEqual([0, [body.id]]);
  });

  test("tell commit and branch of the repository they are in", async () => {
    const project = await addProject(acme);
    const folder = createFolder({ "r.xml": junit("p") });
    const git = (...args: string[]) =>
      Bun.spawnSync(["git", "-c", "user.name=a", "-c", "user.email=a@b.test", ...args], { cwd: folder });
    git("init", "-q", "-b", "feat/a");
    git("commit", "-q", "--allow-empty", "-m", "a");
    const commit = git("rev-parse", "HEAD").stdout.toString().trim();
    await upload(project, ["r.xml"], { folder });
    expect(await list(project)).toEqual([expect.objectContaining({ branch: "feat/a", commit })]);
    // Without git, and its PATH, nothing is known, and nothing is wrong.
    const other = await addProject(acme);
    const { code } = await upload(other, ["r.xml"], { folder, variables: { PATH: "/nowhere" } });
    expect([code, (await list(other))[0].commit]).toEqual([0, null]);
  });

  test("that are large go packed, and those of the same name together", async () => {
    const receiver = createReceiver({ status: 201, body: SAMPLE });
    const folder = createFolder({ "small.xml": junit("p"), "large.xml": junit("p".repeat(5_000)) });
    const variables = { ASSAY_URL: receiver.url };
    await upload(project, ["small.xml"], { folder, variables });
    await upload(project, ["small.xml", "large.xml"], { folder, variables });
    const [small, large] = receiver.requests;
    expect(small!.headers["content-encoding"]).toBeUndefined();
    expect(large!.headers["content-encoding"]).toBe("gzip");
    const real = await addProject(acme);
    expect((await upload(real, ["small.xml", "large.xml"], { folder })).output).toContain(" 5001 passed");
  });

  test("--json is the server's answer on one line, or why there is none", async () => {
    const project = await addProject(acme);
    const folder = createFolder({ "r.xml": junit("pf"), "bad.xml": "<html/>" });
    const variables = { GITHUB_ACTIONS: "true" };
    const { output, errors } = await upload(project, ["r.xml", "--json"], { folder, variables });
    expect(
      output
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line)),
    ).toEqual([
      expect.objectContaining({
        verdict: "failed",
        passed: 1,
        newFailures: [expect.objectContaining({ name: "case 1" })],
      }),
    ]);
    expect(errors).toBe("::error title=unit > case 1::case 1 failed\n");
    const bad = await upload(project, ["bad.xml", "--json"], { folder });
    expect(JSON.parse(bad.output)).toEqual({ error: { message: expect.stringContaining("it is an HTML page") } });
  });

  test("--help prints all options, and wrong usage runs no command", async () => {
    const help = await upload(project, ["--help"]);
    expect([help.code, help.output]).toEqual([0, expect.stringContaining("--execution-key KEY")]);
    const marker = join(createFolder(), "ran");
    for (const args of [
      [],
      ["--task", "unit"],
      ["r.xml", "--nope"],
      ["r.xml", "--"],
      ["r.xml", "--nope", "--", "touch", marker],
      ["r.xml", "--exit-code", "1", "--", "touch", marker],
      ["r.xml", "--exit-code", "x"],
      ["r.xml", "--patience", "1m"],
      ["r.xml", "--execution-key", "a", "--execution-id", "b"],
    ])
      expect([args, (await upload(project, args)).code]).toEqual([args, 2]);
    expect(existsSync(marker)).toBe(false);
    const { code, errors } = await upload(project, ["r.xml"], { variables: { ASSAY_KEY: " ", ASSAY_URL: "" } });
    expect([code, errors]).toEqual([2, expect.stringContaining("Set ASSAY_URL, ASSAY_KEY")]);
    const odd = await upload(project, ["r.xml"], { variables: { ASSAY_KEY: "svc_proj_\u2014secret" } });
    expect([odd.code, odd.errors]).toEqual([2, expect.stringContaining("Cannot read ASSAY_KEY: it contains")]);
    expect(odd.errors).not.toContain("secret");
  });

  test("--help after -- belongs to the command", async () => {
    const { code, output } = await upload(project, ["r.xml", "--", "sh", "-c", 'echo "$0"', "--help"]);
    expect([code, output]).toEqual([0, "--help\n"]);
  });
});

describe("an upload that fails breaks no build, unless it is to", () => {
  const folder = createFolder({ "r.xml": junit("p"), "bad.xml": "<html/>" });
  const variants = [[], ["--strict"]];
  /** Exit codes without and with --strict, and what is said. */
  async function both(args: string[], run: Run = {}, of: Project = project) {
    const ends = await Promise.all(variants.map((more) => upload(of, [...args, ...more], { folder, ...run })));
    expect(ends.map(({ output }) => output)).toEqual(["", ""]);
    expect(ends[1]!.errors).toBe(ends[0]!.errors);
    return { codes: ends.map(({ code }) => code), errors: ends[0]!.errors };
  }

  test("a report that cannot be read", async () => {
    expect(await both(["bad.xml"])).toEqual({
      codes: [0, 1],
      errors: `assay: Results were not uploaded: Cannot read "bad.xml": it is an HTML page, not a test report\n`,
    });
  });

  test("a parameter that cannot be", async () => {
    const { codes, errors } = await both(["r.xml", "--branch", "b".repeat(2_000)]);
    expect([codes, errors]).toEqual([[0, 1], expect.stringContaining('Cannot read "branch"')]);
  });

  test("files and globs that are nothing, each by its name", async () => {
    expect(await both(["no.xml", "no/*.xml"])).toEqual({
      codes: [0, 1],
      errors:
        `assay: File not found: "no.xml"\nassay: No file matches "no/*.xml"\n` +
        `assay: Results were not uploaded: No report found\n`,
    });
    // What is there is sent all the same.
    const project = await addProject(acme);
    const { code, output, errors } = await upload(project, ["r.xml", "no.xml", "--strict"], { folder });
    expect([code, output, errors]).toEqual([1, expect.stringMatching(/^PASSED /), `assay: File not found: "no.xml"\n`]);
  });

  test("a key that is no longer valid, and a project that is not there", async () => {
    const old = await addProject(acme);
    await regenerate({ ...acme, project: old.project });
    const { codes, errors } = await both(["r.xml"], {}, old);
    expect([codes, errors]).toEqual([[0, 1], expect.stringContaining("(ASSAY_KEY)\n")]);
    const wrong = await both(["r.xml"], { variables: { ASSAY_PROJECT: crypto.randomUUID() } });
    expect([wrong.codes, wrong.errors]).toEqual([[0, 1], expect.stringContaining("(ASSAY_URL and ASSAY_PROJECT)")]);
  });

  test("a server that is away, or resets every connection", async () => {
    const away = await both(["r.xml", ...SOON], { variables: { ASSAY_URL: "http://127.0.0.1:1" } });
    expect([away.codes, away.errors]).toEqual([
      [0, 3],
      expect.stringContaining("Cannot reach http://127.0.0.1:1: the connection was refused\n"),
    ]);
    const resetting = await createResettingReceiver();
    expect(
      (await upload(project, ["r.xml", "--strict", ...SOON], { folder, variables: { ASSAY_URL: resetting.url } })).code,
    ).toBe(3);
    expect(resetting.count()).toBe(3);
  });

  test("a server that is broken is asked three times, and one that asks for patience beyond that is left", async () => {
    const broken = createReceiver({ status: 500, body: { error: { code: "INTERNAL_ERROR", message: "Broken" } } });
    const { code, errors } = await upload(project, ["r.xml", "--strict", ...SOON], {
      folder,
      variables: { ASSAY_URL: broken.url },
    });
    expect([code, errors]).toEqual([3, "assay: Results were not uploaded: Broken\n"]);
    expect(new Set(broken.requests.map(({ headers }) => headers["idempotency-key"])).size).toBe(1);
    expect(broken.requests).toHaveLength(3);
    const busy = createReceiver({ status: 429, headers: { "Retry-After": "121" } });
    expect((await upload(project, ["r.xml"], { folder, variables: { ASSAY_URL: busy.url } })).code).toBe(0);
    expect(busy.requests).toHaveLength(1);
    const once = ["r.xml", "--patience", "0"];
    expect((await upload(project, once, { folder, variables: { ASSAY_URL: broken.url } })).code).toBe(0);
    expect(broken.requests).toHaveLength(4);
  });

  test("a server that asks for two seconds is asked again for as long as the fail-over of a database takes", async () => {
    const sleep = spyOn(Bun, "sleep").mockResolvedValue(undefined);
    const random = spyOn(Math, "random").mockReturnValue(0);
    const away = createReceiver({ status: 500, headers: { "Retry-After": "2" } });
    try {
      const sent = await sendReports({ ...project, url: away.url }, [], {}, { patienceMs: 120_000 });
      expect(sent.end).toBe("away");
      const waits = sleep.mock.calls.map(([ms]) => ms as number);
      expect(waits.slice(0, 4)).toEqual([2_000, 3_000, 4_500, 6_750]);
      // As long as without Retry-After: 16 s and 40 s.
      expect(waits.reduce((sum, ms) => sum + ms, 0)).toBeCloseTo(56_000, 3);
      expect(away.requests).toHaveLength(waits.length + 1);
    } finally {
      sleep.mockRestore();
      random.mockRestore();
    }
  });

  test("a server that is started again has some seconds for it, and then some more", async () => {
    const sleep = spyOn(Bun, "sleep").mockResolvedValue(undefined);
    const random = spyOn(Math, "random").mockReturnValue(0.5);
    try {
      const address = { ...project, url: "http://127.0.0.1:1" };
      expect((await sendReports(address, [], {}, { patienceMs: 30_000 })).end).toBe("away");
      const waits = sleep.mock.calls.map(([ms]) => Math.round(ms as number));
      expect(waits).toEqual([4_000, 10_000]);
    } finally {
      sleep.mockRestore();
      random.mockRestore();
    }
  });

  test("what is no server of this kind", async () => {
    const page = createReceiver({ status: 200, body: "<html>Welcome</html>" });
    const { codes, errors } = await both(["r.xml"], { variables: { ASSAY_URL: page.url } });
    expect([codes, errors]).toEqual([[0, 1], expect.stringContaining("check ASSAY_URL")]);
  });

  test("a fork's build has no key", async () => {
    const variables = { ASSAY_KEY: "", GITLAB_CI: "true" };
    const { codes, errors } = await both(["r.xml"], { variables });
    expect([codes, errors]).toEqual([[0, 3], expect.stringContaining("Set ASSAY_KEY (the pull request of a fork")]);
  });

  test("no password of an address is told", async () => {
    const variables = { ASSAY_URL: "http://operator:hunter22@127.0.0.1:1" };
    const { errors } = await upload(project, ["r.xml", ...SOON], { folder, variables });
    expect(errors).toContain("Cannot reach http://***@127.0.0.1:1");
  });
});

test("uploads at once beyond the rate limit all arrive, each once, in the next windows", async () => {
  const real = await addProject(acme);
  const PER_WINDOW = 8;
  const windows = new Map<number, number>();
  const front = Bun.serve({
    ...{ port: 0, hostname: "127.0.0.1", development: false },
    async fetch(request) {
      const window = Math.floor(Date.now() / 1_000);
      const made = (windows.get(window) ?? 0) + 1;
      windows.set(window, made);
      if (made > PER_WINDOW) return new Response("", { status: 429, headers: { "Retry-After": "1" } });
      const { pathname, search } = new URL(request.url);
      return await fetch(`${url}${pathname}${search}`, {
        method: "POST",
        headers: request.headers,
        body: await request.bytes(),
      });
    },
  });
  try {
    const address = { ...real, url: `http://127.0.0.1:${front.port}` };
    const reports: Reports = [{ name: "r.xml", bytes: new TextEncoder().encode(junit("p")) }];
    const sent = await Promise.all(
      Array.from({ length: 24 }, (_, at) =>
        sendReports(address, reports, { task_slug: `t${at}`, execution_key: "1" }, { patienceMs: 30_000 }),
      ),
    );
    expect(sent.map(({ end }) => end)).toEqual(sent.map(() => "uploaded"));
  } finally {
    await front.stop(true);
  }
  const { body } = await ask(`GET /projects/${real.project}/executions`, { key: real.key });
  expect(body.data.map(({ tasks }: { tasks: unknown[] }) => tasks.length)).toEqual([24]);
});

test("a server that asks for patience gets the same upload again, under the same key: it is one run", async () => {
  const real = await addProject(acme);
  const seen: string[] = [];
  // A server in front of the server, which is too busy at first, and then loses an answer on its way.
  const front = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    development: false,
    async fetch(request) {
      seen.push(request.headers.get("idempotency-key")!);
      if (seen.length === 1) return new Response("", { status: 429, headers: { "Retry-After": "0" } });
      const { pathname } = new URL(request.url);
      const answer = await fetch(`${url}${pathname}`, {
        method: request.method,
        headers: request.headers,
        body: await request.bytes(),
      });
      if (seen.length === 2) return new Response("", { status: 502, headers: { "Retry-After": "0" } });
      return new Response(await answer.text(), { status: answer.status, headers: { "X-Seen": "1" } });
    },
  });
  try {
    const variables = { ASSAY_URL: `http://127.0.0.1:${front.port}` };
    const { code, output } = await upload(real, ["r.xml"], {
      folder: createFolder({ "r.xml": junit("pp") }),
      variables,
    });
    expect([code, output]).toEqual([0, expect.stringMatching(/^PASSED unit: 2 passed.*attempt 1 /)]);
    expect([seen.length, new Set(seen).size]).toEqual([3, 1]);
    expect(await list(real)).toHaveLength(1);
  } finally {
    await front.stop(true);
  }
});

describe("around a command", () => {
  test.each([
    ["passes", "exit 0", 0],
    ["fails", "exit 1", 1],
    ["fails in its own way", "exit 3", 3],
    ["is killed", "kill -KILL $$", 137],
    ["dies of a signal", "kill -TERM $$", 143],
  ])("that %s: its exit code is ours, and goes along", async (_, end, code) => {
    const project = await addProject(acme);
    const ended = await upload(project, ["report.xml", ...script(`${writes("pp")}; ${end}`)]);
    expect([ended.code, ended.output]).toEqual([code, ""]);
    const failed = code === 0 ? 0 : 1;
    expect(ended.errors).toStartWith(
      code === 0 ? "PASSED unit: 2 passed" : `FAILED unit: test runner exited with code ${code}; 2 passed, 1 failed`,
    );
    expect(await onlyRun(project)).toMatchObject({ exitCode: code, passed: 2, failed });
  });

  test("that is not there, or cannot be executed, as a shell would say", async () => {
    const folder = createFolder({ plain: "x", "no-shebang": "exit 5\n" });
    chmodSync(join(folder, "no-shebang"), 0o755);
    mkdirSync(join(folder, "folder"));
    const project = await addProject(acme);
    const missing = await upload(project, ["r.xml", "--", "no-such-command"], { folder });
    expect([missing.code, missing.errors]).toEqual([
      127,
      expect.stringContaining('assay: Cannot run "no-such-command": '),
    ]);
    expect(await onlyRun(project)).toMatchObject({ exitCode: 127, failed: 1, total: 1 });
    for (const [command, code] of [
      ["./plain", 126],
      ["./folder", 126],
      ["./no-shebang", 5],
    ] as const)
      expect([command, (await upload(project, ["r.xml", "--", command], { folder })).code]).toEqual([command, code]);
  });

  test("all that it reads and writes is its own", async () => {
    const real = await addProject(acme);
    const input = Buffer.from(Array.from({ length: 4096 }, (_, index) => index % 256)).toString("latin1");
    const text = `${writes("p")}; cat; echo "::error::mine" >&2; printf 'no line break'`;
    const folder = createFolder();
    const { code, output, errors } = await upload(real, ["report.xml", ...script(text)], { folder, input });
    expect([code, output === `${input}no line break`]).toEqual([0, true]);
    expect(errors).toMatch(/^::error::mine\nPASSED unit: 1 passed, 0 failed, 0 skipped, attempt 1 \S+\n$/);
  });

  test("is run even where nothing can be uploaded", async () => {
    const folder = createFolder();
    const away = { variables: { ASSAY_URL: "http://127.0.0.1:1" }, folder };
    const command = script(`${writes("p")}; echo done; exit $CODE`);
    const ends = await Promise.all(
      [
        [["report.xml", ...command], { CODE: "0" }],
        [["report.xml", "--strict", ...command], { CODE: "0" }],
        [["report.xml", "--strict", ...command], { CODE: "7" }],
      ].map(([args, more]) =>
        upload(project, [...SOON, ...(args as string[])], {
          ...away,
          variables: { ...away.variables, ...(more as Variables) },
        }),
      ),
    );
    expect(ends.map(({ code, output }) => [code, output])).toEqual([
      [0, "done\n"],
      [3, "done\n"],
      [7, "done\n"],
    ]);
    for (const { errors } of ends) expect(errors).toContain("Results were not uploaded: Cannot reach");
    const fork = await upload(project, ["report.xml", ...command], { folder, variables: { ASSAY_KEY: "", CODE: "4" } });
    expect([fork.code, fork.output, fork.errors]).toEqual([4, "done\n", expect.stringContaining("Set ASSAY_KEY")]);
  });

  describe("that leaves no report of its own", () => {
    /** Of an earlier build. */
    const old = (name: string) => {
      const folder = createFolder({ [name]: junit("ppp") });
      utimesSync(join(folder, name), new Date(Date.now() - 60_000), new Date(Date.now() - 60_000));
      return folder;
    };

    test.each([
      ["fails", "exit 5", 5, 5],
      ["claims success", "exit 0", 0, -1],
    ])("and %s: the stale one is refused, and a failure recorded", async (_, text, code, recorded) => {
      const project = await addProject(acme);
      const ended = await upload(project, ["report.xml", ...script(text)], { folder: old("report.xml") });
      expect(ended.code).toBe(code);
      expect(ended.errors).toMatch(/^assay: "report.xml" is stale: .*\nassay: Without a report, this is recorded/);
      expect(await onlyRun(project)).toMatchObject({ exitCode: recorded, passed: 0, failed: 1, verdict: "failed" });
    });

    test("beside one that is: that is taken alone", async () => {
      const project = await addProject(acme);
      const ended = await upload(project, ["*.xml", ...script(writes("p", "new.xml"))], { folder: old("old.xml") });
      expect([ended.code, ended.errors]).toEqual([0, expect.stringContaining('"old.xml" is stale')]);
      expect(await onlyRun(project)).toMatchObject({ passed: 1, total: 1 });
    });

    test("and has failed: whatever the format, it is red", async () => {
      const project = await addProject(acme);
      const args = ["*.json", "--format", "playwright", "--task", "e2e", ...script("exit 2")];
      expect(await upload(project, args)).toMatchObject({ code: 2, output: "" });
      expect(await onlyRun(project)).toMatchObject({ taskSlug: "e2e", exitCode: 2, failed: 1 });
    });

    test("but one that is broken: the failure is recorded without it", async () => {
      const project = await addProject(acme);
      const ended = await upload(project, ["r.json", ...script(`printf '{"suites": [' > r.json; exit 139`)]);
      expect([ended.code, ended.errors]).toEqual([139, expect.stringContaining('Cannot read "r.json"')]);
      expect(await onlyRun(project)).toMatchObject({ exitCode: 139, failed: 1, total: 1 });
    });

    test.each([
      ["has no test cases", "<testsuite/>", "holds no test case:"],
      ["is broken", "<html/>", "Cannot read"],
    ])("but one that %s, and claims success: that is no success", async (_, text, why) => {
      const project = await addProject(acme);
      const ended = await upload(project, ["r.xml", "--task", "unit", ...script(`echo '${text}' > r.xml`)]);
      expect([ended.code, ended.output]).toEqual([0, ""]);
      expect(ended.errors).toContain(why);
      expect(ended.errors).toContain("assay: Without a report, this is recorded as a failure: runner exited -1\n");
      expect(await onlyRun(project)).toMatchObject({ exitCode: -1, failed: 1, total: 1, verdict: "failed" });
    });

    test("where that is right: --allow-empty", async () => {
      const other = await addProject(acme);
      const empty = script("echo '<testsuite/>' > r.xml");
      expect(await upload(other, ["r.xml", "--allow-empty", ...empty])).toMatchObject({ code: 0 });
      expect(await onlyRun(other)).toMatchObject({ exitCode: 0, total: 0, verdict: "passed" });
      const project = await addProject(acme);
      const { code, errors } = await upload(project, ["r.xml", "--allow-empty", "--strict", ...script("exit 0")]);
      expect([code, errors]).toEqual([0, expect.stringContaining("PASSED default: 0 passed")]);
      expect(await onlyRun(project)).toMatchObject({ total: 0, verdict: "passed" });
    });

    test("or a step before has told how the tests ended", async () => {
      const project = await addProject(acme);
      const { code } = await upload(project, ["r.xml", "--exit-code", "101"]);
      expect([code, await onlyRun(project)]).toEqual([0, expect.objectContaining({ exitCode: 101, failed: 1 })]);
    });
  });

  describe("a signal", () => {
    test("reaches the command, which ends as it likes, and a cancelled build has no result", async () => {
      const project = await addProject(acme);
      const folder = createFolder({ source: junit("p") });
      const text = `trap "cp source report.xml; echo caught; exit 42" TERM; : > ready; for i in $(seq 500); do sleep 0.02; done`;
      const { signal, ended } = start(project, ["report.xml", ...script(text)], { folder });
      await until(() => existsSync(join(folder, "ready")));
      signal("SIGTERM");
      const errors = "assay: Results were not uploaded: Interrupted\n";
      expect(await ended).toEqual({ code: 42, output: "caught\n", errors });
      expect(await list(project)).toEqual([]);
    });

    test("during the upload: it is left, and the exit code stays the command's", async () => {
      const hanging = createReceiver("hang");
      const variables = { ASSAY_URL: hanging.url };
      const { signal, ended } = start(project, ["report.xml", ...script(`${writes("p")}; exit 6`)], { variables });
      await until(() => hanging.requests.length > 0);
      signal("SIGTERM");
      expect(await ended).toMatchObject({ code: 6, errors: "assay: Results were not uploaded: Interrupted\n" });
    });
  });
});

describe("what CI systems are told", () => {
  const NAME = `100% </code><b>\r\n::error::pwned ##[error]pwned`;
  const report = (message = "expected 2, got 3") => `<testsuite name="unit">
    <testcase classname="cart" name="${Bun.escapeHTML(NAME).replace(/\r\n/, "&#13;&#10;")}" file="cart.test.ts" line="12">
      <failure message="${message}"/></testcase>
    <testcase classname="cart" name="removes"/></testsuite>`;

  test("GitHub: annotations at lines of the repository, and a summary after what is there", async () => {
    const project = await addProject(acme);
    const workspace = createFolder();
    const folder = join(workspace, "web");
    mkdirSync(folder);
    writeFileSync(join(folder, "cart.test.ts"), "");
    writeFileSync(join(folder, "r.xml"), report(`the key is ${project.key}`));
    writeFileSync(join(workspace, "summary.md"), "# Mine");
    const variables = {
      GITHUB_ACTIONS: "true",
      GITHUB_RUN_ID: "1",
      GITHUB_WORKSPACE: workspace,
      GITHUB_STEP_SUMMARY: join(workspace, "summary.md"),
    };
    const { code, output } = await upload(project, ["r.xml"], { folder, variables });
    const lines = output.trimEnd().split("\n");
    expect([code, lines.length]).toEqual([0, 2]);
    expect(lines[0]).toStartWith("FAILED unit: 1 passed, 1 failed (1 new)");
    expect(lines[1]).toStartWith("::error file=web/cart.test.ts,line=12,title=unit > cart > 100%25 </code><b>");
    expect(lines[1]).toEndWith("::the key is ***");
    expect(lines[1]).not.toContain("##[");
    const summary = readFileSync(variables.GITHUB_STEP_SUMMARY, "utf8");
    expect(summary).toStartWith("# Mine\n\n### FAILED unit\n");
    expect(summary).toContain("<pre>the key is ***</pre>");
    expect(summary).not.toContain("<b>");
  });

  test("GitHub: a summary that is full, or cannot be written, costs nothing else", async () => {
    const project = await addProject(acme);
    const folder = createFolder({ "r.xml": report(), "full.md": "x".repeat(2 ** 20 - 50) });
    for (const name of ["full.md", "no/such/folder.md"]) {
      const variables = { GITHUB_ACTIONS: "true", GITHUB_STEP_SUMMARY: join(folder, name) };
      const { code, output } = await upload(project, ["r.xml", "--strict"], { folder, variables });
      expect([code, output]).toEqual([0, expect.stringMatching(/^FAILED /)]);
    }
    expect(readFileSync(join(folder, "full.md"))).toHaveLength(2 ** 20 - 50);
  });

  test("GitHub, around a command: among its errors, so that its output stays its own", async () => {
    const project = await addProject(acme);
    const folder = createFolder({ source: report() });
    const args = ["r.xml", ...script("cp source r.xml; echo mine; exit 1")];
    const ended = await upload(project, args, { folder, variables: { GITHUB_ACTIONS: "true" } });
    expect([ended.code, ended.output]).toEqual([1, "mine\n"]);
    expect(ended.errors).toMatch(/^FAILED unit: .*\n::error file=cart.test.ts,line=12,title=.*::expected 2, got 3\n$/);
  });

  test("GitHub: where the server says no more than names, names are told", async () => {
    const failures = [{ testCaseId: crypto.randomUUID(), taskSlug: "unit", suite: "cart", name: "adds", file: null }];
    const receiver = createReceiver(
      { status: 201, body: { ...SAMPLE, verdict: "failed", failed: 1, newFailures: failures } },
      { status: 500 },
    );
    const variables = { ASSAY_URL: receiver.url, GITHUB_ACTIONS: "true" };
    const { output } = await upload(project, ["r.xml"], { folder: createFolder({ "r.xml": report() }), variables });
    expect(output.split("\n")[1]).toBe("::error title=cart > adds::cart > adds failed");
    expect(receiver.requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
      `POST /api/v1/projects/${project.project}/test-runs`,
      `GET /api/v1/projects/${project.project}/executions/${SAMPLE.executionId}/failures`,
    ]);
  });

  test("GitLab, TeamCity and Azure: a line in their own languages", async () => {
    const project = await addProject(acme);
    const folder = createFolder({ "r.xml": report() });
    const second = async (variables: Variables) =>
      (await upload(project, ["r.xml"], { folder, variables })).output.split("\n")[1];
    expect(await second({ GITLAB_CI: "true" })).toMatch(/^Test results: http:\/\/\S+$/);
    expect(await second({ TEAMCITY_VERSION: "2025.03" })).toMatch(/^##teamcity\[buildStatus text='.* 1 failed .*'\]$/);
    expect(await second({ TF_BUILD: "True" })).toMatch(/^##vso\[task.logissue type=error\]FAILED Assay: unit 1 passed/);
  });

  test("Buildkite: its agent is given the summary, if there is one", async () => {
    const project = await addProject(acme);
    const folder = createFolder({ "r.xml": report() });
    const run: Run = { folder, variables: { BUILDKITE: "true", BUILDKITE_LABEL: ":jest: unit tests" } };
    expect((await upload(project, ["r.xml"], run)).code).toBe(0);
    const tools = createFolder({ "buildkite-agent": `#!/bin/sh\necho "$@" > ${folder}/args; cat > ${folder}/text` });
    chmodSync(join(tools, "buildkite-agent"), 0o755);
    const variables = { ...run.variables!, PATH: `${tools}:${process.env["PATH"]}` };
    expect((await upload(project, ["r.xml"], { folder, variables })).code).toBe(0);
    expect(readFileSync(join(folder, "args"), "utf8")).toBe(
      "annotate --style error --context assay--jest-unit-tests\n",
    );
    expect(readFileSync(join(folder, "text"), "utf8")).toStartWith("### FAILED &#58;jest&#58; unit tests\n");
  });

  test("a warning if nothing was uploaded: the job is green, and its log unread", async () => {
    const old = await addProject(acme);
    await regenerate({ ...acme, project: old.project });
    const tools = createFolder({ "buildkite-agent": "" });
    const agent = join(tools, "buildkite-agent");
    writeFileSync(agent, `#!/bin/sh\necho "$@" > ${tools}/args; cat > ${tools}/text`);
    chmodSync(agent, 0o755);
    const folder = createFolder({ "r.xml": report() });
    const fail = async (system: Variables, args = ["r.xml"]) => {
      const { code, output } = await upload(old, args, { folder, variables: system });
      expect(code).toBe(0);
      return output;
    };
    const summary = join(folder, "summary.md");
    const github = { GITHUB_ACTIONS: "true", GITHUB_STEP_SUMMARY: summary };
    expect(await fail(github)).toMatch(/^::warning title=Assay::Results were not uploaded: [^\n]* \(ASSAY_KEY\)\n$/);
    expect(readFileSync(summary, "utf8")).toMatch(/^### Assay\n\n⚠️ Results were not uploaded&#58; .*ASSAY&#95;KEY/);
    const event = join(folder, "event.json");
    const repository = (name: string) => ({ full_name: name, owner: { login: name.split("/")[0] } });
    const head = { sha: "0".repeat(40), ref: "fix", repo: repository("alice/shop") };
    writeFileSync(
      event,
      JSON.stringify({ pull_request: { number: 7, head, base: { repo: repository("acme/shop") } } }),
    );
    // A fork has no secrets: nobody is to be warned of that.
    expect(await fail({ ...github, GITHUB_EVENT_PATH: event, ASSAY_KEY: "" })).toBe("");
    expect(await fail(github, ["no.xml"])).toBe("::warning title=Assay::Results were not uploaded: No report found\n");
    expect(await fail({ TEAMCITY_VERSION: "2025.03" })).toMatch(
      /^##teamcity\[message text='Assay: .*' status='WARNING'\]\n$/,
    );
    expect(await fail({ TF_BUILD: "True" })).toMatch(/^##vso\[task.logissue type=warning\]Assay: Results were not/);
    expect(await fail({ GITLAB_CI: "true" })).toBe("");
    await fail({ BUILDKITE: "true", PATH: `${tools}:${process.env["PATH"]}` });
    expect(readFileSync(join(tools, "args"), "utf8")).toBe("annotate --style warning --context assay-upload\n");
    expect(readFileSync(join(tools, "text"), "utf8")).toStartWith("### Assay\n\n⚠️ Results were not uploaded&#58; ");
  });

  test("everybody: the warnings of the run", async () => {
    const project = await addProject(acme);
    const cut = junit("ppp").slice(0, -60);
    const { errors } = await upload(project, ["r.xml"], { folder: createFolder({ "r.xml": cut }) });
    expect(errors).toMatch(/^assay: Warning: The report is broken at /);
  });
});

describe("the ownership file of the repository", () => {
  const git = (folder: string, ...args: string[]) => {
    const { success, stderr } = Bun.spawnSync(["git", ...args], { cwd: folder, env: { ...process.env, HOME: home } });
    if (!success) throw new Error(stderr.toString());
  };
  const createRepository = (files: Record<string, string>, branch = "main") => {
    const folder = createFolder();
    for (const [path, text] of Object.entries({ "r.xml": junit("p"), ...files })) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), text);
    }
    git(folder, "init", "-q", "-b", branch);
    return folder;
  };
  const stored = async ({ project, key }: Project) => (await ask(`GET /projects/${project}/owners`, { key })).body;

  test("is sent from the default branch, when it changed", async () => {
    const project = await addProject(acme);
    const folder = createRepository({ ".github/CODEOWNERS": "* @all\n/x nobody\n", CODEOWNERS: "* @other" });
    const { code, errors } = await upload(project, ["r.xml"], { folder });
    expect([code, errors]).toEqual([
      0,
      "assay: Owners of tests are by .github/CODEOWNERS now\n" +
        'assay: .github/CODEOWNERS: Line 2: expected an owner such as "@name", "@group/team" or an e-mail address, got "nobody"\n',
    ]);
    expect(await stored(project)).toMatchObject({ path: ".github/CODEOWNERS", branch: "main", syntax: "github" });
    expect((await upload(project, ["r.xml"], { folder })).errors).toBe("");
    mkdirSync(join(folder, "sub"));
    writeFileSync(join(folder, "sub/s.xml"), junit("pp"));
    writeFileSync(join(folder, ".github/CODEOWNERS"), "* @new");
    expect((await upload(project, ["s.xml"], { folder: join(folder, "sub") })).errors).toContain("now\n");
    expect((await stored(project)).content).toBe("* @new");
  });

  test("is not sent from another branch, a pull request, a later shard, through a link, or if it is not wanted", async () => {
    const project = await addProject(acme);
    const elsewhere = join(createFolder({ secret: "* @secret" }), "secret");
    const sent = async (args: string[], { files = { CODEOWNERS: "* @all" }, branch = "main", variables = {} } = {}) => {
      const folder = createRepository(files, branch);
      if (Object.keys(files).length === 0) symlinkSync(elsewhere, join(folder, "CODEOWNERS"));
      const { code, errors } = await upload(project, ["r.xml", ...args], { folder, variables });
      expect([code, errors]).toEqual([0, expect.not.stringContaining("CODEOWNERS")]);
      return (await stored(project)).content;
    };
    expect(await sent([], { branch: "feature" })).toBeNull();
    expect(await sent(["--pull-request", "7"])).toBeNull();
    expect(await sent(["--shard", "2/2"])).toBeNull();
    expect(await sent(["--no-owners"])).toBeNull();
    expect(await sent([], { files: {} as never })).toBeNull();
    const variables = { GITLAB_CI: "true", CI_DEFAULT_BRANCH: "trunk", CI_COMMIT_REF_NAME: "main" };
    expect(await sent([], { variables })).toBeNull();
  });

  test("of GitLab is read by its rules, and costs one request", async () => {
    const { executionId } = SAMPLE;
    const receiver = createReceiver({ status: 200, body: { ...SAMPLE, executionId } }, { status: 500 });
    const folder = createRepository({ ".gitlab/CODEOWNERS": "* @all" });
    const variables = { ASSAY_URL: receiver.url, GITLAB_CI: "true", CI_DEFAULT_BRANCH: "main" };
    const { code, errors } = await upload(project, ["r.xml", "--strict", "--commit", "abc1234"], { folder, variables });
    expect([code, errors]).toEqual([
      0,
      expect.stringContaining("assay: Cannot send .gitlab/CODEOWNERS: the server answered 500\n"),
    ]);
    const [, put, ...others] = receiver.requests;
    expect([put!.method, put!.path, put!.text, others]).toEqual([
      "PUT",
      `/api/v1/projects/${project.project}/owners?path=.gitlab%2FCODEOWNERS&branch=main&commit=abc1234&syntax=gitlab`,
      "* @all",
      [],
    ]);
  });
});
