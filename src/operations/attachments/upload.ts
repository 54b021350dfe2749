/** Takes the files that come with a report: their content into the store, and the files to the run. */

import { storeAway, summarize } from "../../attachments/refusals.ts";
import { removeSpooled } from "../../attachments/spool.ts";
import type { AttachmentServices } from "../../attachments/store.ts";
import type { Report } from "../../reports/report.ts";
import type { Sql, Tx } from "../../database/connect.ts";
import { addRunWarnings, type UploadDigest } from "../../store/attachments.ts";
import { attachFiles } from "./attach.ts";
import { type ArrivedAttachments, collectAttachments, type NamedFile } from "./collect.ts";
import { storeContents } from "./contents.ts";

/** Files whose content is stored, and what is to be said about the others. */
export type StoredFiles = { files: readonly NamedFile[]; warnings: readonly string[] };

type StoreOptions = {
  report: Report;
  arrived: ArrivedAttachments;
  /** Files of cases that passed are kept as well. */
  keepsAll: boolean;
  onError: (error: unknown) => void;
};

const isEmpty = ({ cases }: Report, { files, bodies, warnings }: ArrivedAttachments): boolean =>
  files.length + bodies.length + warnings.length === 0 && !cases.some(({ attachments }) => attachments !== undefined);

/** Stores the content of the files before anything is said of them. A store that is away costs the report nothing. */
export async function storeFiles(
  sql: Sql,
  attachments: AttachmentServices,
  projectId: string,
  { report, arrived, keepsAll, onError }: StoreOptions,
): Promise<StoredFiles> {
  if (isEmpty(report, arrived)) return { files: [], warnings: [] };
  const { files, warnings } = await collectAttachments(attachments, report, arrived, keepsAll);
  try {
    const { failed, error } = await storeContents(sql, attachments, projectId, files);
    if (error) onError(error);
    const lost = files.filter(({ sha256 }) => failed.has(sha256));
    return {
      files: files.filter((file) => !lost.includes(file)),
      warnings: summarize([...warnings, ...lost.map(({ path }) => storeAway(path))]),
    };
  } finally {
    await removeSpooled(files);
  }
}

/** In the transaction of the report. Answers what is to be said about files beyond the limits. */
export async function attachToRun(
  sql: Tx,
  projectId: string,
  run: { id: string; executionId: string },
  { files }: StoredFiles,
  { limits, upload }: { limits: AttachmentServices["limits"]; upload: UploadDigest },
): Promise<string[]> {
  if (files.length === 0) return [];
  const warnings = summarize((await attachFiles(sql, projectId, run, files, { limits, upload })).warnings);
  if (warnings.length > 0) await addRunWarnings(sql, projectId, run.id, warnings);
  return warnings;
}
