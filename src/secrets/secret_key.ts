/** The file that holds the key of our own that seals variables and the secrets of integrations. */

import { randomBytes } from "node:crypto";
import { existsSync, lchownSync, linkSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

/** Returns undefined if there is none. Throws an Error that says what is wrong with it. */
export function readSecretKey(file: string): Uint8Array | undefined {
  if (!existsSync(file)) return undefined;
  const key = Buffer.from(readText(file).trim(), "base64");
  if (key.length !== 32) throw new Error(`Cannot read "${file}": expected 32 bytes in base64`);
  return key;
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EACCES") throw error;
    throw new Error(
      `Cannot read "${file}": it belongs to another account. Give it to the account of the server (chown)`,
      {
        cause: error,
      },
    );
  }
}

/** Another server of this directory may be quicker: then its key is the answer. */
export function createSecretKey(file: string): Uint8Array {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const draft = `${file}.${crypto.randomUUID()}`;
  try {
    // Created atomically, because a server that finds half of it would not start.
    writeFileSync(draft, `${randomBytes(32).toString("base64")}\n`, { mode: 0o600, flag: "wx", flush: true });
    // A server that root starts once must not keep the owner of the directory from starting it later.
    const { uid, gid } = statSync(dirname(file));
    if (process.getuid?.() === 0) lchownSync(draft, uid, gid);
    linkSync(draft, file);
  } catch (error) {
    if ((error as { code?: string }).code !== "EEXIST") throw error;
  } finally {
    rmSync(draft, { force: true });
  }
  return readSecretKey(file)!;
}
