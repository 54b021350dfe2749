/** Takes the files that come with a report: their content into the store, and the files to the run. */

import { noRoomInProject, storeAway, summarize } from "../../attachments/refusals.ts";
import { removeSpooled } from "../../attachments/spool.ts";
import type { AttachmentServices } from "../../attachments/store.ts";
import type { Report } from "../../reports/report.ts";
import type { Sql, Tx } from "../../database/connect.ts";
import type { ContentVersion } from "../../store/attachment_contents.ts";
import { addRunWarnings, type UploadDigest } from "../../store/attachments.ts";
import { attachFiles } from "./attach.ts";
import { type ArrivedAttachments, collectAttachments, type NamedFile } from "./collect.ts";
import { storeContents } from "./contents.ts";

/** Files whose content is stored, and warnings about the others. */
export type StoredFiles = {
  files: readonly NamedFile[];
  warnings: readonly string[];
  /** Content that was stored for them. */
  added: readonly ContentVersion[];
};

type StoreOptions = {
  report: Report;
  arrived: ArrivedAttachments;
  /** Files of cases that passed are kept as well. */
  keepsAll: boolean;
  onError: (error: unknown) => void;
};

const isEmpty = ({ cases }: Report, { files, bodies, warnings }: ArrivedAttachments): boolean =>
  files.length + bodies.length + warnings.length === 0 && !cases.some(({ attachments }) => attachments !== undefined);

/** Stores the content of the files first. An unavailable store does not affect the report. */
export async function storeFiles(
  sql: Sql,
  attachments: AttachmentServices,
  projectId: string,
  { report, arrived, keepsAll, onError }: StoreOptions,
): Promise<StoredFiles> {
  if (isEmpty(report, arrived)) return { files: [], warnings: [], added: [] };
  const { files, warnings } = await collectAttachments(attachments, report, arrived, keepsAll);
  try {
    const { failed, error, withoutRoom, added } = await storeContents(sql, attachments, projectId, files);
    if (error) onError(error);
    const { maxProjectBytes } = attachments.limits;
    const lost = files.flatMap(({ sha256, path }) =>
      withoutRoom.has(sha256) ? [noRoomInProject(path, maxProjectBytes)] : failed.has(sha256) ? [storeAway(path)] : [],
    );
    return {
      files: files.filter(({ sha256 }) => !failed.has(sha256) && !withoutRoom.has(sha256)),
      warnings: summarize([...warnings, ...lost]),
      added,
    };
  } finally {
    await removeSpooled(files);
  }
}

/**
 * Attaches files to a run, in the transaction of the report. Returns warnings about files beyond the limits, and what to remove after the
 * transaction.
 */
export async function attachToRun(
  sql: Tx,
  projectId: string,
  run: { id: string; executionId: string },
  { files, added }: StoredFiles,
  options: { limits: AttachmentServices["limits"]; upload: UploadDigest },
): Promise<{ warnings: string[]; released: string[] }> {
  if (files.length === 0) return { warnings: [], released: [] };
  const attached = await attachFiles(sql, projectId, run, files, { ...options, stored: added });
  const warnings = summarize(attached.warnings);
  if (warnings.length > 0) await addRunWarnings(sql, projectId, run.id, warnings);
  return { warnings, released: attached.released };
}
