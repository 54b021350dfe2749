/** Seals texts that must not lie open in the database: AES-256-GCM, bound to the place that they belong to. */

import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";

/**
 * A sealed text: version (1 byte), name of the key (4), nonce (12), cipher text, tag (16). The name identifies the key and is not secret.
 */
const VERSION = 1;
const KEY_NAME = { at: 1, length: 4 };
const NONCE = { at: 5, length: 12 };
const TAG_LENGTH = 16;
const TEXT_AT = NONCE.at + NONCE.length;

const DIGEST_LENGTH = 16;

type Key = { bytes: Buffer; name: Buffer; digest: string };

const deriveKey = (secret: Uint8Array): Key => {
  const derive = (purpose: string, length: number) => Buffer.from(hkdfSync("sha256", secret, "", purpose, length));
  return {
    bytes: derive("assay seal v1", 32),
    name: derive("assay seal name v1", KEY_NAME.length),
    digest: derive("assay seal digest v1", DIGEST_LENGTH).toString("hex"),
  };
};

export class SealError extends Error {
  override name = "SealError";
}

/**
 * `secret` has 32 bytes; `old` are the previous ones. `place` is the context of a text, such as team, environment and name: in another
 * context it does not open.
 */
export function createSeal(secret: Uint8Array, old?: Uint8Array) {
  const current = deriveKey(secret);
  const keys = [current, ...(old ? [deriveKey(old)] : [])];
  const find = (sealed: Uint8Array): Key | undefined =>
    keys.find(({ name }) => name.equals(sealed.subarray(KEY_NAME.at, KEY_NAME.at + KEY_NAME.length)));

  return {
    /** Hexadecimal, like names in the database. */
    keyName: current.name.toString("hex"),
    keyNames: keys.map(({ name }) => name.toString("hex")),
    /**
     * Identifies the key in the database, hexadecimal. It is derived with HKDF for this purpose only, so it reveals nothing about the key.
     */
    keyDigest: current.digest,
    keyDigests: keys.map(({ digest }) => digest),

    seal(place: readonly string[], text: string): Buffer {
      const nonce = randomBytes(NONCE.length);
      const cipher = createCipheriv("aes-256-gcm", current.bytes, nonce).setAAD(Buffer.from(JSON.stringify(place)));
      const sealed = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
      return Buffer.concat([Buffer.of(VERSION), current.name, nonce, sealed, cipher.getAuthTag()]);
    },

    /** Throws SealError when it was sealed with another key, for another place, or has been changed. */
    open(place: readonly string[], sealed: Uint8Array): string {
      const key = find(sealed);
      if (sealed[0] !== VERSION || !key) throw new SealError("The value is encrypted with an unknown key");
      const bytes = Buffer.from(sealed);
      try {
        const decipher = createDecipheriv("aes-256-gcm", key.bytes, bytes.subarray(NONCE.at, TEXT_AT), {
          authTagLength: TAG_LENGTH,
        });
        decipher.setAAD(Buffer.from(JSON.stringify(place)));
        decipher.setAuthTag(bytes.subarray(-TAG_LENGTH));
        return Buffer.concat([decipher.update(bytes.subarray(TEXT_AT, -TAG_LENGTH)), decipher.final()]).toString(
          "utf8",
        );
      } catch {
        throw new SealError("The encrypted value belongs elsewhere, or was changed");
      }
    },
  };
}

export type Seal = ReturnType<typeof createSeal>;
