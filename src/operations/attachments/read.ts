/** Reads attachments in the form of answers. */

import type { Attachment, CaseAttachment } from "../../schema/attachments.ts";
import { attachmentUrl } from "../../schema/urls.ts";
import type { Sql } from "../../database/connect.ts";
import {
  type AttachmentRow,
  type CaseAttachmentRow,
  type ResultKey,
  selectCaseAttachments,
} from "../../store/attachments.ts";

export function toAttachment(publicUrl: string, projectId: string, row: AttachmentRow): Attachment {
  const { mediaType, ...rest } = row;
  return { ...rest, contentType: mediaType, url: attachmentUrl(publicUrl, projectId, row.id) };
}

const keyOf = ({ runId, number }: ResultKey) => `${runId} ${number}`;

export type CaseAttachments<Row> = (result: ResultKey) => Row[];

/** Returns the attachments of each of these results, with the ends of texts where `hasPreviews`. */
export async function readCaseFiles(
  sql: Sql,
  projectId: string,
  results: readonly ResultKey[],
  { hasPreviews }: { hasPreviews: boolean } = { hasPreviews: true },
): Promise<CaseAttachments<CaseAttachmentRow>> {
  const rows = results.length === 0 ? [] : await selectCaseAttachments(sql, projectId, results, { hasPreviews });
  const byResult = Map.groupBy(rows, keyOf);
  return (result) => byResult.get(keyOf(result)) ?? [];
}

/** Reads the attachments of a case in the form of answers. */
export async function readCaseAttachments(
  sql: Sql,
  { publicUrl, projectId }: { publicUrl: string; projectId: string },
  results: readonly ResultKey[],
): Promise<CaseAttachments<CaseAttachment>> {
  const filesOf = await readCaseFiles(sql, projectId, results, { hasPreviews: false });
  return (result) =>
    filesOf(result).map(({ runId: _, number: __, preview: ___, mediaType, ...rest }) => ({
      ...rest,
      contentType: mediaType,
      url: attachmentUrl(publicUrl, projectId, rest.id),
    }));
}
