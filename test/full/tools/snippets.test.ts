/** Every snippet is run as its CI system runs it, against a server. */

import { afterAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { CiSystemName } from "../../../src/rules/ci_systems.ts";
import { createSnippets } from "../../../src/rules/snippets.ts";
import type { System } from "../../../src/schema/onboarding.ts";
import { createAsking, type Project } from "../../asking.ts";
import { BUILDS, HEAD, MERGE } from "../../cli/ci_builds.ts";
import { createHarness, junit } from "../../harness.ts";
import { createShells, type Shell } from "./shells.ts";
import { readOutput } from "../../places.ts";

const { ask, acme, addProject, url } = await createHarness();

const home = mkdtempSync(join(tmpdir(), "assay-snippets-"));
afterAll(() => rmSync(home, { recursive: true }));

type Variables = Record<string, string>;

const SHELLS = createShells(home);

/** What `npm test` does: the code that it exits with, or its death, and what it leaves behind. */
type Tests = { exit: number | "killed"; report: string | null };
const RED: Tests = { exit: 3, report: junit("pf") };
const GREEN: Tests = { exit: 0, report: junit("pp") };

type Job = {
  shell: Shell;
  key: string;
  /** The job's own variables, or what `${{ }}` finds at GitHub. */
  variables: Variables;
  tests: Tests;
  /** What stands first in the PATH. */
  tools?: string;
};

type Result = { exit: number; output: string; errors: string };

let jobs = 0;

/** A folder with a git repository and an `npm` of its own. */
async function createWorkspace({ shell, tests, tools }: Job) {
  const directory = join(home, `job-${++jobs}`);
  mkdirSync(join(directory, "bin"), { recursive: true });
  const npm = join(directory, "bin/npm");
  const report = tests.report === null ? "" : `printf %s '${tests.report}' > report.xml\n`;
  const end = tests.exit === "killed" ? "kill -9 $$" : `exit ${tests.exit}`;
  writeFileSync(npm, `#!/bin/sh\n${report}${end}\n`);
  chmodSync(npm, 0o755);
  // A workspace that is used again: what an earlier build has left must not count.
  writeFileSync(join(directory, "report.xml"), junit("pppp"));
  writeFileSync(join(directory, "exit_code"), "0\n");

  /** `flags` are those of the system; its error output must be none of the shell's. */
  return async (flags: string[], script: string, variables: Variables): Promise<Result> => {
    const child = Bun.spawn([...shell.command, ...flags, "-c", script], {
      cwd: directory,
      env: {
        PATH: [...(tools ? [tools] : []), join(directory, "bin"), shell.path].join(":"),
        HOME: directory,
        TMPDIR: directory,
        GIT_DIR: join(home, "repository"),
        ...variables,
      },
      stdout: "pipe",
      stderr: "pipe",
    });
    const { code: exit, output, errors } = await readOutput(child);
    return { exit, output, errors };
  };
}

const strict = ({ hasPipefail }: Shell) => (hasPipefail ? ["-eo", "pipefail"] : ["-e"]);

/** The value of an expression as GitHub evaluates it; a name that is unknown is null. */
function evaluate(expression: string, contexts: Record<string, unknown>): unknown {
  const find = (path: string) =>
    path.split(".").reduce<unknown>((value, name) => {
      if (name === "*") return Object.values((value as object | null) ?? {});
      return (value as Record<string, unknown> | null | undefined)?.[name] ?? null;
    }, contexts);
  // Texts stay as they are; names become look-ups, unless they are functions.
  const code = expression.replace(/'[^']*'|[a-z_][\w-]*(?:\.[\w*-]+)*(?!\w*\()/g, (word) =>
    word.startsWith("'") ? word : `find("${word}")`,
  );
  const failed = contexts["job"] as { status: string };
  const functions = {
    find,
    join: (values: unknown[], separator: string) => values.join(separator),
    failure: () => failed.status === "failure",
    cancelled: () => failed.status === "cancelled",
  };
  return new Function(...Object.keys(functions), `return ${code}`)(...Object.values(functions));
}

