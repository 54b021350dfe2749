/** tools/assay-upload.sh in every shell, against a server. */

import { afterAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createAsking, type Project } from "../../asking.ts";
import { createHarness, junit, until } from "../../harness.ts";
import { createReceiver } from "../../receiver.ts";
import { createShells, type Shell } from "./shells.ts";

const { ask, acme, addProject, url } = await createHarness();

const SCRIPT = join(import.meta.dir, "../../../tools/assay-upload.sh");
const home = mkdtempSync(join(tmpdir(), "assay-upload-"));
afterAll(() => rmSync(home, { recursive: true }));

type Variables = Record<string, string>;

const SHELLS = createShells(home);
const EACH = SHELLS.map((shell) => [shell.name, shell] as const);
const [shell] = SHELLS;

let folders = 0;
const createFolder = (files: Variables = {}): string => {
  const folder = join(home, `folder ${++folders}`);
  mkdirSync(folder);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
};

/** Creates a program that is found before any other of its name. */
function createTool(folder: string, name: string, script: string): void {
  writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`);
  chmodSync(join(folder, name), 0o755);
}

type Run = {
  shell?: Shell;
  project: Project;
  folder?: string;
  /** Stands first in the PATH. */
  tools?: string;
  variables?: Variables;
  input?: string;
};

const start = (words: string[], { shell: { command, path } = shell, project, folder, tools, variables, input }: Run) =>
  Bun.spawn([...command, SCRIPT, ...words], {
    cwd: folder ?? createFolder({ "report.xml": junit("pf") }),
    env: {
      PATH: tools ? `${tools}:${path}` : path,
      TMPDIR: home,
      GIT_DIR: join(home, "repository"),
      ASSAY_URL: `${url}/`,
      ASSAY_PROJECT: project.project,
      ASSAY_KEY: project.key,
      ...variables,
    },
    stdin: input === undefined ? "ignore" : new Response(input),
    stdout: "pipe",
    stderr: "pipe",
  });

async function run(words: string[], options: Run) {
  const child = start(words, options);
  const [output, errors, exit] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { exit, output, errors };
}

const listExecutions = (project: Project) => createAsking(ask, project).list("/executions?limit=100");

/** The run of a task in the newest execution. */
async function runOf(project: Project, task: string) {
  const [{ id }] = await listExecutions(project);
  return await createAsking(ask, project).get(`/executions/${id}/test-runs/${task}`);
}

const HEAD = "0123456789abcdef0123456789abcdef01234567";
/** More than git allows in a name. */
const ODD = `@<feat/a b&c=#1;type=x,"d" 'e' $HOME \\n \`id\` $(id) %20 日本語`;

const JENKINS: Variables = { JENKINS_URL: "https://ci.test/", BUILD_TAG: "jenkins-web-4711" };
const CIRCLE: Variables = {
  CIRCLECI: "true",
  CIRCLE_WORKFLOW_ID: "4711",
  CIRCLE_JOB: "unit",
  CIRCLE_SHA1: HEAD,
  CIRCLE_BRANCH: "main",
  CIRCLE_NODE_INDEX: "1",
  CIRCLE_NODE_TOTAL: "4",
};
const AZURE: Variables = {
  TF_BUILD: "True",
  BUILD_BUILDID: "4711",
  SYSTEM_PULLREQUEST_SOURCECOMMITID: HEAD,
  SYSTEM_PULLREQUEST_SOURCEBRANCH: `refs/heads/${ODD}`,
  SYSTEM_PULLREQUEST_PULLREQUESTID: "7",
  SYSTEM_COLLECTIONURI: "https://dev.azure.com/acme/",
  SYSTEM_TEAMPROJECT: "My project",
  SYSTEM_JOBIDENTIFIER: "unit.__default",
};

describe.each(EACH)("in %s", (_, shell) => {
  test("the build arrives as the CI system names it, whatever the names contain", async () => {
    const project = await addProject(acme);
    const ran = await run(["report.xml"], { shell, project, variables: AZURE });
    expect(ran).toEqual({ exit: 0, output: expect.stringMatching(/^FAILED unit: 1 passed, 1 failed/), errors: "" });
    expect(await listExecutions(project)).toMatchObject([
      {
        ...{ key: "4711", commit: HEAD, branch: ODD, pullRequest: "7" },
        buildUrl: "https://dev.azure.com/acme/My%20project/_build/results?buildId=4711",
        tasks: [{ slug: "unit", passed: 1, failed: 1 }],
      },
    ]);
  });

  test("a command's streams and exit code pass through, and what it reports is red or green as it says", async () => {
    for (const exit of [0, 1, 3, 7, 255]) {
      const project = await addProject(acme);
      const folder = createFolder({ "report.txt": exit === 0 ? junit("p") : junit("f") });
      const script = `cat; echo problem >&2; cat report.txt > report.xml; printf '[%s]' "$@"; exit ${exit}`;
      const words = ["a  b", "", "*", "--task", "$HOME"];
      const ran = await run(["report.xml", "--task", "unit", "--", "sh", "-c", script, "sh", ...words], {
        ...{ shell, project, folder, variables: { code: "mine", branch: "theirs" } },
        input: "in\0put\n",
      });
      expect([ran.exit, ran.output]).toEqual([exit, `in\0put\n${words.map((word) => `[${word}]`).join("")}`]);
      expect(ran.errors).toMatch(exit === 0 ? /^problem\nPASSED unit: 1 passed/ : /^problem\nFAILED unit: 0 passed/);
      expect(await runOf(project, "unit")).toMatchObject({ exitCode: exit, verdict: exit === 0 ? "passed" : "failed" });
    }
  });

  test("a command keeps its environment", async () => {
    const project = await addProject(acme);
    const variables = Object.fromEntries(
      ["key", "commit", "branch", "pull", "url", "shard", "file", "reports", "status"].map((name) => [name, "mine"]),
    );
    const script = `echo $key $commit $branch $pull $url $shard $file $reports $status`;
    const ran = await run(["report.xml", "--", "sh", "-c", script], { shell, project, variables });
    expect(ran.output).toBe(`${Array(9).fill("mine").join(" ")}\n`);
  });

  test("a command that dies without a report is red with its code, one that claims success without one as well", async () => {
    for (const [script, exit, told] of [
      ["kill -9 $$", 137, 137],
      ["kill -TERM $$", 143, 143],
      ["exit 2", 2, 2],
      ["true", 0, -1],
    ] as const) {
      const project = await addProject(acme);
      const ran = await run(["--task", "unit", "report.xml", "--", "sh", "-c", script], {
        ...{ shell, project, folder: createFolder() },
      });
      expect([ran.exit, ran.output]).toEqual([exit, ""]);
      expect(ran.errors).toContain(`No "report.xml", or none since the command began`);
      expect(await runOf(project, "unit")).toMatchObject({ exitCode: told, verdict: "failed", failed: 1 });
    }
  });

  test("SIGTERM to the group ends the command and not the upload", async () => {
    const project = await addProject(acme);
    const folder = createFolder();
    const script = "trap 'exit 9' TERM; echo ready > ready; while :; do sleep 0.02; done";
    const child = Bun.spawn(
      [...shell.command, SCRIPT, "--task", "unit", "report.xml", "--", ...shell.command, "-c", script],
      {
        cwd: folder,
        env: { PATH: shell.path, TMPDIR: home, ASSAY_URL: url, ASSAY_PROJECT: project.project, ASSAY_KEY: project.key },
        stderr: "pipe",
        detached: true,
      },
    );
    await until(() => Bun.file(join(folder, "ready")).exists());
    process.kill(-child.pid, "SIGTERM");
    expect(await child.exited).toBe(9);
    expect(await runOf(project, "unit")).toMatchObject({ exitCode: 9, failed: 1 });
  });

  test("patterns find several reports, whatever their names hold; a report that is older than the command is left out", async () => {
    const project = await addProject(acme);
    const odd = `e;f,"g" \\h'i [1].xml`;
    const folder = createFolder({
      "TEST-a b.xml": junit("p", "a"),
      "TEST-c.xml": junit("pp", "c"),
      [odd]: junit("ppp", "e"),
    });
    await run(["--task", "unit", "TEST-*.xml", odd], { shell, project, folder });
    expect((await runOf(project, "unit")).passed).toBe(6);

    utimesSync(join(folder, "TEST-c.xml"), 1_000_000, 1_000_000);
    const ran = await run(["--task", "fresh", "TEST-*.xml", "--", "touch", "TEST-a b.xml"], { shell, project, folder });
    expect(ran.errors).toContain(`No "TEST-c.xml", or none since the command began`);
    expect((await runOf(project, "fresh")).passed).toBe(1);
  });

  test("an upload that fails is a warning; with --strict it is exit code 3, unless the command has one of its own", async () => {
    const project = await addProject(acme);
    const refused = { ...project, key: "svc_proj_wrong" };
    const warns = expect.stringContaining("Warning: the results are not uploaded: ");
    const tries: [string[], Run, number][] = [
      [["report.xml"], { project: refused }, 0],
      [["--strict", "report.xml"], { project: refused }, 3],
      [["--strict", "report.xml", "--", "sh", "-c", "exit 5"], { project: refused }, 5],
      [["--strict", "report.xml", "--", "true"], { project: refused }, 3],
      [["report.xml", "--", "sh", "-c", "exit 5"], { project, variables: { ASSAY_KEY: "" } }, 5],
      [["nothing*.xml"], { project }, 0],
      [["--strict", "nothing*.xml"], { project }, 3],
      [["report.xml"], { project, folder: createFolder({ "report.xml": "<html/>" }) }, 0],
    ];
    for (const [words, options, exit] of tries)
      expect(await run(words, { shell, ...options })).toEqual({ exit, output: "", errors: warns });
    const github = await run(["report.xml"], { shell, project: refused, variables: { GITHUB_ACTIONS: "true" } });
    expect(github).toEqual({
      ...{ exit: 0, output: "" },
      errors: expect.stringMatching(
        /\n::warning title=Assay::Results were not uploaded: the log of this step says why\n$/,
      ),
    });
    expect(await listExecutions(project)).toEqual([]);
  });

  test("a report without test cases, or none at all, is no success of a command: it is red with its code or -1", async () => {
    for (const [text, end, told] of [
      ["<testsuite/>", 0, -1],
      ["<html/>", 0, -1],
      ["<testsuite/>", 4, 4],
    ] as const) {
      const project = await addProject(acme);
      const words = ["report.xml", "--task", "unit", "--", "sh", "-c", `echo '${text}' > report.xml; exit ${end}`];
      const ran = await run(words, { shell, project, folder: createFolder() });
      expect([ran.exit, ran.output]).toEqual([end, ""]);
      expect(ran.errors).toMatch(
        /^(assay-upload: .+\n)?FAILED unit: test runner exited with code -?\d+; 0 passed, 1 failed/,
      );
      expect(await runOf(project, "unit")).toMatchObject({ exitCode: told, verdict: "failed", failed: 1 });
    }
  });

  test("no program is told the key in its words", async () => {
    const project = await addProject(acme);
    const tools = createFolder();
    const log = join(tools, "words");
    for (const name of ["curl", "printf", "tr", "sed", "cat", "od", "touch", "mktemp"]) {
      const real = name === "curl" || shell.name !== "busybox" ? Bun.which(name)! : `${Bun.which("busybox")} ${name}`;
      createTool(tools, name, `printf '%s\\n' "$0 $*" >> '${log}'\nexec ${real} "$@"`);
    }
    const ran = await run(["--task", "unit", "report.xml"], { shell, project, tools });
    expect(ran.output).toContain("1 passed, 1 failed");
    const words = await Bun.file(log).text();
    expect(words).toContain("/curl -sS -K -");
    expect(words).not.toContain(project.key.slice(9));
  });

  const answers = async (body: string, words: string[] = [], variables: Variables = {}, status = 201) => {
    const project = { project: "p", key: "svc_proj_k*[a]?'e\\y" };
    const receiver = createReceiver({ status, body });
    const ran = await run([...words, "report.xml"], {
      shell,
      project,
      variables: { ASSAY_URL: receiver.url, ...variables },
    });
    expect(receiver.requests[0]!.headers["authorization"]).toBe(`Bearer ${project.key}`);
    return { ...ran, key: project.key };
  };

  test("what a server says is one line, no command and without the key", async () => {
    const key = "svc_proj_k*[a]?'e\\y";
    const told = `PASSED a é 日本 ${key}${key} ##vso[a] ###vso[b] ##[c]\r\n::error::d\u001b[2J\u009b3J\u007f\n##teamcity[e] http://[::1]:8/x\n`;
    const shown =
      "PASSED a é 日本 ****** ## vso[a] ### vso[b] ## [c]  ::error::d [2J 3J  ## teamcity[e] http://[::1]:8/x ";
    expect(await answers(told)).toMatchObject({ exit: 0, output: `${shown.trimEnd()}\n`, errors: "" });
    const refused = await answers(told, [], {}, 422);
    expect(refused).toMatchObject({ exit: 0, output: "" });
    expect(refused.errors).toBe(`assay-upload: Warning: the results are not uploaded: ${shown}(422)\n`);
    for (const begin of ["::error::x", "  ::error::x", "\r\n::error::x", "\u00a0::error::x", "##vso[x]", "--- x"])
      expect((await answers(begin)).output).toMatch(/^- /);
  });

  test("a name of the key on the command line is masked as well", async () => {
    const { errors, key } = await answers("", ["--strict", `no ${"svc_proj_k*[a]?'e\\y"} ::x.xml`]);
    expect(errors).toContain(`No "no *** ::x.xml"`);
    expect(errors).not.toContain(key);
  });

  test("a trace of the shell does not tell the key", async () => {
    const project = await addProject(acme);
    const traced = { ...shell, command: [...shell.command, "-x"] };
    const { exit, errors, output } = await run(["--task", "unit", "report.xml"], { shell: traced, project });
    expect([exit, output]).toEqual([0, expect.stringMatching(/^FAILED unit: /)]);
    expect(errors).toContain("set +x");
    expect(errors).not.toContain(project.key.slice(9));
  });
});

test("an execution that has asked for the tests gets them, and options say more than variables", async () => {
  const project = await addProject(acme);
  const asked = await createAsking(ask, project).post("/executions", { tasks: ["unit"], branch: "main" });
  const execution = { ASSAY_EXECUTION_ID: asked.id, CIRCLE_NODE_TOTAL: "1" };
  await run(["report.xml"], { project, variables: { ...CIRCLE, ...execution } });
  expect(await listExecutions(project)).toMatchObject([{ id: asked.id, key: null, status: "failed", commit: HEAD }]);
  const words = ["report.xml", "--execution-key", "a b", "--task", "näme; x", "--shard", "3/4"];
  await run(words, { project, variables: CIRCLE });
  const [other] = await listExecutions(project);
  expect(other).toMatchObject({ key: "a b", tasks: [{ slug: "näme; x", missingShards: [1, 2, 4] }] });
});

test("a pull request of a fork has no key, which is no warning for people; a build of the repository without one is", async () => {
  const project = { ...(await addProject(acme)), key: "" };
  const missing = "assay-upload: Warning: the results are not uploaded: set ASSAY_URL, ASSAY_PROJECT and ASSAY_KEY";
  const event = (head: string, owner: string) => ({
    pull_request: {
      head: { sha: HEAD, repo: { full_name: head, owner: { login: owner } } },
      base: { repo: { full_name: "acme/web" } },
    },
  });
  const annotation = "::warning title=Assay::Results were not uploaded: the log of this step says why";
  for (const [pullRequest, errors] of [
    [event("eve/web", "eve"), `${missing} (the pull request of a fork has no secrets)\n`],
    [event("acme/web", "acme"), `${missing}\n${annotation}\n`],
  ] as const) {
    const folder = createFolder({ "report.xml": junit("p"), "event.json": JSON.stringify(pullRequest) });
    const variables = { GITHUB_ACTIONS: "true", GITHUB_EVENT_PATH: join(folder, "event.json") };
    const options = { project, folder, variables };
    expect(await run(["report.xml"], options)).toEqual({ exit: 0, output: "", errors });
    expect(await run(["--strict", "report.xml"], options)).toEqual({ exit: 3, output: "", errors });
  }
});

test("a server that is away is tried for half a minute, and told of once", async () => {
  const project = await addProject(acme);
  const tools = createFolder();
  const away = "curl: (7) Failed to connect to 127.0.0.1 port 1";
  // As curl does it, without the half minute.
  const log = join(tools, "words");
  createTool(tools, "curl", `echo "$*" > '${log}'\nfor i in 1 2 3; do echo '${away}' >&2; done\nprintf 000`);
  const { exit, errors } = await run(["--strict", "report.xml"], { shell, project, tools });
  expect([exit, errors]).toEqual([3, `assay-upload: Warning: the results are not uploaded: ${away} (000)\n`]);
  expect(await Bun.file(log).text()).toContain("--retry 5 --retry-connrefused --retry-max-time 120 ");
});

test("jobs of a matrix have tags: options, else those of the environment", async () => {
  const project = await addProject(acme);
  const args = ["--task", "e2e", "--execution-key", "1", "report.xml"];
  const variables = { ASSAY_TAGS: "os:linux,browser:webkit" };
  await run(["--tag", "browser:edge", "--tag", "os:Windows 11", ...args], { shell, project, variables });
  await run(args, { shell, project, variables });
  await run(args, { shell, project });
  const [{ tasks }, ...others] = await listExecutions(project);
  expect(others).toEqual([]);
  expect(tasks.map(({ tags }: { tags: string[] }) => tags)).toEqual([
    ["browser:edge", "os:Windows 11"],
    ["browser:webkit", "os:linux"],
    [],
  ]);
});

test("--help tells the usage", async () => {
  const { exit, output, errors } = await run(["--help"], { shell, project: await addProject(acme) });
  expect([exit, errors]).toEqual([0, ""]);
  expect(output).toContain("  assay-upload.sh [--task T] [--tag K:V]… [--shard 2/4]");
  expect(output).toContain("Exits with the command's code, else 0; 2: wrong usage");
});

test("wrong usage is exit code 2, and no command is run", async () => {
  const project = await addProject(acme);
  for (const words of [
    [],
    ["--task"],
    ["report.xml", "--tsk", "unit"],
    ["--", "touch", "ran"],
    ["a.xml", "--shard"],
    ["a.xml", "--tag"],
    ...["0/4", "5/4", "1/2/3", "one"].map((shard) => ["a.xml", "--shard", shard, "--", "touch", "ran"]),
  ]) {
    const folder = createFolder();
    expect(await run(words, { shell, project, folder })).toMatchObject({ exit: 2, output: "" });
    expect(await Bun.file(join(folder, "ran")).exists()).toBe(false);
  }
});

test("no password of the address is in the words of a program either", async () => {
  const project = await addProject(acme);
  const tools = createFolder();
  const log = join(tools, "words");
  createTool(tools, "curl", `echo "$*" > '${log}'\nexec ${Bun.which("curl")} "$@"`);
  const variables = { ASSAY_URL: url.replace("//", "//user:hunter22@") };
  await run(["report.xml"], { shell, project, tools, variables });
  expect(await Bun.file(log).text()).not.toContain("hunter22");
});

test("an answer without an end is read for a part of a MiB, and told for one line", async () => {
  const mebibyte = new Uint8Array(2 ** 20).fill(120);
  let sent = 0;
  const server = Bun.serve({
    ...{ port: 0, hostname: "127.0.0.1", development: false },
    async fetch(request) {
      await request.arrayBuffer();
      return new Response(new ReadableStream({ pull: (to) => void (to.enqueue(mebibyte), sent++) }), { status: 201 });
    },
  });
  try {
    const variables = { ASSAY_URL: `http://127.0.0.1:${server.port}` };
    const { exit, output } = await run(["report.xml"], { shell, project: await addProject(acme), variables });
    expect([exit, output]).toEqual([0, `${"x".repeat(4_000)}\n`]);
    expect(sent).toBeLessThan(64);
  } finally {
    await server.stop(true);
  }
});

test("a build with a key stays open until a job says --complete", async () => {
  const project = await addProject(acme);
  const statuses = async () => (await listExecutions(project)).map(({ status }: { status: string }) => status);
  await run(["--task", "unit", "--execution-key", "7", "report.xml"], { project });
  expect(await statuses()).toEqual(["running"]);
  await run(["--task", "e2e", "--execution-key", "7", "--complete", "report.xml"], { project });
  expect(await statuses()).toEqual(["failed"]);
});

test("429 and 5xx are tried again with one Idempotency-Key, another one for the next upload", async () => {
  const project = await addProject(acme);
  const seen: [string, string | null][] = [];
  const proxy = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    development: false,
    async fetch(request) {
      const body = await request.arrayBuffer();
      const key = request.headers.get("idempotency-key")!;
      const wait = { "Retry-After": "1" };
      if (!seen.some(([known]) => known === key)) {
        seen.push([key, "429"]);
        return new Response("not now", { status: 429, headers: wait });
      }
      const answer = await fetch(`${url}${new URL(request.url).pathname}`, {
        ...{ method: "POST", headers: request.headers, body },
      });
      const count = seen.filter(([known]) => known === key).length;
      seen.push([key, answer.headers.get("idempotent-replayed")]);
      // The upload was taken, and its answer is lost.
      return count === 1 ? new Response("bad gateway", { status: 502, headers: wait }) : answer;
    },
  });
  try {
    const variables = { ASSAY_URL: `http://127.0.0.1:${proxy.port}` };
    const both = ["a", "b"].map((task) => run(["--task", task, "report.xml"], { project, variables }));
    for (const ran of await Promise.all(both))
      expect(ran).toEqual({
        exit: 0,
        output: expect.stringMatching(/^FAILED [ab]: .*\n$/),
        errors: expect.any(String),
      });
  } finally {
    await proxy.stop(true);
  }
  const byKey = Map.groupBy(seen, ([key]) => key);
  expect([...byKey.values()].map((tries) => tries.map(([, what]) => what))).toEqual([
    ["429", null, "true"],
    ["429", null, "true"],
  ]);
  expect(await listExecutions(project)).toHaveLength(2);
}, 20_000);

