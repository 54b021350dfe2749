/** Sends the attachments of a run that `assay upload` has uploaded: those that its reports name, and those of `--attach`. */

import { readFileSync } from "node:fs";
import { basename, relative } from "node:path";
import { openAttachment, openAttachRoot } from "../runner/attachment_file.ts";
import type { AttachmentScope, NamedAttachment } from "../runner/named_attachments.ts";
import { sendAttachments, toAttachmentLines } from "../runner/send_attachments.ts";
import {
  AnswerTooLongError,
  askPatiently,
  messageOf,
  type ServerAddress,
  ServerAwayError,
  toPatience,
} from "./client.ts";

const MAX_ANSWER_BYTES = 2 ** 20;

/** Maximum number of files that are kept open while tests run again. */
const MAX_HELD = 100;

type NamedBy = {
  /** Absolute paths of the report files. */
  reports: readonly string[];
  format: string | undefined;
  /** The test cases whose named files are sent. */
  scope: AttachmentScope | "none";
  /** The absolute path of the folder below which files may be sent. */
  root: string;
};

type AttachmentUpload = NamedBy & {
  run: { executionId: string; taskSlug: string; failed: number; flaky: number };
  /** Absolute paths of files for the run as a whole. */
  attach: readonly string[];
  /** Files that reports of earlier attempts name, open. */
  held: readonly NamedAttachment[];
  patienceMs: number;
  signal: AbortSignal | undefined;
};

/** Returns a line about each result. Does not throw, because the results are already uploaded. */
export async function uploadAttachments(address: ServerAddress, upload: AttachmentUpload): Promise<string[]> {
  const { run, attach, held, patienceMs, signal } = upload;
  try {
    if (!mayNameFiles(upload) && attach.length === 0) return [];
    const root = openAttachRoot(upload.root);
    const earlier = new Set(held.map(({ path }) => path));
    const named = [
      ...attach.map((path) => toRunAttachment(path, upload.root, root)),
      ...held,
      ...(mayNameFiles(upload) ? await readNamedAttachments(upload, root) : []).filter(
        ({ path }) => !earlier.has(path),
      ),
    ];
    const sent = await sendAttachments(named, {
      ask: async (request) => {
        const asking = { ...request, maxBytes: MAX_ANSWER_BYTES, ...(signal ? { signal } : {}) };
        try {
          return await askPatiently(address, asking, toPatience({ patienceMs, signal }));
        } catch (error) {
          if (signal?.aborted) return "Interrupted";
          if (error instanceof ServerAwayError || error instanceof AnswerTooLongError) return error.message;
          throw error;
        }
      },
      messageOf,
      executionId: run.executionId,
      taskSlug: run.taskSlug,
      root,
    });
    return toAttachmentLines(sent);
  } catch (error) {
    return [`Attachments were not sent: ${(error as Error).message}`];
  }
}

/** Opens the files that the reports of an attempt name, before the next attempt deletes them. */
export async function holdAttachments(named: NamedBy): Promise<NamedAttachment[]> {
  if (named.scope === "none") return [];
  try {
    const root = openAttachRoot(named.root);
    const found = await readNamedAttachments(named, root);
    return found.slice(0, MAX_HELD).flatMap((one) => {
      const file = openAttachment(one.path, root, one.bases);
      return "reason" in file ? [] : [{ ...one, file }];
    });
  } catch {
    // The files that are still there at the end are sent.
    return [];
  }
}

/** Whether it is worth the time to read the reports again. */
const mayNameFiles = ({ scope, run }: AttachmentUpload): boolean =>
  scope === "all" || (scope === "failed" && (run.failed > 0 || run.flaky > 0));

/** Loads the readers of reports, which an upload without failures does not need. */
async function readNamedAttachments({ reports, format, scope }: NamedBy, root: string): Promise<NamedAttachment[]> {
  const { findNamedAttachments } = await import("../runner/named_attachments.ts");
  const files = reports.map((path) => ({ path, bytes: new Uint8Array(readFileSync(path)) }));
  return findNamedAttachments(files, { format, scope: scope === "all" ? "all" : "failed", root });
}

/** Known to the server by its path below the root, which no case of a report names. */
function toRunAttachment(path: string, folder: string, root: string): NamedAttachment {
  const inner = relative(folder, path);
  const below = inner.startsWith("..") ? path : inner;
  return { path: below, name: basename(path), contentType: null, bases: [root] };
}
