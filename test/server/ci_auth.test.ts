/** Keys for CI jobs: what tokens are exchanged for, and which are refused. */

import { beforeEach, describe, expect, test } from "bun:test";
import { exportSPKI } from "jose";
import { addTrustRule, removeTrustRule } from "../../src/operations/people/trust_rules.ts";
import { COMMAND_LINE } from "../../src/schema/audit.ts";
import { MAX_CI_KEYS, type NewTrustRule, toPublicKeys } from "../../src/schema/trust_rules.ts";
import { keyDigest } from "../../src/secrets/keys.ts";
import { selectKeys } from "../../src/store/keys.ts";
import { prune } from "../../src/work/prune.ts";
import { createCiIssuer, REPOSITORY } from "../ci_issuer.ts";
import { createAsking } from "../asking.ts";
import { createHarness, createServer, junit } from "../harness.ts";

const PUBLIC_URL = "https://assay.acme.example";
const options = { outboundAllow: ["127.0.0.1/32"], publicUrl: PUBLIC_URL };
const logged: string[] = [];
const { ask, url, acme, rival, database, addProject } = await createHarness({
  ...options,
  log: (line) => void logged.push(line),
});
const other = await createServer(database, options);

let project: string;
let ownKey: string;
let issuer: Awaited<ReturnType<typeof createCiIssuer>>;
beforeEach(async () => {
  ({ project, key: ownKey } = await addProject(acme));
  issuer = await createCiIssuer(PUBLIC_URL);
});

async function post(body: unknown, { server = url, headers = {} as Record<string, string> } = {}) {
  const sent = typeof body === "string" ? body : JSON.stringify(body);
  const response = await fetch(`${server}/auth/ci`, { method: "POST", body: sent, headers });
  const text = await response.text();
  return { status: response.status, text, body: JSON.parse(text), headers: response.headers };
}
const exchange = (token: string, to = project) => post({ project: to, token });
const upload = (key: string, to = project) =>
  ask(`POST /projects/${to}/test-runs?task_slug=unit`, { key, body: junit("p") });

const ruleOf = (kind: "github" | "gitlab", more: object): NewTrustRule => {
  const repository = { issuer: issuer.url, repositoryId: REPOSITORY.id, repository: REPOSITORY.name };
  return { kind, ...repository, events: [], refs: [], ...more } as NewTrustRule;
};
const githubRule = (more: object = {}) => ruleOf("github", { ownerId: REPOSITORY.owner, ...more });
const gitlabRule = (more: object = {}) => ruleOf("gitlab", more);
const trust = (rule: NewTrustRule, to = project) => database.begin((sql) => addTrustRule(sql, to, rule, COMMAND_LINE));

/** Refused with 401 in the shape of every error, without the token and without a key. */
/** The live and ended keys that tokens were exchanged for. */
const keysOf = () => database.pool`select from api_key where project_id = ${project} and trust_rule_id is not null`;
async function expectRefused(token: string, message: string, to = project) {
  const { status, body, text, headers } = await exchange(token, to);
  expect([status, body]).toEqual([401, { error: { code: "UNAUTHORIZED", message: expect.stringContaining(message) } }]);
  expect(headers.get("www-authenticate")).toBe("Bearer");
  for (const part of token.split(".").filter((part) => part.length > 20)) expect(text).not.toContain(part);
}

