/** Finds the key that seals, configured or in a file of our own, and proves that it is the key of the database. */

import { join } from "node:path";
import { OPERATOR_COMMAND } from "../../executable.ts";
import { refuse } from "../../schema/refusal.ts";
import { createSeal } from "../../secrets/seal.ts";
import { createSecretKey, readSecretKey } from "../../secrets/secret_key.ts";
import type { Sql, Tx } from "../../database/connect.ts";
import { selectSealKeys } from "../../store/environments.ts";
import { selectExecutionSealKeys } from "../../store/sealed_variables.ts";
import { claimSecretKeyDigest, deleteSecretKeyDigest, selectSecretKeyDigest } from "../../store/instance.ts";
import { selectIntegrationSealKeys } from "../../store/integrations.ts";

type SecretKeyOptions = {
  secretKey: Uint8Array | undefined;
  secretKeyOld: Uint8Array | undefined;
  dataDir: string;
};

/**
 * All servers of a database have one key, which the first one chooses, and only a server that has it as SECRET_KEY_OLD replaces it. Throws
 * an Error for any other key, also while nothing is sealed, because a running server may seal something at any moment. Also throws if the
 * database contains sealed values that the keys do not open.
 */
export async function loadSecretKey(sql: Sql, options: SecretKeyOptions): Promise<Uint8Array> {
  const { secretKey, secretKeyOld, dataDir } = options;
  const sealed = await selectSealed(sql);
  const file = join(dataDir, "secret-key");
  const key = secretKey ?? readSecretKey(file) ?? ((await mayMakeKey(sql, sealed)) ? createSecretKey(file) : undefined);
  if (!key)
    throw new Error(
      sealed.length > 0
        ? `SECRET_KEY is missing: the database holds ${count(sealed)} sealed with it. Set it, or restore "${file}"`
        : `SECRET_KEY is missing: the database is used with one. Set it, or restore "${file}"${LOST}`,
    );
  const source = secretKey === undefined ? `The file "${file}"` : "SECRET_KEY";
  const { keyNames, keyDigest, keyDigests } = createSeal(key, secretKeyOld);
  requireOpens(sealed, keyNames, source);
  if (!(await claimSecretKeyDigest(sql, keyDigest, keyDigests)))
    throw new Error(
      `${source} is not the key that this database is used with: give all its servers one SECRET_KEY (a server that was ` +
        `started without it has made one in the file "secret-key" of its DATA_DIR), and after a change the one before as ` +
        `SECRET_KEY_OLD${sealed.length === 0 ? LOST : ""}`,
    );
  return key;
}

function requireOpens(sealed: readonly SealedWith[], keyNames: readonly string[], source: string): void {
  const unknown = sealed.filter(({ name }) => !keyNames.includes(name));
  if (unknown.length > 0)
    throw new Error(
      `${source} is not the key of ${count(unknown)} in the database. ` +
        "Set the right one; after a change, the one before as SECRET_KEY_OLD",
    );
}

/** Instructions for a lost key with which nothing is sealed. */
const LOST = `; if the key is lost, stop all servers and run "${OPERATOR_COMMAND} admin forget-secret-key"`;

/** Lets the next server that starts choose the key. Refuses while the database contains sealed values. */
export async function forgetSecretKey(sql: Tx): Promise<void> {
  const sealed = await selectSealed(sql);
  if (sealed.length > 0) refuse(`Cannot forget SECRET_KEY: the database holds ${count(sealed)} sealed with it`);
  await deleteSecretKeyDigest(sql);
}

type SealedWith = { name: string; count: number };

const selectSealed = async (sql: Sql): Promise<SealedWith[]> => [
  ...(await selectSealKeys(sql)),
  ...(await selectIntegrationSealKeys(sql)),
  ...(await selectExecutionSealKeys(sql)),
];

const mayMakeKey = async (sql: Sql, sealed: readonly SealedWith[]): Promise<boolean> =>
  sealed.length === 0 && (await selectSecretKeyDigest(sql)) === null;

function count(sealed: readonly SealedWith[]): string {
  const sum = sealed.reduce((sum, { count }) => sum + count, 0);
  return sum === 1 ? "1 value" : `${sum} values`;
}
