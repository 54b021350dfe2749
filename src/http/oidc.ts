/** A client of one OpenID Connect provider: the protocol is openid-client's, and where requests may go is decided here. */

import * as openid from "openid-client";
import type { Outbound, OutboundAnswer } from "./outbound.ts";

/** The provider refused, is unavailable, or sent an invalid answer; `message` is for the log and contains no secrets. */
export class OidcError extends Error {
  override name = "OidcError";
}

type OidcOptions = {
  /** As the provider calls itself. */
  issuer: string;
  clientId: string;
  clientSecret: string;
  /** The address that the provider sends people back to. */
  redirectUri: string;
  /** For hosts that only the provider names. */
  outbound: Outbound;
  /** For the host of the issuer, which the operator has named and which may be private. */
  issuerOutbound: Outbound;
  clock?: () => number;
};

/** The encrypted state that the browser keeps until it returns from the provider. */
export type OidcFlow = { state: string; nonce: string; verifier: string };

/** The person who signed in. The address counts only if the provider has verified it. */
type OidcClaims = {
  issuer: string;
  subject: string;
  email: string | null;
  isVerified: boolean;
  name: string | null;
};

const CACHED_MS = 60 * 60_000;
const MAX_BYTES = 262_144;
/** Clocks differ. */
const SKEW_SECONDS = 60;

function fail(message: string): never {
  throw new OidcError(message);
}

