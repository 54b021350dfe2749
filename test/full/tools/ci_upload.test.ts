/** The steps of action.yml and the job of templates/assay.yml, as GitHub and GitLab run them, against a server. */

import { afterAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createAsking, type Project } from "../../asking.ts";
import { createHarness, junit } from "../../harness.ts";
import { guardProcess, readOutput } from "../../places.ts";

const { ask, acme, addProject, url } = await createHarness();

const ROOT = join(import.meta.dir, "../../..");
const home = mkdtempSync(join(tmpdir(), "assay-ci-"));
afterAll(() => rmSync(home, { recursive: true }));

const busybox = Bun.which("busybox");
if (!busybox) console.warn("The component of GitLab is not tried in busybox: it is not installed");

/** A command `assay` that runs the sources. */
const installed = join(home, "assay-of-the-image");
writeFileSync(installed, `#!/bin/sh\nexec "${process.execPath}" "${ROOT}/src/cli/assay_cli.ts" "$@"\n`);
chmodSync(installed, 0o755);

type Variables = Record<string, string>;
type Job = { inputs: Variables; variables?: Variables; files?: Variables };
type End = { code: number; output: string; folder: string };

let folders = 0;
function createFolder(files: Variables = {}): string {
  const folder = join(home, `project ${++folders}`);
  mkdirSync(folder);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}

