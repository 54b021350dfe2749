/** Compresses an answer for clients that accept it. */

/** Smaller answers fit into one packet anyway. */
const MIN_LENGTH = 1024;

type Encoding = "zstd" | "gzip";
type Bytes = Uint8Array<ArrayBuffer>;
/** The compressed forms of a text that is sent again and again, as far as they were needed. */
export type Compressed = Partial<Record<Encoding, Bytes>>;

/** zstd before gzip, `undefined` when neither is accepted or the text is short. A `q=0` is a refusal. */
export function compress(
  text: string,
  acceptEncoding: string | null,
  known: Compressed = {},
): { bytes: Bytes; encoding: Encoding } | undefined {
  if (acceptEncoding === null || text.length <= MIN_LENGTH) return undefined;
  const accepted = acceptEncoding
    .toLowerCase()
    .split(",")
    .filter((entry) => !/;\s*q=0(\.0*)?\s*$/.test(entry))
    .map((entry) => entry.split(";")[0]!.trim());
  const encoding = (["zstd", "gzip"] as const).find((one) => accepted.includes(one));
  return encoding && { bytes: (known[encoding] ??= COMPRESS[encoding](text)), encoding };
}

const COMPRESS: Record<Encoding, (text: string) => Bytes> = {
  zstd: (text) => Bun.zstdCompressSync(text, { level: 1 }) as never,
  gzip: (text) => Bun.gzipSync(text, { level: 1 }),
};
