/** Downloads the attachments that an export lists into a directory: files that are there already are kept. */

import { mkdir, open, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { isWriteFailure, toFileError } from "../file_failure.ts";
import { askStream, messageOf, type Patience, type ServerAddress, tryPatiently } from "./client.ts";
import { createExportLines } from "./export_lines.ts";

/** An attachment as an export lists it. */
type Listed = { id: string; sha256: string; bytes: number };

export type Downloaded = {
  /** Files that were written, and those that were there already. */
  files: number;
  kept: number;
  bytes: number;
  /** Attachments whose content the server no longer has. */
  missing: number;
};

const IDLE_MS = 90_000;
/** A download is one request: the next window of the rate limit is waited for. */
const PATIENCE: Patience = { waitsMs: [1_000, 5_000, 15_000], withinMs: 180_000 };

const IS_ID = /^[0-9a-f-]{36}$/;
const IS_SHA256 = /^[0-9a-f]{64}$/;

/** Reads the attachments of a file one after the other; throws IncompleteExportError if the file is not a complete export. */
async function* listedIn(path: string): AsyncGenerator<Listed, void> {
  let listed: Listed[] = [];
  const lines = createExportLines(({ type, id, sha256, bytes }) => {
    if (type === "attachment" && IS_ID.test(String(id)) && IS_SHA256.test(String(sha256)))
      listed.push({ id: String(id), sha256: String(sha256), bytes: Number(bytes) });
  });
  for await (const chunk of Bun.file(path).stream()) {
    lines.take(chunk);
    yield* listed;
    listed = [];
  }
  lines.end();
}

/** Whether the file has the content that its name says: another program may have changed it. */
async function isThere(path: string, { bytes, sha256 }: Listed): Promise<boolean> {
  const size = await stat(path).then(
    (stats) => (stats.isFile() ? stats.size : undefined),
    () => undefined,
  );
  if (size !== bytes) return false;
  const hash = new Bun.CryptoHasher("sha256");
  for await (const chunk of Bun.file(path).stream()) hash.update(chunk);
  return hash.digest("hex") === sha256;
}

/** Each content is stored once, under its SHA-256. Throws ServerAwayError, and an Error if a content is not what the export names. */
export async function downloadAttachments(
  address: ServerAddress,
  { file, directory, signal }: { file: string; directory: string; signal: AbortSignal },
): Promise<Downloaded> {
  await mkdir(directory, { recursive: true }).catch((error) => {
    throw toFileError(error, "write", directory);
  });
  const downloaded: Downloaded = { files: 0, kept: 0, bytes: 0, missing: 0 };
  for await (const listed of listedIn(file)) {
    const target = join(directory, listed.sha256);
    if (await isThere(target, listed)) downloaded.kept++;
    else if (await download(address, listed, target, signal)) {
      downloaded.files++;
      downloaded.bytes += listed.bytes;
    } else downloaded.missing++;
  }
  return downloaded;
}

/** Returns false if the server does not have the content. */
async function download(
  address: ServerAddress,
  { id, sha256 }: Listed,
  target: string,
  signal: AbortSignal,
): Promise<boolean> {
  const partial = `${target}.partial`;
  try {
    const answer = await tryPatiently(async () => {
      const answer = await askStream(address, { path: `/attachments/${id}`, idleMs: IDLE_MS, signal });
      if (answer.status === 200) await store(answer.body, partial, sha256);
      return answer;
    }, PATIENCE);
    if (answer.status === 404) return false;
    if (answer.status !== 200) throw new Error(`Cannot download the attachment ${id}: ${messageOf(answer)}`);
    await rename(partial, target);
    return true;
  } catch (error) {
    throw isWriteFailure(error, target) ? toFileError(error, "write", target) : error;
  } finally {
    await rm(partial, { force: true });
  }
}

async function store(body: AsyncIterable<Uint8Array>, path: string, sha256: string): Promise<void> {
  const hash = new Bun.CryptoHasher("sha256");
  const handle = await open(path, "w", 0o600);
  try {
    for await (const chunk of body) {
      hash.update(chunk);
      await handle.writeFile(chunk);
    }
  } finally {
    await handle.close();
  }
  const actual = hash.digest("hex");
  if (actual !== sha256) throw new Error(`The content of an attachment has the SHA-256 ${actual}, expected ${sha256}`);
}
