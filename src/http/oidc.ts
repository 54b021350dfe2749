/** A client of one OpenID Connect provider: authorization code flow with PKCE, state and nonce. */

import { timingSafeEqual } from "node:crypto";
import { type Claims, IdTokenError, type Jwk, verifyIdToken } from "./id_token.ts";
import type { Outbound, OutboundAnswer } from "./outbound.ts";

/** The provider refused, is away, or has answered nonsense; `message` is for the log, nothing in it is secret. */
export class OidcError extends Error {
  override name = "OidcError";
}

export type OidcOptions = {
  /** As the provider calls itself. */
  issuer: string;
  clientId: string;
  clientSecret: string;
  /** Where the provider sends people back to. */
  redirectUri: string;
  /** For hosts that only the provider names. */
  outbound: Outbound;
  /** For the host of the issuer, which the operator has named and which may be private. */
  issuerOutbound: Outbound;
  clock?: () => number;
};

/** What the browser keeps until it comes back, sealed. */
export type OidcFlow = { state: string; nonce: string; verifier: string };

/** Who has signed in. The address counts only where the provider has verified it. */
export type OidcPerson = {
  issuer: string;
  subject: string;
  email: string | null;
  isVerified: boolean;
  name: string | null;
};

type Discovery = {
  issuer: string;
  authorizationEndpoint: string;
  tokenEndpoint: string;
  jwksUri: string;
  userinfoEndpoint: string | undefined;
  isBasic: boolean;
  saysIssuer: boolean;
};

const CACHED_MS = 60 * 60_000;
/** Keys that were fetched a moment ago are not fetched again for one that is not among them. */
const REFETCH_MS = 30_000;
const MAX_BYTES = 262_144;

const random = (): string => Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("base64url");
const withoutSlash = (url: string) => url.replace(/\/$/, "");

const isEqual = (one: string, other: string): boolean => {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
};

function fail(message: string): never {
  throw new OidcError(message);
}

function textOf(value: unknown, what: string): string {
  return typeof value === "string" && value !== "" ? value : fail(`The provider's answer has no ${what}`);
}