async function runShell(command: string[], folder: string, variables: Variables): Promise<Omit<End, "folder">> {
  const child = Bun.spawn(command, {
    cwd: folder,
    env: { PATH: process.env["PATH"]!, HOME: home, GIT_CEILING_DIRECTORIES: home, ...variables },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  guardProcess(child);
  const { code, output, errors } = await readOutput(child);
  return { code, output: output + errors };
}

type Action = {
  inputs: Record<string, { default?: string; required?: boolean }>;
  runs: { steps: { if?: string; run: string; env?: Variables; "working-directory"?: string }[] };
};
const action = Bun.YAML.parse(readFileSync(join(ROOT, "action.yml"), "utf8")) as Action;

/** Evaluates the expressions in a text; a value that is not set is empty. */
function evaluate(text: string, values: Variables): string {
  const known = /\b(?:inputs|env|steps)\.[\w.-]+/g;
  return text.replace(/\$\{\{(.*?)\}\}/g, (_, expression: string) => {
    const source = expression.replace(known, (name) => JSON.stringify(values[name] ?? ""));
    return String(new Function(`return ${source}`)());
  });
}

/** Runs the steps of the action in a job of GitHub whose variables contain the secret of the project. */
async function runAction(project: Project, { inputs, variables = {}, files }: Job): Promise<End> {
  const folder = createFolder(files);
  const place = createFolder({ output: "" });
  const github: Variables = {
    ...{ CI: "true", GITHUB_ACTIONS: "true", GITHUB_RUN_ID: "4711", GITHUB_JOB: "unit", GITHUB_SHA: "a".repeat(40) },
    ...{ GITHUB_REF: "refs/heads/topic", GITHUB_REF_NAME: "topic", GITHUB_REPOSITORY: "acme/shop" },
    ...{ GITHUB_SERVER_URL: "https://ci.test", GITHUB_ACTION_PATH: ROOT, GITHUB_WORKSPACE: folder },
    ...{ RUNNER_TEMP: place, GITHUB_OUTPUT: join(place, "output"), GITHUB_STEP_SUMMARY: join(folder, "summary.md") },
    ...variables,
  };
  const { key = project.key, ...others } = inputs;
  const given = { url, project: project.project, key, "assay-bin": installed, ...others };
  const defaults = Object.entries(action.inputs).map(([name, input]) => [name, input.default ?? ""]);
  const values = Object.fromEntries([
    ...Object.entries({ ...Object.fromEntries(defaults), ...given }).map(([name, value]) => [`inputs.${name}`, value]),
    ...Object.entries(github).map(([name, value]) => [`env.${name}`, value]),
  ]);
  let end = { code: -1, output: "" };
  for (const step of action.runs.steps) {
    if (step.if !== undefined && evaluate(step.if, values) !== "true") continue;
    const script = join(place, "script.sh");
    writeFileSync(script, step.run);
    const own = Object.entries(step.env ?? {}).map(([name, value]) => [name, evaluate(value, values)]);
    const directory = join(folder, evaluate(step["working-directory"] ?? ".", values));
    const shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", script];
    end = await runShell(shell, directory, { ...github, ...Object.fromEntries(own) });
    if (end.code !== 0) break;
  }
  return { ...end, folder };
}

const [header, content] = readFileSync(join(ROOT, "templates/assay.yml"), "utf8").split("\n---\n") as [string, string];
type Template = { spec: { inputs: Record<string, { default?: unknown; type?: string; options?: string[] }> } };
const template = Bun.YAML.parse(header) as Template;
type TemplateJob = { variables: Variables; script: string[]; image: string; stage: string };

/** Inserts the inputs into the text of the template, as GitLab does before it reads the YAML. */
function includeTemplate(inputs: Variables): Record<string, TemplateJob> {
  const text = content.replace(/\$\[\[ inputs\.([\w-]+) \]\]/g, (_, name: string) => {
    const value = inputs[name] ?? template.spec.inputs[name]!.default;
    if (value === undefined) throw new Error(`The input ${name} is required`);
    return String(value);
  });
  return Bun.YAML.parse(text) as Record<string, TemplateJob>;
}

/** Runs the job of the template in a pipeline of GitLab whose project has the variable ASSAY_KEY. */
async function runTemplate(project: Project, { inputs, variables = {}, files }: Job, shell = ["bash"]): Promise<End> {
  const folder = createFolder(files);
  const gitlab: Variables = {
    ...{ CI: "true", GITLAB_CI: "true", CI_PIPELINE_ID: "4711", CI_JOB_NAME: "unit", CI_COMMIT_SHA: "a".repeat(40) },
    ...{ CI_COMMIT_REF_NAME: "topic", CI_JOB_URL: "https://ci.test/jobs/1", CI_PROJECT_DIR: folder },
    ...variables,
  };
  const { key = project.key, ...others } = inputs;
  const given = { url, project: project.project, "job-name": "unit", "assay-bin": installed, command: "", ...others };
  const { script, variables: own } = includeTemplate(given)["unit"]!;
  // A runner joins the lines of a job in one script that ends at the first error.
  const text = ["set -eo pipefail", ...script].join("\n");
  const end = await runShell([...shell, "-c", text], folder, { ...gitlab, ...own, ASSAY_KEY: key });
  return { ...end, folder };
}

const SYSTEMS: [name: string, run: (project: Project, job: Job) => Promise<End>][] = [
  ["the action of GitHub", runAction],
  ["the component of GitLab", runTemplate],
];

const list = (project: Project) => createAsking(ask, project).list("/executions?limit=100");
/** A command that writes a report and ends; it has quotes, and a variable of the shell. */
const tests = (letters: string, code = 0) => `name="report" && cp ${letters}.xml "$name.xml" && sh -c 'exit ${code}'`;
const FILES = Object.fromEntries(["pp", "fp", "pf"].map((letters) => [`${letters}.xml`, junit(letters)]));
const REPORT = { report: "report.xml" };

describe.each(SYSTEMS)("%s", (name, run) => {
  test("uploads what passed, with the build that the system describes", async () => {
    const project = await addProject(acme);
    const inputs = { ...REPORT, command: tests("pp"), complete: "true", tags: "browser:webkit" };
    const { code, output } = await run(project, { inputs, files: FILES });
    expect({ code, output }).toEqual({ code: 0, output: expect.stringContaining("PASSED unit") });
    expect(output).not.toContain(project.key);
    const [execution, ...others] = await list(project);
    expect(others).toEqual([]);
    expect(execution).toMatchObject({
      ...{ key: "4711", status: "passed", branch: "topic", commit: "a".repeat(40), pullRequest: null },
      buildUrl: name.includes("GitHub") ? "https://ci.test/acme/shop/actions/runs/4711" : "https://ci.test/jobs/1",
      tasks: [expect.objectContaining({ slug: "unit [browser:webkit]" })],
    });
  });

  test("ends with the exit code of the tests, unless the gate forgives the failure", async () => {
    const project = await addProject(acme);
    await createAsking(ask, project).upload("fp", { task_slug: "unit", branch: "main" });
    const end = async (letters: string, code: number, gate: string) =>
      (await run(project, { inputs: { ...REPORT, command: tests(letters, code), gate }, files: FILES })).code;
    expect([await end("fp", 1, "new"), await end("pf", 1, "new"), await end("pf", 3, "")]).toEqual([0, 1, 3]);
  });

  test("passes the other inputs and options on", async () => {
    const project = await addProject(acme);
    const inputs = {
      ...{ report: "a-*.xml b.xml", command: "cp pp.xml a-1.xml; cp pf.xml b.xml; echo up > server.log" },
      ...{
        task: "e2e",
        shard: "1/2",
        strict: "true",
        attach: "server.log",
        options: "--environment=staging --base-branch main",
      },
    };
    const { output } = await run(project, { inputs, files: FILES });
    expect(output).toContain("FAILED e2e: 1 of 2 shards, missing shard 2; 2 passed, 1 failed");
    expect(output).toContain("Sent 1 attachment");
    expect(await list(project)).toEqual([expect.objectContaining({ environment: "staging" })]);
    expect((await run(project, { inputs: { ...inputs, command: "true" } })).code).toBe(1);
  });

  describe("if the client cannot be installed", () => {
    const missing = { ...REPORT, "assay-bin": "", package: "./no-such-package.tgz" };

    test("only the tests fail the job, and a gate forgives nothing", async () => {
      const project = await addProject(acme);
      const end = async (inputs: Variables) => {
        const { code, output } = await run(project, { inputs: { ...missing, ...inputs }, files: FILES });
        expect(output).toContain(
          "assay: Warning: the results are not uploaded: the client cannot be installed or started",
        );
        expect(output.includes("::warning title=Assay::Results were not uploaded: ")).toBe(name.endsWith("GitHub"));
        return code;
      };
      expect(await end({ command: tests("pp") })).toBe(0);
      expect(await end({ command: tests("fp", 5), gate: "new" })).toBe(5);
      expect(await end({ command: tests("pp"), strict: "true" })).toBe(3);
      expect(await list(project)).toEqual([]);
    });
  });

  test("downloads the client from an address", async () => {
    const project = await addProject(acme);
    const asked: string[] = [];
    using files = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: ({ url }) => {
        asked.push(new URL(url).pathname);
        return new Response(Bun.gzipSync(readFileSync(installed)));
      },
    });
    const inputs = { ...REPORT, command: tests("pp"), "assay-bin": "", download: `${files.url.href}assay-cli.gz` };
    const { code, output, folder } = await run(project, { inputs, files: FILES });
    rmSync(`${folder}.tmp`, { recursive: true, force: true });
    expect({ code, output, asked }).toEqual({
      code: 0,
      output: expect.stringContaining("PASSED unit"),
      asked: ["/assay-cli.gz"],
    });
  });
});