describe("a token of a trusted repository", () => {
  test.each(["github", "gitlab"] as const)("of %s makes a key that uploads for 15 minutes", async (kind) => {
    await trust(kind === "github" ? githubRule() : gitlabRule());
    const before = Date.now();
    const { status, body, headers } = await exchange(await issuer[kind]());
    expect([status, body]).toEqual([
      200,
      { key: expect.stringMatching(/^svc_proj_/), expiresAt: expect.any(String), projectId: project, scope: "upload" },
    ]);
    expect(headers.get("cache-control")).toBe("no-store");
    expect(headers.get("x-ratelimit-limit")).toBeTruthy();
    const minutes = (Date.parse(body.expiresAt) - before) / 60_000;
    expect(minutes).toBeGreaterThan(14.9);
    expect(minutes).toBeLessThan(16);
    expect((await upload(body.key)).status).toBe(201);
    // An upload key reads, and does nothing else, and nothing elsewhere.
    const { call } = createAsking(ask, { project, key: body.key });
    expect((await call("GET", "")).status).toBe(200);
    expect((await call("PATCH", "", { name: "x" })).status).toBe(401);
    expect((await call("POST", "/leases", { runner: "r", free: 1 })).status).toBe(401);
    expect((await upload(body.key, acme.project)).status).toBe(404);
    await database.pool`update api_key set expires_at = now() where trust_rule_id is not null`;
    expect((await upload(body.key)).status).toBe(401);
  });

  test("may be signed with ES256, and have several audiences and ids that are numbers", async () => {
    await trust(githubRule());
    await trust(gitlabRule());
    const es256 = { key: issuer.ec.privateKey, header: { alg: "ES256", kid: "ec" } };
    const audiences = await issuer.github({ aud: ["https://other.example", PUBLIC_URL] }, es256);
    expect((await exchange(audiences)).status).toBe(200);
    const ids = { project_id: Number(REPOSITORY.id), job_project_id: Number(REPOSITORY.id) };
    expect((await exchange(await issuer.gitlab(ids))).status).toBe(200);
  });

  test("makes a key that no list of keys shows, and that is in no log", async () => {
    await trust(githubRule());
    const { body } = await exchange(await issuer.github());
    expect((await ask(`GET /projects/${project}/keys`, { key: ownKey })).body.data).toEqual([]);
    const keys = await selectKeys(database.pool, acme.team);
    expect(keys.some(({ leading }) => body.key.startsWith(leading))).toBe(false);
    const [row] = await database.pool`
      select id, name, scope from api_key where digest = decode(${keyDigest(body.key)}, 'hex')`;
    expect(row).toMatchObject({ name: "CI of acme/shop", scope: "upload" });
    // It is revoked with its rule, and not as one that people have generated.
    expect((await ask(`DELETE /projects/${project}/keys/${row!["id"]}`, { key: ownKey })).status).toBe(404);
    expect(logged.join("\n")).not.toContain(body.key);
  });

  test("is accepted by the first rule that holds for its event and ref, and told which claim no rule accepts", async () => {
    await trust(githubRule({ events: ["push"], refs: ["refs/heads/main", "refs/heads/release/*"] }));
    expect((await exchange(await issuer.github({ ref: "refs/heads/release/1.2" }))).status).toBe(200);
    const rule = "The trust rule for acme/shop does not accept the token: its claim";
    await expectRefused(
      await issuer.github({ event_name: "pull_request", ref: "refs/pull/7/merge" }),
      `${rule} event_name "pull_request" is not one of push`,
    );
    const other = `its claim ref "refs/heads/main2" matches none of refs/heads/main, refs/heads/release/*`;
    await expectRefused(await issuer.github({ ref: "refs/heads/main2" }), other);
    await expectRefused(await issuer.github({ ref: undefined }), "its claim ref missing matches none of");
    await trust(githubRule({ events: ["pull_request"] }));
    expect((await exchange(await issuer.github({ event_name: "pull_request" }))).status).toBe(200);
    await trust(gitlabRule({ refs: ["refs/heads/main"] }));
    expect((await exchange(await issuer.gitlab())).status).toBe(200);
    // A tag that is called as the branch.
    await expectRefused(await issuer.gitlab({ ref_type: "tag", ref_path: "refs/tags/main" }), "ref_path");
  });
});

