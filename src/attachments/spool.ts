/** Writes files to disk while they arrive, so that no attachment is ever in memory as a whole. */

import { type FileHandle, mkdir, open, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { type MediaType, sniffMediaType, SNIFFED_BYTES } from "./media_type.ts";

/** A file that has arrived whole; plain data, so that it can go to another thread. */
export type SpooledFile = {
  /** The path on this machine. The recipient removes the file. */
  file: string;
  bytes: number;
  /** Hexadecimal. */
  sha256: string;
  mediaType: MediaType;
  /** The end of a text file; null for other files. */
  preview: string | null;
};

/** Number of bytes of a text that are kept as its preview. */
const PREVIEW_BYTES = 4_096;

/** Returns the text from its first whole character, or whole line where there is more of it. */
function toPreview(tail: Uint8Array, isWhole: boolean): string {
  const text = new TextDecoder().decode(tail);
  if (isWhole) return text;
  const line = text.indexOf("\n");
  return line === -1 || line > PREVIEW_BYTES / 2 ? text.replace(/^\ufffd+/, "") : text.slice(line + 1);
}

/** A file that has arrived under the path that its client gives it. */
export type ReceivedFile = SpooledFile & { path: string };

/** The result of a file: it was stored, it exceeds the limit, or it could not be written. */
export type SpoolEnd = { end: "spooled"; spooled: SpooledFile } | { end: "too large" | "failed" };

type SpoolWriter = {
  /** Never rejects: what cannot be written is said at the end. */
  write(chunk: Uint8Array): Promise<void>;
  finish(): Promise<SpoolEnd>;
  /** Removes what has been written. */
  discard(): Promise<void>;
};

export type Spool = {
  open(maxBytes: number): SpoolWriter;
  /** Removes files that a server which was killed has left. */
  sweep(now: Date): Promise<void>;
};

/** No request lasts for as long. */
const ABANDONED_AFTER_MS = 6 * 3_600_000;

/** `onError` is called for each file that cannot be written. */
export function createSpool(directory: string, onError: (error: unknown) => void): Spool {
  let isMade: Promise<unknown> | undefined;

  async function create(file: string): Promise<FileHandle> {
    await (isMade ??= mkdir(directory, { recursive: true, mode: 0o700 }));
    return await open(file, "wx", 0o600);
  }

  return {
    open(maxBytes) {
      const file = join(directory, crypto.randomUUID());
      const hash = new Bun.CryptoHasher("sha256");
      const head = new Uint8Array(SNIFFED_BYTES);
      let tail: Uint8Array = new Uint8Array();
      let handle: FileHandle | undefined;
      let bytes = 0;
      let end: "too large" | "failed" | undefined;

      async function remove(): Promise<void> {
        await handle?.close().catch(() => {});
        handle = undefined;
        await rm(file, { force: true }).catch(() => {});
      }

      async function giveUp(as: typeof end): Promise<void> {
        end = as;
        await remove();
      }

      async function write(chunk: Uint8Array): Promise<void> {
        if (end) return;
        if (bytes + chunk.byteLength > maxBytes) return await giveUp("too large");
        if (bytes < SNIFFED_BYTES) head.set(chunk.subarray(0, SNIFFED_BYTES - bytes), bytes);
        tail = Buffer.concat([tail, chunk.subarray(-PREVIEW_BYTES)]).subarray(-PREVIEW_BYTES);
        bytes += chunk.byteLength;
        hash.update(chunk);
        try {
          handle ??= await create(file);
          await handle.writeFile(chunk);
        } catch (error) {
          isMade = undefined;
          onError(error);
          await giveUp("failed");
        }
      }

      return {
        write,
        async finish() {
          if (bytes === 0 && !end) await write(new Uint8Array());
          if (end) return { end };
          await handle?.close();
          const mediaType = sniffMediaType(head.subarray(0, Math.min(bytes, SNIFFED_BYTES)));
          const preview = mediaType === "text/plain" ? toPreview(tail, bytes === tail.byteLength) : null;
          return { end: "spooled", spooled: { file, bytes, sha256: hash.digest("hex"), mediaType, preview } };
        },
        discard: remove,
      };
    },

    async sweep(now) {
      for (const name of await readdir(directory).catch((): string[] => [])) {
        const path = join(directory, name);
        const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Infinity }));
        if (mtimeMs < now.getTime() - ABANDONED_AFTER_MS) await rm(path, { force: true });
      }
    },
  };
}

/** Removes files that were not used. */
export const removeSpooled = async (files: readonly Pick<SpooledFile, "file">[]): Promise<void> =>
  void (await Promise.all(files.map(({ file }) => rm(file, { force: true }).catch(() => {}))));
