/** Speaks to an Assay server for the commands that run beside it: one project, its key, and patience. */

import { describeConnectionFailure } from "../http/connection_failure.ts";
import type { EnvironmentVariables } from "./invocation.ts";
import { toPlainLine } from "./output.ts";
import { UsageError } from "./usage.ts";
import type { ServerAnswer, StreamedBody } from "../runner/protocol.ts";

/** The server, the project and its key: `ASSAY_URL`, `ASSAY_PROJECT`, `ASSAY_KEY`. */
export type ServerAddress = { url: string; project: string; key: string };

const VARIABLES = { url: "ASSAY_URL", project: "ASSAY_PROJECT", key: "ASSAY_KEY" } as const;

/** The same without the key. */
export type KeylessAddress = Omit<ServerAddress, "key">;

/** Throws UsageError that names each variable that is missing or wrong. */
export function readServerAddress(environment: EnvironmentVariables): ServerAddress {
  const address = readAddress(environment, ["url", "project", "key"]);
  const key = environment[VARIABLES.key]!.trim();
  // A header of HTTP cannot hold other characters. The message does not quote the key.
  if (!/^[\x21-\x7e\xa1-\xff]+$/.test(key))
    throw new UsageError(
      `Cannot read ${VARIABLES.key}: it contains a space, a line break or a character that no key has`,
    );
  return { ...address, key };
}

/** Throws UsageError. */
export const readKeylessAddress = (environment: EnvironmentVariables): KeylessAddress =>
  readAddress(environment, ["url", "project"]);

export function withoutEndSlashes(url: string): string {
  let end = url.length;
  while (url[end - 1] === "/") end--;
  return url.slice(0, end);
}

function readAddress(environment: EnvironmentVariables, needed: readonly (keyof typeof VARIABLES)[]): KeylessAddress {
  const read = (name: keyof typeof VARIABLES) => environment[VARIABLES[name]]?.trim() ?? "";
  const missing = needed.filter((name) => read(name) === "").map((name) => VARIABLES[name]);
  if (missing.length > 0) throw new UsageError(`Set ${missing.join(", ")}`);
  const url = withoutEndSlashes(read("url"));
  if (!/^https?:\/\/[^\s?#]+$/i.test(url) || !URL.canParse(url))
    throw new UsageError(`Cannot read ASSAY_URL: expected an http or https address, got "${url}"`);
  return { url, project: read("project") };
}

export type ServerRequest = {
  method?: "GET" | "POST" | "PUT";
  /** Relative to the project, with its query: `/test-runs?task_slug=unit`. */
  path: string;
  headers?: Record<string, string>;
  body?: string | Uint8Array<ArrayBuffer> | Blob | FormData | StreamedBody;
  signal?: AbortSignal;
  /** Timeout of one attempt. Default 30,000. */
  timeoutMs?: number;
  /** Maximum bytes of the answer that are read. Default 32 MiB, which is more than any plan has. */
  maxBytes?: number;
};

const MAX_ANSWER_BYTES = 32 * 2 ** 20;

/** The server cannot be reached, or did not answer in time. */
export class ServerAwayError extends Error {
  override name = "ServerAwayError";
}

/** The server, or a proxy in front of it, sends a longer answer than any server of Assay does. */
export class AnswerTooLongError extends Error {
  override name = "AnswerTooLongError";
}

async function readText(response: Response, maxBytes: number): Promise<string> {
  const decoder = new TextDecoder();
  let [text, size] = ["", 0];
  // Leaving the loop by an error cancels the rest.
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > maxBytes) throw new AnswerTooLongError(`the answer has more than ${maxBytes / 2 ** 20} MiB`);
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}

/** Sends one request. Throws ServerAwayError if there is no answer, and AnswerTooLongError. An answer with any status is returned. */
export const ask = (address: ServerAddress, asking: ServerRequest): Promise<ServerAnswer> =>
  askUrl(`${address.url}/api/v1/projects/${encodeURIComponent(address.project)}${asking.path}`, {
    ...asking,
    headers: { ...asking.headers, Authorization: `Bearer ${address.key}` },
    shown: shown(address),
  });

/** `shown` is what errors call the server. */
type UrlRequest = Omit<ServerRequest, "path"> & { shown: string };

/** The same for any address, with the headers as given. */
export async function askUrl(url: string, asking: UrlRequest): Promise<ServerAnswer> {
  const { method = "GET", headers = {}, body, signal, timeoutMs = 30_000, maxBytes = MAX_ANSWER_BYTES, shown } = asking;
  const timeout = AbortSignal.timeout(timeoutMs);
  try {
    const response = await fetch(url, {
      method,
      headers: { "Accept-Encoding": "identity", ...headers },
      ...(body === undefined ? {} : { body: typeof body === "function" ? body() : body }),
      // A redirect would take the key elsewhere.
      redirect: "manual",
      // A compressed answer would be decompressed before its size can be counted.
      decompress: false,
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    });
    return { status: response.status, text: await readText(response, maxBytes), headers: response.headers };
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof AnswerTooLongError) throw new AnswerTooLongError(`Cannot read ${shown}: ${error.message}`);
    const why = timeout.aborted ? `no answer within ${timeoutMs / 1000} s` : describeConnectionFailure(error);
    throw new ServerAwayError(`Cannot reach ${shown}: ${why}`);
  }
}