test("the checkout tells commit and branch where no CI system does, and the head of what Jenkins has merged", async () => {
  const repository = join(home, "repository");
  const git = async (...words: string[]) =>
    (
      await Bun.$`git -c user.name=a -c user.email=a@example.com ${words}`
        .env({ ...process.env, GIT_DIR: repository, GIT_WORK_TREE: home })
        .text()
    ).trim();
  await Bun.$`git init -q --bare -b trunk ${repository}`.quiet();
  await git("commit", "-q", "--allow-empty", "-m", "a");
  const head = await git("rev-parse", "HEAD");
  await git("update-ref", "refs/remotes/origin/PR-7", head);
  await git("commit", "-q", "--allow-empty", "-m", "b");
  const merge = await git("rev-parse", "HEAD");
  try {
    const project = await addProject(acme);
    await run(["report.xml"], { project });
    const merged = { ...JENKINS, GIT_COMMIT: merge, BRANCH_NAME: "PR-7", CHANGE_ID: "7", CHANGE_BRANCH: "feat" };
    await run(["report.xml"], { project, variables: merged });
    expect(await listExecutions(project)).toMatchObject([
      { commit: head, branch: "feat", key: "jenkins-web-4711" },
      { commit: merge, branch: "trunk", key: null, status: "failed" },
    ]);
  } finally {
    rmSync(repository, { recursive: true });
  }
});

