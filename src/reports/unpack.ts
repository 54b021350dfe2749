/** Decompresses gzip, zstd and zip, recognised by their first bytes, without ever using much more memory than allowed. */

import { gunzipSync, unzipSync, zstdDecompressSync } from "node:zlib";
import { ReportError } from "./report.ts";
import { decode, plural } from "./text.ts";
import { isZip, listZip, readZipEntry, type Resources } from "./zip.ts";

const startsWith = (bytes: Uint8Array, ...magic: number[]) => magic.every((byte, at) => bytes[at] === byte);
const isGzip = (bytes: Uint8Array) => startsWith(bytes, 0x1f, 0x8b);
const isZstd = (bytes: Uint8Array) => startsWith(bytes, 0x28, 0xb5, 0x2f, 0xfd);

/**
 * `max` bounds the answer, and a refusal names the `variable` that sets it; one layer is undone, a second one is an attack or a mistake. Of
 * a blob report of Playwright, which is a zip archive, returns the events.
 */
export function unpack(bytes: Uint8Array, max: number, variable?: string): Uint8Array {
  const packing = isGzip(bytes) ? "gzip" : isZstd(bytes) ? "zstd" : null;
  const plain = packing ? inflate(bytes, packing, max, variable) : bytes;
  if (plain.length > max) throw tooLarge(max, variable);
  if (packing && (isGzip(plain) || isZstd(plain))) throw new ReportError("it is compressed twice");
  if (!isZip(plain)) return plain;
  const entries = listZip(plain);
  const events = eventsIn(entries);
  if (!events) return plain;
  const content = readZipEntry(plain, ...events, max);
  if (content === null) throw tooLarge(max, variable);
  return content;
}

type ZipEntries = ReturnType<typeof listZip>;

/** Returns the events of a blob report of Playwright, which its archive holds beside attached files. */
const eventsIn = (entries: ZipEntries) =>
  [...entries].find(([name]) => name.endsWith(".jsonl") && !name.startsWith("resources/"));

/** Returns the files that a blob report holds beside its events; null if it is none. */
export function openResources(bytes: Uint8Array): Resources | null {
  if (!isZip(bytes)) return null;
  const entries = listZip(bytes);
  if (!eventsIn(entries)) return null;
  let room = MAX_RESOURCES_BYTES;
  return (name) => {
    const entry = entries.get(name);
    const content = entry ? readZipEntry(bytes, name, entry, room) : null;
    room -= content?.length ?? 0;
    return content;
  };
}

/** Maximum bytes of all attached files together: readers keep no more. */
const MAX_RESOURCES_BYTES = 50 * 2 ** 20;

function inflate(bytes: Uint8Array, packing: "gzip" | "zstd", max: number, variable: string | undefined): Uint8Array {
  // Bun answers what it has of a zstd stream that breaks off, instead of failing.
  if (packing === "zstd" && !isWholeZstd(bytes)) throw new ReportError("its zstd data breaks off");
  try {
    // Bun.gunzipSync and Bun.zstdDecompressSync know no limit.
    const options = { maxOutputLength: Math.max(1, max) };
    return packing === "gzip" ? gunzipSync(bytes, options) : zstdDecompressSync(bytes, options);
  } catch (error) {
    const { code, message } = error as Error & { code?: string };
    if (code === "ERR_BUFFER_TOO_LARGE") throw tooLarge(max, variable);
    throw new ReportError(`its ${packing} data is broken: ${message}`);
  }
}

function tooLarge(max: number, variable?: string): ReportError {
  const size = max >= 2 ** 20 ? `${Math.floor(max / 2 ** 20)} MiB` : `${max} bytes`;
  return new ReportError(`it is larger than ${size}${variable ? ` (${variable} of the server)` : ""}`);
}

/** Follows the block sizes of RFC 8878, section 3.1, without looking into the blocks. */
function isWholeZstd(bytes: Uint8Array): boolean {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let at = 0;
  while (at < bytes.length) {
    if (at + 8 > bytes.length) return false;
    const magic = view.getUint32(at, true);
    if (magic >>> 4 === 0x184d2a5) {
      at += 8 + view.getUint32(at + 4, true);
      continue;
    }
    if (magic !== 0xfd2fb528) return false;
    const flags = view.getUint8(at + 4);
    const single = (flags >> 5) & 1;
    at += 5 + (1 - single) + [0, 1, 2, 4][flags & 3]! + [single, 2, 4, 8][flags >> 6]!;
    for (let last = 0; !last;) {
      if (at + 3 > bytes.length) return false;
      const header = view.getUint16(at, true) | (view.getUint8(at + 2) << 16);
      last = header & 1;
      at += 3 + (((header >> 1) & 3) === 1 ? 1 : header >> 3);
    }
    at += flags & 4;
  }
  return at === bytes.length;
}

/** Maximum bytes of one text, and of all texts of a report. */
const MAX_TEXT_BYTES = 8 * 2 ** 20;
const MAX_TEXTS_BYTES = 64 * 2 ** 20;

export type TextInflater = ReturnType<typeof createTextInflater>;

/** Reads base64 texts inside a report, of which small ones may decompress to large ones; counts omitted ones. */
export function createTextInflater() {
  let room = MAX_TEXTS_BYTES;
  let leftOut = 0;
  return {
    /** Returns "" for a text that is too large or broken. */
    read(base64: string, isCompressed: boolean): string {
      const bytes = Buffer.from(base64, "base64");
      try {
        const max = Math.min(room, MAX_TEXT_BYTES);
        const plain = isCompressed ? unzipSync(bytes, { maxOutputLength: Math.max(1, max) }) : bytes;
        if (plain.length > max) throw tooLarge(max);
        room -= plain.length;
        return decode(plain);
      } catch {
        leftOut++;
        return "";
      }
    },
    warnings: (): string[] =>
      leftOut === 0 ? [] : [`Left out ${plural(leftOut, "compressed output")}: broken, or larger than is kept`],
  };
}
