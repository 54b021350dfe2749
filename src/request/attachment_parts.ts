/** Receives the attachments of an upload: from parts of its form, written to disk while they arrive, or from a body of its own. */

import { storeAway, tooLarge, tooManyBytes, tooManyFiles } from "../attachments/refusals.ts";
import { type ReceivedFile, removeSpooled, type SpooledFile, type SpoolEnd } from "../attachments/spool.ts";
import type { AttachmentServices } from "../attachments/store.ts";
import { type BodyFilter, receiveBody, streamBody } from "../http/body.ts";
import { fail } from "../http/problem.ts";
import type { Upload } from "../http/upload.ts";
import { boundaryOf, separateParts } from "../http/form_parts.ts";

/** The form field of attachments. */
export const ATTACHMENT_FIELD = "attachment";

export type ReceivedAttachments = {
  files: ReceivedFile[];
  /** Warnings about attachments that are not stored. */
  warnings: string[];
  /** Whether an attachment could not be written, because the store is not available. */
  hasFailed: boolean;
};

/** The upload as its handler gets it: with the attachments. */
export type ReceivedUpload = Upload & { received: ReceivedAttachments };

export type AttachmentParts = {
  filter: BodyFilter | undefined;
  received: ReceivedAttachments;
  /** Deletes received files that no handler has taken. The caller must call it in any case. */
  discard(): Promise<void>;
};

/** Maximum number of warnings, because a form of millions of tiny parts would fill the memory. */
const MAX_WARNINGS = 1_000;

/** Prepares to receive attachments. `filter` is undefined for a body that is not a form. `onBytes` counts the bytes of attachments. */
export function createAttachmentParts(
  contentType: string,
  { spool, limits }: AttachmentServices,
  onBytes: (bytes: number) => void,
): AttachmentParts {
  const received: ReceivedAttachments = { files: [], warnings: [], hasFailed: false };
  const boundary = boundaryOf(contentType);
  const open = new Set<{ discard(): Promise<void> }>();
  let left = limits.maxExecutionBytes;

  function warn(warning: string): void {
    if (received.warnings.length < MAX_WARNINGS) received.warnings.push(warning);
  }

  function take(path: string, end: SpoolEnd): void {
    if (end.end === "failed") received.hasFailed = true;
    if (end.end === "spooled") received.files.push({ ...end.spooled, path });
    else if (end.end === "failed") warn(storeAway(path));
    else warn(left < limits.maxBytes ? tooManyBytes(path, limits.maxExecutionBytes) : tooLarge(path, limits.maxBytes));
  }

  /** Returns the writer of a part. Content beyond the limits is read and discarded, because the report may follow it. */
  function openPart(path: string) {
    if (received.files.length >= limits.maxFiles) {
      warn(tooManyFiles(path, limits.maxFiles));
      return { write: async () => {}, close: async () => {} };
    }
    const writer = spool.open(Math.min(limits.maxBytes, left));
    open.add(writer);
    return {
      async write(chunk: Uint8Array) {
        onBytes(chunk.byteLength);
        await writer.write(chunk);
      },
      async close() {
        const end = await writer.finish();
        open.delete(writer);
        take(path, end);
        if (end.end === "spooled") left -= end.spooled.bytes;
      },
    };
  }

  const filter = boundary && separateParts(boundary, ATTACHMENT_FIELD, ({ filename }) => openPart(filename));
  return {
    received,
    filter: filter
      ? { ...filter, maxTakenBytes: limits.maxExecutionBytes, variable: "MAX_EXECUTION_ATTACHMENTS_MB" }
      : undefined,
    async discard() {
      await Promise.all([...open].map((writer) => writer.discard()));
      await removeSpooled(received.files);
    },
  };
}

/** Maximum number of bytes of a form of attachments besides the attachments. */
const MAX_FORM_REST_BYTES = 65_536;

/** Receives a form of which every part is an attachment. Fails with VALIDATION_ERROR for any other body. */
export async function receiveFiles(request: Request, { filter, received }: AttachmentParts): Promise<void> {
  const encoding = request.headers.get("content-encoding");
  if (!filter) fail("VALIDATION_ERROR", "Cannot read the body: expected multipart/form-data");
  if (encoding !== null && encoding.trim().toLowerCase() !== "identity")
    fail("VALIDATION_ERROR", `Cannot read the header "Content-Encoding": a form of attachments is sent uncompressed`);
  await receiveBody(request, { maxBytes: MAX_FORM_REST_BYTES, filter });
  if (received.files.length + received.warnings.length === 0)
    fail("VALIDATION_ERROR", `Cannot read the body: expected files in parts named "${ATTACHMENT_FIELD}"`);
}

/** A body that is one file. `file` is undefined if it is larger than the limit, or if the store of attachments is not available. */
export type ReceivedBody = { file: SpooledFile | undefined; problem: "too large" | "failed" | undefined };

export async function receiveFile(request: Request, { spool, limits }: AttachmentServices): Promise<ReceivedBody> {
  // Nothing is read of what says that it is too large.
  if (Number(request.headers.get("content-length") ?? 0) > limits.maxBytes)
    return { file: undefined, problem: "too large" };
  const writer = spool.open(limits.maxBytes);
  try {
    await streamBody(request, { maxBytes: limits.maxBytes, variable: "MAX_ATTACHMENT_MB" }, writer.write);
    const end = await writer.finish();
    return end.end === "spooled" ? { file: end.spooled, problem: undefined } : { file: undefined, problem: end.end };
  } catch (error) {
    await writer.discard();
    throw error;
  }
}
