/** A real OpenID Connect provider on this machine, and a browser that signs in there. */

import { afterAll } from "bun:test";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import Provider from "oidc-provider";

/** Who can sign in at the provider, by what they type as their name; the password is anything. */
export type OidcPeople = Record<string, { email?: string; email_verified?: boolean; name?: string }>;

export const OIDC_CLIENT = { clientId: "assay", clientSecret: "the client's secret: a+b/c" };

export type ProviderOptions = {
  people: OidcPeople;
  redirectUri: string;
  /** "RS256" or "ES256". */
  algorithm?: string;
  /** "client_secret_basic" or "client_secret_post". */
  authentication?: string;
};

const pathOf = (url: string) => new URL(url).pathname;

export async function createProvider({
  people,
  redirectUri,
  algorithm = "RS256",
  authentication = "client_secret_basic",
}: ProviderOptions) {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const requests: string[] = [];
  let keys = [await createKey(algorithm, "first")];

  const open = () =>
    new Provider(issuer, {
      clients: [
        {
          client_id: OIDC_CLIENT.clientId,
          client_secret: OIDC_CLIENT.clientSecret,
          redirect_uris: [redirectUri],
          token_endpoint_auth_method: authentication,
          id_token_signed_response_alg: algorithm,
        },
      ],
      clientAuthMethods: [authentication],
      jwks: { keys },
      cookies: { keys: ["a key of the provider's cookies"] },
      claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"] },
      pkce: { required: () => true },
      findAccount: (_: unknown, sub: string) => ({ accountId: sub, claims: async () => ({ sub, ...people[sub] }) }),
      features: { devInteractions: { enabled: true } },
      ttl: { Interaction: 60, Session: 60, Grant: 60, AccessToken: 60, IdToken: 60 },
    }).callback();
  let answer = quietly(open);
  server.on("request", (request, response) => {
    requests.push(`${request.method} ${pathOf(`${issuer}${request.url}`)}`);
    answer(request, response);
  });
  afterAll(() => void server.close());

  return {
    issuer,
    requests,
    /** It signs with another key from now on, and has forgotten everything. */
    async rotateKeys(): Promise<void> {
      keys = [await createKey(algorithm, "second")];
      answer = quietly(open);
    },

    /** Signs in as somebody, as a browser does, and answers the query with which it is sent back. */
    async signIn(url: string, person: string): Promise<Record<string, string>> {
      const cookies = new Map<string, string>();
      const go = async (target: string, form?: Record<string, string>): Promise<{ url: string; text: string }> => {
        const response = await fetch(target, {
          method: form ? "POST" : "GET",
          headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join("; ") },
          ...(form ? { body: new URLSearchParams(form) } : {}),
          redirect: "manual",
        });
        for (const cookie of response.headers.getSetCookie()) {
          const [, name, value] = /^([^=]+)=([^;]*)/.exec(cookie)!;
          cookies.set(name!, value!);
        }
        const location = response.headers.get("location");
        if (location === null) return { url: target, text: await response.text() };
        const next = new URL(location, target).href;
        return next.startsWith(redirectUri) ? { url: next, text: "" } : await go(next);
      };
      let shown = await go(url);
      for (let step = 0; step < 4 && !shown.url.startsWith(redirectUri); step++) {
        const to = /<form[^>]* action="([^"]+)"/.exec(shown.text)?.[1];
        if (to === undefined) throw new Error(`The provider shows no form: ${shown.text.slice(0, 500)}`);
        const prompt = /name="prompt" value="(\w+)"/.exec(shown.text)![1]!;
        shown = await go(new URL(to, shown.url).href, { prompt, login: person, password: "anything" });
      }
      return Object.fromEntries(new URL(shown.url).searchParams);
    },
  };
}

export type TestProvider = Awaited<ReturnType<typeof createProvider>>;

async function createKey(alg: string, kid: string) {
  const { privateKey } = await crypto.subtle.generateKey(
    alg === "ES256"
      ? { name: "ECDSA", namedCurve: "P-256" }
      : { name: "RSASSA-PKCS1-v1_5", modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]), hash: "SHA-256" },
    true,
    ["sign", "verify"],
  );
  // The provider publishes it with what it says of its use, and others do not sign with it.
  const { key_ops: _, ext: __, ...jwk } = await crypto.subtle.exportKey("jwk", privateKey);
  return { ...jwk, kid, alg, use: "sig" };
}

/** It warns of being fit for development only, which this is. */
function quietly<T>(work: () => T): T {
  const { warn, info } = console;
  console.warn = console.info = () => {};
  try {
    return work();
  } finally {
    Object.assign(console, { warn, info });
  }
}
