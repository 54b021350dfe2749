/** Chooses which files of an upload are kept, and gives the content that a report holds a path. */

import { storeAway, tooLarge, tooManyFiles } from "../../attachments/refusals.ts";
import type { ReceivedFile, SpoolEnd } from "../../attachments/spool.ts";
import type { AttachmentServices } from "../../attachments/store.ts";
import type { Report } from "../../reports/report.ts";
import { attachmentName, isKeptWith, normalizeAttachmentPath } from "../../rules/attachment_path.ts";
import { toStorable } from "../../schema/fields.ts";

/** A file that is to be stored. */
export type NamedFile = ReceivedFile & { name: string };

/** Attachments that came with a report. */
export type ArrivedAttachments = {
  files: readonly ReceivedFile[];
  /** Files of a form that was compressed as a whole. */
  bodies: readonly { path: string; bytes: Uint8Array }[];
  warnings: readonly string[];
};

type CollectedAttachments = { files: NamedFile[]; warnings: string[] };

const MAX_NAME_LENGTH = 200;

export const toName = (name: string): string => toStorable(name).trim().slice(0, MAX_NAME_LENGTH) || "attachment";

/** The paths that only results name whose files are not kept. */
function droppedPaths({ cases }: Report, keepsAll: boolean): Set<string> {
  const [kept, dropped] = [new Set<string>(), new Set<string>()];
  for (const result of cases)
    for (const { path } of result.attachments ?? [])
      if (path !== null) (keepsAll || isKeptWith(result) ? kept : dropped).add(normalizeAttachmentPath(path));
  return dropped.difference(kept);
}

/** Replaces the contents in a report by paths. The caller removes the files that were not stored. */
export async function collectAttachments(
  { spool, limits }: AttachmentServices,
  report: Report,
  arrived: ArrivedAttachments,
  keepsAll: boolean,
): Promise<CollectedAttachments> {
  const dropped = droppedPaths(report, keepsAll);
  const files: NamedFile[] = [];
  const warnings = [...arrived.warnings];

  function add(path: string, name: string, end: SpoolEnd): void {
    if (end.end === "spooled") files.push({ ...end.spooled, path, name: toName(name) });
    else warnings.push(end.end === "failed" ? storeAway(name) : tooLarge(name, limits.maxBytes));
  }

  async function write(bytes: Uint8Array): Promise<SpoolEnd> {
    const writer = spool.open(limits.maxBytes);
    await writer.write(bytes);
    return await writer.finish();
  }

  const isFull = (name: string): boolean => {
    if (files.length < limits.maxFiles) return false;
    warnings.push(tooManyFiles(name, limits.maxFiles));
    return true;
  };

  for (const { path: given, ...file } of arrived.files) {
    const path = normalizeAttachmentPath(given);
    if (!dropped.has(path)) files.push({ ...file, path, name: toName(attachmentName(path)) });
  }
  for (const { path: given, bytes } of arrived.bodies) {
    const path = normalizeAttachmentPath(given);
    const name = attachmentName(path);
    if (!dropped.has(path) && !isFull(name)) add(path, name, await write(bytes));
  }
  for (const result of report.cases)
    for (const attachment of result.attachments ?? []) {
      const { body, name } = attachment;
      attachment.body = null;
      if (body === null || !(keepsAll || isKeptWith(result)) || isFull(name)) continue;
      const end = await write(body);
      // The same content of several cases is one file.
      attachment.path = end.end === "spooled" ? `embedded/${end.spooled.sha256}` : attachment.path;
      add(attachment.path ?? name, name, end);
    }
  return { files, warnings };
}
