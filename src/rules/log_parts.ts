/** Puts the stored parts of a log together from a byte offset on. */

type LogBytes = { start: number; bytes: Uint8Array };

/**
 * Joins `parts` in order. `offset` is that of the first byte of the text, which is later than requested if the beginning is no longer
 * stored; gaps between the parts are left out.
 */
export function joinLog(
  parts: readonly LogBytes[],
  asked: number,
): { offset: number; text: string; nextOffset: number } {
  const [first] = parts;
  if (!first) return { offset: asked, text: "", nextOffset: asked };
  const offset = Math.max(asked, first.start);
  const kept = [first.bytes.subarray(offset - first.start), ...parts.slice(1).map(({ bytes }) => bytes)];
  const last = parts.at(-1)!;
  return { offset, text: Buffer.concat(kept).toString("utf8"), nextOffset: last.start + last.bytes.length };
}