describe("a token is refused", () => {
  beforeEach(async () => {
    await trust(githubRule());
    await trust(gitlabRule());
  });

  test("of another repository, owner or fork, whatever its subject says", async () => {
    const sub = `repo:${REPOSITORY.name}:ref:refs/heads/main`;
    for (const claims of [{ repository_id: "9" }, { repository_owner_id: "9" }, { repository_id: undefined }])
      await expectRefused(
        await issuer.github({ ...claims, sub, repository: REPOSITORY.name }),
        `There is no project "${project}", or no trust rule`,
      );
    await expectRefused(
      await issuer.github({ repository_id: "9" }),
      `repository_id "9", repository_owner_id "4711", event_name "push", ref "refs/heads/main"`,
    );
    await expectRefused(
      await issuer.gitlab({ project_id: "9" }),
      `project_id "9", job_project_id "700100", pipeline_source "push", ref_path "refs/heads/main" (the merge request of a fork, which is not trusted)`,
    );
    await expectRefused(await issuer.gitlab({ job_project_id: "9" }), "the merge request of a fork");
    // As GitLab signed them before 18.3.
    await expectRefused(await issuer.gitlab({ job_project_id: undefined }), "job_project_id missing");
  });

  test("for another audience, before and after its time, and without an id or an end", async () => {
    const at = (seconds: number) => Math.floor(Date.now() / 1000) + seconds;
    for (const [claims, message] of [
      [{ aud: "https://other.example" }, `its claim "aud" is not "${PUBLIC_URL}"`],
      [{ aud: `${PUBLIC_URL}/` }, `its claim "aud" is not`],
      [{ aud: undefined }, `its claim "aud" is missing`],
      [{ nbf: at(120) }, "it is not valid yet"],
      [{ exp: undefined }, `its claim "exp" is missing`],
      [{ exp: at(90 * 86_400) }, `its claim "exp" is more than 31 days ahead`],
      [{ exp: "soon" }, `its claim "exp"`],
      [{ jti: undefined }, `its claim "jti" is missing`],
      ...["", 7, "x".repeat(501)].map((jti) => [{ jti }, `its claim "jti" is not a text of 1 to 500`] as const),
    ] as const)
      await expectRefused(await issuer.github(claims), message);
    await expectRefused(await issuer.github({}, { seconds: -120 }), "it has expired");
    // Clocks differ.
    expect((await exchange(await issuer.github({ nbf: at(30) }, { seconds: 300 }))).status).toBe(200);
    expect((await exchange(await issuer.github({}, { seconds: -30 }))).status).toBe(200);
  });

  test("without a signature, with a secret one, and with another's", async () => {
    const [, payload] = (await issuer.github()).split(".");
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
    for (const signature of ["", "x".repeat(342)]) {
      const unsigned = `${part({ alg: "none", typ: "JWT" })}.${payload}.${signature}`;
      await expectRefused(unsigned, "it is not signed with RS256 or ES256");
    }
    for (const secret of [await exportSPKI(issuer.rsa.publicKey), JSON.stringify(issuer.state.keys[0])]) {
      const key = new TextEncoder().encode(secret);
      const token = await issuer.github({}, { key, header: { alg: "HS256" } });
      await expectRefused(token, "it is not signed with RS256 or ES256");
    }
    const stranger = await createCiIssuer(PUBLIC_URL);
    await expectRefused(await issuer.github({}, { key: stranger.rsa.privateKey }), "its signature is wrong");
    await expectRefused(await stranger.github({ iss: issuer.url }), "its signature is wrong");
    const [head, , signature] = (await issuer.github()).split(".");
    await expectRefused(`${head}.${payload}.${signature}`, "its signature is wrong");
    // Keys that the token brings along are not used.
    const jwk = await issuer.toJwk(stranger.rsa.publicKey, {});
    for (const header of [{ jwk }, { jku: `${stranger.url}/jwks` }, { x5u: `${stranger.url}/jwks` }])
      await expectRefused(await issuer.github({}, { key: stranger.rsa.privateKey, header }), "its signature is wrong");
    expect(stranger.state.requests).toEqual([]);
  });

  test("of an issuer that is not trusted, or is not exactly the one that is, and nothing is asked of it", async () => {
    const stranger = await createCiIssuer(PUBLIC_URL);
    await expectRefused(await stranger.github(), `no trust rule of it names the issuer "${stranger.url}"`);
    for (const iss of [`${issuer.url}/`, issuer.url.toUpperCase(), `${issuer.url}/x`])
      await expectRefused(await issuer.github({ iss }), `names the issuer "${iss}"`);
    for (const iss of [undefined, "", 7, "x".repeat(501)])
      await expectRefused(await issuer.github({ iss }), `its claim "iss" is missing`);
    expect([...stranger.state.requests, ...issuer.state.requests]).toEqual([]);
  });

  test("that is none, or huge, and so is a body that is none", async () => {
    for (const token of ["x", "a.b.c", "..", `${"x.".repeat(6_000)}x`])
      await expectRefused(token, "it is not a signed JSON Web Token");
    const secret = "s3cr3t".repeat(4_000);
    for (const body of [
      ...[{ project, token: secret }, { project, token: "" }, { project }, { project: secret, token: "x" }],
      ...[{ project, token: "x", more: secret }, secret, `{"token":"${secret}`, { project, token: 7 }],
    ]) {
      const { status, body: answer, text } = await post(body);
      expect([status, answer.error.code]).toEqual([400, "VALIDATION_ERROR"]);
      expect(text).not.toContain("s3cr3ts3cr3t");
    }
    const large = await post({ project, token: "x".repeat(1_000_000) });
    expect([large.status, large.body.error.message]).toEqual([400, "Body too large: at most 32 KiB"]);
  });

  test("for a project that does not exist, and for one of others, in the same words", async () => {
    const token = await issuer.github();
    const nowhere = crypto.randomUUID();
    await trust(githubRule({ repositoryId: "8" }), rival.project);
    const messages = new Set<string>();
    for (const place of [nowhere, rival.project, acme.project]) {
      const { status, text } = await exchange(token, place);
      expect(status).toBe(401);
      messages.add(text.replaceAll(place, "ID"));
    }
    const strangers = await (await createCiIssuer(PUBLIC_URL)).github();
    for (const place of [nowhere, rival.project, acme.project])
      messages.add((await exchange(strangers, place)).text.replaceAll(place, "ID"));
    const forged = await issuer.github({}, { key: (await createCiIssuer(PUBLIC_URL)).rsa.privateKey });
    for (const place of [nowhere, rival.project, project])
      messages.add((await exchange(forged, place)).text.replaceAll(place, "ID"));
    expect(messages.size).toBe(3);
    // Nothing of that has used the token up.
    expect((await exchange(token)).status).toBe(200);
  });
});