export function createOidc(options: OidcOptions) {
  const { clientId, clientSecret, redirectUri, clock = Date.now } = options;
  const issuerUrl = new URL(options.issuer);
  let discovery: { at: number; value: Promise<Discovery> } | undefined;
  let keys: { at: number; value: Promise<Jwk[]> } | undefined;

  /** A host that is not the issuer's is one that somebody else has named: it must be public, or in OUTBOUND_ALLOW. */
  async function ask(
    url: string,
    what: string,
    request: { headers?: Record<string, string>; body?: string } = {},
  ): Promise<Record<string, unknown>> {
    const target = URL.canParse(url) ? new URL(url) : fail(`The provider's ${what} has no address`);
    if (target.protocol !== issuerUrl.protocol)
      fail(`The provider's ${what} is not reached by ${issuerUrl.protocol}//`);
    const outbound = target.host === issuerUrl.host ? options.issuerOutbound : options.outbound;
    let answer: OutboundAnswer;
    try {
      answer = await outbound.request({
        method: request.body === undefined ? "GET" : "POST",
        url,
        headers: { Accept: "application/json", ...request.headers },
        ...(request.body === undefined ? {} : { body: request.body }),
        maxBytes: MAX_BYTES,
      });
    } catch (error) {
      return fail(`The provider's ${what} cannot be reached: ${(error as Error).message}`);
    }
    let value: unknown;
    try {
      value = JSON.parse(answer.text);
    } catch {
      value = undefined;
    }
    const given = typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
    if (answer.status !== 200) {
      // The code is a word of the standard; what is said beside it may quote what we have sent.
      const code = /^[\w.-]{1,60}$/.exec(String(given?.["error"] ?? ""))?.[0];
      return fail(`The provider's ${what} answered ${answer.status}${code === undefined ? "" : ` (${code})`}`);
    }
    return given ?? fail(`The provider's ${what} answered no JSON object`);
  }

  async function discover(): Promise<Discovery> {
    const found = await ask(`${withoutSlash(options.issuer)}/.well-known/openid-configuration`, "discovery");
    const issuer = textOf(found["issuer"], "issuer");
    // Some write themselves with a slash at the end, and operators without.
    if (withoutSlash(issuer) !== withoutSlash(options.issuer))
      fail("The provider calls itself otherwise than OIDC_ISSUER");
    const methods = found["token_endpoint_auth_methods_supported"];
    const userinfo = found["userinfo_endpoint"];
    return {
      issuer,
      authorizationEndpoint: textOf(found["authorization_endpoint"], "authorization_endpoint"),
      tokenEndpoint: textOf(found["token_endpoint"], "token_endpoint"),
      jwksUri: textOf(found["jwks_uri"], "jwks_uri"),
      userinfoEndpoint: typeof userinfo === "string" ? userinfo : undefined,
      isBasic: !Array.isArray(methods) || methods.includes("client_secret_basic"),
      saysIssuer: found["authorization_response_iss_parameter_supported"] === true,
    };
  }

  /** One question at a time for all who ask meanwhile; a failure is not remembered. */
  function getDiscovery(): Promise<Discovery> {
    if (discovery && clock() - discovery.at < CACHED_MS) return discovery.value;
    const fresh = { at: clock(), value: discover() };
    discovery = fresh;
    fresh.value.catch(() => {
      if (discovery === fresh) discovery = undefined;
    });
    return fresh.value;
  }

  function getKeys({ jwksUri }: Discovery, maxAgeMs: number): Promise<Jwk[]> {
    if (keys && clock() - keys.at < maxAgeMs) return keys.value;
    const fetched = ask(jwksUri, "keys").then((found) => {
      if (!Array.isArray(found["keys"])) return fail("The provider's keys are no list");
      return (found["keys"] as unknown[]).filter((key): key is Jwk => typeof key === "object" && key !== null);
    });
    const fresh = { at: clock(), value: fetched };
    keys = fresh;
    fresh.value.catch(() => {
      if (keys === fresh) keys = undefined;
    });
    return fresh.value;
  }

  async function verify(token: string, nonce: string, found: Discovery): Promise<Claims> {
    const expected = { issuer: found.issuer, clientId, nonce, now: clock() };
    try {
      return await verifyIdToken(token, await getKeys(found, CACHED_MS), expected);
    } catch (error) {
      if (!(error instanceof IdTokenError)) throw error;
      if (!error.isUnknownKey) fail(error.message);
    }
    // Providers change their keys without telling.
    return await verifyIdToken(token, await getKeys(found, REFETCH_MS), expected).catch((error: Error) =>
      error instanceof IdTokenError ? fail(error.message) : Promise.reject(error),
    );
  }

  async function redeem(code: string, verifier: string, found: Discovery) {
    const encode = (text: string) => new URLSearchParams({ text }).toString().slice("text=".length);
    const fields = { grant_type: "authorization_code", code, redirect_uri: redirectUri, code_verifier: verifier };
    const secret = found.isBasic ? {} : { client_id: clientId, client_secret: clientSecret };
    const basic = Buffer.from(`${encode(clientId)}:${encode(clientSecret)}`).toString("base64");
    return await ask(found.tokenEndpoint, "token endpoint", {
      headers: {
        "Content-Type": "application/x-www-form-urlencoded",
        ...(found.isBasic ? { Authorization: `Basic ${basic}` } : {}),
      },
      body: new URLSearchParams({ ...fields, ...secret }).toString(),
    });
  }

  /** What an ID token does not say of somebody is told by the endpoint that is there for it. */
  async function complete(claims: Claims, accessToken: unknown, found: Discovery): Promise<Record<string, unknown>> {
    if (claims["email"] !== undefined || found.userinfoEndpoint === undefined || typeof accessToken !== "string")
      return claims;
    const more = await ask(found.userinfoEndpoint, "userinfo", { headers: { Authorization: `Bearer ${accessToken}` } });
    if (more["sub"] !== claims.sub) fail("The provider's userinfo is of somebody else");
    return { ...more, ...claims };
  }

  return {
    /** Where the browser goes, and what it must show when it comes back. Throws OidcError. */
    async begin(): Promise<{ url: string; flow: OidcFlow }> {
      const { authorizationEndpoint } = await getDiscovery();
      const flow = { state: random(), nonce: random(), verifier: random() };
      const url = URL.canParse(authorizationEndpoint)
        ? new URL(authorizationEndpoint)
        : fail("The provider's authorization endpoint has no address");
      if (url.protocol !== "https:" && url.protocol !== issuerUrl.protocol)
        fail("The provider's authorization endpoint is not reached by https://");
      const challenge = new Bun.CryptoHasher("sha256").update(flow.verifier).digest("base64url");
      for (const [name, value] of Object.entries({
        response_type: "code",
        client_id: clientId,
        redirect_uri: redirectUri,
        scope: "openid email profile",
        state: flow.state,
        nonce: flow.nonce,
        code_challenge: challenge,
        code_challenge_method: "S256",
      }))
        url.searchParams.set(name, value);
      return { url: url.href, flow };
    },

    /** `answer` is the query with which the browser came back. Throws OidcError. */
    async finish(answer: Readonly<Record<string, string>>, flow: OidcFlow): Promise<OidcPerson> {
      if (!isEqual(answer["state"] ?? "", flow.state)) fail("The answer is for another log-in");
      const found = await getDiscovery();
      const said = answer["iss"];
      if (said === undefined ? found.saysIssuer : said !== found.issuer) fail("The answer is of another issuer");
      if (answer["error"] !== undefined)
        fail(`The provider refused (${answer["error"].replace(/[^\w.-]/g, "").slice(0, 60)})`);
      const tokens = await redeem(textOf(answer["code"], "code"), flow.verifier, found);
      const claims = await verify(textOf(tokens["id_token"], "id_token"), flow.nonce, found);
      const person = await complete(claims, tokens["access_token"], found);
      const { email, name } = person;
      return {
        issuer: found.issuer,
        subject: claims.sub,
        email: typeof email === "string" ? email : null,
        isVerified: person["email_verified"] === true,
        name: typeof name === "string" ? name : null,
      };
    },
  };
}

export type Oidc = ReturnType<typeof createOidc>;
