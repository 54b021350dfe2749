/** docs/dispatch.md as it is written: its requests are made, and the shell in its files is run. */

import { afterAll, beforeEach, expect, test } from "bun:test";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createAsking } from "../../asking.ts";
import { createAutomating } from "../../automating.ts";
import { createHarness, junit } from "../../harness.ts";
import { createReceiver } from "../../receiver.ts";

const harness = await createHarness({ outboundAllow: ["127.0.0.0/8"] });
const { ask, acme, addProject, url } = harness;
const { call, integrate, automate, deliver } = createAutomating(harness, acme);
const text = await Bun.file(join(import.meta.dir, "../../../docs/dispatch.md")).text();

/** The code of a language under a heading, or the first of the page. */
function codeOf(language: string, heading = ""): string {
  const from = text.indexOf(heading);
  expect(from).toBeGreaterThanOrEqual(0);
  const code = new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\`$`, "m").exec(text.slice(from))?.[1];
  expect(code).toBeString();
  return code!;
}

const home = mkdtempSync(join(tmpdir(), "assay-docs-"));
afterAll(() => rmSync(home, { recursive: true }));
let project: ReturnType<typeof createAsking>;
beforeEach(async () => {
  project = createAsking(ask, await addProject(acme));
});

let folders = 0;

/** A checkout whose tests write their report; runs lines of shell in it. */
function createCheckout() {
  const folder = join(home, `checkout-${++folders}`);
  mkdirSync(join(folder, "ci"), { recursive: true });
  mkdirSync(join(folder, "bin"));
  symlinkSync(join(import.meta.dir, "../../../tools/assay-upload.sh"), join(folder, "ci/assay-upload.sh"));
  // "npm ci" writes none.
  const npm = `#!/bin/sh\necho "$@" >> words\n[ "$1" = ci ] || printf %s '${junit("pp")}' > report.xml\n`;
  writeFileSync(join(folder, "bin/npm"), npm);
  chmodSync(join(folder, "bin/npm"), 0o755);
  return async (script: string, variables: Record<string, string>) => {
    const child = Bun.spawn(["sh", "-e", "-c", script], {
      cwd: folder,
      env: { PATH: `${join(folder, "bin")}:${process.env["PATH"]}`, TMPDIR: home, GIT_DIR: home, ...variables },
      stdout: "pipe",
      stderr: "pipe",
    });
    const [errors, exit] = await Promise.all([child.stderr.text(), child.exited]);
    expect([exit, errors]).toEqual([0, expect.not.stringContaining("Warning")]);
  };
}

const server = () => ({ ASSAY_URL: url, ASSAY_PROJECT: project.project, ASSAY_KEY: project.key });
const list = () => project.list("/executions");

/** As the page says by hand, for an integration; the inputs or variables with which the engine was asked. */
async function startByHand(receiver: ReturnType<typeof createReceiver>, integration: string) {
  await createCheckout()(codeOf("sh", "## Starting an execution"), { ...server(), INTEGRATION: integration });
  await deliver();
  const { body } = receiver.requests.at(-1)!;
  return (body.inputs ?? body.variables) as Record<string, string>;
}

type Job = { strategy?: { matrix: { shard: number[] } }; steps: { run?: string }[] };
type Workflow = {
  on: { workflow_dispatch: { inputs: Record<string, { default: string }> } };
  env: Record<string, string>;
  jobs: Record<string, Job>;
};

/** Runs all jobs as GitHub does, with what it was asked with. */
async function runWorkflow(asked: Record<string, string> | null, build: string): Promise<void> {
  const { on, env, jobs } = Bun.YAML.parse(codeOf("yaml", "## `.github/")) as Workflow;
  const declared = on.workflow_dispatch.inputs;
  // What is not declared is refused by GitHub.
  for (const name of Object.keys(asked ?? {})) expect(Object.keys(declared)).toContain(name);
  const expand = (text: string, shard?: number) =>
    text.replace(/\$\{\{ ([\w.]+) \}\}/g, (_, name: string) => {
      const values: Record<string, string | undefined> = {
        "inputs.assay_execution_id": asked?.["assay_execution_id"] ?? "",
        "secrets.ASSAY_KEY": project.key,
        "matrix.shard": String(shard),
      };
      expect(Object.keys(values)).toContain(name);
      return values[name]!;
    });
  const { ASSAY_URL: _, ASSAY_PROJECT: __, ...own } = env;
  const variables = Object.fromEntries(Object.entries(own).map(([name, value]) => [name, expand(value)]));
  const system = {
    ...{ GITHUB_ACTIONS: "true", GITHUB_EVENT_NAME: asked ? "workflow_dispatch" : "push", GITHUB_RUN_ID: build },
    ...{ GITHUB_SHA: "c0ffee12", GITHUB_REF_NAME: "main", GITHUB_SERVER_URL: "https://github.test" },
    GITHUB_REPOSITORY: "acme/web",
  };
  for (const { strategy, steps } of Object.values(jobs))
    for (const shard of strategy?.matrix.shard ?? [undefined]) {
      const run = createCheckout();
      for (const step of steps)
        if (step.run) await run(expand(step.run, shard), { ...system, ...server(), ...variables });
    }
}

