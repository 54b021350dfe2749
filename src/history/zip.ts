/** Reads ZIP archives, as artifacts are downloaded: the list of their files, and the content of each. */

import { crc32, inflateRawSync } from "node:zlib";

export type ZipEntry = {
  /** With "/" between folders. */
  path: string;
  size: number;
  /** Throws an Error that says what is wrong with the content. */
  read: () => Uint8Array<ArrayBuffer>;
};

const END_SIGNATURE = 0x06054b50;
const END_BYTES = 22;
const MAX_COMMENT_BYTES = 65_535;
const ENTRY_SIGNATURE = 0x02014b50;
const ENTRY_BYTES = 46;
const LOCAL_SIGNATURE = 0x04034b50;
const LOCAL_BYTES = 30;
/** In place of a number that has more than 32 bits. */
const ZIP64 = 0xffffffff;
const ENCRYPTED_FLAG = 1;
const STORED = 0;
const DEFLATED = 8;
const MAX_ENTRY_BYTES = 2 ** 30;

function findEnd(view: DataView): number {
  const first = Math.max(0, view.byteLength - END_BYTES - MAX_COMMENT_BYTES);
  for (let at = view.byteLength - END_BYTES; at >= first; at--)
    if (view.getUint32(at, true) === END_SIGNATURE) return at;
  throw new Error("it is not a ZIP archive, or it breaks off");
}

/** Folders are left out, and paths that would lead out of the archive. Throws an Error that says what is wrong with the archive. */
export function readZip(bytes: Uint8Array<ArrayBuffer>): ZipEntry[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  try {
    const end = findEnd(view);
    const count = view.getUint16(end + 10, true);
    const entries: ZipEntry[] = [];
    let at = view.getUint32(end + 16, true);
    if (at === ZIP64) throw new Error("it is a ZIP64 archive, which is not supported: unpack it");
    for (let index = 0; index < count; index++) {
      if (view.getUint32(at, true) !== ENTRY_SIGNATURE) throw new Error("its list of files is damaged");
      const [nameLength, extraLength] = [view.getUint16(at + 28, true), view.getUint16(at + 30, true)];
      const path = new TextDecoder()
        .decode(bytes.subarray(at + ENTRY_BYTES, at + ENTRY_BYTES + nameLength))
        .replaceAll("\\", "/");
      const entry = at;
      if (!path.endsWith("/") && !path.split("/").some((part) => part === "" || part === ".."))
        entries.push({ path, size: view.getUint32(at + 24, true), read: () => readEntry(bytes, view, entry) });
      at += ENTRY_BYTES + nameLength + extraLength + view.getUint16(at + 32, true);
    }
    return entries;
  } catch (error) {
    if (error instanceof RangeError) throw new Error("it is a damaged ZIP archive");
    throw error;
  }
}

function readEntry(bytes: Uint8Array<ArrayBuffer>, view: DataView, entry: number): Uint8Array<ArrayBuffer> {
  const [flags, method] = [view.getUint16(entry + 8, true), view.getUint16(entry + 10, true)];
  const [crc, packed, size] = [16, 20, 24].map((offset) => view.getUint32(entry + offset, true)) as [
    number,
    number,
    number,
  ];
  const local = view.getUint32(entry + 42, true);
  if (flags & ENCRYPTED_FLAG) throw new Error("it is encrypted");
  if (size > MAX_ENTRY_BYTES) throw new Error(`it has ${size} bytes, more than any server accepts`);
  if (local + LOCAL_BYTES > bytes.length || view.getUint32(local, true) !== LOCAL_SIGNATURE)
    throw new Error("its archive is damaged");
  const start = local + LOCAL_BYTES + view.getUint16(local + 26, true) + view.getUint16(local + 28, true);
  const content = bytes.subarray(start, start + packed);
  const plain = unpack(content, method, size);
  if (plain.length !== size || crc32(plain) !== crc) throw new Error("its archive is damaged");
  return plain;
}

function unpack(content: Uint8Array<ArrayBuffer>, method: number, size: number): Uint8Array<ArrayBuffer> {
  if (method === STORED) return content;
  if (method !== DEFLATED) throw new Error(`it is compressed with method ${method}, which is not supported`);
  try {
    return new Uint8Array(inflateRawSync(content, { maxOutputLength: Math.max(1, size) }));
  } catch {
    throw new Error("its archive is damaged");
  }
}
