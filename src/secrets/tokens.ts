/** Tokens of sessions and one-time links: nobody guesses one, and the database holds its digest only. */

const SHAPE = /^[\w-]{43}$/;

/** 256 bits, base64url. */
export const createToken = (): { token: string; digest: string } => {
  const token = Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("base64url");
  return { token, digest: tokenDigest(token) };
};

/** What is no token costs no database work. */
export const isToken = (text: string): boolean => SHAPE.test(text);

/** Lower-case hexadecimal SHA-256. */
export const tokenDigest = (token: string): string => Bun.SHA256.hash(token, "hex");