describe("the action of GitHub", () => {
  test("uploads the report of an earlier step with its exit code and the values of a matrix", async () => {
    const project = await addProject(acme);
    const inputs = { ...REPORT, "exit-code": "1", tags: '{\n  "browser": "webkit",\n  "node": 22\n}' };
    const { code, folder } = await runAction(project, { inputs, files: { "report.xml": junit("pp") } });
    // Without a gate, the earlier step fails the job.
    expect(code).toBe(0);
    const [{ failed, tasks }] = await list(project);
    expect([failed, tasks[0].slug]).toEqual([1, "unit [browser:webkit, node:22]"]);
    expect(readFileSync(join(folder, "summary.md"), "utf8")).toContain("unit");
    const gated = { ...inputs, gate: "new" };
    expect((await runAction(project, { inputs: gated, files: { "report.xml": junit("pf") } })).code).toBe(1);
    const missing = { ...gated, "assay-bin": "", package: "./no-such-package.tgz" };
    expect((await runAction(project, { inputs: missing })).code).toBe(1);
  });

  test("runs several lines as a step of GitHub does, in the working directory", async () => {
    const project = await addProject(acme);
    const command = "cd sub\nfalse | true\necho not reached";
    const { code, output } = await runAction(project, { inputs: { ...REPORT, command: `mkdir sub\n${command}` } });
    expect([code, output.includes("not reached")]).toEqual([1, false]);
    const folder = { "working-directory": "..", report: "**/none.xml", command: 'basename "$PWD"' };
    expect((await runAction(project, { inputs: folder })).output).toContain(home.split("/").at(-1)!);
  });

  test("reads variables of the job instead of inputs", async () => {
    const project = await addProject(acme);
    const variables = { ASSAY_URL: url, ASSAY_PROJECT: project.project, ASSAY_KEY: project.key, ASSAY_TAGS: "os:mac" };
    const inputs = { ...REPORT, command: tests("pp"), url: "", project: "", key: "", tags: "" };
    const { code } = await runAction(project, { inputs, variables, files: FILES });
    const [{ tasks }] = await list(project);
    expect([code, tasks[0].slug]).toEqual([0, "unit [os:mac]"]);
  });

  test("inserts no input into a script, where it would be executed", () => {
    for (const { run } of action.runs.steps) expect(run).not.toContain("${{");
  });
});

