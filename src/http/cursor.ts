/** Page cursors: the last row's place in the order, signed together with the list that it belongs to. */

import { fail } from "./problem.ts";

const MAC_BYTES = 12;
const MAX_LENGTH = 2_000;

const refuse = (): never => fail("VALIDATION_ERROR", `Cannot read "cursor": expected a cursor that this list returned`);

/**
 * `secret` is shared by every server of one database. `list` names the list and all its filters: a cursor of another
 * project, list or filter is refused with the same words as a damaged one.
 */
export function createCursors(secret: Uint8Array) {
  const sign = (list: string, place: Uint8Array) =>
    new Bun.CryptoHasher("sha256", secret).update(list).update("\0").update(place).digest().subarray(0, MAC_BYTES);

  return {
    write(list: string, place: readonly string[]): string {
      const text = Buffer.from(place.join("\n"));
      return Buffer.concat([sign(list, text), text]).toString("base64url");
    },

    read(list: string, cursor: string): string[] {
      if (cursor.length > MAX_LENGTH) refuse();
      const bytes = Buffer.from(cursor, "base64url");
      // Decoding is lenient: without this, several spellings of one cursor would pass.
      if (bytes.length <= MAC_BYTES || bytes.toString("base64url") !== cursor) refuse();
      const text = bytes.subarray(MAC_BYTES);
      if (!crypto.timingSafeEqual(bytes.subarray(0, MAC_BYTES), sign(list, text))) refuse();
      return text.toString().split("\n");
    },
  };
}

export type Cursors = ReturnType<typeof createCursors>;
