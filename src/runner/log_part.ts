/** Cuts the parts of a log that a runner sends, so that the request bodies stay below the limit of the server. */

import type { TaskLogPart } from "./protocol.ts";

/** Maximum bytes of one log in one request. */
export const MAX_LOG_PART_BYTES = 262_144;
/** Maximum bytes of all logs in one request as JSON; the whole body may have 1 MiB. */
export const MAX_LOG_JSON_BYTES = 720_000;

/** Returns the number of bytes that a text has as a JSON string. */
export const jsonBytes = (text: string): number => Buffer.byteLength(JSON.stringify(text));

/** Returns a part that has at most `maxJsonBytes` as JSON; `take` cuts a part of at most so many bytes. */
export function fitLogPart(
  take: (maxBytes: number) => TaskLogPart | undefined,
  maxJsonBytes: number,
): TaskLogPart | undefined {
  for (let bytes = Math.min(maxJsonBytes, MAX_LOG_PART_BYTES); ; bytes = Math.floor(bytes / 2)) {
    const part = take(bytes);
    if (!part || jsonBytes(part.text) <= maxJsonBytes) return part;
  }
}