/** An answer whose body the caller reads if the status is 200; `text` is that of a refusal. */
type StreamedAnswer = ServerAnswer & { body: AsyncIterable<Uint8Array> };

/**
 * Sends a GET whose answer has any length. Throws ServerAwayError if nothing arrives for `idleMs`, also while the body is read. A redirect
 * leads to the store of attachments, which does not get the key.
 */
export async function askStream(
  address: ServerAddress,
  { path, idleMs, signal }: { path: string; idleMs: number; signal: AbortSignal },
): Promise<StreamedAnswer> {
  const silence = new AbortController();
  const options = { redirect: "manual", signal: AbortSignal.any([signal, silence.signal]) } as const;

  async function arrival<T>(next: Promise<T>): Promise<T> {
    const timer = setTimeout(() => silence.abort(), idleMs);
    try {
      return await next;
    } catch (error) {
      signal.throwIfAborted();
      const why = silence.signal.aborted ? `nothing arrived for ${idleMs / 1000} s` : describeConnectionFailure(error);
      throw new ServerAwayError(`Cannot reach ${shown(address)}: ${why}`);
    } finally {
      clearTimeout(timer);
    }
  }

  async function* read({ body }: Response): AsyncGenerator<Uint8Array, void> {
    const reader = body!.getReader();
    try {
      for (;;) {
        const { done, value } = await arrival(reader.read());
        if (done) return;
        yield value;
      }
    } finally {
      reader.cancel().catch(() => {});
    }
  }

  const url = `${address.url}/api/v1/projects/${encodeURIComponent(address.project)}${path}`;
  let response = await arrival(fetch(url, { ...options, headers: { Authorization: `Bearer ${address.key}` } }));
  const elsewhere = response.status === 307 ? response.headers.get("location") : null;
  if (elsewhere !== null) response = await arrival(fetch(new URL(elsewhere, url).href, options));
  const { status, headers } = response;
  const text = status === 200 ? "" : await arrival(readText(response, MAX_ANSWER_BYTES));
  return { status, headers, text, body: read(response) };
}

/** Asks the runner of this task, by its socket. */
export async function askSocket(socket: string, path: string, body: unknown): Promise<ServerAnswer> {
  const headers = { "Content-Type": "application/json" };
  const request = { unix: socket, method: "POST", headers, body: JSON.stringify(body) };
  try {
    const response = await fetch(`http://runner${path}`, request);
    return { status: response.status, text: await readText(response, MAX_ANSWER_BYTES), headers: response.headers };
  } catch (error) {
    if (error instanceof AnswerTooLongError) throw new AnswerTooLongError(`Cannot read the runner: ${error.message}`);
    throw new ServerAwayError(`Cannot reach the runner of this task at ${socket}: ${describeConnectionFailure(error)}`);
  }
}

/** The address without the user and password that may be in it. */
export const shown = ({ url }: KeylessAddress): string => url.replace(/\/\/[^/]*@/, "//***@");

const MAX_MESSAGE = 1_000;
/** The beginning of the server's message about an unknown path. */
const NO_ENDPOINT = "No such endpoint: ";