const expand = (text: string, contexts: Record<string, unknown>) =>
  text.replace(/\$\{\{(.*?)\}\}/g, (_, expression: string) => String(evaluate(expression.trim(), contexts) ?? ""));

const expandMacros = (text: string, variables: Variables) =>
  text.replace(/\$\(([A-Za-z][\w.]*)\)/g, (macro, name: string) => variables[name] ?? macro);

/** As Groovy reads them. */
const scriptsOfJenkins = (snippet: string) =>
  [...snippet.matchAll(/'''\n([^]*?)'''/g)].map(([, script]) => script!.replaceAll("\\\\", "\\"));

/** The job's exit code, and what the upload said; `upload` is missing where the system would not have run it. */
type Ran = { exit: number; upload?: Result };

/** How each system runs its snippet. */
const RUNS: Record<System, (snippet: string, job: Job) => Promise<Ran>> = {
  async curl(snippet, job) {
    const run = await createWorkspace(job);
    const upload = await run([], snippet, { ...job.variables, ASSAY_KEY: job.key });
    return { exit: upload.exit, upload: { ...upload, exit: 0 } };
  },

  async githubActions(snippet, job) {
    const run = await createWorkspace(job);
    type Step = { id?: string; if?: string; run: string; env?: Variables };
    const [tests, upload] = Bun.YAML.parse(snippet) as [Step, Step];
    const given = JSON.parse(job.variables["contexts"]!);
    const { exit } = await run(["-e"], expand(tests.run, given), {});
    const outcome = exit === 0 ? "success" : "failure";
    const contexts = {
      ...given,
      secrets: { ASSAY_KEY: job.key },
      steps: { [tests.id!]: { outcome } },
      job: { status: outcome },
    };
    if (evaluate(upload.if!.slice(3, -2).trim(), contexts) !== true) return { exit };
    const env = Object.fromEntries(Object.entries(upload.env!).map(([name, text]) => [name, expand(text, contexts)]));
    const { contexts: _, ...variables } = job.variables;
    return { exit, upload: await run(["-e"], expand(upload.run, contexts), { ...variables, ...env }) };
  },

  async gitlabCi(snippet, job) {
    const run = await createWorkspace(job);
    const parsed = Bun.YAML.parse(snippet) as { script: string[]; after_script: string[] };
    const variables = { ...job.variables, ASSAY_KEY: job.key };
    const { exit } = await run(strict(job.shell), parsed.script.join("\n"), variables);
    const status = { CI_JOB_STATUS: exit === 0 ? "success" : "failed" };
    return {
      exit,
      upload: await run(strict(job.shell), parsed.after_script.join("\n"), { ...variables, ...status }),
    };
  },

  async jenkins(snippet, job) {
    const run = await createWorkspace(job);
    const [tests, upload] = scriptsOfJenkins(snippet);
    const { exit } = await run(["-xe"], tests!, job.variables);
    return { exit, upload: await run(["-xe"], upload!, { ...job.variables, ASSAY_KEY: job.key }) };
  },

  async circleci(snippet, job) {
    const run = await createWorkspace(job);
    const [tests, upload] = (Bun.YAML.parse(snippet) as { run: { command: string } }[]).map(
      ({ run: { command } }) => command,
    );
    const variables = { ...job.variables, ASSAY_KEY: job.key };
    const { exit } = await run(strict(job.shell), tests!, variables);
    return { exit, upload: await run(strict(job.shell), upload!, variables) };
  },

  async azurePipelines(snippet, job) {
    const run = await createWorkspace(job);
    type Step = { bash: string; env: Variables };
    const [tests, upload] = Bun.YAML.parse(snippet) as [Step, Step];
    const { exit } = await run([], tests.bash, job.variables);
    const macros = { ASSAY_KEY: job.key, "Agent.JobStatus": exit === 0 ? "Succeeded" : "Failed" };
    const env = Object.fromEntries(
      Object.entries(upload.env).map(([name, text]) => [name, expandMacros(text, macros)]),
    );
    return { exit, upload: await run([], expandMacros(upload.bash, macros), { ...job.variables, ...env }) };
  },

  async buildkite(snippet, job) {
    const run = await createWorkspace(job);
    // The agent's own checkout is clean.
    const { exit } = await run(["-e"], "rm -f report.xml; npm test", job.variables);
    const status = { BUILDKITE_COMMAND_EXIT_STATUS: String(exit), ASSAY_KEY: job.key };
    return { exit, upload: await run([], snippet, { ...job.variables, ...status }) };
  },
};