describe("a token that is used again", () => {
  beforeEach(async () => void (await trust(githubRule())));

  test("makes no second key, at no server and for no project", async () => {
    const token = await issuer.github();
    const second = await addProject(acme);
    await trust(githubRule(), second.project);
    expect((await exchange(token)).status).toBe(200);
    await expectRefused(token, `used before (claim "jti")`);
    await expectRefused(token, `used before (claim "jti")`, second.project);
    expect((await post({ project, token }, { server: other.url })).status).toBe(401);
    expect((await exchange(await issuer.github())).status).toBe(200);
  });

  test("is used up for one project only where a rule has keys of its own: these sign whatever their owner likes", async () => {
    const token = await issuer.github({ jti: "of another project" });
    const stranger = await addProject(rival);
    const forger = await createCiIssuer(PUBLIC_URL);
    await trust(githubRule({ keys: toPublicKeys({ keys: forger.state.keys }) }), stranger.project);
    const forged = await issuer.github({ jti: "of another project" }, { key: forger.rsa.privateKey });
    expect((await exchange(forged, stranger.project)).status).toBe(200);
    await expectRefused(forged, `used before (claim "jti")`, stranger.project);
    expect((await exchange(token)).status).toBe(200);
  });

  test("by many at once on two servers makes exactly one key", async () => {
    const token = await issuer.github();
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) => post({ project, token }, { server: index % 2 ? url : other.url })),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 401)).toHaveLength(19);
    expect(await keysOf()).toHaveLength(1);
  });

  test("by the same attempt replaces the key, whose answer was lost", async () => {
    const token = await issuer.github();
    const attempt = (name: string) => post({ project, token }, { headers: { "idempotency-key": name } });
    const [first, second] = [await attempt("a"), await attempt("a")];
    expect([first.status, second.status]).toEqual([200, 200]);
    expect([(await upload(first.body.key)).status, (await upload(second.body.key)).status]).toEqual([401, 201]);
    for (const name of ["b", ""]) expect((await attempt(name)).status).toBe(401);
    expect((await attempt("x".repeat(256))).status).toBe(400);
  });

  test("is remembered until it has expired, and keys are swept after their end", async () => {
    const { body } = await exchange(await issuer.github());
    await prune(database.pool);
    const count = async () => [(await database.pool`select from used_ci_token`).length > 0, (await keysOf()).length];
    expect(await count()).toEqual([true, 1]);
    await database.pool`update used_ci_token set expires_at = now() - interval '2 hours'`;
    await database.pool`update api_key set expires_at = now() - interval '7 hours' where trust_rule_id is not null`;
    await prune(database.pool);
    expect(await count()).toEqual([false, 0]);
    expect((await upload(body.key)).status).toBe(401);
  });
});

