/** The request of `assay upload`: reports and parameters as one form, packed, and sent with patience. */

import * as v from "valibot";
import {
  AnswerTooLongError,
  askPatiently,
  messageOf,
  toPatience,
  type ServerAddress,
  ServerAwayError,
} from "./client.ts";
import { type AnsweredGate, answeredGate } from "./gate.ts";
import { toPlainLine } from "./output.ts";
import type { NamedAbsence } from "../wording/absent_tests.ts";
import type { ReportedRun } from "../wording/run_line.ts";
import { executionUrl } from "../schema/urls.ts";
import type { ServerAnswer } from "../runner/protocol.ts";

const shards = v.array(v.number());
/** A newer server may know other words, but they are words. */
const word = v.pipe(v.string(), v.regex(/^\w{1,40}$/));

const someTests = v.object({
  count: v.number(),
  testCases: v.array(v.object({ suite: v.string(), name: v.string() })),
});
/** The fields that are used; a newer server may send more fields and other words. */
const answered = v.object({
  missing: someTests,
  newlySkipped: someTests,
  notRerun: someTests,
  executionId: v.string(),
  taskSlug: v.string(),
  url: v.string(),
  status: word,
  verdict: word,
  reason: v.nullable(v.string()),
  outage: v.boolean(),
  passed: v.number(),
  failed: v.number(),
  skipped: v.number(),
  flaky: v.number(),
  attempt: v.number(),
  warnings: v.array(v.string()),
  arrivedShards: shards,
  missingShards: shards,
  newFailures: v.array(v.object({ suite: v.string(), name: v.string(), file: v.nullable(v.string()) })),
  slowerTests: v.array(v.object({ suite: v.string(), name: v.string(), durationMs: v.number(), usualMs: v.number() })),
  gate: v.fallback(v.optional(answeredGate), undefined),
  counts: v.object({
    newFailures: v.number(),
    unclearFailures: v.number(),
    flakyFailures: v.number(),
    alsoFailingOnMain: v.number(),
    stillFailing: v.number(),
    quarantinedFailures: v.number(),
    incidentFailures: v.number(),
  }),
});
export type AnsweredRun = ReportedRun &
  Pick<v.InferOutput<typeof answered>, "executionId" | "newFailures" | "slowerTests" | keyof NamedAbsence> & {
    /** Undefined: no decision was asked for. */
    gate?: AnsweredGate | undefined;
  };

/**
 * `run` is the resulting run, `answer` the whole answer. `foreignOrigin` is the public origin of the server if it is neither ASSAY_URL nor
 * ASSAY_PUBLIC_URL. `away`: a later attempt might succeed.
 */
export type UploadEnd =
  | { end: "uploaded"; run: AnsweredRun; answer: object; foreignOrigin: string | null }
  | { end: "refused" | "away"; status?: number; problem: string };

type Body = { bytes: Uint8Array<ArrayBuffer>; headers: Record<string, string> };
export type Reports = { name: string; bytes: Uint8Array<ArrayBuffer> }[];

/** Below this, packing costs more than it saves. */
const MIN_PACKED = 64 * 1024;

async function toBody(reports: Reports, parameters: Record<string, string>): Promise<Body> {
  const form = new FormData();
  for (const [name, value] of Object.entries(parameters)) form.set(name, value);
  for (const { name, bytes } of reports) form.append("file", new Blob([bytes]), name);
  const sent = new Response(form);
  const headers = { "Content-Type": sent.headers.get("content-type")! };
  const bytes = new Uint8Array(await sent.arrayBuffer());
  const packed = bytes.length < MIN_PACKED ? bytes : Bun.gzipSync(bytes, { level: 6 });
  return packed.length < bytes.length
    ? { bytes: packed, headers: { ...headers, "Content-Encoding": "gzip" } }
    : { bytes, headers };
}

export type UploadOptions = {
  patienceMs: number;
  signal?: AbortSignal | undefined;
  /** The address that people use, if it differs from the address that this machine uses. */
  publicUrl?: string | undefined;
};

/** Maximum size of an answer, which has some hundred names at most. */
export const MAX_ANSWER_BYTES = 2 ** 20;

