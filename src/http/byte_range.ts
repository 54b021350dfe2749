/** Reads the range of a file that a request asks for. */

/** The headers of a request that ask for a part of a file. */
export type RangeHeaders = { range: string | null; ifRange: string | null };

export const readRangeHeaders = ({ headers }: Request): RangeHeaders => ({
  range: headers.get("range"),
  ifRange: headers.get("if-range"),
});

/**
 * Returns the positions of the first and the last byte. Undefined for the whole file: without a range, with several ranges, with an
 * unsatisfiable one, or with a range of another version.
 */
export function parseByteRange(
  { range, ifRange }: RangeHeaders,
  { length, etag }: { length: number; etag: string },
): { first: number; last: number } | undefined {
  const [, from = "", to = ""] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(range?.trim() ?? "") ?? [];
  if ((from === "" && to === "") || (ifRange !== null && ifRange !== etag)) return undefined;
  const first = from === "" ? Math.max(0, length - Number(to)) : Number(from);
  const last = from === "" || to === "" ? length - 1 : Math.min(Number(to), length - 1);
  return first <= last ? { first, last } : undefined;
}
