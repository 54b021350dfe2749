/** Checks content of a store while it is read: a client never gets content that differs from what was stored as if it were right. */

import { StoreAwayError } from "./content.ts";

/** `sha256` is undefined for a part of a file, of which only the length is known. */
type Expected = { bytes: number; sha256: string | undefined };

const differs = (reason: string) =>
  new StoreAwayError(`The store returned other content than what was stored: ${reason}`);

/** Yields the chunks, the last one only after all have been checked. Throws StoreAwayError. */
export async function* verifiedChunks(
  chunks: AsyncIterable<Uint8Array>,
  { bytes, sha256 }: Expected,
): AsyncGenerator<Uint8Array> {
  const hash = sha256 === undefined ? undefined : new Bun.CryptoHasher("sha256");
  let [read, kept]: [number, Uint8Array | undefined] = [0, undefined];
  for await (const chunk of chunks) {
    if (chunk.byteLength === 0) continue;
    read += chunk.byteLength;
    if (read > bytes) throw differs(`more than ${bytes} bytes`);
    hash?.update(chunk);
    if (kept) yield kept;
    kept = chunk;
  }
  if (read < bytes) throw differs(`${read} of ${bytes} bytes`);
  if (hash && hash.digest("hex") !== sha256) throw differs("its SHA-256 is not the expected one");
  if (kept) yield kept;
}

/**
 * Returns checked content as a stream that fails before its end. `onError` is called with the reason, because the stream fails without
 * one: Bun would print it beside the log.
 */
export function verifiedStream(
  content: ReadableStream<Uint8Array>,
  expected: Expected,
  onError: (error: unknown) => void,
): ReadableStream<Uint8Array> {
  const chunks = verifiedChunks(content as ReadableStream<Uint8Array> & AsyncIterable<Uint8Array>, expected);
  return new ReadableStream(
    {
      async pull(controller) {
        try {
          const { done, value } = await chunks.next();
          if (done) controller.close();
          else controller.enqueue(value);
        } catch (error) {
          onError(error);
          controller.error();
        }
      },
      cancel: async () => void (await chunks.return(undefined)),
    },
    { highWaterMark: 0 },
  );
}
