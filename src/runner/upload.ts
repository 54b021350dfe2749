/** A report on its way to the server: what its files hold, with the secrets hidden. */

import { readFileSync } from "node:fs";
import { relative } from "node:path";
import { decode } from "../reports/text.ts";
import { unpack } from "../reports/unpack.ts";
import type { Mask } from "../secrets/mask.ts";

/** The size that a server with default limits accepts, for all files together. */
const MAX_BYTES = 128 * 1_048_576;
/** Larger bodies are compressed. */
const GZIP_FROM = 262_144;

const BYTE_ORDER_MARK = new TextEncoder().encode("\ufeff");

export type ReportBody = { body: Uint8Array<ArrayBuffer>; headers: Record<string, string> };

/** Throws an error that says which file cannot be read and why. The same files make the same body. */
export async function readReportBody(paths: readonly string[], directory: string, mask: Mask): Promise<ReportBody> {
  let room = MAX_BYTES;
  const files: File[] = [];
  for (const path of paths) {
    const name = relative(directory, path);
    try {
      const plain = unpack(readFileSync(path), room);
      room -= plain.length;
      files.push(new File([new Uint8Array(await maskReport(plain, mask))], mask.text(name)));
    } catch (error) {
      throw new Error(`Cannot read the report ${JSON.stringify(name)}: ${(error as Error).message}`);
    }
  }
  return await pack(files.length === 1 ? new Response(await files[0]!.arrayBuffer()) : new Response(formOf(files)));
}

function formOf(files: readonly File[]): FormData {
  const form = new FormData();
  for (const file of files) form.append("report", file);
  return form;
}

async function pack(response: Response): Promise<ReportBody> {
  // Before the body is read: after it a form does not know its own boundary any more.
  const headers = { "Content-Type": response.headers.get("content-type") ?? "application/octet-stream" };
  const bytes = new Uint8Array(await response.arrayBuffer());
  if (bytes.length < GZIP_FROM) return { body: bytes, headers };
  return { body: Bun.gzipSync(bytes), headers: { ...headers, "Content-Encoding": "gzip" } };
}

/** Masks a report in any encoding. Where it is not UTF-8 and holds a secret, the result is UTF-8 with a byte order mark. */
async function maskReport(bytes: Uint8Array, mask: Mask): Promise<Uint8Array> {
  const isUtf8 = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).indexOf(0) < 0 && isValidUtf8(bytes);
  if (isUtf8) return await mask.bytes(bytes);
  const text = new TextEncoder().encode(decode(bytes));
  const masked = await mask.bytes(text);
  return Buffer.compare(masked, text) === 0 ? bytes : Buffer.concat([BYTE_ORDER_MARK, masked]);
}

function isValidUtf8(bytes: Uint8Array): boolean {
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}
