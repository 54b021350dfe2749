/** tools/assay-upload.sh in every shell, against a server. */

import { afterAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
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
const command = (script: string, ...words: string[]) => ["--", "sh", "-c", script, "sh", ...words];

describe.each(EACH)("in %s", (_, shell) => {
  test("the build arrives as the CI system names it, whatever the names contain", async () => {
    const project = await addProject(acme);
    const variables = {
      ...{ TF_BUILD: "True", BUILD_BUILDID: "4711", SYSTEM_JOBIDENTIFIER: "unit.__default" },
      ...{ SYSTEM_PULLREQUEST_SOURCECOMMITID: HEAD, SYSTEM_PULLREQUEST_SOURCEBRANCH: `refs/heads/${ODD}` },
      ...{ SYSTEM_COLLECTIONURI: "https://dev.azure.com/acme/", SYSTEM_TEAMPROJECT: "My project" },
    };
    const ran = await run(["report.xml"], { shell, project, variables });
    expect(ran).toEqual({ exit: 0, output: expect.stringMatching(/^FAILED unit: 1 passed, 1 failed/), errors: "" });
    const buildUrl = "https://dev.azure.com/acme/My%20project/_build/results?buildId=4711";
    expect(await listExecutions(project)).toMatchObject([
      { key: "4711", commit: HEAD, branch: ODD, buildUrl, tasks: [{ slug: "unit", passed: 1, failed: 1 }] },
    ]);
  });

  test("a command's streams, environment and exit code pass through, and what it reports is red or green as it says", async () => {
    for (const exit of [0, 1, 255]) {
      const project = await addProject(acme);
      const folder = createFolder({ "report.txt": exit === 0 ? junit("p") : junit("f") });
      const script = `cat; echo problem >&2; cat report.txt > report.xml; printf '[%s]' "$@" $branch; exit ${exit}`;
      const words = ["a  b", "", "*", "--task", "$HOME"];
      const ran = await run(["report.xml", "--task", "unit", ...command(script, ...words)], {
        ...{ shell, project, folder, variables: { branch: "mine" } },
        input: "in\0put\n",
      });
      const told = [...words, "mine"].map((word) => `[${word}]`).join("");
      expect([ran.exit, ran.output]).toEqual([exit, `in\0put\n${told}`]);
      expect(ran.errors).toMatch(exit === 0 ? /^problem\nPASSED unit: 1 passed/ : /^problem\nFAILED unit: 0 passed/);
      expect(await runOf(project, "unit")).toMatchObject({ exitCode: exit, verdict: exit === 0 ? "passed" : "failed" });
    }
  });

  test("a command without a readable report is red with its code, also if it claims success", async () => {
    const absent = "No report: File not found: report.xml";
    for (const [script, exit, reason] of [
      ["kill -9 $$", 137, `test runner exited with code 137 (${absent})`],
      ["true", 0, absent.replace("No", "no")],
      ["echo '<testsuite/>' > report.xml", 0, expect.stringMatching(/^no report: The report holds no test case/)],
      [
        "echo '<html/>' > report.xml; exit 4",
        4,
        expect.stringMatching(/^test runner exited with code 4 \(No report: /),
      ],
    ] as const) {
      const project = await addProject(acme);
      const words = ["--task", "unit", "report.xml", ...command(script)];
      const ran = await run(words, { shell, project, folder: createFolder() });
      expect([ran.exit, ran.output]).toEqual([exit, ""]);
      expect(await runOf(project, "unit")).toMatchObject({ exitCode: exit, verdict: "failed", failed: 1, reason });
    }
  });

  test("patterns find several reports, whatever their names hold; a report that is older than the command is left out", async () => {
    const project = await addProject(acme);
    const odd = `e;f,"g" \\h'i [1].xml`;
    const files = { "TEST-a b.xml": junit("p", "a"), "TEST-c.xml": junit("pp", "c"), [odd]: junit("ppp", "e") };
    const folder = createFolder(files);
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
    const tries: [string[], Run, number][] = [
      [["report.xml"], { project: refused }, 0],
      [["--strict", "report.xml"], { project: refused }, 3],
      [["--strict", "report.xml", ...command("exit 5")], { project: refused }, 5],
      [["--strict", "report.xml", "--", "true"], { project: refused }, 3],
      [["--strict", "nothing*.xml"], { project }, 3],
      [["report.xml"], { project, folder: createFolder({ "report.xml": "<html/>" }) }, 0],
    ];
    const errors = expect.stringContaining("Warning: the results are not uploaded: ");
    for (const [words, options, exit] of tries)
      expect(await run(words, { shell, ...options })).toEqual({ exit, output: "", errors });
    expect(await listExecutions(project)).toEqual([]);
  });

  test("what a server says is no command of a CI system or terminal", async () => {
    const project = { project: "p", key: "k" };
    const body =
      "PASSED a é 日本 ##vso[a] ###vso[b] ##[c]\r\n::error::d\u001b[2J\u009b3J\u007f\n##teamcity[e] http://[::1]:8/x\n";
    const shown =
      "PASSED a é 日本 ## vso[a] ### vso[b] ## [c] \n- ::error::d [2J 3J \n- ## teamcity[e] http://[::1]:8/x\n";
    const { url: ASSAY_URL } = createReceiver({ status: 201, body }, { status: 422, body });
    const options = { shell, project, variables: { ASSAY_URL } };
    expect(await run(["report.xml"], options)).toEqual({ exit: 0, output: shown, errors: "" });
    const { errors } = await run(["report.xml"], options);
    expect(errors).toBe(`assay-upload: Warning: the results are not uploaded: ${shown.trimEnd()} (422)\n`);
  });

  test("a gate turns a failure green that is forgiven, and nothing else", async () => {
    const project = await addProject(acme);
    await createAsking(ask, project).upload("fpp", { task_slug: "unit", branch: "main" });
    const variables = { GITLAB_CI: "true", CI_JOB_NAME: "unit", CI_COMMIT_REF_NAME: "x" };
    const gated = async (files: Variables, ...words: string[]) => {
      const options = { shell, project, variables, folder: createFolder(files) };
      const { exit, output, errors } = await run(["--gate", "new", "report.xml", ...words], options);
      return [exit, /^Gate new: (\w+)/m.exec(output + errors)?.[1]];
    };
    const tests = (letters: string, end: string) => command(`cat > report.xml <<'END'\n${junit(letters)}\nEND\n${end}`);
    expect(await gated({}, ...tests("fpp", "exit 1"))).toEqual([0, "passed"]);
    expect(await gated({}, ...tests("ffp", "exit 1"))).toEqual([1, "failed"]);
    expect(await gated({}, ...tests("ppp", "exit 1"))).toEqual([1, "failed"]);
    expect(await gated({}, ...tests("fpp", "exit 139"))).toEqual([139, "failed"]);
    expect(await gated({}, ...tests("fpp", "rm report.xml; exit 1"))).toEqual([1, undefined]);
    expect(await gated({}, "missing.xml", ...tests("fpp", "exit 1"))).toEqual([1, undefined]);
    expect(await gated({ "report.xml": junit("fpp") })).toEqual([0, "passed"]);
    expect(await gated({ "report.xml": junit("ffp") })).toEqual([1, "failed"]);
    const refused = { shell, project: { ...project, key: "svc_proj_none" } };
    expect((await run(["--gate", "new", "report.xml"], refused)).exit).toBe(1);
  });
});

test("SIGTERM to the group ends the command and not the upload", async () => {
  const project = await addProject(acme);
  const folder = createFolder();
  const script = "trap 'exit 9' TERM; echo ready > ready; while :; do sleep 0.02; done";
  const words = [...shell.command, SCRIPT, "--task", "unit", "report.xml", ...command(script)];
  const child = Bun.spawn(words, {
    cwd: folder,
    env: { PATH: shell.path, TMPDIR: home, ASSAY_URL: url, ASSAY_PROJECT: project.project, ASSAY_KEY: project.key },
    stderr: "pipe",
    detached: true,
  });
  await until(() => Bun.file(join(folder, "ready")).exists());
  process.kill(-child.pid, "SIGTERM");
  expect(await child.exited).toBe(9);
  expect(await runOf(project, "unit")).toMatchObject({ exitCode: 9, failed: 1 });
});

test("the key and the password of the address are not in the words of curl, and the key not in a trace of the shell", async () => {
  const project = await addProject(acme);
  const tools = createFolder();
  const log = join(tools, "words");
  createTool(tools, "curl", `printf '%s\\n' "$*" >> '${log}'\nexec ${Bun.which("curl")} "$@"`);
  const variables = { ASSAY_URL: url.replace("//", "//user:hunter22@") };
  const traced = { ...shell, command: [...shell.command, "-x"] };
  const { errors } = await run(["report.xml"], { shell: traced, project, tools, variables });
  expect(errors).toContain("set +x");
  const words = await Bun.file(log).text();
  expect(words).toStartWith("-sS -K - ");
  for (const secret of [project.key.slice(9), "hunter22"]) expect(words + errors).not.toContain(secret);
});

test("an execution that has asked for the tests gets them, and options say more than variables", async () => {
  const project = await addProject(acme);
  const asked = await createAsking(ask, project).post("/executions", { tasks: ["unit"], branch: "main" });
  const variables = {
    ...{ CIRCLECI: "true", CIRCLE_WORKFLOW_ID: "4711", CIRCLE_JOB: "unit", CIRCLE_SHA1: HEAD, CIRCLE_BRANCH: "main" },
    ...{ CIRCLE_NODE_INDEX: "1", CIRCLE_NODE_TOTAL: "4", ASSAY_TAGS: "os:linux,browser:webkit" },
  };
  const plain = { ASSAY_EXECUTION_ID: asked.id, CIRCLE_NODE_TOTAL: "1", ASSAY_TAGS: "" };
  await run(["report.xml"], { project, variables: { ...variables, ...plain } });
  expect(await listExecutions(project)).toMatchObject([{ id: asked.id, key: null, status: "failed", commit: HEAD }]);
  await run(["report.xml", "--execution-key", "a b", "--shard", "3/4"], { project, variables });
  const words = ["--task", "näme; x", "--tag", "os:Windows 11", "--tag", "browser:edge", "--complete"];
  await run(["report.xml", "--execution-key", "a b", ...words], { project, variables });
  const [{ key, tasks, status }] = await listExecutions(project);
  expect([key, status === "running", tasks.map(({ tags }: { tags: string[] }) => tags)]).toEqual([
    ...["a b", false],
    [
      ["browser:webkit", "os:linux"],
      ["browser:edge", "os:Windows 11"],
    ],
  ]);
  expect(tasks).toMatchObject([{ missingShards: [1, 2, 4] }, { slug: expect.stringContaining("näme; x") }]);
});

test("a pull request of a fork has no key, which is no warning for people; a build of the repository without one is", async () => {
  const project = { ...(await addProject(acme)), key: "" };
  const warning = "assay-upload: Warning: the results are not uploaded: ";
  const annotation = "::warning title=Assay::Results were not uploaded: the log of this step says why";
  const missing = "set ASSAY_URL, ASSAY_PROJECT and ASSAY_KEY";
  const github = { GITHUB_ACTIONS: "true", GITHUB_REPOSITORY: "acme/web", GITHUB_HEAD_REF: "main" };
  const errorsOf = async (repository: string, variables: Variables = {}) => {
    const event = { pull_request: { head: { sha: HEAD, repo: { full_name: repository } } } };
    const folder = createFolder({ "report.xml": junit("p"), "event.json": JSON.stringify(event) });
    const options = { project, folder, variables: { ...github, GITHUB_EVENT_PATH: "event.json", ...variables } };
    const { exit, errors } = await run(["--strict", "report.xml"], options);
    expect(exit).toBe(3);
    return errors;
  };
  expect(await errorsOf("eve/web")).toBe(`${warning}${missing} (the pull request of a fork has no secrets)\n`);
  expect(await errorsOf("acme/web")).toBe(`${warning}${missing}\n${annotation}\n`);
  // Its variables describe the default branch, and the results may be those of a fork.
  expect(await errorsOf("eve/web", { GITHUB_EVENT_NAME: "workflow_run" })).toContain("use assay upload\n");
});

test("a server that is away is tried for half a minute, and told of once", async () => {
  const tools = createFolder();
  const away = "curl: (7) Failed to connect to 127.0.0.1 port 1";
  // As curl does it, without the half minute.
  const log = join(tools, "words");
  createTool(tools, "curl", `echo "$*" > '${log}'\nfor i in 1 2 3; do echo '${away}' >&2; done\nprintf 000`);
  const { exit, errors } = await run(["--strict", "report.xml"], { project: await addProject(acme), tools });
  expect([exit, errors]).toEqual([3, `assay-upload: Warning: the results are not uploaded: ${away} (000)\n`]);
  expect(await Bun.file(log).text()).toContain("--retry 5 --retry-connrefused --retry-max-time 120 ");
});

test("wrong usage is exit code 2, and no command is run; --help tells the usage", async () => {
  const project = await addProject(acme);
  for (const words of [[], ["a.xml", "--tsk", "unit"], ["a.xml", "--gate", "all"]]) {
    const folder = createFolder();
    const ended = await run([...words, "--", "touch", "ran"], { project, folder });
    expect([words, ended.exit, ended.output]).toEqual([words, 2, ""]);
    expect(await Bun.file(join(folder, "ran")).exists()).toBe(false);
  }
  const { exit, output } = await run(["--help"], { project });
  expect([exit, output]).toEqual([0, expect.stringContaining("--gate quarantine|new\n")]);
});

test("429 and 5xx are tried again with one Idempotency-Key, another one for the next upload", async () => {
  const wait = { "Retry-After": "1" };
  const receiver = createReceiver(
    { status: 429, headers: wait, body: "not now" },
    { status: 502, headers: wait, body: "bad gateway" },
    { status: 201, body: "PASSED\n" },
  );
  const options = { project: { project: "p", key: "k" }, variables: { ASSAY_URL: receiver.url } };
  expect((await run(["report.xml"], options)).output).toBe("PASSED\n");
  await run(["report.xml"], options);
  const keys = receiver.requests.map(({ headers }) => headers["idempotency-key"]);
  expect([keys.length, new Set(keys.slice(0, 3)).size, new Set(keys).size]).toEqual([4, 1, 2]);
}, 20_000);

test("the checkout tells commit and branch where no CI system does", async () => {
  const repository = join(home, "repository");
  const env = { ...process.env, GIT_DIR: repository, GIT_WORK_TREE: home };
  await Bun.$`git init -q --bare -b trunk ${repository}`.quiet();
  await Bun.$`git -c user.name=a -c user.email=a@example.com commit -q --allow-empty -m a`.env(env).quiet();
  const commit = (await Bun.$`git rev-parse HEAD`.env(env).text()).trim();
  const project = await addProject(acme);
  await run(["report.xml"], { project });
  rmSync(repository, { recursive: true });
  expect(await listExecutions(project)).toMatchObject([{ commit, branch: "trunk", key: null, status: "failed" }]);
});

test("curl gets no option that a version of 2017 does not know", async () => {
  expect(await Bun.file(SCRIPT).text()).not.toMatch(/--(fail|retry-all-errors|json|url-query|variable)/);
});
