/** The key that seals variables and the secrets of integrations: from the configuration, or from a file of our own; and whether it opens what there is. */

import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ConfigError } from "../config.ts";
import { createSeal } from "./seal.ts";
import type { Sql } from "../store/connect.ts";
import { selectSealKeys } from "../store/environments.ts";
import { selectIntegrationSealKeys } from "../store/integrations.ts";

export type SecretKeyOptions = {
  secretKey: Uint8Array | undefined;
  secretKeyOld: Uint8Array | undefined;
  dataDir: string;
};

/** Throws ConfigError when the database holds sealed values that the key does not open: they would be lost silently. */
export async function loadSecretKey(sql: Sql, options: SecretKeyOptions): Promise<Uint8Array> {
  const { secretKey, secretKeyOld, dataDir } = options;
  const sealed = [...(await selectSealKeys(sql)), ...(await selectIntegrationSealKeys(sql))];
  const count = (keys: { count: number }[]) => {
    const sum = keys.reduce((sum, { count }) => sum + count, 0);
    return sum === 1 ? "1 value" : `${sum} values`;
  };
  const file = join(dataDir, "secret-key");
  const key = secretKey ?? readKey(file) ?? (sealed.length === 0 ? createKey(dataDir, file) : undefined);
  if (!key)
    throw new ConfigError(
      `SECRET_KEY is missing: the database holds ${count(sealed)} sealed with it. ` + `Set it, or restore "${file}"`,
    );
  const { keyNames } = createSeal(key, secretKeyOld);
  const unknown = sealed.filter(({ name }) => !keyNames.includes(name));
  if (unknown.length > 0)
    throw new ConfigError(
      `SECRET_KEY is not the key of ${count(unknown)} in the database. ` +
        "Set the right one; after a change, the one before as SECRET_KEY_OLD",
    );
  return key;
}

function readKey(file: string): Uint8Array | undefined {
  if (!existsSync(file)) return undefined;
  const key = Buffer.from(readFileSync(file, "utf8").trim(), "base64");
  if (key.length !== 32) throw new ConfigError(`Cannot read "${file}": expected 32 bytes in base64`);
  return key;
}

function createKey(dataDir: string, file: string): Uint8Array {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  try {
    writeFileSync(file, `${randomBytes(32).toString("base64")}\n`, { mode: 0o600, flag: "wx" });
  } catch (error) {
    // Another server of this directory was quicker.
    if ((error as { code?: string }).code !== "EEXIST") throw error;
  }
  return readKey(file)!;
}