/** More than git allows in a name. */
const ODD = `@<feat/a b&c=#1;type=x,"d" 'e' $HOME \`id\` $(id) %20 日本語 ünï`;

/** The variables of a job of a build, and the task that it is. */
type Given = { variables: Variables; task: string; edit?: (snippet: string) => string };
type Ci = {
  /** The pull request's number, as Assay is to know it. */
  pullRequest: string;
  buildUrl: string;
  /** Two jobs of a matrix, as the pull request's build `build` runs them. */
  matrix: (build: string, branch: string) => [Given, Given];
};

const github = (build: string, branch: string, matrix: object | null): Variables => ({
  contexts: JSON.stringify({
    github: {
      job: "unit",
      sha: MERGE,
      head_ref: branch,
      ref_name: "7/merge",
      event: { pull_request: { number: 7, head: { sha: HEAD } } },
    },
    matrix,
  }),
  GITHUB_RUN_ID: build,
  GITHUB_SHA: MERGE,
  GITHUB_SERVER_URL: "https://github.test",
  GITHUB_REPOSITORY: "acme/web",
});

const gitlab = (build: string, branch: string, name: string, index: number): Variables => ({
  CI_PIPELINE_ID: build,
  CI_JOB_NAME: name,
  // A matrix has these as well.
  CI_NODE_INDEX: String(index),
  CI_NODE_TOTAL: "2",
  CI_COMMIT_SHA: MERGE,
  CI_MERGE_REQUEST_SOURCE_BRANCH_SHA: HEAD,
  CI_MERGE_REQUEST_SOURCE_BRANCH_NAME: branch,
  CI_COMMIT_REF_NAME: "refs/merge-requests/7/merge",
  CI_MERGE_REQUEST_IID: "7",
  CI_JOB_URL: "https://ci.test/1",
});

const jenkins = (build: string, branch: string, stage: string, more: Variables = {}): Variables => ({
  BUILD_TAG: build,
  STAGE_NAME: stage,
  GIT_COMMIT: HEAD,
  CHANGE_BRANCH: branch,
  BRANCH_NAME: "PR-7",
  CHANGE_ID: "7",
  BUILD_URL: "https://ci.test/1",
  ...more,
});

const circle = (build: string, branch: string, job: string, index: number, total: number): Variables => ({
  CIRCLE_WORKFLOW_ID: build,
  CIRCLE_JOB: job,
  CIRCLE_NODE_INDEX: String(index),
  CIRCLE_NODE_TOTAL: String(total),
  CIRCLE_SHA1: HEAD,
  CIRCLE_BRANCH: branch,
  CIRCLE_PULL_REQUEST: "https://github.test/acme/web/pull/7",
  CIRCLE_BUILD_URL: "https://ci.test/1",
});

const azure = (build: string, branch: string, more: Variables): Variables => ({
  BUILD_BUILDID: build,
  BUILD_SOURCEVERSION: MERGE,
  BUILD_SOURCEBRANCH: "refs/pull/7/merge",
  SYSTEM_PULLREQUEST_SOURCECOMMITID: HEAD,
  SYSTEM_PULLREQUEST_SOURCEBRANCH: `refs/heads/${branch}`,
  SYSTEM_PULLREQUEST_PULLREQUESTID: "7",
  SYSTEM_COLLECTIONURI: "https://dev.azure.test/acme/",
  SYSTEM_TEAMPROJECT: "My project",
  ...more,
});

const buildkite = (build: string, branch: string, more: Variables): Variables => ({
  REPORT: "report.xml",
  BUILDKITE_BUILD_ID: build,
  BUILDKITE_COMMAND: "npm test",
  BUILDKITE_COMMIT: HEAD,
  BUILDKITE_BRANCH: branch,
  BUILDKITE_PULL_REQUEST: "7",
  BUILDKITE_BUILD_URL: "https://ci.test/1",
  ...more,
});