/** Transfer rate of slow lines, for the time beyond the 30 s that any try may take. */
const BYTES_PER_MS = 256;

async function send(address: ServerAddress, { bytes, headers }: Body, sending: UploadOptions): Promise<ServerAnswer> {
  const { signal } = sending;
  const asking = {
    method: "POST",
    path: "/test-runs",
    headers: { ...headers, Accept: "application/json", "Idempotency-Key": crypto.randomUUID() },
    body: bytes,
    maxBytes: MAX_ANSWER_BYTES,
    timeoutMs: 30_000 + bytes.length / BYTES_PER_MS,
    ...(signal ? { signal } : {}),
  } as const;
  return await askPatiently(address, asking, toPatience(sending));
}

/** Returns the message of a refusal, with a hint if the report is not the cause. */
function toProblem(answer: ServerAnswer): string {
  const said = messageOf(answer);
  if (answer.status >= 300 && answer.status < 400)
    return `${said}, a redirect to ${toPlainLine(answer.headers.get("location")?.slice(0, 300) ?? "another address")}: set ASSAY_URL to that`;
  if (answer.status === 401) return `${said} (ASSAY_KEY)`;
  if (answer.status === 404) return `${said} (ASSAY_URL and ASSAY_PROJECT)`;
  return said;
}

/** Sends one upload, tried three times within the patience under one Idempotency-Key. Never throws for an answer of the server. */
export async function sendReports(
  address: ServerAddress,
  reports: Reports,
  parameters: Record<string, string>,
  sending: UploadOptions,
): Promise<UploadEnd> {
  try {
    const answer = await send(address, await toBody(reports, parameters), sending);
    const { status, text } = answer;
    if (status === 429 || status >= 500) return { end: "away", status, problem: toProblem(answer) };
    if (status >= 300) return { end: "refused", status, problem: toProblem(answer) };
    const parsed = parseAnswer(text);
    if (parsed) {
      const { url, foreignOrigin } = toOwnUrl(address, parsed.run, sending.publicUrl);
      return { end: "uploaded", run: { ...parsed.run, url }, answer: { ...parsed.answer, url }, foreignOrigin };
    }
    return { end: "refused", problem: `${address.url} is not an Assay server: check ASSAY_URL` };
  } catch (error) {
    if (sending.signal?.aborted) return { end: "away", problem: "Interrupted" };
    if (error instanceof AnswerTooLongError) return { end: "refused", problem: error.message };
    if (!(error instanceof ServerAwayError)) throw error;
    return { end: "away", problem: error.message };
  }
}

function parseAnswer(text: string): { run: AnsweredRun; answer: object } | undefined {
  try {
    // With a reviver, JSON.parse rejects values that are nested too deeply to be written again.
    const answer: unknown = JSON.parse(text, (_, member: unknown) => member);
    const parsed = v.safeParse(answered, answer);
    if (!parsed.success) return undefined;
    return { run: parsed.output as AnsweredRun, answer: answer as object };
  } catch {
    return undefined;
  }
}

/**
 * The address of the run that is shown to people: that of the answer if it has its own origin, that of ASSAY_URL or of ASSAY_PUBLIC_URL;
 * else the same page at ASSAY_URL.
 */
function toOwnUrl(
  address: ServerAddress,
  { url, executionId }: AnsweredRun,
  publicUrl: string | undefined,
): { url: string; foreignOrigin: string | null } {
  let foreignOrigin: string | null = null;
  const own = [address.url, publicUrl].flatMap((each) => (each && URL.canParse(each) ? [new URL(each).origin] : []));
  if (/^https?:/i.test(url) && URL.canParse(url)) {
    const parsed = new URL(url);
    [parsed.username, parsed.password] = ["", ""];
    if (own.includes(parsed.origin)) return { url: parsed.href, foreignOrigin };
    foreignOrigin = parsed.origin;
  }
  const { origin, pathname } = new URL(address.url);
  const base = `${origin}${pathname === "/" ? "" : pathname}`;
  const page = executionUrl(base, encodeURIComponent(address.project), encodeURIComponent(executionId));
  return { url: page, foreignOrigin };
}
