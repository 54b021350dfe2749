/** Sentences about durations that are longer than usual. */

import type { Slower } from "../rules/slower.ts";
import { toDuration } from "./numbers.ts";

/** Returns "6.2 s, usually 900 ms, at most 1.4 s". */
export const slowerWords = (durationMs: number, { usualMs, longestMs }: Slower): string =>
  `${toDuration(durationMs)}, usually ${toDuration(usualMs)}, at most ${toDuration(longestMs)}`;
