/** Writes a backup file. */

import type { FileHandle } from "node:fs/promises";
import { createZstdCompress } from "node:zlib";
import { writeCompleteFile } from "./complete_file.ts";
import { type BackupHeader, type BackupTotals, countRows, FIRST_LINE, toLastLine } from "./format.ts";
import { encodeData, encodeJson } from "./frames.ts";

type Chunks = AsyncIterable<Uint8Array>;

export type BackupWriter = {
  header(header: BackupHeader): Promise<void>;
  /** Returns the number of rows. */
  table(name: string, chunks: Chunks): Promise<number>;
  /** Returns whether the chunks are the content that its key names. */
  content(key: { projectId: string; sha256: string }, chunks: Chunks): Promise<boolean>;
  end(totals: BackupTotals): Promise<void>;
};

/** Throws an Error if there is a file already. */
export const writeBackup = <T>(path: string, work: (writer: BackupWriter) => Promise<T>, signal?: AbortSignal) =>
  writeCompleteFile(path, (handle) => compressTo(handle, work, signal));

/** Writes the compressed file from its first line to its last into `handle`. */
export async function compressTo<T>(
  handle: FileHandle,
  work: (writer: BackupWriter) => Promise<T>,
  signal: AbortSignal | undefined,
): Promise<T> {
  const digest = new Bun.CryptoHasher("sha256").update(FIRST_LINE);
  await handle.writeFile(FIRST_LINE);
  const zstd = createZstdCompress();
  const written = (async () => {
    for await (const chunk of zstd as Chunks) {
      digest.update(chunk);
      await handle.writeFile(chunk);
    }
  })();
  written.catch(() => {});

  async function write(parts: Iterable<Uint8Array>): Promise<void> {
    signal?.throwIfAborted();
    let hasRoom = true;
    for (const part of parts) hasRoom = zstd.write(part);
    if (hasRoom) return;
    const { promise: drained, resolve } = Promise.withResolvers<void>();
    zstd.once("drain", resolve);
    // A full disk ends the reader of the stream: then nothing drains it any more.
    await Promise.race([drained, written]);
  }

  try {
    const result = await work(createSections(write));
    zstd.end();
    await written;
    await handle.writeFile(toLastLine(digest.digest("hex")));
    return result;
  } finally {
    zstd.destroy();
  }
}

function createSections(write: (parts: Iterable<Uint8Array>) => Promise<void>): BackupWriter {
  async function section(start: object, chunks: Chunks, isTable: boolean) {
    await write(encodeJson(start));
    const hash = new Bun.CryptoHasher("sha256");
    let [rows, bytes] = [0, 0];
    for await (const chunk of chunks) {
      hash.update(chunk);
      bytes += chunk.byteLength;
      if (isTable) rows += countRows(chunk);
      await write(encodeData(chunk));
    }
    const sha256 = hash.digest("hex");
    await write(encodeJson({ bytes, ...(isTable ? { rows } : {}), sha256 }));
    return { rows, sha256 };
  }

  return {
    header: (header) => write(encodeJson(header)),
    table: async (name, chunks) => (await section({ table: name }, chunks, true)).rows,
    content: async (key, chunks) => (await section({ content: key }, chunks, false)).sha256 === key.sha256,
    end: (totals) => write(encodeJson({ end: totals })),
  };
}
