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
import { type AnsweredGate, answeredGate, withoutUnknownGate } from "./gate.ts";
import { toPlainLine } from "./output.ts";
import { refusesMachine, withoutMachine } from "../rules/ran_on.ts";
import type { ReportedRun } from "../wording/run_line.ts";
import { executionUrl } from "../schema/urls.ts";
import type { ServerAnswer } from "../runner/protocol.ts";

/** A server of version 0.1 says of failures only which are new. */
const list = v.optional(v.array(v.unknown()), () => []);
const shards = v.optional(v.array(v.number()), () => []);
/** A newer server may know other words, but they are words. */
const word = v.pipe(v.string(), v.regex(/^\w{1,40}$/));

/** Only what is told here: a newer server may say more, and other words. */
const answered = v.object({
  executionId: v.string(),
  taskSlug: v.string(),
  url: v.string(),
  /** A server of version 0.1 answers without it. */
  status: v.optional(word),
  verdict: word,
  /** Older servers do not say it. */
  reason: v.optional(v.nullable(v.string()), null),
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
  flakyFailures: list,
  alsoFailingOnMain: list,
  stillFailing: list,
  quarantinedFailures: list,
  incidentFailures: list,
  slowerTests: v.optional(
    v.array(v.object({ suite: v.string(), name: v.string(), durationMs: v.number(), usualMs: v.number() })),
    () => [],
  ),
  gate: v.fallback(v.optional(answeredGate), undefined),
  counts: v.optional(
    v.object({
      newFailures: v.number(),
      flakyFailures: v.number(),
      alsoFailingOnMain: v.number(),
      stillFailing: v.number(),
      quarantinedFailures: v.number(),
      incidentFailures: v.optional(v.number(), 0),
    }),
  ),
});
export type AnsweredRun = ReportedRun &
  Pick<v.InferOutput<typeof answered>, "executionId" | "newFailures" | "slowerTests"> & {
    /** Undefined: no decision was asked for, or the server knows no gates. */
    gate?: AnsweredGate | undefined;
  };

/**
 * `run` is what the server has made of it, `answer` all that it says of that. `foreignOrigin` is where it says that people
 * reach it, if that is neither ASSAY_URL nor ASSAY_PUBLIC_URL. `away`: another time it might go well.
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
  /** Where people reach the server, if that is not where this machine does. */
  publicUrl?: string | undefined;
};

/** An answer has some hundred names at most. */
export const MAX_ANSWER_BYTES = 2 ** 20;

/** Beside the 30 s that any try may take: slow lines carry this much. */
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

/** The parameters without those that a server is too old for, as its refusal says; the same object where there are none. */
function withoutUnknown(parameters: Record<string, string>, message: string): Record<string, string> {
  if (refusesMachine(message)) return withoutMachine(parameters);
  const withoutGate = withoutUnknownGate(parameters, message);
  if (withoutGate !== parameters) return withoutGate;
  if (parameters["attachments"] === undefined || !message.includes('Unknown field "attachments"')) return parameters;
  const { attachments: _, ...known } = parameters;
  return known;
}

/** One upload, tried three times within the patience under one Idempotency-Key. Does not throw for anything that a server does. */
export async function sendReports(
  address: ServerAddress,
  reports: Reports,
  parameters: Record<string, string>,
  sending: UploadOptions,
): Promise<UploadEnd> {
  try {
    let [known, answer] = [parameters, await send(address, await toBody(reports, parameters), sending)];
    // Once each for the machine, the gate and the attachments: a server may be older than all of them.
    for (let count = 0; count < 3 && answer.status === 400; count++) {
      const fewer = withoutUnknown(known, messageOf(answer));
      if (fewer === known) break;
      [known, answer] = [fewer, await send(address, await toBody(reports, fewer), sending)];
    }
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

/** For servers that do not count yet: the lists hold the first 100 of each. */
const countLists = (run: v.InferOutput<typeof answered>): ReportedRun["counts"] => ({
  newFailures: run.newFailures.length,
  flakyFailures: run.flakyFailures.length,
  alsoFailingOnMain: run.alsoFailingOnMain.length,
  stillFailing: run.stillFailing.length,
  quarantinedFailures: run.quarantinedFailures.length,
  incidentFailures: run.incidentFailures.length,
});

function parseAnswer(text: string): { run: AnsweredRun; answer: object } | undefined {
  try {
    // With a function it refuses what is nested too deeply to be written again.
    const answer: unknown = JSON.parse(text, (_, member: unknown) => member);
    const parsed = v.safeParse(answered, answer);
    if (!parsed.success) return undefined;
    const { status = parsed.output.verdict, counts = countLists(parsed.output) } = parsed.output;
    const run = { ...parsed.output, status, counts };
    return { run: run as AnsweredRun, answer: answer as object };
  } catch {
    return undefined;
  }
}

/**
 * The address of the run as people are shown it, and click on it: what the server says, if that is at its own origin, that of
 * ASSAY_URL or of ASSAY_PUBLIC_URL; else the same page at ASSAY_URL.
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