describe("a trust rule that is removed", () => {
  test("ends its keys, those of requests on their way as well, and no other rule's", async () => {
    const id = await trust(githubRule());
    await trust(gitlabRule());
    const { key } = (await exchange(await issuer.github())).body;
    const kept = (await exchange(await issuer.gitlab())).body.key;
    expect((await upload(key)).status).toBe(201);
    const remove = () => database.begin((sql) => removeTrustRule(sql, project, id, COMMAND_LINE));
    const count = async () => (await database.pool`select from test_run where project_id = ${project}`).length;
    const uploads = Array.from({ length: 8 }, () => upload(key));
    const removing = remove().then(count);
    uploads.push(...Array.from({ length: 8 }, () => upload(key)));
    const stored = await removing;
    await Promise.all(uploads);
    // Nothing is stored after the commit of the removal.
    expect(await count()).toBe(stored);
    expect((await upload(key)).status).toBe(401);
    expect((await upload(kept)).status).toBe(201);
    await expectRefused(await issuer.github(), "There is no project");
  });

  test("meanwhile makes no key that outlives it", async () => {
    const send = (token: string, index: number) => post({ project, token }, { server: index % 2 ? url : other.url });
    for (let round = 0; round < 3; round++) {
      const id = await trust(githubRule());
      const tokens = await Promise.all(Array.from({ length: 6 }, () => issuer.github()));
      // Two have made their keys, and the others meet the removal.
      const before = await Promise.all(tokens.slice(0, 2).map(send));
      expect(before.map(({ status }) => status)).toEqual([200, 200]);
      const [after] = await Promise.all([
        Promise.all(tokens.slice(2).map(send)),
        database.begin((sql) => removeTrustRule(sql, project, id, COMMAND_LINE)),
      ]);
      for (const { status, body } of [...before, ...after]) {
        expect([200, 401]).toContain(status);
        if (status === 200) expect((await upload(body.key)).status).toBe(401);
      }
    }
    const live = await database.pool`
      select from api_key where project_id = ${project} and trust_rule_id is not null and revoked_at is null`;
    expect(live).toHaveLength(0);
  });
});

describe("the number of requests and keys", () => {
  test("is limited by the address of the client, whatever the token", async () => {
    const limited = await createServer(database, { ...options, rateLimitPerMinute: 3, trustProxy: ["127.0.0.1/32"] });
    const from = (address: string) =>
      post({ project, token: "x" }, { server: limited.url, headers: { "x-forwarded-for": address } });
    expect(await Promise.all([1, 2, 3].map(async () => (await from("192.0.2.1")).status))).toEqual([401, 401, 401]);
    const { status, body, headers } = await from("192.0.2.1");
    expect([status, body.error.code, headers.get("retry-after") !== null]).toEqual([429, "RATE_LIMITED", true]);
    // A request to the API without a key counts with them.
    const forwarded = { "x-forwarded-for": "192.0.2.1" };
    const keyless = await fetch(`${limited.url}/api/v1/projects/${project}`, { headers: forwarded });
    expect(keyless.status).toBe(429);
    expect((await from("192.0.2.2")).status).toBe(401);
  });

  test("of live keys in a project is bounded, and a refused token can be used later", async () => {
    await trust(githubRule());
    await database.pool`
      insert into api_key (team_id, id, project_id, name, leading_part, digest, scope, trust_rule_id, expires_at)
      select ${acme.team}, gen_random_uuid(), ${project}, 'CI', 'svc_proj_x', uuid_send(gen_random_uuid()), 'upload',
        gen_random_uuid(), now() + interval '1 minute'
      from generate_series(1, ${MAX_CI_KEYS})`;
    const token = await issuer.github();
    const { status, body, headers } = await exchange(token);
    const message = `This project has ${MAX_CI_KEYS} live keys of CI jobs, which is the limit: they end within minutes`;
    expect([status, headers.get("retry-after")]).toEqual([429, "60"]);
    expect(body.error).toEqual({ code: "RATE_LIMITED", message });
    await database.pool`update api_key set expires_at = now() where project_id = ${project} and name = 'CI'`;
    expect((await exchange(token)).status).toBe(200);
  });
});

test("only a POST to exactly this path is answered", async () => {
  for (const method of ["GET", "PUT", "DELETE", "OPTIONS"]) {
    const response = await fetch(`${url}/auth/ci`, { method });
    expect([method, response.status, response.headers.get("allow")]).toEqual([method, 404, "POST"]);
  }
  for (const path of ["/auth/ci/", "/auth", "/api/v1/auth/ci"]) {
    const response = await fetch(`${url}${path}`, { method: "POST" });
    expect([path, [401, 404].includes(response.status)]).toEqual([path, true]);
  }
});
