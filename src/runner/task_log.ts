/** The output of a task on its way to the server, by byte offset: masked, whole characters, bounded in memory. */

import type { Mask } from "../secrets/mask.ts";

/** Returns a line of the runner itself for the log of a task. */
export const toLogNote = (text: string): Uint8Array => new TextEncoder().encode(`[assay] ${text}\n`);

/** As much as the server keeps of a log; what is not sent before it gets this much behind is left out. */
const KEPT_BYTES = 1_048_576;
/** Kept although the server has it: what a failure tells of the log. */
const TAIL_BYTES = 16_384;

export type TaskLog = {
  /** As it comes from the program. */
  write(bytes: Uint8Array): void;
  /** Nothing more comes: what was kept because it might have been the beginning of a secret or a character is let go. */
  end(): void;
  /** The server has all before this offset. */
  acknowledge(offset: number): void;
  /** Returns the next part to send: at most this many bytes, whole characters; undefined if the server has everything. */
  unsent(maxBytes: number): { offset: number; text: string } | undefined;
  /** How many bytes the server does not have. */
  unsentBytes(): number;
  /** The end of it: at most so many bytes, all that the server does not have and some of what is before that. */
  tail(maxBytes: number): { offset: number; text: string } | undefined;
};

const isInsideCharacter = (byte: number | undefined) => byte !== undefined && (byte & 0xc0) === 0x80;

export function createTaskLog(mask: Mask): TaskLog {
  const masked = mask.stream();
  // Whatever a program prints is told in whole characters; a byte order mark in the middle is one of them.
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  /** Between `from` and `to`; twice as large as what is kept, so that it is seldom moved. */
  let buffer = Buffer.alloc(0);
  let [from, to] = [0, 0];
  /** Up to here the server has it. */
  let known = 0;
  /** The offset in the log of the buffer's first byte. */
  let start = 0;

  /** The place of the first whole character from here on. */
  const wholeFrom = (at: number): number => {
    while (at < to && isInsideCharacter(buffer[at])) at++;
    return at;
  };
  const part = (first: number, end: number) =>
    first >= end ? undefined : { offset: start + first, text: buffer.toString("utf8", first, end) };

  const makeRoom = (bytes: number): void => {
    if (to + bytes <= buffer.length) return;
    const old = buffer;
    const needed = to - from + bytes;
    if (2 * needed > buffer.length) buffer = Buffer.alloc(Math.min(4 * needed, 2 * KEPT_BYTES));
    old.copy(buffer, 0, from, to);
    [from, to, known, start] = [0, to - from, Math.max(0, known - from), start + from];
  };
  const append = (text: string): void => {
    let bytes = Buffer.from(text);
    if (bytes.length > KEPT_BYTES) {
      let skipped = bytes.length - KEPT_BYTES;
      while (isInsideCharacter(bytes[skipped])) skipped++;
      bytes = bytes.subarray(skipped);
      // Nothing of what was before is kept, either.
      [start, from, to, known] = [start + to + skipped, 0, 0, 0];
    }
    makeRoom(bytes.length);
    bytes.copy(buffer, to);
    to += bytes.length;
    from = wholeFrom(Math.max(from, to - KEPT_BYTES));
    known = Math.max(known, from);
  };
  return {
    write: (bytes) => append(decoder.decode(masked.push(bytes), { stream: true })),
    end: () => append(decoder.decode(masked.end(), { stream: true }) + decoder.decode()),
    acknowledge: (offset) => {
      known = Math.max(known, Math.min(offset - start, to));
      from = wholeFrom(Math.max(from, Math.min(known, to - TAIL_BYTES)));
    },
    unsent(maxBytes) {
      let end = Math.min(known + maxBytes, to);
      while (end > known && end < to && isInsideCharacter(buffer[end])) end--;
      return part(known, end);
    },
    unsentBytes: () => to - known,
    tail: (maxBytes) => part(wholeFrom(Math.max(from, to - maxBytes, Math.min(known, to - TAIL_BYTES))), to),
  };
}
