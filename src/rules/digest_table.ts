/** A hash table of 128-bit digests: for a hundred thousand of them, texts in a Map would cost ten times as much. */

export const DIGEST_BYTES = 16;
const WORDS = DIGEST_BYTES / 4;

/** Digests side by side, 16 bytes each. */
export type Digests = Uint32Array;

export const createDigests = (count: number): Digests => new Uint32Array(count * WORDS);

/** Makes a copy, because other buffers may not be aligned. */
export function toDigests(bytes: Uint8Array): Digests {
  const digests = createDigests(bytes.byteLength / DIGEST_BYTES);
  new Uint8Array(digests.buffer).set(bytes);
  return digests;
}

export const countOf = (digests: Digests): number => digests.length / WORDS;

/** Whether both hold the same digests in the same order. */
export const isSame = (one: Digests, other: Digests): boolean =>
  one.length === other.length &&
  Buffer.compare(
    Buffer.from(one.buffer, one.byteOffset, one.byteLength),
    Buffer.from(other.buffer, other.byteOffset, other.byteLength),
  ) === 0;

/** All of them, one list after the other. */
export function joinDigests(lists: readonly Digests[]): Digests {
  const all = createDigests(lists.reduce((sum, digests) => sum + countOf(digests), 0));
  let end = 0;
  for (const digests of lists) {
    all.set(digests, end);
    end += digests.length;
  }
  return all;
}

export const toHex = (digests: Digests, index: number): string =>
  Buffer.from(digests.buffer, digests.byteOffset + index * DIGEST_BYTES, DIGEST_BYTES).toString("hex");

/** Returns all digests like `toHex`, in a tenth of the time that 100,000 single calls take. */
export function toHexes(digests: Digests): string[] {
  const all = Buffer.from(digests.buffer, digests.byteOffset, digests.byteLength).toString("hex");
  const length = 2 * DIGEST_BYTES;
  return Array.from({ length: countOf(digests) }, (_, index) => all.slice(index * length, (index + 1) * length));
}

/** Finds the places of digests among `digests`, as far as they have been added. Digests are random, so they hash themselves. */
export function createDigestTable(digests: Digests) {
  const size = 2 ** Math.ceil(Math.log2(Math.max(2, countOf(digests) * 2)));
  const mask = size - 1;
  /** Places, counted from 1: 0 is empty. */
  const slots = new Int32Array(size);

  /** The slot of a digest, or the one where it belongs. */
  function slotOf(of: Digests, index: number): number {
    const at = index * WORDS;
    for (let slot = of[at]! & mask; ; slot = (slot + 1) & mask) {
      const place = slots[slot]!;
      if (place === 0) return slot;
      const there = (place - 1) * WORDS;
      if (
        digests[there] === of[at] &&
        digests[there + 1] === of[at + 1] &&
        digests[there + 2] === of[at + 2] &&
        digests[there + 3] === of[at + 3]
      )
        return slot;
    }
  }

  return {
    /** Returns -1 if it does not exist. */
    find: (of: Digests, index: number): number => slots[slotOf(of, index)]! - 1,
    /** Returns the index of an equal one that was added before, else adds `place` and returns it. */
    add(place: number): number {
      const slot = slotOf(digests, place);
      if (slots[slot] === 0) slots[slot] = place + 1;
      return slots[slot]! - 1;
    },
  };
}
