/** ID tokens, each wrong in one way, from a provider that signs whatever it is told to. */

import { expect, test } from "bun:test";
import { createAddressList } from "../../src/http/address.ts";
import { createOidc } from "../../src/http/oidc.ts";
import { createOutbound } from "../../src/http/outbound.ts";

const RSA = {
  name: "RSASSA-PKCS1-v1_5",
  modulusLength: 2048,
  publicExponent: new Uint8Array([1, 0, 1]),
  hash: "SHA-256",
};
const anywhere = createOutbound({ allow: createAddressList(["0.0.0.0/0", "::/0"]) });
const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");

async function createKey(kid: string) {
  const pair = await crypto.subtle.generateKey(RSA, true, ["sign", "verify"]);
  const { key_ops: _, ...jwk } = await crypto.subtle.exportKey("jwk", pair.publicKey);
  const sign = async (claims: object, header: object = {}) => {
    const text = `${part({ alg: "RS256", kid, ...header })}.${part(claims)}`;
    const signature = await crypto.subtle.sign(RSA.name, pair.privateKey, Buffer.from(text));
    return `${text}.${Buffer.from(signature).toString("base64url")}`;
  };
  return { jwk: { ...jwk, kid, alg: "RS256", use: "sig" } as Record<string, unknown>, sign };
}
const own = await createKey("own");
const other = await createKey("own");
const unknown = await createKey("unknown");

type Making = { claims: Record<string, unknown>; key: typeof own };
/** Signs in with the token that `make` has made, and answers who that is, or why it is nobody. */
async function signIn(make: (making: Making) => string | Promise<string>, keys = [own.jwk]): Promise<string> {
  let token = "";
  const server = Bun.serve({
    ...{ port: 0, hostname: "127.0.0.1", development: false },
    fetch(request): Response {
      const { pathname } = new URL(request.url);
      if (pathname === "/keys") return Response.json({ keys });
      if (pathname === "/token") return Response.json({ access_token: "a", token_type: "Bearer", id_token: token });
      return Response.json({
        issuer,
        authorization_endpoint: `${issuer}/auth`,
        token_endpoint: `${issuer}/token`,
        jwks_uri: `${issuer}/keys`,
        id_token_signing_alg_values_supported: ["RS256", "ES256", "HS256", "none"],
      });
    },
  });
  const issuer = `http://127.0.0.1:${server.port}`;
  const oidc = createOidc({
    ...{ issuer, clientId: "assay", clientSecret: "secret", redirectUri: "http://assay.test/back" },
    ...{ outbound: anywhere, issuerOutbound: anywhere },
  });
  const { flow } = await oidc.begin();
  const seconds = Math.floor(Date.now() / 1000);
  const { nonce, state } = flow;
  const claims = {
    ...{ iss: issuer, aud: "assay", exp: seconds + 60, iat: seconds },
    ...{ nonce, sub: "ada", email: "a@x.example" },
  };
  token = await make({ claims, key: own });
  try {
    return (await oidc.finish({ code: "c", state }, flow)).subject;
  } catch (error) {
    return `${(error as Error).name}: ${(error as Error).message}`;
  } finally {
    await server.stop(true);
  }
}
const REFUSED = /^OidcError: The provider's answer is not accepted/;

test("one that is signed by the provider, for us and now, is believed", async () => {
  expect(await signIn(({ claims, key }) => key.sign(claims))).toBe("ada");
  expect(await signIn(({ claims, key }) => key.sign({ ...claims, aud: ["other", "assay"], azp: "assay" }))).toBe("ada");
});

const ago = (seconds: number) => Math.floor(Date.now() / 1000) - seconds;
test.each<[string, () => object]>([
  ["another issuer", () => ({ iss: "https://id.example" })],
  ["another client", () => ({ aud: "other" })],
  ["no client", () => ({ aud: undefined })],
  ["several clients, and given to another one", () => ({ aud: ["other", "assay"], azp: "other" })],
  ["the past", () => ({ exp: ago(120) })],
  ["no end", () => ({ exp: undefined })],
  ["the future", () => ({ nbf: ago(-120) })],
  ["another log-in", () => ({ nonce: "another" })],
  ["no log-in", () => ({ nonce: undefined })],
  ["nobody", () => ({ sub: undefined })],
])("one of %s is refused", async (_, change) => {
  expect(await signIn(({ claims, key }) => key.sign({ ...claims, ...change() }))).toMatch(REFUSED);
});

/** A token that is signed with a text that both sides may know. */
function signWith(secret: string, header: object, claims: object): string {
  const text = `${part({ alg: "HS256", ...header })}.${part(claims)}`;
  return `${text}.${new Bun.CryptoHasher("sha256", secret).update(text).digest("base64url")}`;
}

test("one that the provider has not signed is refused, however it is made to look so", async () => {
  const made: [string, Parameters<typeof signIn>[0]][] = [
    ["another key of the same name", ({ claims }) => other.sign(claims)],
    ["a key that is not the provider's", ({ claims }) => unknown.sign(claims)],
    ["a key that it names itself", ({ claims }) => unknown.sign(claims, { kid: "own", jwk: unknown.jwk })],
    ["no signature", ({ claims }) => `${part({ alg: "none" })}.${part(claims)}.`],
    [
      "other claims",
      async ({ claims, key }) => {
        const [head, , signature] = (await key.sign(claims)).split(".");
        return `${head}.${part({ ...claims, sub: "eve" })}.${signature}`;
      },
    ],
    ["the public key as a secret", ({ claims }) => signWith(JSON.stringify(own.jwk), { kid: "own" }, claims)],
    ["the client's secret", ({ claims }) => signWith("secret", {}, claims)],
    ["an algorithm that is none", ({ claims, key }) => key.sign(claims, { alg: "toString" })],
    ["an extension", ({ claims, key }) => key.sign(claims, { crit: ["b64"], b64: false })],
  ];
  for (const [what, make] of made) expect([what, await signIn(make)]).toEqual([what, expect.stringMatching(REFUSED)]);
  expect(await signIn(({ claims, key }) => key.sign(claims), [{ ...own.jwk, use: "enc" }])).toMatch(REFUSED);
});

test.each(["", "a", "a.b", "a.b.c", "..", "e30.e30.e30.e30", "W10.e30.x", `${"x".repeat(40_000)}.e30.x`])(
  "%p is no ID token",
  async (text) => expect(await signIn(() => text.slice(0, 40_000))).toMatch(REFUSED),
);
