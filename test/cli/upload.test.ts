/** The reports of `assay upload`: which are sent, with what, and the answer. */

import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { createFolder, type Variables } from "../commands.ts";
import { createHarness, junit } from "../harness.ts";
import { createReceiver } from "../receiver.ts";
import { createUploads, type UploadOptions } from "../uploads.ts";

const harness = await createHarness();
const { ask, acme, addProject } = harness;
const { upload, list, onlyRun, project, SAMPLE } = await createUploads(harness);

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
    const build = { key: "42", branch: "feat/a", commit: "0123456789abcdef", pullRequest: "7", environment: "staging" };
    const found = { ...build, buildUrl: "https://ci.test/1", status: "failed", passed: 3, failed: 1 };
    expect(await list(project)).toEqual([expect.objectContaining(found)]);
  });

  test("take what the CI system says where no option says it, and shards of a build meet", async () => {
    const project = await addProject(acme);
    const circle = (index: string): UploadOptions => ({
      folder: createFolder({ "r.xml": junit("p", `s${index}`) }),
      variables: {
        ...{ CIRCLECI: "true", CIRCLE_WORKFLOW_ID: "w-1", CIRCLE_JOB: "unit", CIRCLE_SHA1: "abc1234" },
        ...{ CIRCLE_BRANCH: "main", CIRCLE_NODE_INDEX: index, CIRCLE_NODE_TOTAL: "2" },
      },
    });
    const args = ["r.xml", "--commit", "def5678"];
    const first = await upload(project, [...args, "--branch", ""], circle("0"));
    expect(first.output).toStartWith("WAITING unit: 1 of 2 shards, missing shard 2; 1 passed");
    expect((await upload(project, args, circle("1"))).output).toStartWith("PASSED unit: 2 passed");
    expect(await list(project)).toEqual([expect.objectContaining({ key: "w-1", branch: "main", commit: "def5678" })]);
  });

  test("are read from where they begin, behind the lines of other programs", async () => {
    const project = await addProject(acme);
    const folder = createFolder({ "r.txt": `> npm test\n\n${junit("pf", "a")}` });
    const { output, errors } = await upload(project, ["r.txt", "--task", "unit"], { folder });
    expect(errors).toContain('In "r.txt" a report begins at line 3: it is read from there');
    expect(output).toContain("1 passed, 1 failed");
    const log = { folder: createFolder({ "rep.tap": "connecting\nBail out! db\nok 1 - x\n1..1\n" }) };
    const whole = await upload(project, ["rep.tap", "--task", "tap"], log);
    expect(whole.output).toContain("1 passed, 1 failed");
    expect(whole.errors).not.toContain("begins at");
    const broken = { folder: createFolder({ "rep.tap": '1..1\nok 1 - x\n{\n  "stats": {\n    "suites": 1,' }) };
    const red = await upload(project, ["rep.tap", "--task", "broken"], broken);
    expect(red.output).toStartWith("FAILED broken: report is incomplete; 1 passed, 1 failed");
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
    const lines = output.trimEnd().split("\n");
    const answer = { verdict: "failed", passed: 1, newFailures: [{ name: "case 1" }] };
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([answer]);
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