describe.each(EACH)("--attach in %s", (_, shell) => {
  const project = { project: crypto.randomUUID(), key: "a-key" };
  const files = { "report.xml": junit("pf"), "a.log": "first", "b c.log": "second", "empty.log": "" };

  test("sends files for the run as a whole, and none that a link leads to", async () => {
    const receiver = createReceiver({ status: 201, body: "PASSED" });
    const folder = createFolder({ ...files, 'odd"\\.log': "third" });
    symlinkSync("/etc/hostname", join(folder, "link.log"));
    symlinkSync("/etc", join(folder, "etc"));
    const taken = ["[ab]*.log", 'odd"\\.log'];
    const left = ["../secret", "/etc/hostname", "link.log", "etc/hostname", "empty.log", "gone.log"];
    const words = [...taken, ...left].flatMap((name) => ["--attach", name]);
    const { exit, errors } = await run([...words, "report.xml"], {
      shell,
      project,
      folder,
      variables: { ASSAY_URL: receiver.url },
    });
    expect(exit).toBe(0);
    const parts = [
      ...receiver.requests[0]!.text.matchAll(/name="(\w+)"; filename="(.*)"\r\n(?:.+\r\n)*\r\n([^]*?)\r\n--/g),
    ];
    expect(parts.map(([, name, file, text]) => [name, file, name === "report" ? "" : text])).toEqual([
      ["report", "report.xml", ""],
      ["attachment", "a.log", "first"],
      ["attachment", "b c.log", "second"],
      ["attachment", expect.stringMatching(/^odd/), "third"],
    ]);
    expect(errors.match(/Not attached: /g)).toHaveLength(left.length);
  });

  test("a server that refuses them gets the report alone", async () => {
    const receiver = createReceiver({ status: 400, body: "it is a picture" }, { status: 201, body: "FAILED unit" });
    const variables = { ASSAY_URL: receiver.url };
    const words = ["--attach", "a.log", "report.xml"];
    const { exit, output, errors } = await run(words, { shell, project, folder: createFolder(files), variables });
    expect([exit, output.trim(), errors.trim()]).toEqual([
      0,
      "FAILED unit",
      "assay-upload: Without the attachments: it is a picture",
    ]);
    expect(receiver.requests.map(({ text }) => text.includes('name="attachment"'))).toEqual([true, false]);
  });
});

