/** Runs all checks of an installation, one after the other; a check that fails to run is a finding. */

import { existsSync } from "node:fs";
import { join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };
import type { Config } from "../config.ts";
import { toDatabaseError } from "../database/database_failure.ts";
import { selectClockMs } from "../database/diagnosis.ts";
import { type OpenDatabase, openExistingDatabase } from "../database/open.ts";
import { requireSessions } from "../database/session.ts";
import { toPlainError } from "../file_failure.ts";
import { checkConfiguration, checkDataDirectory, checkSecretKey } from "./check_configuration.ts";
import {
  checkClock,
  checkDroppedSettings,
  checkKeyOfDatabase,
  checkRetention,
  checkQueues,
  checkSchema,
  checkServer,
} from "./check_database.ts";
import { checkBucket, checkOutbound, checkRunningServer } from "./check_outbound.ts";
import { type Finding, findingsOf } from "./finding.ts";

/**
 * Connections of a server besides its two pools: 2 for fast reads of the API, 1 each for keys and pages, the listener, 5 of the upload
 * thread, 2 that replace silent ones, 1 that holds the built-in PostgreSQL, 4 for exports, and 9 for commands.
 */
const OTHER_CONNECTIONS = 26;

/** Yields findings as they are found. `keyFile` is SECRET_KEY_FILE. */
export async function* diagnose(config: Config, keyFile: string | undefined): AsyncGenerator<Finding> {
  yield* checkConfiguration(config);
  const key = yield* checkSecretKey(config, keyFile);
  yield* attempt("disk", checkDataDirectory(config));
  yield* checkRunningServer(config, packageJson.version);
  yield* diagnoseDatabase(config, key);
  yield* attempt("outbound", checkOutbound(config));
  yield* attempt("attachments", checkBucket(config.attachments));
}

type Check<T> = Generator<Finding, T> | AsyncGenerator<Finding, T>;

async function* attempt<T>(area: string, check: Check<T>): AsyncGenerator<Finding, T | undefined> {
  try {
    return yield* check;
  } catch (error) {
    yield findingsOf(area).fail(`This cannot be checked: ${describe(error)}`, "Fix the cause and repeat the check");
    return undefined;
  }
}

function describe(error: unknown): string {
  const cause = toDatabaseError(toPlainError(error));
  return (cause instanceof Error ? cause.message : String(cause)).split("\n")[0]!.replace(/\.$/, "");
}

async function* diagnoseDatabase(config: Config, key: Uint8Array | undefined): AsyncGenerator<Finding> {
  const isBuiltIn = config.databaseUrl === undefined;
  const neededConnections = 2 * config.databasePool + OTHER_CONNECTIONS;
  let database: OpenDatabase | undefined;
  try {
    database = await openExistingDatabase({ ...config, databasePool: 1 });
    const { pool } = database;
    // A pooler that shares sessions breaks every other check.
    await (isBuiltIn ? selectClockMs(pool) : requireSessions(database));
    yield* attempt("database", checkServer(pool, { isBuiltIn, neededConnections }));
    yield* attempt("database", checkDroppedSettings(database));
    yield* attempt("clock", checkClock(pool));
    // Another schema has other tables.
    if (!(yield* attempt("database", checkSchema(pool)))) return;
    yield* attempt("secret key", checkKeyOfDatabase(pool, key));
    yield* attempt("server", checkQueues(pool));
    yield* attempt("retention", checkRetention(pool));
  } catch (error) {
    yield findingsOf("database").fail(describe(error), remedyOf(config));
  } finally {
    await database?.close();
  }
}

/** Returns what to do if the database cannot be used. */
function remedyOf({ databaseUrl, dataDir }: Config): string {
  const leftOut = "The other checks of the database are left out";
  if (databaseUrl !== undefined) return `Start PostgreSQL, or fix DATABASE_URL (docs/operations.md). ${leftOut}`;
  const log = join(dataDir, "postgres", "server.log");
  return existsSync(log) ? `The log of PostgreSQL is "${log}". ${leftOut}` : leftOut;
}
