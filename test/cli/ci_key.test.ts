/** `assay upload` and `assay split` without a stored key: the job's id token is exchanged for one. */

import { describe, expect, test } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readAddressSource, toServerAddress } from "../../src/cli/ci_key.ts";
import { createSecrets } from "../../src/cli/output.ts";
import { addTrustRule } from "../../src/operations/people/trust_rules.ts";
import { COMMAND_LINE } from "../../src/schema/audit.ts";
import type { NewTrustRule } from "../../src/schema/trust_rules.ts";
import { createCiIssuer, REPOSITORY } from "../ci_issuer.ts";
import { createFolder, run, type Variables } from "../commands.ts";
import { createHarness, junit } from "../harness.ts";
import { createReceiver, type Script } from "../receiver.ts";

const { acme, ask, url, database, addProject } = await createHarness({ outboundAllow: ["127.0.0.1/32"] });
const issuer = await createCiIssuer(url);
const KEY = /svc_proj_[0-9A-Za-z]{30}/;
const REQUEST_TOKEN = "the request token of this job";

const common = { issuer: issuer.url, repositoryId: REPOSITORY.id, events: [], refs: [] };
const RULES: Record<"github" | "gitlab", NewTrustRule> = {
  github: { kind: "github", ownerId: REPOSITORY.owner, ...common },
  gitlab: { kind: "gitlab", ...common },
};

/** A project that trusts the issuer's repository, and an empty folder. */
async function createJob(kind: "github" | "gitlab" | undefined) {
  const { project, key } = await addProject(acme);
  if (kind) await database.begin((sql) => addTrustRule(sql, project, RULES[kind], COMMAND_LINE));
  return { project, key, folder: createFolder({ "report.xml": junit("pp") }) };
}
type Job = Awaited<ReturnType<typeof createJob>>;

async function assay({ project, folder }: Job, args: string[], variables: Variables) {
  const ended = await run(args, { cwd: folder, env: { ASSAY_URL: url, ASSAY_PROJECT: project, ...variables } });
  for (const hidden of [KEY, REQUEST_TOKEN]) expect(ended.output + ended.errors).not.toMatch(hidden);
  return ended;
}

/** The service of GitHub that gives a job its id tokens. */
function createTokenService(...scripts: Script[]) {
  const service = createReceiver(...scripts);
  const variables = {
    GITHUB_ACTIONS: "true",
    ACTIONS_ID_TOKEN_REQUEST_URL: `${service.url}/token?api-version=2.0`,
    ACTIONS_ID_TOKEN_REQUEST_TOKEN: REQUEST_TOKEN,
  };
  return { ...service, variables };
}
const giving = (token: string): Script => ({ status: 200, body: { value: token, count: 1 } });

const countRuns = async ({ project, key }: Job) =>
  (await ask(`GET /projects/${project}/test-runs`, { key })).body.data.length;
const countKeys = async ({ project }: Job) =>
  (await database.pool`select from api_key where project_id = ${project} and trust_rule_id is not null`).length;

describe("assay upload in GitHub Actions", () => {
  test("asks for a token for the server, after the tests, and uploads with one key, which the tests do not see", async () => {
    const job = await createJob("github");
    const marker = join(job.folder, "tests-have-run");
    const service = createTokenService(giving(await issuer.github()));
    const script = `touch tests-have-run; env | grep -v ^ACTIONS_; printf '%s' '${junit("pp")}' > report.xml`;
    const { code, output, errors } = await assay(
      job,
      ["upload", "report.xml", "--", "sh", "-c", script],
      service.variables,
    );
    expect([code, existsSync(marker)]).toEqual([0, true]);
    expect(output).not.toContain("ASSAY_KEY");
    expect(errors).toContain("PASSED");
    expect([await countRuns(job), await countKeys(job)]).toEqual([1, 1]);
    expect(service.requests).toHaveLength(1);
    expect(service.requests[0]).toMatchObject({
      method: "GET",
      path: `/token?api-version=2.0&audience=${encodeURIComponent(url)}`,
      headers: { authorization: `Bearer ${REQUEST_TOKEN}` },
    });
  });

  test("takes the token for ASSAY_PUBLIC_URL, where that is the server's public address", async () => {
    const job = await createJob("github");
    const service = createTokenService(giving(await issuer.github()));
    const variables = {
      ...service.variables,
      ASSAY_URL: url.replace("//", "//user:password@"),
      ASSAY_PUBLIC_URL: `${url}/`,
    };
    expect((await assay(job, ["upload", "report.xml", "--strict"], variables)).code).toBe(0);
    expect(service.requests[0]!.path).toEndWith(`audience=${encodeURIComponent(url)}`);
    const plain = { ...service.variables, ASSAY_URL: url.replace("//", "//user:password@") };
    service.play(giving(await issuer.github()));
    expect((await assay(job, ["upload", "report.xml", "--strict"], plain)).code).toBe(0);
    expect(service.requests[1]!.path).toEndWith(`audience=${encodeURIComponent(url)}`);
  });

  test("says why the server does not take the token, and fails no build for it", async () => {
    const job = await createJob(undefined);
    const token = await issuer.github();
    const service = createTokenService(giving(token));
    const { code, errors } = await assay(job, ["upload", "report.xml"], service.variables);
    expect([code, errors]).toEqual([
      0,
      `assay: Results were not uploaded: Cannot get a key for the id token of this job: There is no project "${job.project}", ` +
        `or no trust rule of it names the repository of this token: issuer "${issuer.url}", repository_id "700100", ` +
        `repository_owner_id "4711", event_name "push", ref "refs/heads/main"\n`,
    ]);
    expect((await assay(job, ["upload", "report.xml", "--strict"], service.variables)).code).toBe(1);
  });

  test("asks for another token in each try, and says that the CI system gives none", async () => {
    const job = await createJob("github");
    const token = await issuer.github();
    const service = createTokenService({ status: 503 }, giving(token));
    const { code } = await assay(job, ["upload", "report.xml", "--strict", "--patience", "1"], service.variables);
    expect([code, service.requests.length]).toEqual([0, 2]);
    service.play({ status: 403, body: "no" });
    const refused = await assay(job, ["upload", "report.xml", "--strict"], service.variables);
    expect([refused.code, refused.errors]).toEqual([
      1,
      "assay: Results were not uploaded: Cannot get an id token of the CI system: it answered 403\n",
    ]);
    service.play({ status: 200, body: { value: "" } });
    expect((await assay(job, ["upload", "report.xml", "--strict"], service.variables)).code).toBe(1);
  });

  test("uses a stored key where there is one, and without both says that it is missing", async () => {
    const job = await createJob("github");
    const service = createTokenService(giving(await issuer.github()));
    expect((await assay(job, ["upload", "report.xml"], { ...service.variables, ASSAY_KEY: job.key })).code).toBe(0);
    expect([service.requests.length, await countRuns(job)]).toEqual([0, 1]);
    const { code, errors } = await assay(job, ["upload", "report.xml"], { GITHUB_ACTIONS: "true" });
    expect([code, errors]).toEqual([
      0,
      "assay: Results were not uploaded: Set ASSAY_KEY (the pull request of a fork has no secrets)\n",
    ]);
  });
});

