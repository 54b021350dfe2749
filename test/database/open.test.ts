/** The directory of a server without DATABASE_URL: where the database is, and what other accounts can reach. */

import { expect, test } from "bun:test";
import { chmodSync, lstatSync } from "node:fs";
import { join } from "node:path";
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
      if (isRoot) expect(modeOf("postgres.lock")).toBe("600");
    } finally {
      process.umask(umask);
      await removePlace(place);
    }
  },
  30_000,
);
