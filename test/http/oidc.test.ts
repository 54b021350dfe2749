/** Signing in at a real OpenID Connect provider, and what of its answers is not believed. */

import { describe, expect, spyOn, test } from "bun:test";
import { createAddressList } from "../../src/http/address.ts";
import { createOidc } from "../../src/http/oidc.ts";
import { createOutbound } from "../../src/http/outbound.ts";
import { createProvider, OIDC_CLIENT } from "../oidc.ts";
import { createReceiver } from "../receiver.ts";

const redirectUri = "http://assay.test/login/oidc/callback";
const people = { ada: { email: "Ada@acme.example", email_verified: true, name: "Ada" }, ghost: {} };
const nothing = createOutbound({ allow: createAddressList([]) });
const everything = createOutbound({ allow: createAddressList(["0.0.0.0/0", "::/0"]), timeoutMs: 3_000 });

const client = (issuer: string, more: object = {}) =>
  createOidc({ issuer, redirectUri, ...OIDC_CLIENT, outbound: nothing, issuerOutbound: everything, ...more });
const failure = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => "it did not fail",
    (error: Error) => `${error.name}: ${error.message}`,
  );

describe.each([
  { algorithm: "RS256", authentication: "client_secret_basic" },
  { algorithm: "ES256", authentication: "client_secret_post" },
])("with $algorithm and $authentication", ({ algorithm, authentication }) => {
  test("somebody signs in, and who he is comes back; the next one, too, after the provider has changed its keys", async () => {
    const provider = await createProvider({ people, redirectUri, algorithm, authentication });
    const oidc = client(provider.issuer);
    const signIn = async (name: string) => {
      const { url, flow } = await oidc.begin();
      return await oidc.finish(await provider.signIn(url, name), flow);
    };
    const ada = { issuer: provider.issuer, subject: "ada", email: "Ada@acme.example", isVerified: true, name: "Ada" };
    expect(await signIn("ada")).toEqual(ada);
    expect(await signIn("ghost")).toEqual({ ...ada, subject: "ghost", email: null, isVerified: false, name: null });
    const asked = (path: string) => provider.requests.filter((request) => request === path).length;
    expect(asked("GET /.well-known/openid-configuration")).toBe(1);
    expect(asked("GET /jwks")).toBe(1);
    await provider.rotateKeys();
    // Keys that came a moment ago are not asked for again.
    const later = Date.now() + 61_000;
    const now = spyOn(Date, "now").mockImplementation(() => later);
    try {
      expect(await signIn("ada")).toEqual(ada);
    } finally {
      now.mockRestore();
    }
    expect(asked("GET /jwks")).toBe(2);
  });
});

