/**
 * Signs in at an OpenID Connect provider that lies in each of its answers: only what is right is accepted, and nothing private is
 * asked. `bun test/lab/faults/hostile_provider.ts`, some seconds.
 */

import { exportJWK, generateKeyPair, type JWTPayload, SignJWT, UnsecuredJWT } from "jose";
import { createAddressList } from "../../../src/http/address.ts";
import { createOidc, type OidcFlow } from "../../../src/http/oidc.ts";
import { createOutbound } from "../../../src/http/outbound.ts";
import { judge } from "./servers.ts";

const SECRET = "0123456789abcdef0123456789abcdef";
const { privateKey, publicKey } = await generateKeyPair("RS256");
const strange = await generateKeyPair("RS256");
const jwk = { ...(await exportJWK(publicKey)), kid: "1", alg: "RS256", use: "sig" };

let asked = 0;
const inside = Bun.serve({
  ...{ port: 0, hostname: "127.0.0.2" },
  fetch() {
    asked++;
    return Response.json({ keys: [jwk] });
  },
});
const privateUrl = `http://127.0.0.2:${inside.port}/`;

type Attempt = {
  metadata?: object;
  /** Claims that differ from the right ones. */
  claims?: JWTPayload;
  sign?: (claims: JWTPayload) => Promise<string> | string;
  /** The answer of the token endpoint instead of a token. */
  token?: () => Response;
  userinfo?: object;
  /** The query with which the browser returns. */
  back?: (flow: OidcFlow) => Record<string, string>;
};

const signWith = (key: CryptoKey | Uint8Array, header: object) => (claims: JWTPayload) =>
  new SignJWT(claims).setProtectedHeader({ alg: "RS256", kid: "1", ...header }).sign(key);
const now = Math.floor(Date.now() / 1000);
const strangeJwk = await exportJWK(strange.publicKey);

const ATTEMPTS: Record<string, Attempt> = {
  "the nonce of another log-in": { claims: { nonce: "other" } },
  "no nonce": { claims: { nonce: undefined } },
  "another state": { back: () => ({ code: "c", state: "other" }) },
  "no state": { back: () => ({ code: "c" }) },
  "no code": { back: ({ state }) => ({ state }) },
  "the answer of another provider": { back: ({ state }) => ({ code: "c", state, iss: "https://evil.example" }) },
  "no issuer although it is promised": { metadata: { authorization_response_iss_parameter_supported: true } },
  "no signature": { sign: (claims) => new UnsecuredJWT(claims).encode() },
  "a signature with the client's secret": { sign: signWith(new TextEncoder().encode(SECRET), { alg: "HS256" }) },
  "a signature with the public key": {
    sign: signWith(new TextEncoder().encode(JSON.stringify(jwk)), { alg: "HS256" }),
  },
  "a signature with another key": { sign: signWith(strange.privateKey, {}) },
  "a key in the token": { sign: signWith(strange.privateKey, { jwk: strangeJwk }) },
  "a key at an address in the token": { sign: signWith(strange.privateKey, { jku: privateUrl }) },
  "another audience": { claims: { aud: "other" } },
  "an audience beside us that it is for": { claims: { aud: ["assay", "other"], azp: "other" } },
  "another issuer": { claims: { iss: "https://evil.example" } },
  "a token of yesterday": { claims: { exp: now - 86_400 } },
  "a token of tomorrow": { claims: { nbf: now + 86_400 } },
  "a subject that is no text": { claims: { sub: 7 as never } },
  "the address of somebody else": {
    claims: { email: undefined },
    userinfo: { sub: "victim", email: "victim@example.com", email_verified: true },
  },
  "no token": { token: () => Response.json({ access_token: "a", token_type: "Bearer" }) },
  "a redirect inside": { token: () => new Response(null, { status: 307, headers: { location: privateUrl } }) },
  "an endless answer": { token: () => new Response("x".repeat(50_000_000)) },
  "keys at a private host": { metadata: { jwks_uri: `${privateUrl}keys` } },
  "tokens at a private host": { metadata: { token_endpoint: privateUrl } },
  "a log-in page that is a script": { metadata: { authorization_endpoint: "javascript:alert(1)" } },
  "metadata of another issuer": { metadata: { issuer: "https://evil.example" } },
};

let attempt: Attempt = {};
let nonce = "";
async function answer(path: string): Promise<Response> {
  if (path === "/keys") return Response.json({ keys: [jwk] });
  if (path === "/me") return Response.json(attempt.userinfo ?? { sub: "u" });
  if (path === "/token") {
    if (attempt.token) return attempt.token();
    const right = { iss: issuer, sub: "u", aud: "assay", iat: now, exp: now + 600, nonce, email: "u@example.com" };
    const sign = attempt.sign ?? signWith(privateKey, {});
    const token = await sign({ ...right, ...attempt.claims });
    return Response.json({ access_token: "a", token_type: "Bearer", id_token: token });
  }
  return Response.json({
    ...{ issuer, authorization_endpoint: `${issuer}/auth`, token_endpoint: `${issuer}/token` },
    ...{ jwks_uri: `${issuer}/keys`, userinfo_endpoint: `${issuer}/me`, response_types_supported: ["code"] },
    ...{ subject_types_supported: ["public"], id_token_signing_alg_values_supported: ["RS256"] },
    ...attempt.metadata,
  });
}
const provider = Bun.serve({
  ...{ port: 0, hostname: "127.0.0.1" },
  fetch: (request) => answer(new URL(request.url).pathname),
});
const issuer = `http://127.0.0.1:${provider.port}`;

async function signIn(given: Attempt): Promise<string> {
  attempt = given;
  const oidc = createOidc({
    ...{ issuer, clientId: "assay", clientSecret: SECRET, redirectUri: "http://assay.example/back" },
    outbound: createOutbound({ allow: createAddressList([]) }),
    issuerOutbound: createOutbound({ allow: createAddressList(["127.0.0.1/32"]) }),
  });
  try {
    const { flow } = await oidc.begin();
    nonce = flow.nonce;
    const { subject } = await oidc.finish(given.back?.(flow) ?? { code: "c", state: flow.state }, flow);
    return `accepted as ${subject}`;
  } catch (error) {
    return (error as Error).message;
  }
}

const right = await signIn({});
const outcomes: [string, boolean, string][] = [];
for (const [what, given] of Object.entries(ATTEMPTS)) {
  const said = await signIn(given);
  outcomes.push([`${what} is refused`, !said.startsWith("accepted") && !said.includes(SECRET), said]);
}
judge(["what is right is accepted", right === "accepted as u", right], ...outcomes, [
  "nothing private was asked",
  asked === 0,
  `${asked} requests`,
]);
await Promise.all([provider.stop(true), inside.stop(true)]);
