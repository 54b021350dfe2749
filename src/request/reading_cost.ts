/** Estimates how long reading a report takes, before it is read: what costs time is the number of its parts and not its size. */

/**
 * The weights of characters with which elements, objects, lines and entities begin: of 2,000,000 they take about 100 ms. A character without
 * weight costs so little that the limit of the size bounds it.
 */
const WEIGHTS: Record<string, number> = { "<": 160, "{": 200, "\n": 100, "\r": 25, "&": 25, "\\": 100 };
const MAX_READING_COST = 2_000_000;

const weights = new Uint16Array(256);
for (const [char, weight] of Object.entries(WEIGHTS)) weights[char.charCodeAt(0)] = weight;

/** Words that reports of CTest contain if their outputs are compressed. These may expand considerably. */
const COMPRESSED_OUTPUTS = ["Testing", "compression"].map((word) => [
  Buffer.from(word),
  // UTF-16 of either byte order.
  Buffer.from(word, "utf16le").subarray(0, -1),
]);

export function isCostly(files: readonly { bytes: Uint8Array }[]): boolean {
  let cost = 0;
  for (const { bytes } of files) {
    const content = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    if (COMPRESSED_OUTPUTS.every((spellings) => spellings.some((word) => content.includes(word)))) return true;
    for (let at = 0; at < bytes.length; at++) cost += weights[bytes[at]!]!;
  }
  return cost > MAX_READING_COST;
}