/** Returns one line about an unsuccessful answer: the server's message if there is one. */
export function messageOf({ status, text }: ServerAnswer): string {
  try {
    const { error } = JSON.parse(text) as { error?: { message?: unknown } };
    if (typeof error?.message === "string") {
      const message = toPlainLine(error.message.slice(0, MAX_MESSAGE));
      return message.startsWith(NO_ENDPOINT) ? `${message}: the server may be older than this command` : message;
    }
  } catch {
    // A proxy's page, for instance.
  }
  return `the server answered ${status}`;
}

export type Patience = {
  /** The approximate delay before each retry; its length is the number of retries. */
  waitsMs: readonly number[];
  /** Milliseconds after which no retry begins. */
  withinMs: number;
  sleep?: (ms: number) => Promise<unknown>;
};

/** Fractions of the patience to wait: the first covers a restart of the server, the second a longer outage. */
const WAITS = [4 / 30, 10 / 30];

/** A signal that is aborted ends a wait with its reason. */
export function toPatience({ patienceMs, signal }: { patienceMs: number; signal?: AbortSignal | undefined }): Patience {
  const stopped = new Promise<never>((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
  stopped.catch(() => {});
  return {
    waitsMs: WAITS.map((part) => part * patienceMs),
    withinMs: patienceMs,
    sleep: (ms) => Promise.race([Bun.sleep(ms), stopped]),
  };
}

/** Adds jitter, so that clients that were refused at the same moment do not retry at the same moment. */
const SPREAD_MS = 1_000;
/** A server that is not available asks for a short wait, and may be unavailable for longer, as during a fail-over of its database. */
const MIN_ASKED_MS = 250;
const ASKED_GROWTH = 1.5;

/**
 * Retries if there is no answer, 429 or 5xx. A failure with `Retry-After` is retried after that time, then with growing delays, until the
 * delays add up to those of `patience`. After a 429 it waits for the next window of the rate limit, as long as there is time. All tries of
 * a POST must have the same Idempotency-Key. Returns the last answer; throws ServerAwayError if there was none.
 */
export const askPatiently = (
  address: ServerAddress,
  asking: ServerRequest,
  patience: Patience,
): Promise<ServerAnswer> => tryPatiently(() => ask(address, asking), patience);

/** The same for any request. */
export async function tryPatiently<Answer extends ServerAnswer>(
  tryOnce: () => Promise<Answer>,
  { waitsMs, withinMs, sleep = Bun.sleep }: Patience,
): Promise<Answer> {
  const until = performance.now() + withinMs;
  const waits = createWaits(waitsMs);
  for (;;) {
    let answer: Answer | undefined;
    let failure: unknown;
    try {
      answer = await tryOnce();
      if (answer.status !== 429 && answer.status < 500) return answer;
    } catch (error) {
      if (!(error instanceof ServerAwayError)) throw error;
      failure = error;
    }
    const wait = waits.next(answer);
    if (wait === undefined || performance.now() + wait.ms > until) {
      if (answer) return answer;
      throw failure;
    }
    await sleep(wait.ms + wait.spreadMs);
  }
}

/** The waits between tries; undefined: there is no further try. */
function createWaits(waitsMs: readonly number[]) {
  const allowedMs = waitsMs.reduce((sum, ms) => sum + ms, 0);
  let [count, asked, waitedMs] = [0, 0, 0];
  return {
    next(answer: ServerAnswer | undefined): { ms: number; spreadMs: number } | undefined {
      const askedMs = Number(answer?.headers.get("retry-after") ?? Number.NaN) * 1000;
      if (answer?.status === 429 && askedMs >= 0) return { ms: askedMs, spreadMs: Math.random() * SPREAD_MS };
      if (askedMs >= 0) {
        const leastMs = Math.max(askedMs, MIN_ASKED_MS);
        const ms = Math.min(leastMs * ASKED_GROWTH ** asked++, Math.max(leastMs, allowedMs - waitedMs));
        waitedMs += ms;
        return waitedMs > allowedMs ? undefined : { ms, spreadMs: (Math.random() * ms) / 4 };
      }
      const ms = waitsMs[count++];
      return ms === undefined ? undefined : { ms: ms * (0.75 + Math.random() / 2), spreadMs: 0 };
    },
  };
}
