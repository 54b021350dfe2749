/** Signs in as a GitHub App: a token for the installation of its repository, which lives an hour. */

import { createPrivateKey } from "node:crypto";
import { SignJWT } from "jose";
import type { Outbound } from "../http/outbound.ts";
import { at, judge, type Outcome, parse, textAt } from "./sender.ts";

type GithubApp = { baseUrl: string; repository: string; appId: string; privateKey: string };

const COMMON = {
  Accept: "application/vnd.github+json",
  "X-GitHub-Api-Version": "2022-11-28",
  "User-Agent": "Assay",
};

type Token = { token: string; expiresAt: number };

/** Maximum number of tokens that are kept. */
const MAX_TOKENS = 200;
/** A token is not used in its last minutes: the delivery may take a while. */
const LEAST_LIFE_MS = 5 * 60_000;
const tokens = new Map<string, Token>();

const keyOf = ({ baseUrl, repository, appId, privateKey }: GithubApp) =>
  Bun.SHA256.hash(JSON.stringify([baseUrl, repository, appId, privateKey]), "hex");

/** GitHub takes at most ten minutes, and its clock may be behind ours. */
async function sign({ appId, privateKey }: GithubApp, now: Date): Promise<string> {
  const seconds = Math.floor(now.getTime() / 1_000);
  return await new SignJWT({})
    .setProtectedHeader({ alg: "RS256" })
    .setIssuer(appId)
    .setIssuedAt(seconds - 60)
    .setExpirationTime(seconds + 9 * 60)
    .sign(createPrivateKey(privateKey));
}

/** Returns a cached token if it is still valid, or the result of requesting one. */
export async function requestToken(http: Outbound, app: GithubApp, now: Date): Promise<{ token: string } | Outcome> {
  const known = tokens.get(keyOf(app));
  if (known && known.expiresAt - now.getTime() > LEAST_LIFE_MS) return { token: known.token };
  const headers = { ...COMMON, Authorization: `Bearer ${await sign(app, now)}` };
  const found = await http.request({
    method: "GET",
    url: `${app.baseUrl}/repos/${app.repository}/installation`,
    headers,
  });
  if (found.status === 404)
    return { status: "refused", error: `The GitHub App ${app.appId} is not installed in ${app.repository}` };
  const installation = at(parse(found.text), "id");
  if (found.status !== 200 || typeof installation !== "number") return judge(found, false, now);
  const made = await http.request({
    method: "POST",
    url: `${app.baseUrl}/app/installations/${installation}/access_tokens`,
    headers: { "Content-Type": "application/json", ...headers },
    body: JSON.stringify({ repositories: [app.repository.split("/")[1]] }),
  });
  const body = parse(made.text);
  const token = textAt(body, "token");
  if (made.status !== 201 || token === undefined) return judge(made, false, now);
  if (tokens.size >= MAX_TOKENS) tokens.delete(tokens.keys().next().value!);
  tokens.set(keyOf(app), { token, expiresAt: Date.parse(textAt(body, "expires_at") ?? "") || 0 });
  return { token };
}

/** Discards the token, because GitHub no longer accepts it; the next delivery requests another one. */
export const forgetToken = (app: GithubApp): void => void tokens.delete(keyOf(app));
