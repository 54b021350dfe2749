/** Reads a request's body within limits: bytes as sent, bytes after decompression. */

import { fail, Problem } from "./problem.ts";

/** A body that drips in for longer holds its memory for nothing. */
const MAX_MINUTES = 10;
const CLOSE = { Connection: "close" };

export type BodyLimits = { maxBytes: number; maxInflatedBytes: number };

const megabytes = (bytes: number) => `${Number((bytes / 1_048_576).toPrecision(3))} MiB`;

/** The rest of a body that is a little too large is drained: who is cut off while sending sees no answer. */
function tooLarge(max: number, close: boolean): never {
  fail("VALIDATION_ERROR", `Body too large: at most ${megabytes(max)}`, close ? CLOSE : {});
}

/** Fails with VALIDATION_ERROR on a body that is too large, breaks off, or is not encoded as it says. */
export async function readBody(request: Request, limits: BodyLimits): Promise<Uint8Array<ArrayBuffer>> {
  const length = request.headers.get("content-length") ?? "0";
  if (length.includes(",")) fail("VALIDATION_ERROR", `Cannot read the header "Content-Length": given more than once`);
  const declared = Number(length);
  if (declared > limits.maxBytes) tooLarge(limits.maxBytes, declared > 4 * limits.maxBytes);
  if (!request.body) return new Uint8Array(0);

  const encoding = (request.headers.get("content-encoding") ?? "identity").trim().toLowerCase();
  if (encoding === "identity" || encoding === "") {
    return await collect(request.body, limits.maxBytes, declared).catch((error) => {
      if (error instanceof Problem) throw error;
      fail("VALIDATION_ERROR", "The body broke off");
    });
  }
  if (encoding !== "gzip" && encoding !== "x-gzip" && encoding !== "zstd")
    fail("VALIDATION_ERROR", `Cannot read a body with Content-Encoding "${encoding.slice(0, 40)}": use gzip or zstd`);

  let sent = 0;
  const counted = request.body.pipeThrough(
    new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
      transform(chunk, controller) {
        sent += chunk.byteLength;
        if (sent > limits.maxBytes) tooLarge(limits.maxBytes, true);
        controller.enqueue(chunk);
      },
    }),
  );
  const format = encoding === "zstd" ? "zstd" : "gzip";
  const inflated = counted.pipeThrough(new DecompressionStream(format as never));
  return await collect(inflated, limits.maxInflatedBytes).catch((error) => {
    if (error instanceof Problem) throw error;
    fail("VALIDATION_ERROR", `Cannot decompress the body: it is not whole, valid ${format}`);
  });
}

/** `expected` is the length if it is known: then the bytes are never there twice. */
async function collect(
  stream: ReadableStream<Uint8Array<ArrayBuffer>>,
  max: number,
  expected = 0,
): Promise<Uint8Array<ArrayBuffer>> {
  const until = performance.now() + MAX_MINUTES * 60_000;
  let whole = new Uint8Array(expected);
  let size = 0;
  for await (const chunk of stream) {
    if (performance.now() > until) fail("VALIDATION_ERROR", `The body took longer than ${MAX_MINUTES} minutes`, CLOSE);
    const end = size + chunk.byteLength;
    if (end > max) tooLarge(max, true);
    if (end > whole.byteLength) {
      const grown = new Uint8Array(Math.min(max, Math.max(end, 2 * whole.byteLength)));
      grown.set(whole.subarray(0, size));
      whole = grown;
    }
    whole.set(chunk, size);
    size = end;
  }
  return size === whole.byteLength ? whole : whole.slice(0, size);
}
