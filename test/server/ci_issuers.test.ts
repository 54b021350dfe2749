/** Issuers of the tokens of CI jobs: where their keys come from, and what is not believed of them. */

import { beforeEach, describe, expect, test } from "bun:test";
import { generateKeyPair } from "jose";
import { createIssuerKeys } from "../../src/http/issuer_keys.ts";
import { addTrustRule } from "../../src/operations/people/trust_rules.ts";
import { COMMAND_LINE } from "../../src/schema/audit.ts";
import { toPublicKeys } from "../../src/schema/trust_rules.ts";
import { createCiIssuer, REPOSITORY } from "../ci_issuer.ts";
import { createHarness, createServer } from "../harness.ts";
import { outboundToReceivers } from "../receiver.ts";

const PUBLIC_URL = "https://assay.acme.example";
const { acme, database, addProject } = await createHarness();
const METADATA = "/.well-known/openid-configuration";

let project: string;
let issuer: Awaited<ReturnType<typeof createCiIssuer>>;
let server: Awaited<ReturnType<typeof createServer>>;
beforeEach(async () => {
  ({ project } = await addProject(acme));
  issuer = await createCiIssuer(PUBLIC_URL);
  server = await createServer(database, { outboundAllow: ["127.0.0.1/32"], publicUrl: PUBLIC_URL });
});

async function exchange(token: string, { to = project, at = server.url } = {}) {
  const response = await fetch(`${at}/auth/ci`, { method: "POST", body: JSON.stringify({ project: to, token }) });
  const body = (await response.json()) as { error?: { message: string } };
  return { status: response.status, message: body.error?.message, headers: response.headers };
}
const trust = (more: object = {}, to = project) => {
  const rule = { kind: "github", issuer: issuer.url, repositoryId: REPOSITORY.id, ownerId: REPOSITORY.owner } as const;
  return database.begin((sql) => addTrustRule(sql, to, { ...rule, events: [], refs: [], ...more }, COMMAND_LINE));
};
const asked = (path: string) => issuer.state.requests.filter((request) => request === path).length;

describe("keys that the issuer publishes", () => {
  beforeEach(async () => void (await trust()));

  test("are read once for many tokens, and again for a token with an unknown key, but not for every one", async () => {
    const tokens = await Promise.all(Array.from({ length: 8 }, () => issuer.github()));
    const answers = await Promise.all(tokens.map((token) => exchange(token)));
    expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(200));
    expect([asked(METADATA), asked("/jwks")]).toEqual([1, 1]);
    const unknown = await issuer.github({}, { header: { kid: "new" } });
    const refused = await Promise.all([exchange(unknown), exchange(unknown), exchange(unknown)]);
    const message = expect.stringContaining(`no key with the "kid" and "alg" of its header`);
    for (const answer of refused) expect(answer).toMatchObject({ status: 401, message });
    expect(asked("/jwks")).toBe(1);
  });

  test("are refused if they are short, secret, private or of another use", async () => {
    const { privateKey, publicKey } = await generateKeyPair("RS256", { modulusLength: 2048, extractable: true });
    const short = await crypto.subtle.generateKey(
      { name: "RSASSA-PKCS1-v1_5", modulusLength: 1024, publicExponent: new Uint8Array([1, 0, 1]), hash: "SHA-256" },
      true,
      ["sign", "verify"],
    );
    const { toJwk, state } = issuer;
    const secret = Buffer.from("a secret of 32 bytes, all of them").toString("base64url");
    state.keys = [
      await toJwk(privateKey, { kid: "private", alg: "RS256" }),
      { kty: "oct", k: secret, kid: "secret", alg: "HS256" },
      await toJwk(short.publicKey, { kid: "short", alg: "RS256" }),
      await toJwk(publicKey, { kid: "encryption", use: "enc" }),
      await toJwk(publicKey, { kid: "other", alg: "RS512" }),
      { kty: "RSA", kid: "broken", n: "!", e: 7 },
      { kty: "EC", kid: "curve", crv: "P-521", x: "AA", y: "AA" },
      ...([null, 7, "x", [], {}, { kty: "OKP", crv: "Ed25519", x: "AA" }] as never[]),
      await toJwk(publicKey, { kid: "good", alg: "RS256" }),
    ];
    for (const kid of ["private", "secret", "encryption", "other", "broken", "curve", "nowhere"]) {
      const { status, message } = await exchange(await issuer.github({}, { key: privateKey, header: { kid } }));
      const refused = /no key with the "kid"|cannot be verified with the key of its issuer/;
      expect([kid, status, message]).toEqual([kid, 401, expect.stringMatching(refused)]);
    }
    const head = Buffer.from(JSON.stringify({ alg: "RS256", kid: "short" })).toString("base64url");
    const body = (await issuer.github()).split(".")[1]!;
    const signature = await crypto.subtle.sign("RSASSA-PKCS1-v1_5", short.privateKey, Buffer.from(`${head}.${body}`));
    const weak = await exchange(`${head}.${body}.${Buffer.from(signature).toString("base64url")}`);
    const unverified = "The token is not accepted: it cannot be verified with the key of its issuer";
    expect([weak.status, weak.message]).toEqual([401, unverified]);
    expect((await exchange(await issuer.github({}, { key: privateKey, header: { kid: "good" } }))).status).toBe(200);
  });

  test("that cannot be read are an error that may pass, and say why", async () => {
    const json = (value: unknown) => (path: string) => (path === METADATA ? Response.json(value) : undefined);
    const { url } = issuer;
    const hidden = "requests do not go to private addresses";
    const cases: [(path: string) => Response | undefined, string][] = [
      [() => new Response("", { status: 503 }), "it answered 503"],
      [() => Response.redirect(`${url}/jwks`), "it answered 302"],
      [() => new Response("<html>"), "its answer is not JSON"],
      [() => new Response(`"${"x".repeat(300_000)}"`), "its answer is not JSON"],
      [json({ issuer: `${url}/`, jwks_uri: `${url}/jwks` }), `it calls itself "${url}/"`],
      [json({ issuer: url }), `its configuration has no "jwks_uri"`],
      [json(null), "it calls itself"],
      [json({ issuer: url, jwks_uri: "file:///etc/passwd" }), `its "jwks_uri" is not reached by http://`],
      [json({ issuer: url, jwks_uri: "http://169.254.169.254/latest/meta-data" }), hidden],
      [json({ issuer: url, jwks_uri: "http://[::ffff:169.254.169.254]/" }), hidden],
    ];
    for (const [answering, reason] of cases) {
      issuer.state.answering = answering;
      const fresh = await createServer(database, { outboundAllow: ["127.0.0.1/32"], publicUrl: PUBLIC_URL });
      const { status, message, headers } = await exchange(await issuer.github(), { at: fresh.url });
      expect([status, headers.get("retry-after")]).toEqual([500, "10"]);
      expect(message).toContain("Cannot read the keys of the token's issuer: ");
      expect(message).toContain(reason);
    }
    issuer.state.answering = "keys";
    expect((await exchange(await issuer.github())).status).toBe(200);
  });

  test("of an issuer in a private network are not asked for unless OUTBOUND_ALLOW names it", async () => {
    const strict = await createServer(database, { publicUrl: PUBLIC_URL });
    const { status, message } = await exchange(await issuer.github(), { at: strict.url });
    expect([status, message]).toEqual([500, expect.stringContaining("requests do not go to private addresses")]);
    expect(issuer.state.requests).toEqual([]);
  });
});

