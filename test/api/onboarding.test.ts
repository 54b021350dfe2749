import { beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createHarness, junit } from "../harness.ts";

const { ask, acme, addProject, database } = await createHarness();

let project: string;
let key: string;
beforeEach(async () => ({ project, key } = await addProject(acme)));

const get = async () => (await ask(`GET /projects/${project}/onboarding`, { key })).body;
const statuses = async () =>
  Object.fromEntries((await get()).steps.map(({ id, status }: { id: string; status: string }) => [id, status]));
const upload = (letters: string, query = "") =>
  ask(`POST /projects/${project}/test-runs?task_slug=t${query}`, { key, body: junit(letters) });

describe("steps", () => {
  test("are done by what happens, and tell when", async () => {
    expect(await statuses()).toEqual({
      first_run: "todo",
      commit_and_branch: "todo",
      environment: "todo",
      integration: "todo",
      automation: "todo",
      bug_triaged: "todo",
    });
    const { body } = await upload("pf");
    expect((await get()).steps[0]).toEqual({
      id: "first_run",
      title: expect.any(String),
      status: "done",
      doneAt: body.completedAt,
      hint: expect.any(String),
    });
    await upload("p", "&commit=a");
    expect((await statuses())["commit_and_branch"]).toBe("todo");
    await upload("p", "&commit=a&branch=main&environment=staging");
    await ask(`PATCH /projects/${project}/bug-reports/${body.bugReports[0].id}`, { key, body: { status: "resolved" } });
    expect(await get()).toMatchObject({ completed: false, dismissed: false });
    const team = { key: acme.teamKey };
    const config = { url: "https://hooks.slack.com/services/T/B/abcdefgh" };
    const slack = await ask(`POST /teams/${acme.team}/integrations`, { ...team, body: { kind: "slack", config } });
    const actions = [{ type: "notify", integrationId: slack.body.id }];
    const automation = { name: "red", trigger: { event: "execution.failed" }, actions };
    const { body: created } = await ask(`POST /teams/${acme.team}/automations`, { ...team, body: automation });
    expect(await get()).toMatchObject({ completed: true, dismissed: false });
    expect((await get()).steps.map(({ doneAt }: { doneAt: string }) => doneAt).slice(3, 5)).toEqual([
      slack.body.createdAt,
      created.createdAt,
    ]);
    for (const path of [`integrations/${slack.body.id}`, `automations/${created.id}`])
      await ask(`DELETE /teams/${acme.team}/${path}`, team);
  });

  test("are skipped and taken up again, and the whole is dismissed", async () => {
    const patch = (body: object) => ask(`PATCH /projects/${project}/onboarding`, { key, body });
    expect((await patch({ skip: ["environment"] })).body.steps[2]).toMatchObject({ status: "skipped", doneAt: null });
    expect((await patch({ dismissed: true })).body).toMatchObject({ dismissed: true, completed: false });
    expect((await statuses())["environment"]).toBe("skipped");
    expect((await patch({ skip: [] })).body).toMatchObject({ dismissed: true });
    expect((await statuses())["environment"]).toBe("todo");
    expect((await patch({ skip: ["nap"], dismissed: 1 })).body.error.message).toMatch(/"skip.*"dismissed"/);
  });
});

/** The part of a snippet that a shell runs. */
function script(system: string, snippet: string): string {
  if (system === "jenkins") return /script: '''\n([^]*?)'''/.exec(snippet)![1]!.replaceAll("\\\\", "\\");
  if (system === "curl" || system === "buildkite") return snippet;
  const [parsed] = [Bun.YAML.parse(snippet)].flat() as Record<string, unknown>[];
  const { run, bash, after_script } = parsed as {
    run?: string | { command: string };
    bash?: string;
    after_script?: string[];
  };
  return typeof run === "object" ? run.command : (run ?? bash ?? after_script![0]!);
}

describe("snippets", () => {
  const GITHUB = { GITHUB_SERVER_URL: "https://github.test", GITHUB_REPOSITORY: "acme/web", GITHUB_RUN_ID: "1" };
  const SHA = "0123456789abcdef0123456789abcdef01234567";
  test.each([
    ["githubActions", { ...GITHUB, COMMIT: SHA, BRANCH: "feature/a&b", PULL_REQUEST: "7" }, "7"],
    ["githubActions", { ...GITHUB, COMMIT: SHA, BRANCH: "feature/a&b", PULL_REQUEST: "" }, null],
    ["githubActions", { ...GITHUB, COMMIT: SHA, BRANCH: "</etc/hostname;type=x", PULL_REQUEST: "" }, null],
    ["gitlabCi", { CI_COMMIT_SHA: SHA, CI_COMMIT_REF_NAME: "feature/a&b", CI_JOB_URL: "https://ci/1" }, null],
    ["jenkins", { GIT_COMMIT: SHA, GIT_BRANCH: "origin/feature/a&b", BUILD_URL: "https://ci/1" }, null],
    ["jenkins", { GIT_COMMIT: SHA, GIT_BRANCH: "origin/feature/a&b", BUILD_URL: "" }, null],
    [
      "circleci",
      {
        CIRCLE_SHA1: SHA,
        CIRCLE_BRANCH: "feature/a&b",
        CIRCLE_PULL_REQUEST: "https://example.com/pull/9",
        CIRCLE_BUILD_URL: "https://ci/1",
      },
      "9",
    ],
    [
      "azurePipelines",
      {
        BUILD_SOURCEVERSION: SHA,
        BUILD_SOURCEBRANCH: "refs/heads/feature/a&b",
        SYSTEM_COLLECTIONURI: "https://dev.azure.test/acme/",
        SYSTEM_TEAMPROJECT: "My project",
        BUILD_BUILDID: "1",
      },
      null,
    ],
    [
      "buildkite",
      {
        BUILDKITE_COMMIT: SHA,
        BUILDKITE_BRANCH: "feature/a&b",
        BUILDKITE_PULL_REQUEST: "3",
        BUILDKITE_BUILD_URL: "https://ci/1",
      },
      "3",
    ],
  ])("%s: its script uploads as it is", async (system, environment, pullRequest) => {
    const directory = mkdtempSync(join(tmpdir(), "assay-snippet-"));
    try {
      await Bun.write(join(directory, "report.xml"), junit("pp"));
      const { snippets } = await get();
      const child = Bun.spawn([system === "azurePipelines" ? "bash" : "sh", "-c", script(system, snippets[system])], {
        cwd: directory,
        env: { PATH: process.env["PATH"]!, ASSAY_KEY: key, ...environment },
        stdout: "pipe",
        stderr: "pipe",
      });
      const [output, errors] = await Promise.all([
        new Response(child.stdout).text(),
        new Response(child.stderr).text(),
      ]);
      expect(errors).toBe("");
      const { executionId } = JSON.parse(output);
      const { body } = await ask(`GET /projects/${project}/executions/${executionId}`, { key });
      const branch = "BRANCH" in environment ? environment.BRANCH : "feature/a&b";
      expect(body).toMatchObject({ passed: 2, commit: SHA, branch, pullRequest });
    } finally {
      rmSync(directory, { recursive: true });
    }
  });

  test("that of curl works in a checkout", async () => {
    const directory = mkdtempSync(join(tmpdir(), "assay-snippet-"));
    try {
      await Bun.write(join(directory, "report.xml"), junit("p"));
      const git = "git init -q -b trunk && git -c user.name=a -c user.email=a@example.com commit -q --allow-empty -m a";
      const { snippets } = await get();
      const output = await Bun.$`sh -c ${`${git} && ${snippets.curl.split("\n").slice(1).join("\n")}`}`
        .cwd(directory)
        .env({ PATH: process.env["PATH"]!, ASSAY_KEY: key })
        .quiet()
        .text();
      const { executionId } = JSON.parse(output);
      const { body } = await ask(`GET /projects/${project}/executions/${executionId}`, { key });
      expect(body).toMatchObject({ branch: "trunk", commit: expect.stringMatching(/^[0-9a-f]{40}$/) });
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
});

describe("sample data", () => {
  const path = () => `/projects/${project}/onboarding/sample-data`;
  const list = async (what: string) =>
    (await ask(`GET /projects/${project}/${what.includes("?") ? what : `${what}?`}limit=100`, { key })).body
      .data as Record<string, unknown>[];
  /** Every row of the project, by table. */
  async function rows() {
    const tables = await database.pool<{ name: string }[]>`
      select c.relname as name from pg_class c join pg_attribute a on a.attrelid = c.oid
      where c.relkind in ('r', 'p') and not c.relispartition and a.attname = 'project_id' and c.relname <> 'api_key'
        and c.relnamespace = 'public'::regnamespace order by 1`;
    const counts: Record<string, number> = {};
    for (const { name } of tables) {
      const [row] =
        await database.pool`select count(*)::int as n from ${database.pool(name)} where project_id = ${project}`;
      counts[name] = row!["n"];
    }
    return counts;
  }

  test("is two weeks of runs, bugs and health, marked everywhere, once", async () => {
    const { status, body } = await ask(`POST ${path()}`, { key });
    expect(status).toBe(201);
    expect(body).toEqual({ executions: 42, testCases: 22, bugReports: 2 });
    const again = await ask(`POST ${path()}`, { key });
    expect([again.status, again.body]).toEqual([200, body]);
    for (const what of ["executions", "test-cases", "bug-reports"])
      expect((await list(what)).every(({ sample }) => sample === true)).toBe(true);
    const ages = (await list("executions")).map(({ createdAt }) => Date.now() - Date.parse(createdAt as string));
    expect(Math.min(...ages)).toBeGreaterThan(0);
    expect(Math.max(...ages) / 86_400_000).toBeWithin(13, 14);
    expect((await list("test-cases?health=flaky&")).map(({ name }) => name)).toEqual(["answers in time"]);
    const bugs = await list("bug-reports");
    expect(new Set(bugs.map(({ status }) => status))).toEqual(new Set(["open", "resolved"]));
    expect((await statuses())["first_run"]).toBe("todo");
  });

  test("goes without a trace, beside real data that stays", async () => {
    const before = await rows();
    await ask(`POST ${path()}`, { key });
    await list("test-cases");
    expect((await ask(`DELETE ${path()}`, { key })).status).toBe(204);
    expect(await rows()).toEqual(before);

    await ask(`POST ${path()}`, { key });
    const { body } = await upload("pf");
    await ask(`DELETE ${path()}`, { key });
    expect((await list("test-cases")).map(({ name }) => name)).toEqual(["case 0", "case 1"]);
    expect(await list("executions")).toEqual([expect.objectContaining({ id: body.executionId })]);
    expect((await list("bug-reports")).length).toBe(1);
    expect((await upload("pfp")).body).toMatchObject({ total: 3 });
    expect(await list("test-cases")).toHaveLength(3);
  });
});
