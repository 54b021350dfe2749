/** Verifies that a form was sent from one of our pages: by the origin of the request, and by a token in the page. */

import { hkdfSync, timingSafeEqual } from "node:crypto";

const NONCE_BYTES = 16;
const MAC_BYTES = 32;
const TOKEN = /^[\w-]{64}$/;
/** The content types of our forms and scripts. A form of another site could send JSON as text/plain without a preflight. */
const TYPES = ["application/x-www-form-urlencoded", "multipart/form-data", "application/json"];

function originOf(url: string): string | undefined {
  // "null" is the origin of sandboxed frames and data: pages, which anyone can create.
  return URL.canParse(url) && /^https?:/i.test(url) ? new URL(url).origin : undefined;
}

/**
 * All servers of one database share `secret`. A token is bound to a value of the browser: a session, or a cookie before there is a session.
 * Bun.CSRF is not used, because its tokens expire on a page that was open for a day, and it throws on an empty one.
 */
export function createForms({ secret, publicUrl }: { secret: Uint8Array; publicUrl: string }) {
  const key = new Uint8Array(hkdfSync("sha256", secret, "", "assay forms v1", 32));
  const keyed = new Bun.CryptoHasher("sha256", key);
  const own = originOf(publicUrl);
  const isSecure = /^https:/i.test(publicUrl);
  const sign = (nonce: Uint8Array, binding: string) => keyed.copy().update(nonce).update(binding).digest();

  /** A server without TLS is often reached under several names; each is its own origin. */
  const isOurs = (origin: string | undefined, host: string | null) =>
    origin !== undefined && (origin === own || (!isSecure && host !== null && origin === originOf(`http://${host}`)));

  return {
    /** The text differs each time, so that the size of compressed pages does not reveal it bit by bit. */
    token(binding: string): string {
      const nonce = crypto.getRandomValues(new Uint8Array(NONCE_BYTES));
      return Buffer.concat([nonce, sign(nonce, binding)]).toString("base64url");
    },

    isToken(binding: string, token: string): boolean {
      if (!TOKEN.test(token)) return false;
      const bytes = Buffer.from(token, "base64url");
      const expected = sign(bytes.subarray(0, NONCE_BYTES), binding);
      return bytes.length === NONCE_BYTES + MAC_BYTES && timingSafeEqual(bytes.subarray(NONCE_BYTES), expected);
    },

    /** Whether the request comes from one of our pages and has the type of a form. */
    isFromOurPage({ headers }: Pick<Request, "headers">): boolean {
      const type = (headers.get("content-type") ?? "").split(";")[0]!.trim().toLowerCase();
      const origin = headers.get("origin");
      const from = originOf(origin ?? headers.get("referer") ?? "");
      const site = headers.get("sec-fetch-site");
      return TYPES.includes(type) && (site === null || site === "same-origin") && isOurs(from, headers.get("host"));
    },
  };
}
