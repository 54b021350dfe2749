/** Sends the attachments of a run after its report: small files together, large ones streamed one by one. */

import { type AttachmentFile, openAttachment } from "./attachment_file.ts";
import {
  fitsInForm,
  type FormPart,
  mediaTypeOf,
  packForm,
  readAttachment,
  streamAttachment,
} from "./attachment_body.ts";
import type { Mask } from "../secrets/mask.ts";
import type { NamedAttachment } from "./named_attachments.ts";
import type { RunnerRequest, ServerAnswer } from "./protocol.ts";

/** Maximum number of attachments of a run: the default limit of a server. */
const MAX_ATTACHMENTS_OF_RUN = 200;
/** Maximum size of the files in one request. A server accepts 32 MiB. Large requests are few, and a project may send 60 a minute. */
const MAX_FORM_BYTES = 16 * 2 ** 20;
/** Maximum size of a file in a form. Larger files are streamed in requests of their own. */
const MAX_FORM_FILE_BYTES = 4 * 2 ** 20;
/** Maximum size of a file: the default limit of a server for all files of an execution. The server may refuse smaller files. */
const MAX_FILE_BYTES = 2 ** 30;

/** Assumed minimum bandwidth, in bytes per millisecond. The timeout of a request is 30 s and the time for its bytes. */
const BYTES_PER_MS = 256;
/** Maximum number of warnings of the server that are printed. */
const MAX_WARNINGS = 10;

export type AttachmentSending = {
  /** Sends a request, with retries. Returns a text with the reason if there is no answer. */
  ask: (request: RunnerRequest) => Promise<ServerAnswer | string>;
  messageOf: (answer: ServerAnswer) => string;
  executionId: string;
  taskSlug: string;
  /** The lease of the task; set by runners only. */
  leaseId?: string;
  /** The folder that attachments must be in, without symbolic links, as `openAttachRoot` returns it. */
  root: string;
  mask?: Mask | undefined;
};

export type SentAttachments = {
  count: number;
  bytes: number;
  leftOut: { path: string; reason: string }[];
  /** The reason why the remaining files were not sent. */
  problem: string | undefined;
  /** Warnings of the server about files that it did not store. */
  warnings: string[];
};

/** Sends the attachments. Does not throw for an unreadable file or a failed request. */
export async function sendAttachments(
  named: readonly NamedAttachment[],
  sending: AttachmentSending,
): Promise<SentAttachments> {
  const { root, mask } = sending;
  const sent: SentAttachments = { count: 0, bytes: 0, leftOut: [], problem: undefined, warnings: [] };
  let [opened, batch, batchBytes]: [number, FormPart[], number] = [0, [], 0];
  const flush = async () => {
    const parts = batch;
    [batch, batchBytes] = [[], 0];
    if (parts.length > 0) await sendForm(parts, sending, sent);
  };
  for (const one of named) {
    if (sent.problem !== undefined) break;
    const leaveOut = (reason: string) => void sent.leftOut.push({ path: one.path, reason });
    if (opened === MAX_ATTACHMENTS_OF_RUN) {
      leaveOut(`more than ${MAX_ATTACHMENTS_OF_RUN} of a run`);
      continue;
    }
    const file = one.file ?? openAttachment(one.path, root, one.bases);
    if ("reason" in file) {
      leaveOut(file.reason);
      continue;
    }
    opened++;
    try {
      // The path is masked as in the report, so that the server can match the two.
      const [path, name] = mask ? [mask.text(one.path), mask.text(one.name)] : [one.path, one.name];
      if (file.size > MAX_FILE_BYTES) leaveOut("larger than 1 GiB");
      else if (file.size > MAX_FORM_FILE_BYTES || !fitsInForm(path))
        await sendFile({ ...one, path, name }, file, sending, sent);
      else {
        const bytes = await readAttachment(file, mask);
        if (batchBytes + bytes.length > MAX_FORM_BYTES) await flush();
        batch.push({ path, contentType: one.contentType, bytes });
        batchBytes += bytes.length;
      }
    } catch (error) {
      leaveOut((error as Error).message);
    } finally {
      file.close();
    }
  }
  if (sent.problem === undefined) await flush();
  return sent;
}

const pathOf = ({ executionId, taskSlug, leaseId }: AttachmentSending, more: Record<string, string> = {}): string => {
  const parameters = new URLSearchParams({
    ...(leaseId === undefined ? {} : { lease_id: leaseId }),
    ...more,
  }).toString();
  const run = `/executions/${encodeURIComponent(executionId)}/test-runs/${encodeURIComponent(taskSlug)}`;
  return `${run}/attachments${parameters === "" ? "" : `?${parameters}`}`;
};

const timeoutMsOf = (bytes: number): number => 30_000 + bytes / BYTES_PER_MS;

