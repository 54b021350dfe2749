/** Finds the key that seals, configured or in a file of our own, and proves that it opens what the database holds. */

import { join } from "node:path";
import { createSeal } from "../secrets/seal.ts";
import { createSecretKey, readSecretKey } from "../secrets/secret_key.ts";
import type { Sql } from "../store/connect.ts";
import { selectSealKeys } from "../store/environments.ts";
import { selectExecutionSealKeys } from "../store/executions.ts";
import { selectIntegrationSealKeys } from "../store/integrations.ts";

export type SecretKeyOptions = {
  secretKey: Uint8Array | undefined;
  secretKeyOld: Uint8Array | undefined;
  dataDir: string;
};

/** Throws an Error when the database holds sealed values that the key does not open: they would be lost silently. */
export async function loadSecretKey(sql: Sql, options: SecretKeyOptions): Promise<Uint8Array> {
  const { secretKey, secretKeyOld, dataDir } = options;
  const sealed = [
    ...(await selectSealKeys(sql)),
    ...(await selectIntegrationSealKeys(sql)),
    ...(await selectExecutionSealKeys(sql)),
  ];
  const count = (keys: { count: number }[]) => {
    const sum = keys.reduce((sum, { count }) => sum + count, 0);
    return sum === 1 ? "1 value" : `${sum} values`;
  };
  const file = join(dataDir, "secret-key");
  const key = secretKey ?? readSecretKey(file) ?? (sealed.length === 0 ? createSecretKey(file) : undefined);
  if (!key)
    throw new Error(
      `SECRET_KEY is missing: the database holds ${count(sealed)} sealed with it. ` + `Set it, or restore "${file}"`,
    );
  const { keyNames } = createSeal(key, secretKeyOld);
  const unknown = sealed.filter(({ name }) => !keyNames.includes(name));
  if (unknown.length > 0)
    throw new Error(
      `SECRET_KEY is not the key of ${count(unknown)} in the database. ` +
        "Set the right one; after a change, the one before as SECRET_KEY_OLD",
    );
  return key;
}
