/** Tokens of sessions and one-time links: they cannot be guessed, and the database only contains their digests. */

const SHAPE = /^[\w-]{43}$/;

/** 256 bits, base64url. */
export const createToken = (): { token: string; digest: string } => {
  const token = Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("base64url");
  return { token, digest: tokenDigest(token) };
};

/** Digits and lower-case letters, which people can read out, and which no chat takes for the end of an address. */
const LINK_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";
const LINK_SHAPE = /^[0-9a-hjkmnp-tv-z]{32}$/;

/** 160 bits, for links that are passed on and pasted. */
export const createLinkToken = (): { token: string; digest: string } => {
  const token = Array.from(crypto.getRandomValues(new Uint8Array(32)), (byte) => LINK_ALPHABET[byte & 31]).join("");
  return { token, digest: tokenDigest(token) };
};

export const isLinkToken = (text: string): boolean => LINK_SHAPE.test(text);

const TOKENS_IN_PATH = /(?<=\/)(?:[\w-]{43}|[0-9a-hjkmnp-tv-z]{32})(?=[/.]|$)/g;

/** The path of a page, as it may be logged: those of invitations, shares and badges hold tokens. */
export const maskTokens = (path: string): string => path.replace(TOKENS_IN_PATH, "…");

/** Whether the text has the shape of a token. Other texts are refused without a query. */
export const isToken = (text: string): boolean => SHAPE.test(text);

/** Lower-case hexadecimal SHA-256. */
export const tokenDigest = (token: string): string => Bun.SHA256.hash(token, "hex");
