/** Finds the files that the reports of a run name as attachments, in the order in which they are sent. */

import { dirname } from "node:path";
import { DEFAULT_MAX_INFLATED_BYTES, cutPrelude, readReport } from "../reports/read.ts";
import type { Report, ReportedCase } from "../reports/report.ts";
import type { AttachmentFile } from "./attachment_file.ts";

/** The test cases whose attachments are sent: those that failed at least once, or all. */
export type AttachmentScope = "failed" | "all";

/** An attachment. `bases` are the folders that a relative path may start at; `file` is it if it is open already. */
export type NamedAttachment = {
  path: string;
  name: string;
  contentType: string | null;
  bases: string[];
  file?: AttachmentFile;
};

const hasFailed = ({ status, flaky }: ReportedCase): boolean => status === "failed" || flaky;

/**
 * Reads the report files and returns the attachments that they name, each path once: first those of no test case, then those of failed
 * cases, then the others. Files of one folder are read together, because they may contain attempts of one test. A report that cannot be
 * parsed names no attachments; the server reports the error.
 */
export function findNamedAttachments(
  files: readonly { path: string; bytes: Uint8Array<ArrayBuffer> }[],
  { format, scope, root }: { format: string | undefined; scope: AttachmentScope; root: string },
): NamedAttachment[] {
  const found = [...Map.groupBy(files, ({ path }) => dirname(path))].flatMap(([folder, group]) => {
    const report = tryToRead(group, format);
    const bases = folder === root ? [root] : [folder, root];
    return report ? [...attachmentsOf(report, scope)].map((one) => ({ ...one, bases })) : [];
  });
  const ranked = found.toSorted((a, b) => a.rank - b.rank);
  const first = new Map<string, NamedAttachment>();
  for (const { rank: _, ...one } of ranked) if (!first.has(one.path)) first.set(one.path, one);
  return [...first.values()];
}

function tryToRead(files: readonly { path: string; bytes: Uint8Array<ArrayBuffer> }[], format: string | undefined) {
  try {
    const named = files.map(({ path, bytes }) => ({ name: path, bytes: cutPrelude(bytes)?.bytes ?? bytes }));
    const forced = format === undefined ? {} : { format };
    return readReport(named, { ...forced, maxInflatedBytes: DEFAULT_MAX_INFLATED_BYTES, mayBeEmpty: true });
  } catch {
    return undefined;
  }
}

function* attachmentsOf(report: Report, scope: AttachmentScope) {
  const owners = [
    { attachments: report.attachments, isFailed: report.cases.some(hasFailed), rank: 0 },
    ...report.cases.map((one) => ({
      attachments: one.attachments,
      isFailed: hasFailed(one),
      rank: one.status === "failed" ? 1 : one.flaky ? 2 : 3,
    })),
  ];
  for (const { attachments = [], isFailed, rank } of owners)
    for (const { path, name, contentType, body } of attachments)
      // Attachments with a body in the report itself are already on the server.
      if (path !== null && body === null && (isFailed || scope === "all")) yield { path, name, contentType, rank };
}
