/** Runs all checks of an installation, one after the other; a check that fails to run is a finding. */

import { existsSync, realpathSync, statfsSync } from "node:fs";
import { join } from "node:path";
import { openAttachments } from "../attachments/store.ts";
import type { Config } from "../config.ts";
import { selectClockMs } from "../database/diagnosis.ts";
import { openExistingDatabase } from "../database/open.ts";
import { requireSessions } from "../database/session.ts";
import { checkConfiguration, checkDataDirectory, checkSecretKey } from "./check_configuration.ts";
import {
  checkClock,
  checkGrowth,
  checkRole,
  checkSchema,
  checkServer,
  checkTables,
  checkTransactions,
} from "./check_database.ts";
import { checkAttachments, checkOutbound, checkRunningServer } from "./check_outbound.ts";
import { checkKeyOfDatabase, checkQueues, checkRunners, checkStoredContent } from "./check_service.ts";
import { type Finding, findingsOf } from "./finding.ts";

/**
 * Connections of a server beside its two pools: 2 for fast reads of the API, 1 each for keys and pages, the listener, 5 of the upload
 * thread, 2 that replace silent ones, 1 that holds the built-in PostgreSQL, 4 for exports, and 9 for commands.
 */
const OTHER_CONNECTIONS = 26;

export type DiagnoseOptions = {
  config: Config;
  /** SECRET_KEY_FILE. */
  keyFile: string | undefined;
  /** The version of this program. */
  version: string;
  /** Puts an error into words. */
  describe: (error: unknown) => string;
};

/** Yields findings as they are found. */
export async function* diagnose({ config, keyFile, version, describe }: DiagnoseOptions): AsyncGenerator<Finding> {
  const attempt = async (area: string, check: () => Finding[] | Promise<Finding[]>): Promise<Finding[]> => {
    try {
      return await check();
    } catch (error) {
      return [
        findingsOf(area).fail(`This cannot be checked: ${describe(error)}`, "Fix the cause and repeat the check"),
      ];
    }
  };
  yield* checkConfiguration(config);
  const { findings, key } = checkSecretKey(config, keyFile);
  yield* findings;
  yield* await attempt("disk", () => checkDataDirectory(config));
  yield* await attempt("server", () => checkRunningServer(config, version));
  yield* diagnoseDatabase(config, key, version, attempt, describe);
  yield* await attempt("outbound", () => checkOutbound(config));
  const counters = { stored: () => {}, failed: () => {} };
  yield* await attempt("attachments", () =>
    checkAttachments(config.attachments, openAttachments(config.attachments, { onSpoolError: () => {}, counters })),
  );
}

type Attempt = (area: string, check: () => Promise<Finding[]>) => Promise<Finding[]>;

async function* diagnoseDatabase(
  config: Config,
  key: Uint8Array | undefined,
  version: string,
  attempt: Attempt,
  describe: (error: unknown) => string,
): AsyncGenerator<Finding> {
  const isBuiltIn = config.databaseUrl === undefined;
  const now = new Date();
  let database: Awaited<ReturnType<typeof openExistingDatabase>> | undefined;
  try {
    database = await openExistingDatabase({ ...config, databasePool: 1 });
    // A pooler that shares sessions breaks every other check.
    await (isBuiltIn ? selectClockMs(database.pool) : requireSessions(database));
  } catch (error) {
    yield findingsOf("database").fail(describe(error).replace(/\.$/, ""), remedyOf(config));
    await database?.close();
    return;
  }
  const { pool } = database;
  try {
    const neededConnections = 2 * config.databasePool + OTHER_CONNECTIONS;
    yield* await attempt("database", () => checkServer(pool, { isBuiltIn, neededConnections }));
    let isCurrent = false;
    yield* await attempt("database", async () => {
      const schema = await checkSchema(pool);
      ({ isCurrent } = schema);
      return schema.findings;
    });
    yield* await attempt("permissions", () => checkRole(pool, isBuiltIn));
    yield* await attempt("database", () => checkTransactions(pool));
    yield* await attempt("clock", () => checkClock(pool));
    // Another schema has other tables.
    if (!isCurrent) return;
    yield* await attempt("tables", () => checkTables(pool, now));
    const free = isBuiltIn ? freeBytesOf(join(config.dataDir, "postgres")) : undefined;
    yield* await attempt("disk", () => checkGrowth(pool, free, now));
    yield* await attempt("secret key", () => checkKeyOfDatabase(pool, key));
    yield* await attempt("server", () => checkQueues(pool));
    yield* await attempt("attachments", () => checkStoredContent(pool, config.attachments));
    yield* await attempt("runners", () => checkRunners(pool, version));
  } finally {
    await database.close();
  }
}

/** Returns what to do if the database cannot be used. */
function remedyOf({ databaseUrl, dataDir }: Config): string {
  const leftOut = "The other checks of the database are left out";
  if (databaseUrl !== undefined) return `Start PostgreSQL, or fix DATABASE_URL (docs/operations.md). ${leftOut}`;
  const log = join(dataDir, "postgres", "server.log");
  return existsSync(log) ? `The log of PostgreSQL is "${log}". ${leftOut}` : leftOut;
}

function freeBytesOf(path: string): number {
  const { bavail, bsize } = statfsSync(realpathSync(path));
  return bavail * bsize;
}
