/** Separates files of a multipart form from the rest of it while it arrives, so that they are never in memory as a whole. */

import type { Bytes } from "./body.ts";
import { fail } from "./problem.ts";

/** The headers of a part. */
export type PartHeaders = { filename: string; contentType: string | null };

/** Takes the content of one part. */
type PartWriter = { write(chunk: Uint8Array): Promise<void>; close(): Promise<void> };

type PartSeparator = {
  /** Returns the bytes of the form that are kept. */
  push(chunk: Bytes): Promise<Bytes[]>;
  /** Call this after the last chunk. */
  end(): Promise<Bytes[]>;
};

const MAX_HEADER_BYTES = 16_384;
const HEADERS_END = Buffer.from("\r\n\r\n");

/** Returns the boundary of a multipart form; undefined for another type. */
export function boundaryOf(contentType: string): string | undefined {
  const [, quoted, plain] =
    /^multipart\/form-data\b.*?;\s*boundary=(?:"([^"]{1,200})"|([^\s;"]{1,200}))/i.exec(contentType) ?? [];
  return quoted ?? plain;
}

/** Browsers and Bun escape a quote in a name as %22, curl with a backslash. */
const unquote = (text: string): string =>
  text.replace(/\\(["\\])/g, "$1").replace(/%22|%0d|%0a/gi, (code) => decodeURIComponent(code));

/** Reads the headers of a part; undefined where it is not a file of the form field `field`. */
function readHeaders(text: string, field: string): PartHeaders | undefined {
  const disposition = /^content-disposition:\s*form-data\s*;(.*)$/im.exec(text)?.[1] ?? "";
  const parameters = new Map(
    [...disposition.matchAll(/(?:^|;)\s*(\w+)=(?:"((?:[^"\\]|\\.)*)"|([^\s;]*))/g)].map(
      ([, name, quoted, plain]) => [name!.toLowerCase(), unquote(quoted ?? plain!)] as const,
    ),
  );
  const filename = parameters.get("filename");
  if (parameters.get("name") !== field || filename === undefined) return undefined;
  return { filename, contentType: /^content-type:\s*(\S.*?)\s*$/im.exec(text)?.[1] ?? null };
}

/**
 * Extracts the files of one field from a form and keeps the form without them. Their content goes to the writer that `open` returns; the
 * next chunk is read only after it has been written.
 */
export function separateParts(
  boundary: string,
  field: string,
  open: (headers: PartHeaders) => PartWriter,
): PartSeparator {
  // The first delimiter has no line break in front of it.
  const delimiter = Buffer.from(`\r\n--${boundary}`);
  let rest: Buffer = Buffer.from("\r\n");
  let isFirst = true;
  let state: "content" | "headers" | "epilogue" = "content";
  let writer: PartWriter | undefined;
  let kept: Bytes[] = [];

  function keep(bytes: Buffer): void {
    if (bytes.byteLength === 0) return;
    // This is the line break that was not sent.
    const own = isFirst ? bytes.subarray(2) : bytes;
    isFirst = false;
    if (own.byteLength > 0) kept.push(own as Bytes);
  }

  async function passOn(bytes: Buffer): Promise<void> {
    if (bytes.byteLength === 0) return;
    if (writer) await writer.write(bytes);
    else keep(bytes);
  }

  /** Returns whether the state has changed, so that there may be more to do with the rest. */
  async function takeContent(): Promise<boolean> {
    const at = rest.indexOf(delimiter);
    const end = at === -1 ? rest.byteLength - delimiter.byteLength + 1 : at;
    if (end > 0) {
      await passOn(rest.subarray(0, end));
      rest = rest.subarray(end);
    }
    if (at === -1) return false;
    await writer?.close();
    writer = undefined;
    state = "headers";
    return true;
  }

  function takeHeaders(): boolean {
    const start = delimiter.byteLength;
    if (rest.byteLength < start + 2) return false;
    if (rest[start] === 0x2d && rest[start + 1] === 0x2d) {
      state = "epilogue";
      return true;
    }
    const end = rest.indexOf(HEADERS_END, start);
    if (end === -1 || end > start + MAX_HEADER_BYTES) {
      if (rest.byteLength > start + MAX_HEADER_BYTES)
        fail("VALIDATION_ERROR", "Cannot read the body: the headers of a part are too long");
      return false;
    }
    const headers = readHeaders(rest.subarray(start, end).toString("utf8"), field);
    const content = end + HEADERS_END.byteLength;
    if (headers) writer = open(headers);
    else keep(rest.subarray(0, content));
    rest = rest.subarray(content);
    state = "content";
    return true;
  }

  async function advance(): Promise<boolean> {
    if (state === "content") return await takeContent();
    if (state === "headers") return takeHeaders();
    keep(rest);
    rest = rest.subarray(rest.byteLength);
    return false;
  }

  function takeKept(): Bytes[] {
    const taken = kept;
    kept = [];
    return taken;
  }

  return {
    async push(chunk) {
      rest =
        rest.byteLength === 0
          ? Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
          : Buffer.concat([rest, chunk]);
      while (await advance());
      return takeKept();
    },

    async end() {
      await passOn(rest);
      rest = rest.subarray(rest.byteLength);
      if (writer) {
        await writer.close();
        fail("VALIDATION_ERROR", "Cannot read the body: it is not whole, valid multipart/form-data");
      }
      return takeKept();
    },
  };
}