describe("the memory of issuers", () => {
  test("reads keys again after an hour, after a minute for an unknown key, and keeps them while that fails", async () => {
    let now = 0;
    const keys = createIssuerKeys({ outbound: outboundToReceivers(), monotonic: () => now });
    const first = await keys.read(issuer.url);
    expect(toPublicKeys(first)).toHaveLength(2);
    expect(await keys.readNewer(issuer.url, first)).toBeUndefined();
    now += 60_000;
    issuer.state.answering = () => new Response("", { status: 500 });
    await expect(keys.readNewer(issuer.url, first)).rejects.toThrow("it answered 500");
    expect(await keys.read(issuer.url)).toBe(first);
    now += 60_000;
    issuer.state.answering = "keys";
    issuer.state.keys = [];
    const both = await Promise.all([keys.readNewer(issuer.url, first), keys.readNewer(issuer.url, first)]);
    expect(both).toEqual([{ keys: [] }, { keys: [] }]);
    // Who comes with the old ones gets the new ones, without another request.
    const requests = asked("/jwks");
    expect(await keys.readNewer(issuer.url, first)).toEqual({ keys: [] });
    expect(asked("/jwks")).toBe(requests);
    now += 60 * 60_000;
    await keys.read(issuer.url);
    expect(asked("/jwks")).toBe(requests + 1);
  });

  test("remembers for ten seconds that an issuer does not answer", async () => {
    let now = 0;
    const keys = createIssuerKeys({ outbound: outboundToReceivers(), monotonic: () => now });
    issuer.state.answering = "hang";
    const failing = [keys.read(issuer.url), keys.read(issuer.url)].map((read) => read.catch(({ message }) => message));
    expect(await Promise.all(failing)).toEqual(["No answer within 0.3 s", "No answer within 0.3 s"]);
    expect(asked(METADATA)).toBe(1);
    issuer.state.answering = "keys";
    await expect(keys.read(issuer.url)).rejects.toThrow("No answer within 0.3 s");
    now += 10_000;
    expect(toPublicKeys(await keys.read(issuer.url))).toHaveLength(2);
  });
});

describe("keys that a rule holds", () => {
  test("verify tokens without any request, and other keys of the issuer do not", async () => {
    await trust({ keys: toPublicKeys({ keys: issuer.state.keys }) });
    expect((await exchange(await issuer.github())).status).toBe(200);
    expect(issuer.state.requests).toEqual([]);
    const stranger = await createCiIssuer(PUBLIC_URL);
    const forged = await exchange(await stranger.github({ iss: issuer.url }));
    expect(forged.status).toBe(401);
    expect(forged.message).toContain(`There is no project "${project}", or no trust rule`);
    const nowhere = crypto.randomUUID();
    const elsewhere = await exchange(await issuer.github(), { to: nowhere });
    expect(elsewhere.message).toBe(forged.message!.replace(project, nowhere));
  });

  test("of one project verify nothing for another one, and need no issuer that another one asks", async () => {
    const stranger = await createCiIssuer(PUBLIC_URL);
    const pinned = await addProject(acme);
    await trust();
    await trust({ keys: toPublicKeys({ keys: stranger.state.keys }) }, pinned.project);
    const own = await stranger.github({ iss: issuer.url });
    expect((await exchange(own)).message).toBe("The token is not accepted: its signature is wrong");
    issuer.state.answering = () => new Response("", { status: 500 });
    expect((await exchange(own, { to: pinned.project })).status).toBe(200);
  });
});
