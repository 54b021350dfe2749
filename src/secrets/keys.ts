/** API keys: how one is built, and recognised without asking the database. */

const KEY_PREFIX = { project: "svc_proj_", team: "svc_team_" } as const;
/** A planned prefix, refused with a message of its own. */
export const PERSONAL_PREFIX = "svc_pat_";

export type KeyKind = keyof typeof KEY_PREFIX;

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const ID_LENGTH = 8;
/** 30 base62 characters hold 178 bits. */
const SECRET_LENGTH = 30;
/** 62 ** 6 exceeds 2 ** 32, so six characters hold a CRC-32. */
const CHECKSUM_LENGTH = 6;

const SHAPE = new RegExp(`^svc_(proj|team)_[0-9A-Za-z]{${ID_LENGTH + SECRET_LENGTH + CHECKSUM_LENGTH}}$`);

function randomText(length: number): string {
  let text = "";
  while (text.length < length) {
    for (const byte of crypto.getRandomValues(new Uint8Array(length))) {
      // 248 is the largest multiple of 62 in a byte; the rest would make some characters likelier.
      if (byte < 248 && text.length < length) text += ALPHABET[byte % 62];
    }
  }
  return text;
}

function checksum(text: string): string {
  let rest = Bun.hash.crc32(text);
  let digits = "";
  for (let i = 0; i < CHECKSUM_LENGTH; i++) {
    digits = ALPHABET[rest % 62] + digits;
    rest = Math.floor(rest / 62);
  }
  return digits;
}

/** Lower-case hexadecimal SHA-256. Keys are looked up by digest, so a database leak reveals no usable key. */
export const keyDigest = (key: string): string => Bun.SHA256.hash(key, "hex");

const LOOKS_LIKE_KEY = new RegExp(`svc_(?:proj|team|pat)_[0-9A-Za-z]+`, "g");
const LEADING_LENGTH = KEY_PREFIX.project.length + ID_LENGTH;

/** Masks keys in a text that is shown or stored: only the leading part of each remains. */
export const maskKeys = (text: string): string =>
  text.includes("svc_")
    ? text.replace(LOOKS_LIKE_KEY, (key) => (key.length > LEADING_LENGTH ? `${key.slice(0, LEADING_LENGTH)}…` : key))
    : text;

/** A new key, its digest, and the leading part that may be stored and shown. */
export function createKey(kind: KeyKind): { key: string; leading: string; digest: string } {
  const body = KEY_PREFIX[kind] + randomText(ID_LENGTH + SECRET_LENGTH);
  const key = body + checksum(body);
  return { key, leading: body.slice(0, KEY_PREFIX[kind].length + ID_LENGTH), digest: keyDigest(key) };
}

/** The kind of a well-formed key; `undefined` for anything else, a wrong checksum included. */
export function keyKind(key: string): KeyKind | undefined {
  if (!SHAPE.test(key)) return undefined;
  if (checksum(key.slice(0, -CHECKSUM_LENGTH)) !== key.slice(-CHECKSUM_LENGTH)) return undefined;
  return key.startsWith(KEY_PREFIX.project) ? "project" : "team";
}