describe("a log-in", () => {
  test("asks with PKCE, state and nonce, each of them new, and shows no secret to the browser", async () => {
    const provider = await createProvider({ people, redirectUri });
    const oidc = client(provider.issuer);
    const [first, second] = [await oidc.begin(), await oidc.begin()];
    const { searchParams } = new URL(first.url);
    expect(Object.fromEntries(searchParams)).toEqual({
      response_type: "code",
      client_id: "assay",
      redirect_uri: redirectUri,
      scope: "openid email profile",
      state: first.flow.state,
      nonce: first.flow.nonce,
      code_challenge: Buffer.from(Bun.SHA256.hash(first.flow.verifier) as Uint8Array).toString("base64url"),
      code_challenge_method: "S256",
    });
    for (const secret of [first.flow.verifier, OIDC_CLIENT.clientSecret]) expect(first.url).not.toContain(secret);
    const parts = [...Object.values(first.flow), ...Object.values(second.flow)];
    expect(new Set(parts).size).toBe(6);
    for (const part of parts) expect(part).toMatch(/^[\w-]{43}$/);
  });

  test("of another browser is not taken over: neither its state, nor its verifier, nor its nonce fits", async () => {
    const provider = await createProvider({ people, redirectUri });
    const oidc = client(provider.issuer);
    const [mine, theirs] = [await oidc.begin(), await oidc.begin()];
    const answer = await provider.signIn(theirs.url, "ada");
    expect(await failure(oidc.finish(answer, mine.flow))).toBe(
      `OidcError: The provider's answer is not accepted: unexpected "state" response parameter value`,
    );
    const { state: _, ...stateless } = answer;
    expect(await failure(oidc.finish(stateless, mine.flow))).toContain('"state"');
    expect(await failure(oidc.finish(answer, { ...theirs.flow, verifier: mine.flow.verifier }))).toBe(
      "OidcError: The provider answered 400 (invalid_grant)",
    );
    const again = await oidc.begin();
    const other = await provider.signIn(again.url, "ada");
    expect(await failure(oidc.finish(other, { ...again.flow, nonce: mine.flow.nonce }))).toContain("nonce");
  });

  test("is used once, and a code or an issuer that somebody made up is refused", async () => {
    const provider = await createProvider({ people, redirectUri });
    const oidc = client(provider.issuer);
    const { url, flow } = await oidc.begin();
    const answer = await provider.signIn(url, "ada");
    expect(await failure(oidc.finish({ ...answer, code: "guessed" }, flow))).toContain("invalid_grant");
    expect(await failure(oidc.finish({ ...answer, iss: "http://evil.example" }, flow))).toContain('"iss"');
    const { iss: _, ...silent } = answer;
    expect(await failure(oidc.finish(silent, flow))).toContain('"iss"');
    expect(await failure(oidc.finish({ ...answer, error: "access_denied<script>" }, flow))).toBe(
      "OidcError: The provider refused (access_deniedscript)",
    );
    expect(await oidc.finish(answer, flow)).toMatchObject({ subject: "ada" });
    expect(await failure(oidc.finish(answer, flow))).toContain("invalid_grant");
  });

  test("with a wrong secret fails, and the secret is in no message", async () => {
    const provider = await createProvider({ people, redirectUri });
    const oidc = client(provider.issuer, { clientSecret: "not the secret" });
    const { url, flow } = await oidc.begin();
    const message = await failure(oidc.finish(await provider.signIn(url, "ada"), flow));
    expect(message).toContain("WWW-Authenticate HTTP Header (401)");
    expect(message).not.toContain("not the secret");
  });
});

describe("the provider", () => {
  test("may be private where the operator has named it, and names no private host itself", async () => {
    const provider = await createProvider({ people, redirectUri });
    expect(await failure(client(provider.issuer, { issuerOutbound: nothing }).begin())).toContain("private addresses");
    const inside = createReceiver({ status: 200, body: { keys: [] } });
    const outside = createReceiver({ status: 404 });
    const endpoints = { token_endpoint: `${inside.url}/token`, jwks_uri: `${inside.url}/keys` };
    const body = { issuer: outside.url, authorization_endpoint: `${outside.url}/auth`, ...endpoints };
    outside.play({ status: 200, body });
    const oidc = client(outside.url);
    const { flow } = await oidc.begin();
    expect(await failure(oidc.finish({ state: flow.state, code: "x" }, flow))).toContain("private addresses");
    expect(inside.requests).toEqual([]);
  });

  test.each<[what: string, answer: { status: number; body?: unknown }, message: string]>([
    ["away", { status: 503, body: "busy" }, "(503)"],
    ["a page", { status: 200, body: "<html>" }, "content-type"],
    ["a list", { status: 200, body: [] }, "top level object"],
    ["another one", { status: 200, body: { issuer: "https://evil.example" } }, "does not match the expected issuer"],
  ])("that is %s is told in the log's words, and asked again the next time", async (_, answer, message) => {
    const receiver = createReceiver();
    receiver.play(answer);
    const oidc = client(receiver.url);
    expect(await failure(oidc.begin())).toContain(message);
    await failure(oidc.begin());
    expect(receiver.requests.map(({ path }) => path)).toEqual(Array(2).fill("/.well-known/openid-configuration"));
  });

  test("may write itself with a slash at the end, or live below a path", async () => {
    const receiver = createReceiver();
    const endpoints = { token_endpoint: "http://x.example", jwks_uri: "http://x.example" };
    for (const [issuer, configured] of [
      ["/", ""],
      ["", "/"],
      ["/realms/a", "/realms/a"],
    ] as const) {
      const authorization_endpoint = `${receiver.url}/auth?tenant=1`;
      receiver.play({
        status: 200,
        body: { issuer: `${receiver.url}${issuer}`, authorization_endpoint, ...endpoints },
      });
      const { url } = await client(`${receiver.url}${configured}`).begin();
      expect(url).toStartWith(`${receiver.url}/auth?tenant=1&`);
    }
    expect(receiver.requests.at(-1)!.path).toBe("/realms/a/.well-known/openid-configuration");
  });
});