/** Runs all jobs as GitLab does. */
async function runPipeline(asked: Record<string, string>, build: string): Promise<void> {
  type GitlabJob = { script: string[]; parallel?: number };
  const {
    default: { before_script },
    variables,
    ...jobs
  } = Bun.YAML.parse(codeOf("yaml", "## `.gitlab-ci.yml`")) as {
    default: { before_script: string[] };
    variables: Record<string, string>;
  } & Record<string, GitlabJob>;
  for (const [name, { script, parallel }] of Object.entries(jobs as Record<string, GitlabJob>))
    for (let index = 1; index <= (parallel ?? 1); index++) {
      const shard = { CI_NODE_INDEX: String(index), CI_JOB_NAME: `${name} ${index}/${parallel}` };
      await createCheckout()([...before_script, ...script].join("\n"), {
        ...{ GITLAB_CI: "true", CI_PIPELINE_ID: build, CI_JOB_URL: "https://gitlab.test/1" },
        ...{ CI_COMMIT_SHA: "c0ffee12", CI_COMMIT_REF_NAME: "main", CI_JOB_NAME: name },
        ...{ CI_NODE_TOTAL: String(parallel ?? 1), ...(parallel ? shard : {}), ...server(), ...variables, ...asked },
      });
    }
}

const tasks = [
  { slug: "unit", status: "passed", passed: 2 },
  { slug: "e2e", status: "passed", passed: 2, missingShards: [] },
];
const build = { branch: "main", commit: "c0ffee12" };

test("the workflow for GitHub reports to the execution that asks for it, and on a push to one of its own", async () => {
  const receiver = createReceiver({ status: 204 });
  const config = { baseUrl: receiver.url, repository: "acme/web", token: "t", workflow: "assay.yml" };
  const asked = await startByHand(receiver, await integrate("github", config));
  const [{ id }] = await list();
  expect(asked).toEqual({ assay_execution_id: id });
  await runWorkflow(asked, "1");
  expect(await list()).toMatchObject([{ id, key: null, status: "passed", ...build, tasks }]);
  await runWorkflow(null, "2");
  expect(await list()).toMatchObject([{ key: "2", ...build, tasks }, { id }]);
});

test("the file for GitLab reports to the execution that asks for it, and on a push to one of its own", async () => {
  const receiver = createReceiver({ status: 201 });
  const config = { baseUrl: receiver.url, project: "acme/web", token: "t", triggerToken: "trigger" };
  const asked = await startByHand(receiver, await integrate("gitlab", config));
  const [{ id }] = await list();
  expect(asked).toEqual({ ASSAY_EXECUTION_ID: id });
  await runPipeline(asked, "1");
  expect(await list()).toMatchObject([{ id, key: null, status: "passed", ...build, tasks }]);
  await runPipeline({}, "2");
  expect(await list()).toMatchObject([{ key: "2", ...build, tasks }, { id }]);
});

test("the automation is taken as it is written, and starts what it says", async () => {
  const receiver = createReceiver({ status: 204 });
  const config = { baseUrl: receiver.url, repository: "acme/web", token: "t", workflow: "assay.yml" };
  const integration = await integrate("github", config);
  const body = JSON.parse(codeOf("json").replaceAll("PROJECT", project.project).replaceAll("INTEGRATION", integration));
  await call("POST", `/automations/${await automate(body)}/run`, {});
  await deliver();
  const [execution] = await list();
  expect(execution).toMatchObject({ trigger: "schedule", branch: "main", tasks: [{ slug: "unit" }, { slug: "e2e" }] });
  expect(receiver.requests.map(({ body }) => body)).toEqual([
    { ref: "main", inputs: { assay_execution_id: execution.id } },
  ]);
});