describe("the component of GitLab", () => {
  test("contains the script of the action", () => {
    const script = readFileSync(join(ROOT, "tools/ci_upload.sh"), "utf8");
    const lines = script.slice(script.indexOf("set +e")).trimEnd();
    const [text] = includeTemplate({ url: "u", project: "p", report: "r", command: "c" })["test"]!.script;
    expect(text!.trimEnd()).toEndWith(lines);
  });

  test("runs the tests and installs nothing if no input says where the client is", async () => {
    const project = await addProject(acme);
    const inputs = { ...REPORT, "assay-bin": "", command: tests("fp", 4) };
    const { code, output } = await runTemplate(project, { inputs, files: FILES });
    expect([code, output]).toEqual([
      4,
      expect.stringContaining(
        "assay: Warning: the results are not uploaded: there is no client: none of the inputs assay-bin, download and package is set",
      ),
    ]);
    expect(await list(project)).toEqual([]);
  });

  test.skipIf(!busybox)("runs in an image with no shell and tools but those of busybox", async () => {
    const tools = createFolder();
    for (const name of ["sh", "cat", "cp", "chmod", "gzip", "mkdir"]) symlinkSync(busybox!, join(tools, name));
    const project = await addProject(acme);
    const run = async (inputs: Variables) => {
      const given = { ...REPORT, task: "unit", options: "--branch=main", ...inputs };
      const job = { inputs: given, files: FILES, variables: { PATH: tools } };
      return (await runTemplate(project, job, [busybox!, "sh"])).code;
    };
    expect(await run({ command: tests("fp", 4) })).toBe(4);
    expect(await run({ command: tests("fp", 1), options: "--branch=topic", gate: "new" })).toBe(0);
    expect(await list(project)).toHaveLength(2);
    const missing = { "assay-bin": "", package: "./no-such-package.tgz" };
    expect([await run({ ...missing, command: "exit 6" }), await run({ ...missing, command: "true" })]).toEqual([6, 0]);
  });

  test("uses every input, and defines every input that it uses", () => {
    const used = [...content.matchAll(/\$\[\[ inputs\.([\w-]+) \]\]/g)].map(([, input]) => input!);
    expect([...new Set(used)].sort()).toEqual(Object.keys(template.spec.inputs).sort());
  });
});