describe.each(EACH)("--gate in %s", (_, shell) => {
  const prepare = async () => {
    const project = await addProject(acme);
    await createAsking(ask, project).upload("fpp", { task_slug: "unit", branch: "main" });
    return project;
  };
  const variables = { GITLAB_CI: "true", CI_JOB_NAME: "unit", CI_COMMIT_REF_NAME: "x" };
  const tests = (letters: string, end: string) => [
    ...["--", "sh", "-c", `cat > report.xml <<'END'\n${junit(letters)}\nEND\n${end}`],
  ];

  test("turns a failure green that is forgiven, and nothing else", async () => {
    const project = await prepare();
    const code = async (...words: string[]) => {
      const { exit, errors } = await run(words, { shell, project, variables, folder: createFolder() });
      return [exit, errors.includes("Gate new: passed"), errors.includes("Gate new: failed")];
    };
    const gate = ["--gate", "new", "report.xml"];
    expect(await code(...gate, ...tests("fpp", "exit 1"))).toEqual([0, true, false]);
    expect(await code("report.xml", ...tests("fpp", "exit 1"))).toEqual([1, false, false]);
    expect(await code(...gate, ...tests("ffp", "exit 1"))).toEqual([1, false, true]);
    expect(await code(...gate, ...tests("ppp", "exit 1"))).toEqual([1, false, true]);
    expect(await code(...gate, ...tests("fpp", "exit 139"))).toEqual([139, false, true]);
    expect(await code(...gate, ...tests("fpp", "rm report.xml; exit 1"))).toEqual([1, false, false]);
    expect(await code(...gate, "missing.xml", ...tests("fpp", "exit 1"))).toEqual([1, false, false]);
    expect(await code(...gate, ...tests("ppp", "exit 0"))).toEqual([0, true, false]);
  });

  test("decides without a command, and says what was forgiven", async () => {
    const project = await prepare();
    const options = { shell, project, variables };
    const words = ["--gate", "new", "report.xml"];
    const forgiven = await run(words, { ...options, folder: createFolder({ "report.xml": junit("fpp") }) });
    expect([forgiven.exit, forgiven.output.split("\n").slice(0, 2)]).toEqual([
      0,
      ["Gate new: passed, 1 failure forgiven", "Forgiven: unit > case 0: It failed in the baseline"],
    ]);
    const folder = createFolder({ "report.xml": junit("ffp") });
    expect((await run(words, { ...options, folder })).exit).toBe(1);
    const away = { ...variables, ASSAY_KEY: "svc_proj_none" };
    expect((await run(words, { ...options, variables: away, folder })).exit).toBe(1);
    expect((await run(["--gate", "all", "report.xml"], { ...options, folder })).exit).toBe(2);
  });

  test("a server that is too old gets the results without it", async () => {
    const project = await addProject(acme);
    const refusal = JSON.stringify({ error: { code: "VALIDATION_ERROR", message: 'Unknown field "gate"' } });
    const receiver = createReceiver({ status: 400, body: refusal }, { status: 201, body: "FAILED unit" });
    const options = { shell, project, folder: createFolder(), variables: { ...variables, ASSAY_URL: receiver.url } };
    const { exit } = await run(["--gate", "new", "report.xml", ...tests("fpp", "exit 1")], options);
    expect([exit, receiver.requests.map(({ text }) => text.includes('name="gate"'))]).toEqual([1, [true, false]]);
  });
});

test("it stays under 100 lines, and asks nothing of curl that one of 2017 does not know", async () => {
  const text = await Bun.file(SCRIPT).text();
  expect(text.trimEnd().split("\n").length).toBeLessThan(100);
  expect(text).not.toMatch(/--(fail|retry-all-errors|json|url-query|variable)/);
});
