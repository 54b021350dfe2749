/** Adds files, whose content is stored, to a run. */

import { tooManyBytes, tooManyFiles } from "../../attachments/refusals.ts";
import type { AttachmentLimits } from "../../attachments/store.ts";
import { takeLock } from "../../database/locks.ts";
import { type Sql, toRows, type Tx } from "../../database/connect.ts";
import {
  insertAttachments,
  type NewAttachment,
  type RunAttachment,
  selectAttachedBytes,
  selectAttachmentsOfRun,
  selectTargets,
  type UploadDigest,
} from "../../store/attachments.ts";
import { toStorable } from "../../schema/fields.ts";
import { type ContentVersion, releaseClaims } from "../../store/attachment_contents.ts";
import type { NamedFile } from "./collect.ts";

type AttachedFiles = {
  /** The ids of the attachments that the files are by now, in their order; undefined for what was left out. */
  ids: (string | undefined)[];
  /** Whether something was added. */
  added: boolean;
  /** Sentences about files beyond the limits. */
  warnings: string[];
  /** Hashes of content that was stored for files which were left out, and is to be removed after the commit. */
  released: string[];
};

type AttachOptions = {
  limits: AttachmentLimits;
  /** The upload that the files came with; undefined: whichever refers to them. */
  upload: UploadDigest | undefined;
  /** Content that was stored for these files. */
  stored: readonly ContentVersion[];
};

const keyOf = ({ path, shard, attempt, sha256 }: Omit<RunAttachment, "id">) =>
  JSON.stringify([path, shard, attempt, sha256]);

type OfRun = { id: string; executionId: string };

/** Plans what `attachFiles` does, before anything is stored. `ids` are those of rows, or of existing attachments. */
export async function planFiles(
  sql: Sql,
  projectId: string,
  run: OfRun,
  files: readonly NamedFile[],
  { limits, upload }: Omit<AttachOptions, "stored">,
): Promise<Pick<AttachedFiles, "ids" | "warnings"> & { rows: NewAttachment[] }> {
  const targets = await selectTargets(sql, projectId, run.id, [...new Set(files.map(({ path }) => path))], upload);
  const byPath = new Map(targets.map((target) => [target.path, target]));
  const known = new Map((await selectAttachmentsOfRun(sql, projectId, run.id)).map((row) => [keyOf(row), row.id]));
  let left = limits.maxExecutionBytes - (await selectAttachedBytes(sql, projectId, run.executionId));
  const rows: NewAttachment[] = [];
  const warnings: string[] = [];
  const ids = files.map(({ path, name, sha256, bytes, mediaType, preview: text }) => {
    const { shard, attempt } = byPath.get(path)!;
    const own = { path, shard, attempt, sha256 };
    const there = known.get(keyOf(own));
    if (there !== undefined) return there;
    if (known.size >= limits.maxFiles) return void warnings.push(tooManyFiles(path, limits.maxFiles));
    if (bytes > left) return void warnings.push(tooManyBytes(path, limits.maxExecutionBytes));
    const id = Bun.randomUUIDv7();
    left -= bytes;
    known.set(keyOf(own), id);
    const preview = text === null ? null : toStorable(text);
    rows.push({ ...own, id, runId: run.id, name, bytes, mediaType, preview });
    return id;
  });
  return { ids, warnings, rows };
}

/** A file that the run has already under the same path is not added again. */
export async function attachFiles(
  sql: Tx,
  projectId: string,
  run: OfRun,
  files: readonly NamedFile[],
  { stored, ...options }: AttachOptions,
): Promise<AttachedFiles> {
  await takeLock(sql, ["attachments", run.executionId]);
  const { ids, warnings, rows } = await planFiles(sql, projectId, run, files, options);
  if (rows.length > 0) await insertAttachments(sql, projectId, toRows(rows));
  const refused = new Set(files.flatMap(({ sha256 }, index) => (ids[index] === undefined ? [sha256] : [])));
  const claims = stored.filter(({ sha256 }) => refused.has(sha256));
  const released = claims.length === 0 ? [] : await releaseClaims(sql, projectId, claims);
  return { ids, added: rows.length > 0, warnings, released: released.map(({ sha256 }) => sha256) };
}
