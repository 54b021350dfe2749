/** Reads a request's body within limits: bytes as sent, bytes after decompression. */

import { fail } from "./problem.ts";

export type BodyLimits = { maxBytes: number; maxInflatedBytes: number };

const megabytes = (bytes: number) => `${Math.round((bytes / 1_048_576) * 100) / 100} MiB`;

function tooLarge(limits: BodyLimits, farOver: boolean): never {
  // Below that, the rest is drained: a client that is cut off while sending sees a broken pipe and not our answer.
  const headers = farOver ? { Connection: "close" } : undefined;
  fail("VALIDATION_ERROR", `Body too large: at most ${megabytes(limits.maxBytes)} as sent`, headers);
}

/** Fails with VALIDATION_ERROR on a body that is too large, breaks off, or is not encoded as it says. */
export async function readBody(request: Request, limits: BodyLimits): Promise<Uint8Array<ArrayBuffer>> {
  const declared = Number(request.headers.get("content-length") ?? 0);
  if (declared > limits.maxBytes) tooLarge(limits, declared > 4 * limits.maxBytes);
  if (!request.body) return new Uint8Array(0);

  let sent = 0;
  const counted = request.body.pipeThrough(
    new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
      transform(chunk, controller) {
        sent += chunk.byteLength;
        if (sent > limits.maxBytes) tooLarge(limits, true);
        controller.enqueue(chunk);
      },
    }),
  );

  const encoding = (request.headers.get("content-encoding") ?? "identity").trim().toLowerCase();
  if (encoding === "identity" || encoding === "") return await collect(counted, limits.maxInflatedBytes);
  if (encoding !== "gzip" && encoding !== "x-gzip" && encoding !== "zstd")
    fail("VALIDATION_ERROR", `Cannot read a body with Content-Encoding "${encoding.slice(0, 40)}": use gzip or zstd`);

  const format = encoding === "zstd" ? "zstd" : "gzip";
  try {
    return await collect(counted.pipeThrough(new DecompressionStream(format as never)), limits.maxInflatedBytes);
  } catch (error) {
    if (request.signal.aborted || (error instanceof Error && error.name === "Problem")) throw error;
    fail("VALIDATION_ERROR", `Cannot decompress the body: it is not whole, valid ${format}`);
  }
}

async function collect(stream: ReadableStream<Uint8Array<ArrayBuffer>>, max: number): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  for await (const chunk of stream) {
    size += chunk.byteLength;
    if (size > max) fail("VALIDATION_ERROR", `Body too large: at most ${megabytes(max)} after decompression`);
    chunks.push(chunk);
  }
  if (chunks.length === 1) return chunks[0]!;
  const whole = new Uint8Array(size);
  let offset = 0;
  for (const chunk of chunks) {
    whole.set(chunk, offset);
    offset += chunk.byteLength;
  }
  return whole;
}