export function createOidc(options: OidcOptions) {
  const { clientId, clientSecret, redirectUri, clock = Date.now } = options;
  const issuerUrl = new URL(options.issuer);
  let known: { at: number; value: Promise<openid.Configuration> } | undefined;

  /** A host other than the issuer's is named by others, so it must be public, or in OUTBOUND_ALLOW. */
  const customFetch: openid.CustomFetch = async (url, { method, headers, body }) => {
    const target = URL.canParse(url) ? new URL(url) : fail("The provider names an invalid address");
    if (target.protocol !== issuerUrl.protocol) fail(`The provider does not use ${issuerUrl.protocol}//`);
    const outbound = target.host === issuerUrl.host ? options.issuerOutbound : options.outbound;
    let answer: OutboundAnswer;
    try {
      answer = await outbound.request({
        method: method === "POST" ? "POST" : "GET",
        url,
        headers: Object.fromEntries(new Headers(headers)),
        ...(body == null ? {} : { body: String(body) }),
        maxBytes: MAX_BYTES,
      });
    } catch (error) {
      return fail(`The provider cannot be reached: ${(error as Error).message}`);
    }
    // Texts arrive unpacked.
    const kept = new Headers(answer.headers);
    for (const name of ["content-encoding", "content-length", "transfer-encoding"]) kept.delete(name);
    return new Response(answer.text, { status: answer.status, headers: kept });
  };

  /** Uses the method that the provider supports; most accept the secret in a header. */
  const authentication: openid.ClientAuth = (server, client, body, headers) => {
    const methods = server.token_endpoint_auth_methods_supported;
    const isBasic = methods === undefined || methods.includes("client_secret_basic");
    const method = isBasic ? openid.ClientSecretBasic(clientSecret) : openid.ClientSecretPost(clientSecret);
    method(server, client, body, headers);
  };

  async function discover(): Promise<openid.Configuration> {
    const metadata = { [openid.clockSkew]: 0, [openid.clockTolerance]: SKEW_SECONDS };
    const execute = [
      // The ID token is verified although it comes from the provider itself.
      openid.enableNonRepudiationChecks,
      ...(issuerUrl.protocol === "http:" ? [openid.allowInsecureRequests] : []),
    ];
    return await openid.discovery(issuerUrl, clientId, metadata, authentication, {
      execute,
      [openid.customFetch]: customFetch,
    });
  }

  /** Fetches the configuration. Concurrent callers share one request; a failure is not cached. */
  function getConfiguration(): Promise<openid.Configuration> {
    if (known && clock() - known.at < CACHED_MS) return known.value;
    const fresh = { at: clock(), value: discover() };
    known = fresh;
    fresh.value.catch(() => {
      if (known === fresh) known = undefined;
    });
    return fresh.value;
  }

  return {
    /** Returns the address for the browser, and the state it must present when it returns. Throws OidcError. */
    begin: () =>
      telling(async (): Promise<{ url: `https://${string}` | `http://${string}`; flow: OidcFlow }> => {
        const configuration = await getConfiguration();
        const flow = {
          state: openid.randomState(),
          nonce: openid.randomNonce(),
          verifier: openid.randomPKCECodeVerifier(),
        };
        const url = openid.buildAuthorizationUrl(configuration, {
          redirect_uri: redirectUri,
          scope: "openid email profile",
          state: flow.state,
          nonce: flow.nonce,
          code_challenge: await openid.calculatePKCECodeChallenge(flow.verifier),
          code_challenge_method: "S256",
        });
        if (url.protocol !== "https:" && url.protocol !== issuerUrl.protocol)
          fail("The provider's authorization endpoint does not use https://");
        return { url: url.href as `https://${string}`, flow };
      }),

    /** `answer` is the query with which the browser came back. Throws OidcError. */
    finish: (answer: Readonly<Record<string, string>>, flow: OidcFlow) =>
      telling(async (): Promise<OidcClaims> => {
        const configuration = await getConfiguration();
        const back = new URL(redirectUri);
        back.search = new URLSearchParams(answer).toString();
        const tokens = await openid.authorizationCodeGrant(configuration, back, {
          pkceCodeVerifier: flow.verifier,
          expectedState: flow.state,
          expectedNonce: flow.nonce,
          idTokenExpected: true,
        });
        const claims = tokens.claims() ?? fail("The provider's answer has no ID token");
        const hasMore = configuration.serverMetadata().userinfo_endpoint !== undefined;
        // Claims that are missing from the ID token come from the userinfo endpoint.
        const more =
          claims["email"] === undefined && hasMore
            ? await openid.fetchUserInfo(configuration, tokens.access_token, claims.sub)
            : {};
        // Whether the address is verified is said by who names the address.
        const { email, email_verified: isVerified } = (
          hasMore && claims["email"] === undefined ? more : claims
        ) as Record<string, unknown>;
        const name = claims["name"] ?? (more as Record<string, unknown>)["name"];
        return {
          issuer: configuration.serverMetadata().issuer,
          subject: claims.sub,
          email: typeof email === "string" ? email : null,
          isVerified: isVerified === true,
          name: typeof name === "string" ? name : null,
        };
      }),
  };
}

export type Oidc = ReturnType<typeof createOidc>;

async function telling<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw toOidcError(error);
  }
}

/** The error code of the standard. The description beside it may quote data that we have sent. */
const wordOf = (code: unknown) =>
  String(code ?? "")
    .replace(/[^\w.-]/g, "")
    .slice(0, 60);

/** Messages of the library name the problem, without values. */
function toOidcError(error: unknown): OidcError {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof OidcError) return cause;
    if (cause instanceof openid.AuthorizationResponseError)
      return new OidcError(`The provider refused (${wordOf(cause.error)})`);
    if (cause instanceof openid.ResponseBodyError)
      return new OidcError(`The provider answered ${cause.status} (${wordOf(cause.error)})`);
  }
  let reason: unknown = error;
  while (reason instanceof Error && reason.cause instanceof Error) reason = reason.cause;
  if (!(reason instanceof Error)) return new OidcError("The provider's answer is not accepted");
  const status = reason.cause instanceof Response ? reason.cause.status : (reason as { status?: number }).status;
  const message = reason.message.slice(0, 200);
  return new OidcError(
    `The provider's answer is not accepted: ${message}${status === undefined ? "" : ` (${status})`}`,
  );
}
