/** What `assay upload` tells CI systems, and the ownership file that it sends for them. */

import { describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createFolder, home, type Variables } from "../commands.ts";
import { createHarness, junit } from "../harness.ts";
import { createReceiver } from "../receiver.ts";
import { createUploads, script, type UploadOptions } from "../uploads.ts";

const harness = await createHarness();
const { ask, acme, addProject, regenerate } = harness;
const { upload, project, SAMPLE } = await createUploads(harness);

type Project = Awaited<ReturnType<typeof addProject>>;

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
      GITHUB_OUTPUT: join(workspace, "outputs"),
    };
    const { code, output } = await upload(project, ["r.xml"], { folder, variables });
    const outputs = readFileSync(variables.GITHUB_OUTPUT, "utf8").trimEnd().split("\n");
    expect(outputs).toEqual([
      ...["verdict=failed", expect.stringMatching(/^execution-id=[0-9a-f-]{36}$/)],
      ...[expect.stringMatching(/^url=http.*\/executions\/[0-9a-f-]{36}$/), "new-failures=1", "flaky=0"],
    ]);
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
    const run: UploadOptions = { folder, variables: { BUILDKITE: "true", BUILDKITE_LABEL: ":jest: unit tests" } };
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
