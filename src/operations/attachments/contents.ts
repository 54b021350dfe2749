/** Puts the content of attachments into the store, and removes what nobody needs any more. */

import { StoreAwayError } from "../../attachments/content.ts";
import type { SpooledFile } from "../../attachments/spool.ts";
import type { AttachmentServices } from "../../attachments/store.ts";
import type { Database, Sql } from "../../database/connect.ts";
import { lockAgainstBackup } from "../../database/snapshot.ts";
import {
  claimContents,
  deleteContent,
  deleteSettledContents,
  lockLooseContent,
  type LooseContent,
  releaseLooseContents,
  updateStored,
} from "../../store/attachment_contents.ts";

/** Files that are put into the store side by side. */
const PARALLEL = 4;

/**
 * Resolves when the content is stored durably; its files are gone then. Answers the hashes of content that could not be
 * stored. What is stored stays for an hour, within which an attachment must refer to it.
 */
export async function storeContents(
  sql: Sql,
  { store, counters }: Pick<AttachmentServices, "store" | "counters">,
  projectId: string,
  files: readonly SpooledFile[],
): Promise<{ failed: Set<string>; error: StoreAwayError | undefined }> {
  const failed = new Set<string>();
  let error: StoreAwayError | undefined;
  if (files.length === 0) return { failed, error };
  const known = await claimContents(sql, projectId, files);
  const left = [...new Map(files.map((file) => [file.sha256, file])).values()];
  const stored: string[] = [];

  async function storeOne({ sha256, file, bytes }: SpooledFile): Promise<void> {
    const key = { projectId, sha256 };
    try {
      // A store that was restored from an older copy may lack what the database knows.
      if (known.has(sha256) && (await store.has(key))) return;
      await store.put(key, file);
      counters.stored(bytes);
      stored.push(sha256);
    } catch (thrown) {
      if (!(thrown instanceof StoreAwayError)) throw thrown;
      error = thrown;
      counters.failed();
      failed.add(sha256);
    }
  }

  const work = async () => {
    for (let file = left.shift(); file; file = left.shift()) {
      // One that is away would be asked for each file in turn, until the request's time is over.
      if (error) failed.add(file.sha256);
      else await storeOne(file);
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, work));
  if (stored.length > 0) await updateStored(sql, projectId, stored);
  return { failed, error };
}

const PORTION = 200;
const QUEUED_PORTION = 5_000;

/**
 * Removes content that no attachment has. An upload of the same content waits for the row of what is being removed, and
 * stores it again; what an upload has claimed within the last hour is left alone, and so is everything while a backup runs. Answers how many were
 * removed.
 */
export async function sweepContents(
  { pool, begin }: Pick<Database, "pool" | "begin">,
  { store }: Pick<AttachmentServices, "store">,
  goOn: () => boolean,
): Promise<number> {
  let removed = 0;
  while (goOn() && (await deleteSettledContents(pool, QUEUED_PORTION)) === QUEUED_PORTION);
  let last: LooseContent | undefined;
  while (goOn()) {
    const loose = await releaseLooseContents(pool, PORTION, last);
    last = loose.at(-1);
    for (const content of loose) {
      if (!goOn()) return removed;
      if (await begin((sql) => removeContent(sql, store, content))) removed++;
    }
    if (loose.length < PORTION) return removed;
  }
  return removed;
}

async function removeContent(
  sql: Parameters<typeof lockLooseContent>[0],
  store: AttachmentServices["store"],
  content: LooseContent,
): Promise<boolean> {
  // A backup that is running may have to read it.
  if (!(await lockAgainstBackup(sql))) return false;
  if (!(await lockLooseContent(sql, content))) return false;
  await store.remove(content);
  await deleteContent(sql, content);
  return true;
}
