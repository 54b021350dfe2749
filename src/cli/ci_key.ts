/** The key of a CI job that has no stored one: the job's id token, which its CI system signs, is exchanged for it. */

import * as v from "valibot";
import type { ServerAnswer } from "../runner/protocol.ts";
import {
  askUrl,
  type KeylessAddress,
  messageOf,
  type Patience,
  readKeylessAddress,
  readServerAddress,
  type ServerAddress,
  ServerAwayError,
  shown,
  tryPatiently,
  withoutEndSlashes,
} from "./client.ts";
import type { EnvironmentVariables } from "./invocation.ts";
import type { SecretSet } from "./output.ts";

/** The source of an id token: a given token, or a request to the CI system, which can be repeated. */
type TokenSource = { token: string } | { url: string; authorization: string };
export type AddressSource = ServerAddress | (KeylessAddress & { audience: string; source: TokenSource });

/** The CI system or the server refuses. */
export class CiKeyRefusedError extends Error {
  override name = "CiKeyRefusedError";
}

const TIMEOUT_MS = 30_000;
const MAX_ANSWER_BYTES = 65_536;

/** GitLab sets ASSAY_ID_TOKEN (`id_tokens:`); GitHub says where to ask (`permissions: id-token: write`). */
function findTokenSource(read: (name: string) => string): TokenSource | undefined {
  const token = read("ASSAY_ID_TOKEN");
  if (token !== "") return { token };
  const [url, authorization] = [read("ACTIONS_ID_TOKEN_REQUEST_URL"), read("ACTIONS_ID_TOKEN_REQUEST_TOKEN")];
  return URL.canParse(url) && authorization !== "" ? { url, authorization } : undefined;
}

/** ASSAY_KEY is used if it is set. Throws UsageError if neither it nor an id token is there, or the address is wrong. */
export function readAddressSource(environment: EnvironmentVariables): AddressSource {
  const read = (name: string) => environment[name]?.trim() ?? "";
  const source = read("ASSAY_KEY") === "" ? findTokenSource(read) : undefined;
  if (source === undefined) return readServerAddress(environment);
  const address = readKeylessAddress(environment);
  const audience = read("ASSAY_PUBLIC_URL") || address.url.replace(/\/\/[^/]*@/, "//");
  return { ...address, audience: withoutEndSlashes(audience), source };
}

export type KeyRequest = {
  patience: Patience;
  signal?: AbortSignal | undefined;
  /** The token and the key are added to them. */
  secrets: SecretSet;
};

/**
 * Exchanges the id token, unless there is a key. Retries, for GitHub with a new token each time. Throws ServerAwayError and
 * CiKeyRefusedError.
 */
export async function toServerAddress(
  address: AddressSource,
  { patience, signal, secrets }: KeyRequest,
): Promise<ServerAddress> {
  if ("key" in address) return address;
  const attempt = crypto.randomUUID();
  const answer = await tryPatiently(async () => {
    const token = await readToken(address.source, address.audience, signal);
    secrets.add(token);
    return await exchange(address, token, { attempt, signal });
  }, patience);
  const key = readKey(answer);
  secrets.add(key);
  return { url: address.url, project: address.project, key };
}

const tokenAnswer = v.object({ value: v.pipe(v.string(), v.minLength(1)) });

async function readToken(source: TokenSource, audience: string, signal: AbortSignal | undefined): Promise<string> {
  if ("token" in source) return source.token;
  const url = new URL(source.url);
  url.searchParams.set("audience", audience);
  const { status, text } = await askUrl(url.href, {
    headers: { Authorization: `Bearer ${source.authorization}`, Accept: "application/json" },
    ...{ timeoutMs: TIMEOUT_MS, maxBytes: MAX_ANSWER_BYTES, shown: `the CI system for an id token (${url.host})` },
    ...(signal ? { signal } : {}),
  });
  const problem = `Cannot get an id token of the CI system: it answered ${status}`;
  if (status === 429 || status >= 500) throw new ServerAwayError(problem);
  const parsed = v.safeParse(tokenAnswer, status === 200 ? parseJson(text) : undefined);
  if (!parsed.success) throw new CiKeyRefusedError(problem);
  return parsed.output.value;
}

type Exchange = { attempt: string; signal: AbortSignal | undefined };

const exchange = (address: KeylessAddress, token: string, { attempt, signal }: Exchange): Promise<ServerAnswer> =>
  askUrl(`${address.url}/auth/ci`, {
    method: "POST",
    headers: { "Content-Type": "application/json", Accept: "application/json", "Idempotency-Key": attempt },
    body: JSON.stringify({ project: address.project, token }),
    ...{ timeoutMs: TIMEOUT_MS, maxBytes: MAX_ANSWER_BYTES, shown: shown(address) },
    ...(signal ? { signal } : {}),
  });

const keyAnswer = v.object({ key: v.pipe(v.string(), v.regex(/^\S{1,500}$/)) });

function readKey(answer: ServerAnswer): string {
  const { status, text } = answer;
  const parsed = v.safeParse(keyAnswer, status === 200 ? parseJson(text) : undefined);
  if (parsed.success) return parsed.output.key;
  const problem = `Cannot get a key for the id token of this job: ${messageOf(answer)}`;
  throw status === 429 || status >= 500 ? new ServerAwayError(problem) : new CiKeyRefusedError(problem);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
