/** Stores the results of untrusted executions apart from others, so that the history of a test case has none. */

/** Test cases that only untrusted reports contain have numbers from here on. They are not part of the project's catalogue. */
export const FIRST_UNTRUSTED_NUMBER = 2 ** 30;

/** The number of blocks that trusted results can have; the blocks of untrusted results come after them. */
export const UNTRUSTED_BLOCKS = 2 ** 24;

export const isUntrustedCase = (number: number): boolean => number >= FIRST_UNTRUSTED_NUMBER;

/** Returns the number that a block of results is stored with. */
export const toStoredBlock = (block: number, untrusted: boolean): number =>
  untrusted ? block + UNTRUSTED_BLOCKS : block;

/** Returns the identity of a test case that only untrusted reports contain, from that of a trusted one; both hexadecimal. */
export const toUntrustedIdentity = (identity: string): string =>
  new Bun.CryptoHasher("sha256").update(`untrusted ${identity}`).digest("hex").slice(0, 32);