describe("assay in GitLab CI", () => {
  test("uploads with the token of the variable, which is good for one key", async () => {
    const job = await createJob("gitlab");
    const variables = { GITLAB_CI: "true", ASSAY_ID_TOKEN: await issuer.gitlab() };
    expect((await assay(job, ["upload", "report.xml", "--strict"], variables)).code).toBe(0);
    const second = await assay(job, ["upload", "report.xml", "--strict"], variables);
    expect([second.code, second.errors]).toEqual([1, expect.stringContaining(`used before (claim "jti")`)]);
    expect(second.errors).not.toContain(variables.ASSAY_ID_TOKEN);
    expect([await countRuns(job), await countKeys(job)]).toEqual([1, 1]);
  });

  test("splits with one key for all requests of the command", async () => {
    const job = await createJob("gitlab");
    for (const name of ["a.test.ts", "b.test.ts"]) writeFileSync(join(job.folder, name), "");
    const variables = { GITLAB_CI: "true", CI_PIPELINE_ID: "7", ASSAY_ID_TOKEN: await issuer.gitlab() };
    const args = ["split", "--shard", "1/1", "--task", "unit", "a.test.ts", "b.test.ts"];
    const { code, output } = await assay(job, args, variables);
    expect([code, output]).toEqual([0, "a.test.ts\nb.test.ts\n"]);
    expect(await countKeys(job)).toBe(1);
    const again = await assay(job, args, variables);
    expect([again.code, again.errors]).toEqual([1, expect.stringContaining("used before")]);
    const fallback = await assay(job, [...args, "--fallback"], variables);
    expect([fallback.code, fallback.output]).toEqual([0, "a.test.ts\nb.test.ts\n"]);
  });
});

test("an answer that is lost is asked for again by the same attempt", async () => {
  const key = "svc_proj_of-the-second-try";
  const service = createReceiver({ status: 502, body: "bad gateway" }, { status: 200, body: { key, more: 1 } });
  const source = readAddressSource({ ASSAY_URL: service.url, ASSAY_PROJECT: "p", ASSAY_ID_TOKEN: "t" });
  const sleep = async () => {};
  const secrets = createSecrets({});
  const address = await toServerAddress(source, { patience: { waitsMs: [1, 1], withinMs: 1_000, sleep }, secrets });
  expect(address).toEqual({ url: service.url, project: "p", key });
  // The secrets of another call do not contain this key.
  expect([secrets.mask(key), createSecrets({}).mask(key)]).toEqual(["***", key]);
  const [first, second] = service.requests;
  expect(first).toMatchObject({ method: "POST", path: "/auth/ci", body: { project: "p", token: "t" } });
  expect(second!.headers["idempotency-key"]).toBe(first!.headers["idempotency-key"]!);
  expect(first!.headers["idempotency-key"]).toHaveLength(36);
  service.play({ status: 200, body: { key: "with a blank" } });
  expect(toServerAddress(source, { patience: { waitsMs: [], withinMs: 0 }, secrets })).rejects.toThrow(
    "the server answered 200",
  );
});
