/** Puts the content of attachments into the store, and removes content that is no longer needed. */

import { StoreAwayError } from "../../attachments/content.ts";
import type { SpooledFile } from "../../attachments/spool.ts";
import type { AttachmentServices } from "../../attachments/store.ts";
import type { Database, Sql } from "../../database/connect.ts";
import { lockAgainstBackup } from "../../database/snapshot.ts";
import {
  claimContents,
  type ContentVersion,
  deleteContent,
  deleteSettledContents,
  lockLooseContent,
  type LooseContent,
  releaseLooseContents,
  selectContentBytes,
  updateStored,
} from "../../store/attachment_contents.ts";

/** Maximum number of files that are stored concurrently. */
const MAX_PARALLEL = 4;

/** How long the stored bytes of a project are cached, together with what this thread adds. */
const USAGE_MS = 60_000;
const MAX_USAGES = 1_000;
const usages = new Map<string, { bytes: number; until: number }>();

/** Bytes of the content of a project, some seconds old. */
async function usageOf(sql: Sql, projectId: string): Promise<{ bytes: number }> {
  const known = usages.get(projectId);
  if (known && performance.now() < known.until) return known;
  const usage = { bytes: await selectContentBytes(sql, projectId), until: performance.now() + USAGE_MS };
  usages.delete(projectId);
  usages.set(projectId, usage);
  if (usages.size > MAX_USAGES) usages.delete(usages.keys().next().value!);
  return usage;
}

type StoredContents = {
  /** Hashes of content that could not be stored. */
  failed: Set<string>;
  error: StoreAwayError | undefined;
  /** Hashes of content that the project has no room for. */
  withoutRoom: Set<string>;
  /** Content that only this upload has claimed: it is removed if no attachment refers to it. */
  added: ContentVersion[];
};

/**
 * Resolves when the content is stored durably; its files are then removed. Stored content stays for an hour, within which an attachment
 * must refer to it.
 */
export async function storeContents(
  sql: Sql,
  { store, counters, limits }: Pick<AttachmentServices, "store" | "counters" | "limits">,
  projectId: string,
  given: readonly SpooledFile[],
): Promise<StoredContents> {
  const [failed, withoutRoom] = [new Set<string>(), new Set<string>()];
  let error: StoreAwayError | undefined;
  if (given.length === 0) return { failed, error, withoutRoom, added: [] };
  const usage = limits.maxProjectBytes === 0 ? { bytes: -Infinity } : await usageOf(sql, projectId);
  const files = given.filter(({ sha256, bytes }) => {
    const fits = usage.bytes + bytes <= limits.maxProjectBytes;
    if (!fits) withoutRoom.add(sha256);
    return fits;
  });
  if (files.length === 0) return { failed, error, withoutRoom, added: [] };
  const claims = await claimContents(sql, projectId, files);
  const left = [...new Map(files.map((file) => [file.sha256, file])).values()];
  const stored: string[] = [];

  async function storeOne({ sha256, file, bytes }: SpooledFile): Promise<void> {
    const key = { projectId, sha256 };
    try {
      // A store restored from an older copy may lack contents that the database lists.
      const claim = claims.get(sha256)!;
      if (claim.isStored && (await store.has(key))) return;
      await store.put(key, file);
      if (claim.isNew) usage.bytes += bytes;
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
      // If the store is unavailable, requesting each file in turn would exceed the time of the request.
      if (error) failed.add(file.sha256);
      else await storeOne(file);
    }
  };
  await Promise.all(Array.from({ length: MAX_PARALLEL }, work));
  const versions = stored.length > 0 ? await updateStored(sql, projectId, stored) : [];
  return { failed, error, withoutRoom, added: versions.filter(({ sha256 }) => claims.get(sha256)?.isNew) };
}

/** Removes content that a committed transaction has released. */
export async function removeReleased(
  { begin }: Pick<Database, "begin">,
  { store }: Pick<AttachmentServices, "store">,
  projectId: string,
  hashes: readonly string[],
): Promise<void> {
  usages.delete(projectId);
  for (const sha256 of hashes) await begin((sql) => removeContent(sql, store, { projectId, sha256 }));
}

const BATCH_SIZE = 200;
const QUEUED_BATCH_SIZE = 5_000;

/**
 * Removes content without attachments and returns the number. An upload of the same content waits for the row of the removed one, and
 * stores it again. Content claimed by an upload within the last hour stays, and so does everything while a backup runs.
 */
export async function sweepContents(
  { pool, begin }: Pick<Database, "pool" | "begin">,
  { store }: Pick<AttachmentServices, "store">,
  goOn: () => boolean,
): Promise<number> {
  let removed = 0;
  while (goOn() && (await deleteSettledContents(pool, QUEUED_BATCH_SIZE)) === QUEUED_BATCH_SIZE);
  let last: LooseContent | undefined;
  while (goOn()) {
    const loose = await releaseLooseContents(pool, BATCH_SIZE, last);
    last = loose.at(-1);
    for (const content of loose) {
      if (!goOn()) return removed;
      if (await begin((sql) => removeContent(sql, store, content))) removed++;
    }
    if (loose.length < BATCH_SIZE) return removed;
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
