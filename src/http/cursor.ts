/** Page cursors: the last row's place in the order, signed together with the list that it belongs to. */

import { fail } from "./problem.ts";

/** 96 bits, which cannot be guessed within the rate limit. */
const MAC_LENGTH = 16;
const MAX_LENGTH = 2_000;

const refuse = (): never => fail("VALIDATION_ERROR", `Cannot read "cursor": expected a cursor that this list returned`);

/**
 * All servers of one database share `secret`. `list` names the list and all its filters: a cursor of another project, list or filter is
 * refused with the same message as a damaged one.
 */
export function createCursors(secret: Uint8Array) {
  const keyed = new Bun.CryptoHasher("sha256", secret);
  const sign = (list: string, place: string): string =>
    keyed.copy().update(`${list}\0${place}`).digest("base64url").slice(0, MAC_LENGTH);

  return {
    write(list: string, place: readonly string[]): string {
      const text = place.join("\n");
      return sign(list, text) + Buffer.from(text).toString("base64url");
    },

    read(list: string, cursor: string): string[] {
      if (cursor.length <= MAC_LENGTH || cursor.length > MAX_LENGTH) refuse();
      const text = Buffer.from(cursor.slice(MAC_LENGTH), "base64url").toString();
      const place = text.split("\n");
      // Compared whole: decoding is lenient, and there shall be one spelling of a cursor.
      const [given, expected] = [Buffer.from(cursor), Buffer.from(this.write(list, place))];
      if (given.length !== expected.length || !crypto.timingSafeEqual(given, expected)) refuse();
      return place;
    },
  };
}

export type Cursors = ReturnType<typeof createCursors>;
