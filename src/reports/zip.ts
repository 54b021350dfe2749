/** Reads the files in a zip archive: PKWARE's APPNOTE, sections 4.3 and 4.4, without ZIP64 and encryption. */

import { crc32, inflateRawSync } from "node:zlib";
import { ReportError } from "./report.ts";

/** Returns the content of a file in an archive; null if it does not exist or is too large. */
export type Resources = (name: string) => Buffer | null;

type ZipEntry = { method: number; checksum: number; packedSize: number; size: number; headerAt: number };

const [LOCAL_HEADER, CENTRAL_HEADER, END] = [0x04034b50, 0x02014b50, 0x06054b50];
const [LOCAL_HEADER_SIZE, CENTRAL_HEADER_SIZE, END_SIZE] = [30, 46, 22];
const MAX_COMMENT_SIZE = 0xffff;
const [STORED, DEFLATED] = [0, 8];

export const isZip = (bytes: Uint8Array): boolean =>
  bytes.length >= END_SIZE && toBuffer(bytes).readUInt32LE(0) === LOCAL_HEADER;

/** Returns the entries by name. Throws a ReportError if the archive breaks off or its directory is malformed. */
export function listZip(bytes: Uint8Array): Map<string, ZipEntry> {
  const data = toBuffer(bytes);
  const end = endOfDirectory(data);
  const entries = new Map<string, ZipEntry>();
  let at = data.readUInt32LE(end + 16);
  for (let count = data.readUInt16LE(end + 10); count > 0; count--) {
    if (at + CENTRAL_HEADER_SIZE > end || data.readUInt32LE(at) !== CENTRAL_HEADER) throw broken("its directory");
    const nameEnd = at + CENTRAL_HEADER_SIZE + data.readUInt16LE(at + 28);
    entries.set(data.toString("utf8", at + CENTRAL_HEADER_SIZE, nameEnd), {
      method: data.readUInt16LE(at + 10),
      checksum: data.readUInt32LE(at + 16),
      packedSize: data.readUInt32LE(at + 20),
      size: data.readUInt32LE(at + 24),
      headerAt: data.readUInt32LE(at + 42),
    });
    at = nameEnd + data.readUInt16LE(at + 30) + data.readUInt16LE(at + 32);
  }
  return entries;
}

/** Returns the content, or null if it is larger than `max`. Throws a ReportError if it is broken. */
export function readZipEntry(bytes: Uint8Array, name: string, entry: ZipEntry, max: number): Buffer | null {
  if (entry.size > max) return null;
  const data = toBuffer(bytes);
  const { headerAt, packedSize, method } = entry;
  if (headerAt + LOCAL_HEADER_SIZE > data.length || data.readUInt32LE(headerAt) !== LOCAL_HEADER) throw broken(name);
  const from = headerAt + LOCAL_HEADER_SIZE + data.readUInt16LE(headerAt + 26) + data.readUInt16LE(headerAt + 28);
  const content = inflate(data.subarray(from, from + packedSize), method, entry.size);
  if (content?.length !== entry.size || crc32(content) !== entry.checksum) throw broken(name);
  return content;
}

/** Returns null for a method that is not supported, or data that is broken or longer than `size`. */
function inflate(packed: Buffer, method: number, size: number): Buffer | null {
  if (method === STORED) return packed;
  try {
    return method === DEFLATED ? inflateRawSync(packed, { maxOutputLength: Math.max(1, size) }) : null;
  } catch {
    return null;
  }
}

/** Finds the record that ends the archive; a comment may follow it. */
function endOfDirectory(data: Buffer): number {
  const first = Math.max(0, data.length - END_SIZE - MAX_COMMENT_SIZE);
  for (let at = data.length - END_SIZE; at >= first; at--)
    if (data.readUInt32LE(at) === END && at + END_SIZE + data.readUInt16LE(at + 20) === data.length) return at;
  throw new ReportError("its zip archive breaks off");
}

const broken = (what: string): ReportError => new ReportError(`its zip archive is broken: ${what.slice(0, 100)}`);

const toBuffer = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength);
