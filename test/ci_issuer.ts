/** An issuer of id tokens on this machine, which signs as GitHub Actions and GitLab CI do. */

import { afterAll } from "bun:test";
import { exportJWK, generateKeyPair, type JWK, type JWTHeaderParameters, SignJWT } from "jose";

export type Answering = "keys" | "hang" | ((path: string) => Response | undefined);

export const REPOSITORY = { id: "700100", owner: "4711", name: "acme/shop" };

type Signing = { key?: CryptoKey | Uint8Array; header?: Partial<JWTHeaderParameters>; seconds?: number };

/** `audience` is the public address of the server that tokens are for. `keys` are those that the issuer publishes. */
export async function createCiIssuer(audience: string) {
  const rsa = await generateKeyPair("RS256", { extractable: true });
  const ec = await generateKeyPair("ES256", { extractable: true });
  const toJwk = async (key: CryptoKey, more: Partial<JWK>): Promise<JWK> => ({
    ...(await exportJWK(key)),
    use: "sig",
    ...more,
  });
  const published: Record<string, unknown>[] = [
    await toJwk(rsa.publicKey, { kid: "rsa", alg: "RS256" }),
    await toJwk(ec.publicKey, { kid: "ec", alg: "ES256" }),
  ];
  const state = { keys: published, answering: "keys" as Answering, requests: [] as string[] };
  const pending = new Set<() => void>();
  // Servers keep the keys of an issuer for an hour by its address, and a later one may get the same port.
  const root = `/${crypto.randomUUID()}`;
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    development: false,
    async fetch(request): Promise<Response> {
      const pathname = new URL(request.url).pathname.replace(root, "");
      state.requests.push(pathname);
      const { answering } = state;
      if (answering === "hang") {
        const { promise, resolve } = Promise.withResolvers<Response>();
        pending.add(() => resolve(new Response("late")));
        return await promise;
      }
      const answer = typeof answering === "function" ? answering(pathname) : undefined;
      if (answer) return answer;
      if (pathname === "/.well-known/openid-configuration")
        return Response.json({ issuer: url, jwks_uri: `${url}/jwks` });
      return pathname === "/jwks" ? Response.json({ keys: state.keys }) : new Response("", { status: 404 });
    },
  });
  afterAll(async () => {
    for (const end of pending) end();
    await server.stop(true);
  });
  const url = `http://127.0.0.1:${server.port}${root}`;

  /** Undefined claims are left out. */
  async function sign(
    claims: Record<string, unknown>,
    { key = rsa.privateKey, header = {}, seconds = 300 }: Signing = {},
  ) {
    const now = Math.floor(Date.now() / 1000);
    const times = { iat: now, nbf: now, exp: now + seconds };
    const all = { iss: url, aud: audience, ...times, jti: crypto.randomUUID(), ...claims };
    const given = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
    return await new SignJWT(given).setProtectedHeader({ alg: "RS256", kid: "rsa", typ: "JWT", ...header }).sign(key);
  }

  const { id, owner, name } = REPOSITORY;
  const onMain = { ref_type: "branch" };
  const ofGitHub = {
    ...{ sub: `repo:${name}:ref:refs/heads/main`, repository: name, repository_id: id, ...onMain },
    ...{ repository_owner: "acme", repository_owner_id: owner, event_name: "push", ref: "refs/heads/main" },
  };
  const github = (claims: object = {}, signing?: Signing) => sign({ ...ofGitHub, ...claims }, signing);

  const ofGitLab = {
    ...{ sub: `project_path:${name}:ref_type:branch:ref:main`, project_id: id, project_path: name, ...onMain },
    ...{ job_project_id: id, pipeline_source: "push", ref: "main", ref_path: "refs/heads/main" },
  };
  const gitlab = (claims: object = {}, signing?: Signing) => sign({ ...ofGitLab, ...claims }, signing);

  return { url, state, rsa, ec, toJwk, sign, github, gitlab };
}
