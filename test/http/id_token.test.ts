/** ID tokens, each wrong in one way. */

import { describe, expect, test } from "bun:test";
import { type Jwk, verifyIdToken } from "../../src/http/id_token.ts";

const RSA = {
  name: "RSASSA-PKCS1-v1_5",
  modulusLength: 2048,
  publicExponent: new Uint8Array([1, 0, 1]),
  hash: "SHA-256",
};
const EC = { name: "ECDSA", namedCurve: "P-256" };
const now = Date.UTC(2026, 0, 1);
const seconds = now / 1000;
const expected = { issuer: "https://id.example", clientId: "assay", nonce: "n", now };
const CLAIMS = { iss: "https://id.example", aud: "assay", exp: seconds + 60, iat: seconds, nonce: "n", sub: "ada" };

async function createKey(alg: "RS256" | "ES256", kid: string) {
  const pair = await crypto.subtle.generateKey(alg === "ES256" ? EC : RSA, true, ["sign", "verify"]);
  const jwk = { ...(await crypto.subtle.exportKey("jwk", pair.publicKey)), kid, alg, use: "sig" } as unknown as Jwk;
  const signing = alg === "ES256" ? { name: "ECDSA", hash: "SHA-256" } : { name: "RSASSA-PKCS1-v1_5" };
  const sign = async (claims: object, header: object = {}) => {
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
    const text = `${part({ alg, kid, ...header })}.${part(claims)}`;
    const signature = await crypto.subtle.sign(signing, pair.privateKey, Buffer.from(text));
    return `${text}.${Buffer.from(signature).toString("base64url")}`;
  };
  return { jwk, sign };
}
const rsa = await createKey("RS256", "r");
const ec = await createKey("ES256", "e");
const keys = [rsa.jwk, ec.jwk];
const message = (work: Promise<unknown>) =>
  work.then(
    () => "it is believed",
    (error: Error) => error.message,
  );

test("one that is signed by either key, for us and now, is believed", async () => {
  for (const { sign } of [rsa, ec]) expect(await verifyIdToken(await sign(CLAIMS), keys, expected)).toEqual(CLAIMS);
  expect(await verifyIdToken(await rsa.sign({ ...CLAIMS, aud: ["assay"] }), keys, expected)).toMatchObject({
    sub: "ada",
  });
  const several = { ...CLAIMS, aud: ["other", "assay"], azp: "assay" };
  expect(await verifyIdToken(await rsa.sign(several), keys, expected)).toMatchObject({ sub: "ada" });
  expect(await verifyIdToken(await rsa.sign(CLAIMS, { kid: undefined }), [rsa.jwk], expected)).toMatchObject({
    sub: "ada",
  });
});

test.each<[claims: object, message: string]>([
  [{ iss: "https://id.example/" }, "of another issuer"],
  [{ aud: "other" }, "for another client"],
  [{ aud: [] }, "for another client"],
  [{ aud: undefined }, "for another client"],
  [{ aud: ["other", "assay"] }, "given to another client"],
  [{ azp: "other" }, "given to another client"],
  [{ exp: seconds - 61 }, "has expired"],
  [{ exp: undefined }, "has expired"],
  [{ exp: "9999999999" }, "has expired"],
  [{ iat: seconds + 61 }, "from the future"],
  [{ iat: undefined }, "from the future"],
  [{ nbf: seconds + 61 }, "from the future"],
  [{ nonce: "m" }, "for another log-in"],
  [{ nonce: undefined }, "for another log-in"],
  [{ sub: "" }, "names nobody"],
  [{ sub: 1 }, "names nobody"],
  [{ sub: "x".repeat(256) }, "names nobody"],
])("claims with %p are refused: %s", async (claims, words) => {
  expect(await message(verifyIdToken(await rsa.sign({ ...CLAIMS, ...claims }), keys, expected))).toContain(words);
});

describe("a signature", () => {
  test("of another key with the same name, or over something else, is none", async () => {
    const other = await createKey("RS256", "r");
    expect(await message(verifyIdToken(await other.sign(CLAIMS), keys, expected))).toContain(
      "not signed by the provider",
    );
    const [head, , signature] = (await rsa.sign(CLAIMS)).split(".");
    const body = Buffer.from(JSON.stringify({ ...CLAIMS, sub: "eve" })).toString("base64url");
    expect(await message(verifyIdToken(`${head}.${body}.${signature}`, keys, expected))).toContain("not signed");
    expect(await message(verifyIdToken(`${head}.${body}.`, keys, expected))).toContain("not signed");
  });

  test("is neither left out nor made with what everybody knows", async () => {
    const [head, body] = (await rsa.sign(CLAIMS, { alg: "none" })).split(".");
    expect(await message(verifyIdToken(`${head}.${body}.`, keys, expected))).toContain("signed with none");
    const secret = JSON.stringify(rsa.jwk);
    const text = `${Buffer.from(JSON.stringify({ alg: "HS256", kid: "r" })).toString("base64url")}.${body}`;
    const mac = new Bun.CryptoHasher("sha256", secret).update(text).digest("base64url");
    expect(await message(verifyIdToken(`${text}.${mac}`, keys, expected))).toContain("signed with HS256");
    expect(await message(verifyIdToken(await rsa.sign(CLAIMS, { alg: "ES256" }), keys, expected))).toContain(
      "unknown key",
    );
    expect(await message(verifyIdToken(await rsa.sign(CLAIMS, { alg: "toString" }), keys, expected))).toContain(
      "toString",
    );
  });

  test("of a key that is not there may be of a new one; one that is not for signing is not used", async () => {
    const signed = await rsa.sign(CLAIMS, { kid: "new" });
    const error = await verifyIdToken(signed, keys, expected).catch((error) => error);
    expect(error.isUnknownKey).toBe(true);
    const encrypting = [{ ...rsa.jwk, use: "enc" }];
    expect(await message(verifyIdToken(await rsa.sign(CLAIMS), encrypting, expected))).toContain("unknown key");
    const second = await createKey("RS256", "s");
    const nameless = await rsa.sign(CLAIMS, { kid: undefined });
    expect(await message(verifyIdToken(nameless, [rsa.jwk, second.jwk], expected))).toContain("which key");
  });

  test("demands nothing that we do not know, and a damaged key is told", async () => {
    expect(await message(verifyIdToken(await rsa.sign(CLAIMS, { crit: ["b64"] }), keys, expected))).toContain(
      "extension",
    );
    const damaged = [{ ...rsa.jwk, n: undefined }];
    expect(await message(verifyIdToken(await rsa.sign(CLAIMS), damaged, expected))).toContain("cannot be read");
  });
});

test.each(["", "a", "a.b", "a.b.c", "..", "e30.e30.e30.e30", "W10.e30.x", "e30.e30.é", `${"x".repeat(40_000)}.e30.x`])(
  "%p is no ID token",
  async (text) => expect(await message(verifyIdToken(text.slice(0, 40_000), keys, expected))).toContain("ID token"),
);
