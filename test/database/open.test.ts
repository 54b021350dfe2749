/** The directory of a server without DATABASE_URL: where the database is, and what other accounts can reach. */

import { expect, test } from "bun:test";
import { chmodSync, lstatSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { toDatabaseError } from "../../src/database/database_failure.ts";
import { openDatabase } from "../../src/database/open.ts";
import { createSecretKey } from "../../src/secrets/secret_key.ts";
import { quickDirectory } from "../cluster.ts";
import { createPlace, removePlace } from "../places.ts";

const binaries = process.env["ASSAY_TEST_POSTGRES"];

test.skipIf(binaries !== undefined)(
  "a new DATA_DIR contains its database, also if root creates it",
  async () => {
    const isRoot = process.getuid?.() === 0;
    const place = createPlace("open", quickDirectory());
    chmodSync(place, 0o711);
    const dataDir = join(place, "data");
    const modeOf = (path: string) => (lstatSync(join(dataDir, path)).mode & 0o777).toString(8);
    const umask = process.umask(0o077);
    try {
      const database = await openDatabase({ databaseUrl: undefined, dataDir, databasePool: 1 }, () => {});
      await database.close();
      createSecretKey(join(dataDir, "secret-key"));
      expect(lstatSync(join(dataDir, "postgres")).isDirectory()).toBe(true);
      expect(["", "postgres"].map(modeOf)).toEqual(isRoot ? ["711", "711"] : ["700", "700"]);
      expect(["postgres/cluster", "postgres/password", "secret-key"].map(modeOf)).toEqual(["700", "600", "600"]);
      const locks = ["postgres.lock", "postgres/start.lock", "postgres/use.lock", "postgres/used-by.json"];
      expect(locks.map(modeOf)).toEqual(["600", "600", "600", "600"]);
    } finally {
      process.umask(umask);
      await removePlace(place);
    }
  },
  30_000,
);

test("a DATA_DIR that is a file is named", async () => {
  const place = createPlace("open");
  const dataDir = join(place, "file");
  writeFileSync(dataDir, "");
  try {
    const opening = openDatabase({ databaseUrl: undefined, dataDir, databasePool: 1 }, () => {});
    await expect(opening).rejects.toThrow(`Cannot create DATA_DIR "${dataDir}": it exists and is not a directory`);
  } finally {
    await removePlace(place);
  }
});

test("a role without permissions is told to own the database, and what is wrong with DATABASE_URL names it", () => {
  const denied = { code: "42501", message: "permission denied for schema public" };
  expect(String(toDatabaseError(denied))).toContain("must be the owner of the database: permission denied for schema");
  const refused = { syscall: "connect", address: "127.0.0.1", port: 1, code: "ECONNREFUSED" };
  expect(String(toDatabaseError(refused))).toContain(
    "database of DATABASE_URL at 127.0.0.1:1: the connection was refused",
  );
  const tls = {
    code: "ECONNRESET",
    message: "Client network socket disconnected before secure TLS connection was established",
  };
  expect(String(toDatabaseError(tls))).toBe(`Error: Cannot use the database of DATABASE_URL: ${tls.message}`);
  expect(String(toDatabaseError({ code: "3D000", message: 'database "x" does not exist' }))).toBe(
    'Error: Cannot use the database of DATABASE_URL: database "x" does not exist',
  );
  expect(String(toDatabaseError({ code: "ECONNRESET", message: "read ECONNRESET" }))).toBe(
    "Error: The connection to the database was lost",
  );
});