const shell = (build: string, branch: string, more: Variables): Variables => ({
  BUILD_ID: build,
  COMMIT: HEAD,
  BRANCH: branch,
  PULL_REQUEST: "7",
  BUILD_URL: "https://ci.test/1",
  ...more,
});

/** As the snippet's comments say for a matrix over shards. */
const overShards = (snippet: string) =>
  snippet
    .replace(/TASK: .* # in a matrix over shards: (.*)/, "TASK: $1")
    .replace(/SHARD: "" # and here: (.*)\/4/, "SHARD: $1/2");

const SYSTEMS: Record<System, Ci> = {
  curl: {
    pullRequest: "7",
    buildUrl: "https://ci.test/1",
    matrix: (build, branch) => [
      { variables: shell(build, branch, { TASK: "unit 18" }), task: "unit 18" },
      { variables: shell(build, branch, { TASK: "unit 20" }), task: "unit 20" },
    ],
  },
  githubActions: {
    pullRequest: "7",
    buildUrl: "https://github.test/acme/web/actions/runs/",
    matrix: (build, branch) => [
      { variables: github(build, branch, { node: 18, os: "ubuntu" }), task: "unit 18 ubuntu" },
      { variables: github(build, branch, { node: 20, os: "ubuntu" }), task: "unit 20 ubuntu" },
    ],
  },
  gitlabCi: {
    pullRequest: "7",
    buildUrl: "https://ci.test/1",
    matrix: (build, branch) => [
      { variables: gitlab(build, branch, "unit: [18, a/b]", 1), task: "unit: [18, a/b]" },
      { variables: gitlab(build, branch, "unit: [20, a/b]", 2), task: "unit: [20, a/b]" },
    ],
  },
  jenkins: {
    pullRequest: "7",
    buildUrl: "https://ci.test/1",
    matrix: (build, branch) => {
      const edit = (snippet: string) => snippet.replace(/task="\$STAGE_NAME" (.*) # .*: (task=.*)/, "$2 $1");
      const [variables, other] = ["linux", "mac"].map((platform) =>
        jenkins(build, branch, "unit", { PLATFORM: platform, BROWSER: "firefox" }),
      );
      return [
        { variables: variables!, task: "unit linux firefox", edit },
        { variables: other!, task: "unit mac firefox", edit },
      ];
    },
  },
  circleci: {
    pullRequest: "7",
    buildUrl: "https://ci.test/1",
    matrix: (build, branch) => [
      { variables: circle(build, branch, "unit-18", 0, 1), task: "unit-18" },
      { variables: circle(build, branch, "unit-20", 0, 1), task: "unit-20" },
    ],
  },
  azurePipelines: {
    pullRequest: "7",
    buildUrl: "https://dev.azure.test/acme/My%20project/_build/results?buildId=",
    matrix: (build, branch) => {
      const matrix = { SYSTEM_PARALLELEXECUTIONTYPE: "MultiConfiguration", SYSTEM_TOTALJOBSINPHASE: "2" };
      const one = { ...matrix, SYSTEM_JOBIDENTIFIER: "test.unit.node18", SYSTEM_JOBPOSITIONINPHASE: "1" };
      const two = { ...matrix, SYSTEM_JOBIDENTIFIER: "test.unit.node20", SYSTEM_JOBPOSITIONINPHASE: "2" };
      return [
        { variables: azure(build, branch, one), task: "test.unit.node18" },
        { variables: azure(build, branch, two), task: "test.unit.node20" },
      ];
    },
  },
  buildkite: {
    pullRequest: "7",
    buildUrl: "https://ci.test/1",
    matrix: (build, branch) => [
      { variables: buildkite(build, branch, { BUILDKITE_LABEL: ":node: unit 18" }), task: ":node: unit 18" },
      { variables: buildkite(build, branch, { BUILDKITE_COMMAND: "npm run 20" }), task: "npm run 20" },
    ],
  },
};

const ALL = Object.keys(SYSTEMS) as System[];

/** Runs a job of a system against the project; `at` is where the server is said to be. */
async function run(
  system: System,
  project: Project,
  { variables, edit }: Given,
  { at = url, key = project.key, ...job }: Omit<Job, "variables" | "key"> & { at?: string; key?: string },
): Promise<Ran> {
  const snippet = createSnippets(`${at}/api/v1/projects/${project.project}/test-runs`)[system];
  const edited = edit ? edit(snippet) : snippet;
  if (edit) expect(edited).not.toBe(snippet);
  return await RUNS[system](edited, { ...job, key, variables });
}

const listExecutions = (project: Project) => createAsking(ask, project).list("/executions?limit=100");

/** A system in each shell. */
const EACH = ALL.flatMap((system) => SHELLS.map((shell) => [system, shell.name, shell] as const));

/** Every line of curl with a report that README.md and the page of the API print, as the path of its request. */
async function printedLines(project: string): Promise<string[]> {
  const page = await fetch(`${url}/docs`, { headers: { accept: "text/html" } });
  const texts = [await Bun.file(join(import.meta.dir, "../../../README.md")).text(), await page.text()];
  return texts.flatMap((text) =>
    [...text.matchAll(/--data-binary @report\.xml[^]*?\/(test-runs[^"\s<]*?)(?="|&quot;)/g)].map(
      ([, path]) =>
        `/projects/${project}/${path!.replaceAll("&amp;", "&").replaceAll(/\$(BUILD_ID|COMMIT)/g, "abcdef1")}`,
    ),
  );
}

test("the lines of curl in README.md and on the page of the API end their build at once", async () => {
  const lines = await printedLines("P");
  expect(lines).toHaveLength(2);
  for (const line of lines) {
    const project = await addProject(acme);
    const body = `<testsuite name="a"><testcase name="b"/></testsuite>`;
    const path = line.replace("/P/", `/${project.project}/`);
    expect((await ask(`POST ${path}`, { key: project.key, body })).status).toBe(201);
    expect(await listExecutions(project)).toMatchObject([{ status: "passed" }]);
  }
});

test.each(EACH)(
  "jobs of a matrix are tasks of one build, which the last one ends: %s in %s",
  async (system, _, shell) => {
    const { matrix, pullRequest, buildUrl } = SYSTEMS[system];
    const project = await addProject(acme);
    const [first, last] = matrix("4711", ODD);
    const waiting = { ...first, variables: { ...first.variables, ASSAY_COMPLETE: "false", COMPLETE: "false" } };
    const red = await run(system, project, waiting, { shell, tests: RED });
    expect(red).toMatchObject({ exit: 3, upload: { exit: 0, output: expect.stringMatching(/^FAILED /) } });
    expect(await listExecutions(project)).toMatchObject([{ status: "running" }]);
    const green = await run(system, project, last, { shell, tests: GREEN });
    expect(green).toMatchObject({ exit: 0, upload: { exit: 0, output: expect.stringMatching(/^PASSED /) } });
    const [execution, ...others] = await listExecutions(project);
    expect(others).toEqual([]);
    expect(execution).toMatchObject({
      ...{ key: "4711", status: "failed", commit: HEAD, branch: ODD, pullRequest },
      ...{ buildUrl: expect.stringContaining(buildUrl), passed: 3, failed: 1 },
    });
    expect(Object.fromEntries(execution.tasks.map((task: any) => [task.slug, [task.passed, task.failed]]))).toEqual({
      [first.task]: [1, 1],
      [last.task]: [2, 0],
    });
  },
);

/** Creates a curl that is found before any other. */
function createCurl(script: string): string {
  const tools = join(home, `curl-${++jobs}`);
  mkdirSync(tools);
  writeFileSync(join(tools, "curl"), `#!/bin/sh\n${script}\n`);
  chmodSync(join(tools, "curl"), 0o755);
  return tools;
}

/** Runs a job with a curl that only records its fields, and returns them without those that are empty. */
async function fieldsOf(system: System, given: Given, git: Variables = {}): Promise<Variables> {
  const tools = createCurl(`printf '%s\\0' "$@" > '${home}/words'`);
  const [[revision, commit] = ["none", ""]] = Object.entries(git);
  const answer = `case "$*" in *" ${revision}") echo '${commit}' ;; *) exit 1 ;; esac`;
  writeFileSync(join(tools, "git"), `#!/bin/sh\n${answer}\n`);
  chmodSync(join(tools, "git"), 0o755);
  await run(system, { project: "p", key: "secret" }, given, { shell: SHELLS[0], tests: GREEN, tools });
  const words = readFileSync(join(home, "words"), "utf8").split("\0");
  const fields = words.filter((_, index) => words[index - 1] === "--form-string").map((word) => word.split(/=(.*)/s));
  return Object.fromEntries(fields.filter(([, value]) => value !== ""));
}

/** GitHub's snippet reads expressions, and not variables. */
const SYSTEM_OF: Partial<Record<CiSystemName, System>> = {
  ...{ gitlab: "gitlabCi", jenkins: "jenkins", circleci: "circleci", azure: "azurePipelines", buildkite: "buildkite" },
};
const inSnippets = BUILDS.filter(({ build, notInSnippet }) => SYSTEM_OF[build.system!] && !notInSnippet);

test.each(inSnippets.map((build) => [build.name, build] as const))("%s", async (_, { variables, git, build }) => {
  const given = { variables: { REPORT: "report.xml", ...variables }, task: "" };
  const fields = await fieldsOf(SYSTEM_OF[build.system!]!, given, git);
  const { task, shard, executionKey, commit, branch, pullRequest, buildUrl } = build;
  expect(fields).toEqual({
    ...{ exit_code: "0", allow_empty: "false", repository_root: expect.any(String) },
    ...{ execution_key: executionKey!, task_slug: task!, commit: commit!, branch: branch! },
    ...(pullRequest === undefined ? {} : { pull_request: pullRequest }),
    // The server encodes addresses.
    build_url: buildUrl!.replaceAll("%20", " "),
    ...(shard === undefined ? { complete: "true" } : { shard, complete: "false" }),
  });
});

test("shards are one task where the snippet is told of them, and a push to GitHub has no pull request", async () => {
  const manual = { variables: shell("1", "feat", { SHARD: "2/4" }), task: "tests" };
  expect(await fieldsOf("curl", manual)).toMatchObject({ task_slug: "tests", shard: "2/4", complete: "false" });
  const shard = { variables: github("1", "feat", { shard: 2 }), task: "unit", edit: overShards };
  expect(await fieldsOf("githubActions", shard)).toMatchObject({ task_slug: "unit", shard: "2/2", complete: "false" });
  const push = { job: "unit", sha: HEAD, head_ref: "", ref_name: "main", event: {} };
  const variables = { ...github("1", "", null), contexts: JSON.stringify({ github: push }) };
  const fields = await fieldsOf("githubActions", { variables, task: "unit" });
  expect(fields).toMatchObject({ execution_key: "1", task_slug: "unit", commit: HEAD, branch: "main" });
  expect(fields["pull_request"]).toBeUndefined();
});

describe.each(ALL)("the snippet for %s", (system) => {
  const { matrix } = SYSTEMS[system];
  const shell = SHELLS.at(-1)!;

  test.each([
    ["is killed", "killed", 137],
    ["claims success", 0, 0],
  ] as const)("a runner that %s without a report is red", async (_, end, exit) => {
    const project = await addProject(acme);
    const [job] = matrix("4711", "main");
    const ran = await run(system, project, job, { shell, tests: { exit: end, report: null } });
    expect(ran).toMatchObject({ exit, upload: { exit: 0, output: expect.stringMatching(/^FAILED /) } });
    // These systems give no code.
    const given = ["githubActions", "gitlabCi", "azurePipelines"].includes(system) ? 1 : exit;
    const [{ id }] = await listExecutions(project);
    const path = `/executions/${id}/test-runs/${encodeURIComponent(job.task)}`;
    expect(await createAsking(ask, project).get(path)).toMatchObject({
      ...{ verdict: "failed", total: 1, failed: 1, exitCode: exit === 0 ? -1 : given },
    });
  });

  test("a report without test cases is red where the tests failed, and is not taken for success where they did not", async () => {
    const project = await addProject(acme);
    const [one, two] = matrix("4711", "main");
    await run(system, project, one, { shell, tests: { exit: 1, report: "<testsuites/>" } });
    const ran = await run(system, project, two, { shell, tests: { exit: 0, report: "<testsuites/>" } });
    expect(ran).toMatchObject({ exit: 0, upload: { exit: 0, output: expect.stringContaining("no test case") } });
    const [execution] = await listExecutions(project);
    expect(execution).toMatchObject({ verdict: "failed", tasks: [{ slug: one.task, failed: 1, total: 1 }] });
  });

  test("what goes wrong with an upload changes nothing about the job", async () => {
    const project = await addProject(acme);
    // As curl ends when nobody listens and its time is over.
    const tools = createCurl("exit 7");
    const [job] = matrix("4711", "main");
    const away = await run(system, project, job, { shell, tests: RED, tools });
    expect(away).toMatchObject({ exit: 3, upload: { exit: 0, errors: expect.stringContaining("was not reached") } });
    const refused = await run(system, project, job, { shell, tests: GREEN, key: "svc_proj_wrong" });
    expect(refused).toMatchObject({ exit: 0, upload: { exit: 0, output: expect.stringContaining("UNAUTHORIZED") } });
    expect(await listExecutions(project)).toEqual([]);
  });
});

describe("every snippet", () => {
  test("tries again after 429 and 5xx, with one Idempotency-Key for an upload and another one for the next", async () => {
    const project = await addProject(acme);
    const keys = new Map<string, (string | null)[]>();
    const proxy = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      development: false,
      async fetch(request) {
        const body = await request.arrayBuffer();
        const key = request.headers.get("idempotency-key")!;
        const seen = keys.get(key) ?? [];
        keys.set(key, seen);
        const wait = { "Retry-After": "1" };
        if (seen.length === 0) {
          seen.push("429");
          return new Response("", { status: 429, headers: wait });
        }
        const { pathname } = new URL(request.url);
        const answer = await fetch(`${url}${pathname}`, { method: "POST", headers: request.headers, body });
        seen.push(answer.headers.get("idempotent-replayed"));
        // The upload was taken, and its answer is lost.
        return seen.length === 2 ? new Response("", { status: 502, headers: wait }) : answer;
      },
    });
    try {
      const at = `http://127.0.0.1:${proxy.port}`;
      const ran = await Promise.all(
        ALL.map(async (system) => {
          const [job] = SYSTEMS[system].matrix(system, "main");
          return await run(system, project, job, { shell: SHELLS.at(-1)!, tests: RED, at });
        }),
      );
      for (const { exit, upload } of ran) {
        expect(exit).toBe(3);
        expect(upload!.output).toContain("FAILED ");
      }
    } finally {
      await proxy.stop(true);
    }
    expect([...keys.values()]).toEqual(ALL.map(() => ["429", null, "true"]));
    const executions = await listExecutions(project);
    expect(executions.map(({ key }: { key: string }) => key).sort()).toEqual(ALL.toSorted());
    for (const { tasks } of executions) expect(tasks).toMatchObject([{ attempt: 1, failed: 1, passed: 1 }]);
  }, 20_000);

  test("prints nothing of an answer that would be a command to the CI system", async () => {
    const project = await addProject(acme);
    const answer = String.raw`::error::a\n ##vso[b] ###[c]\r::add-mask::d\033[2J\nPASSED e`;
    const tools = createCurl(`printf '${answer}\\n'`);
    for (const shell of SHELLS) {
      const [job] = SYSTEMS.azurePipelines.matrix("4711", "main");
      const { upload } = await run("azurePipelines", project, job, { shell, tests: RED, tools });
      expect(upload!.output).toEndWith("- ::error::a\n-  ## vso[b] ### [c] ::add-mask::d [2J\nPASSED e\n");
    }
  });

  test("gives no program the key in its words", () => {
    for (const snippet of Object.values(createSnippets("https://assay.test"))) {
      expect(snippet).toContain(`printf 'header = "Authorization: Bearer %s"' "$ASSAY_KEY" |`);
      expect(snippet.match(/\$ASSAY_KEY\b/g)).toHaveLength(1);
    }
  });

  test("bounds its time, and asks nothing of curl that one of 2017 does not know", () => {
    for (const snippet of Object.values(createSnippets("https://assay.test"))) {
      const bounds = "--retry 6 --retry-connrefused --retry-max-time 120 --connect-timeout 10 --max-time 90";
      expect(snippet).toContain(`curl -sS ${bounds} \\`);
      expect(snippet).not.toMatch(/--(fail|retry-all-errors|json|url-query|variable)/);
    }
  });
});

describe("outside of a usual build", () => {
  const [shell] = SHELLS;

  test("the checkout has the commit and the branch that the shell does not name", async () => {
    const repository = join(home, "repository");
    const env = { ...process.env, GIT_DIR: repository, GIT_WORK_TREE: home };
    await Bun.$`git init -q --bare -b trunk ${repository}`.quiet();
    await Bun.$`git -c user.name=a -c user.email=a@example.com commit -q --allow-empty -m a`.env(env).quiet();
    const commit = (await Bun.$`git rev-parse HEAD`.env(env).text()).trim();

    const project = await addProject(acme);
    await run("curl", project, { variables: {}, task: "tests" }, { shell, tests: GREEN });
    rmSync(repository, { recursive: true });
    // What names no build is one of its own, complete at once.
    const key = expect.stringMatching(/^\d+-[0-9a-f]{16}$/);
    expect(await listExecutions(project)).toMatchObject([{ key, commit, branch: "trunk", status: "passed" }]);
  });

  test("a stage at Jenkins whose tests never begin is red, whatever the build before has left", async () => {
    const project = await addProject(acme);
    const at = `${url}/api/v1/projects/${project.project}/test-runs`;
    const [tests, upload] = scriptsOfJenkins(createSnippets(at).jenkins);
    const workspace = await createWorkspace({ shell, key: project.key, variables: {}, tests: GREEN });
    const variables = { ...jenkins("1", "main", "unit"), ASSAY_KEY: project.key };
    await workspace(["-xe"], tests!, variables);
    expect((await workspace(["-xe"], upload!, variables)).output).toStartWith("PASSED ");
    expect((await workspace(["-xe"], upload!, { ...variables, BUILD_TAG: "2" })).output).toStartWith("FAILED ");
  });

  test("steps without tests upload nothing: skipped at GitHub, unmarked at Buildkite, cancelled at GitLab", async () => {
    const project = await addProject(acme);
    const at = `${url}/api/v1/projects/${project.project}/test-runs`;
    const [, step] = Bun.YAML.parse(createSnippets(at).githubActions) as { if: string }[];
    const runs = (outcome: string, status: string) =>
      evaluate(step!.if.slice(3, -2).trim(), { steps: { tests: { outcome } }, job: { status } });
    expect(runs("skipped", "success")).toBe(false);
    expect(runs("skipped", "failure")).toBe(true);
    expect(runs("failure", "success")).toBe(true);
    expect(runs("success", "cancelled")).toBe(false);

    const { REPORT: _, ...unmarked } = buildkite("1", "main", {});
    const ran = await run("buildkite", project, { variables: unmarked, task: "" }, { shell, tests: GREEN });
    expect(ran.upload).toEqual({ exit: 0, output: "", errors: "" });

    const { after_script } = Bun.YAML.parse(createSnippets(at).gitlabCi) as { after_script: string[] };
    const workspace = await createWorkspace({ shell, key: project.key, variables: {}, tests: GREEN });
    const cancelled = { ...gitlab("1", "main", "unit", 1), ASSAY_KEY: project.key, CI_JOB_STATUS: "canceled" };
    expect(await workspace(["-e"], after_script.join("\n"), cancelled)).toEqual({ exit: 0, output: "", errors: "" });
    expect(await listExecutions(project)).toEqual([]);
  });
});
