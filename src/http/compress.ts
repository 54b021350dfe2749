/** Compresses an answer for clients that accept it. */

/** Smaller answers fit into one packet anyway. */
const MIN_LENGTH = 1024;

/** zstd before gzip, `undefined` when neither is accepted or the text is short. A `q=0` is a refusal. */
export function compress(
  text: string,
  acceptEncoding: string | null,
): { bytes: Uint8Array<ArrayBuffer>; encoding: "zstd" | "gzip" } | undefined {
  if (acceptEncoding === null || text.length <= MIN_LENGTH) return undefined;
  const accepted = acceptEncoding
    .toLowerCase()
    .split(",")
    .filter((entry) => !/;\s*q=0(\.0*)?\s*$/.test(entry))
    .map((entry) => entry.split(";")[0]!.trim());
  if (accepted.includes("zstd")) return { bytes: Bun.zstdCompressSync(text, { level: 1 }) as never, encoding: "zstd" };
  if (accepted.includes("gzip")) return { bytes: Bun.gzipSync(text, { level: 1 }), encoding: "gzip" };
  return undefined;
}