async function sendForm(parts: FormPart[], sending: AttachmentSending, sent: SentAttachments): Promise<void> {
  const { headers, body } = await packForm(parts);
  const answer = await sending.ask({
    method: "POST",
    path: pathOf(sending),
    headers: { ...headers, "Idempotency-Key": crypto.randomUUID() },
    body,
    timeoutMs: timeoutMsOf(body.length),
  });
  if (typeof answer !== "string" && answer.status === 413 && parts.length > 1) {
    // A proxy in front of the server may have a lower limit than the server.
    const half = Math.ceil(parts.length / 2);
    await sendForm(parts.slice(0, half), sending, sent);
    if (sent.problem === undefined) await sendForm(parts.slice(half), sending, sent);
    return;
  }
  const bytes = parts.reduce((sum, part) => sum + part.bytes.length, 0);
  take(
    answer,
    parts.map(({ path }) => path),
    bytes,
    sending,
    sent,
  );
}

async function sendFile(
  { path, name, contentType }: NamedAttachment,
  file: AttachmentFile,
  sending: AttachmentSending,
  sent: SentAttachments,
): Promise<void> {
  const { mask } = sending;
  let problem: string | undefined;
  const watched: AttachmentFile = {
    ...file,
    *chunks() {
      try {
        yield* file.chunks();
      } catch (error) {
        problem = (error as Error).message;
        throw error;
      }
    },
  };
  const type = mediaTypeOf(contentType);
  const answer = await sending.ask({
    method: "PUT",
    path: pathOf(sending, { path, name, content_type: type }),
    headers: { "Content-Type": type, ...(mask ? {} : { "Content-Length": String(file.size) }) },
    body: streamAttachment(watched, mask),
    timeoutMs: timeoutMsOf(file.size),
  });
  if (typeof answer === "string" && problem !== undefined) sent.leftOut.push({ path, reason: problem });
  else take(answer, [path], file.size, sending, sent);
}

const isMissing = (status: number): boolean => status === 404 || status === 405;

/** Whether further requests would fail in the same way, so that sending stops. */
const endsAll = (status: number): boolean => [401, 403, 404, 405, 429].includes(status) || status >= 500;

function take(
  answer: ServerAnswer | string,
  paths: readonly string[],
  bytes: number,
  { messageOf }: AttachmentSending,
  sent: SentAttachments,
): void {
  if (typeof answer === "string") sent.problem = answer;
  else if (answer.status < 300) {
    const { count, warnings } = readAnswer(answer, paths.length);
    sent.count += count;
    sent.bytes += bytes;
    sent.warnings.push(...warnings);
  } else if (endsAll(answer.status)) {
    sent.problem = `${isMissing(answer.status) ? "the server takes none: " : ""}${messageOf(answer)}`;
  } else for (const path of paths) sent.leftOut.push({ path, reason: messageOf(answer) });
}

/** Returns the number of stored files, and the warnings of the server about the others. */
function readAnswer({ text }: ServerAnswer, sent: number): { count: number; warnings: string[] } {
  try {
    const { attachments, warnings, reason } = JSON.parse(text) as Record<string, unknown>;
    const all = (Array.isArray(warnings) ? warnings : [reason]).filter((warning) => typeof warning === "string");
    return {
      count: Array.isArray(attachments) ? attachments.length : sent - Math.min(sent, all.length),
      warnings: all,
    };
  } catch {
    return { count: sent, warnings: [] };
  }
}

/** Maximum number of paths in a log line. */
const MAX_PATHS = 10;

/** Returns log lines that tell how many attachments were sent, and which were left out and why. */
export function toAttachmentLines({ count, bytes, leftOut, problem, warnings }: SentAttachments): string[] {
  const lines: string[] = [];
  const files = (n: number) => (n === 1 ? "1 attachment" : `${n} attachments`);
  if (count > 0) lines.push(`Sent ${files(count)}, ${bytes} bytes`);
  if (problem !== undefined) lines.push(`Attachments were not ${count > 0 ? "all " : ""}sent: ${problem}`);
  if (leftOut.length > 0) {
    const shown = Map.groupBy(leftOut.slice(0, MAX_PATHS), ({ reason }) => reason);
    const groups = [...shown].map(
      ([reason, group]) => `${group.map(({ path }) => JSON.stringify(path)).join(", ")} (${reason})`,
    );
    const more = leftOut.length > MAX_PATHS ? [`${leftOut.length - MAX_PATHS} more`] : [];
    lines.push(`Left out ${files(leftOut.length)}: ${[...groups, ...more].join("; ")}`);
  }
  return [...lines, ...warnings.slice(0, MAX_WARNINGS).map((warning) => `Warning: ${warning}`)];
}
