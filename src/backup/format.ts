/** Describes the contents of a backup file: its header, and how its parts begin and end.
 *
 * After a first line in plain text comes one zstd stream of frames (frames.ts): the header, the tables in the order of the header, the
 * content of attachments, the end. A table and a content begin and end with a frame of JSON, and frames of data lie between. The data
 * of a table is the text format of COPY. A last line in plain text has the SHA-256 of everything before it.
 */

import * as v from "valibot";

/** A later format has another number in the line. */
export const FIRST_LINE = "ASSAY BACKUP 1\n";

export const toLastLine = (digest: string): string => `\nASSAY END ${digest}\n`;
export const LAST_LINE = /^\nASSAY END ([0-9a-f]{64})\n$/;
export const LAST_LINE_BYTES = toLastLine("0".repeat(64)).length;

const name = v.pipe(v.string(), v.regex(/^[a-z_][a-z0-9_]{0,62}$/));
const count = v.pipe(v.number(), v.integer(), v.minValue(0));
const sha256 = v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/));

const table = v.object({ name, columns: v.array(name) });
const partition = v.object({
  name,
  parent: name,
  // The bound becomes part of a statement, so its format is restricted.
  bound: v.pipe(v.string(), v.regex(/^(DEFAULT|FOR VALUES FROM \('[0-9a-f-]+'\) TO \('[0-9a-f-]+'\))$/)),
});
const sequence = v.object({ name, value: count, isCalled: v.boolean() });

/**
 * The location of the content of attachments: in the file, in an S3 bucket that the file only names, or nowhere, because it was left out.
 */
const attachments = v.variant("content", [
  v.object({ content: v.literal("included") }),
  v.object({ content: v.literal("s3"), location: v.string() }),
  v.object({ content: v.literal("omitted") }),
]);

export const backupHeader = v.object({
  /** The version of Assay that wrote the file. */
  assay: v.string(),
  /** Number of migrations of the database. */
  schema: count,
  /** The major version of PostgreSQL. */
  postgres: count,
  takenAt: v.pipe(v.string(), v.isoTimestamp()),
  /** Identifies the secret key without revealing anything about it, hexadecimal; null: the database has none yet. */
  secretKeyDigest: v.nullable(v.pipe(v.string(), v.regex(/^[0-9a-f]+$/))),
  attachments,
  tables: v.array(table),
  partitions: v.array(partition),
  sequences: v.array(sequence),
});
export type BackupHeader = v.InferOutput<typeof backupHeader>;
export type BackupAttachments = BackupHeader["attachments"];

export const tableStart = v.object({ table: name });
export const contentStart = v.object({ content: v.object({ projectId: v.pipe(v.string(), v.uuid()), sha256 }) });
/** The digest is that of the data in between. */
export const sectionEnd = v.object({ bytes: count, rows: v.optional(count), sha256 });

/** The totals of a complete file. */
const backupTotals = v.object({
  tables: count,
  rows: count,
  /** Content of attachments. */
  contents: count,
  /** Content of attachments that the store had lost, or that was damaged there. */
  lost: count,
});
export type BackupTotals = v.InferOutput<typeof backupTotals>;
export const fileEnd = v.object({ end: backupTotals });

/** The file cannot be read as a backup; the message says why in one sentence. */
export class BackupError extends Error {
  override name = "BackupError";
}

/** A line feed ends each row of COPY's text format, and occurs nowhere else. */
export function countRows(chunk: Uint8Array): number {
  let rows = 0;
  for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, at + 1)) rows++;
  return rows;
}
