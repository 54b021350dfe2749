/** Starts Assay: configuration, database, migrations, server, first start; and stops it in the reverse order. */

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { toDatabaseError } from "./database/database_failure.ts";
import { type Config, readConfig } from "./config.ts";
import { toPlainError } from "./file_failure.ts";
import { findPort } from "./http/serve.ts";
import { createLog, type Log } from "./log.ts";
import { toMisspeltText } from "./misspelt.ts";
import { createSetupToken } from "./operations/people/accounts.ts";
import {
  createFirstProject,
  FIRST_START_FILE,
  savedWelcome,
  setupUrl,
  welcome,
} from "./operations/projects/first_project.ts";
import { loadSecretKey } from "./operations/projects/secret_key.ts";
import { readDescriptors, serve, warnOfDescriptors } from "./server/serve.ts";
import type { Database } from "./database/connect.ts";
import { OPERATOR_COMMAND } from "./executable.ts";
import { selectCursorSecret } from "./store/instance.ts";
import { migrate } from "./database/migrate.ts";
import { createPartitions } from "./database/partitions.ts";
import { openDatabase } from "./database/open.ts";
import { DROPPED_SETTINGS, requireSessions, selectDroppedSettings } from "./database/session.ts";
import { selectAnyTeam } from "./store/projects.ts";

async function main(): Promise<void> {
  const config = readConfig(process.env);
  const log = createLog(config.logLevel);
  // From here on a stop must be orderly. A signal during startup takes effect when the server has started.
  const stopping = stopSignal();
  for (const misspelt of config.misspelt) log.warn(toMisspeltText(misspelt));
  warnOfDescriptors(readDescriptors(config), log);
  // A start that is refused must not have upgraded the database of the server that has the port.
  if (config.port !== 0) await findPort(config.host, config.port);
  const database = await openDatabase(config, (message) => log.info(message));

  try {
    if (config.databaseUrl !== undefined) {
      await requireSessions(database);
      const settings = await selectDroppedSettings(database);
      if (settings.length > 0) log.warn(DROPPED_SETTINGS, { settings });
    }
    const isNew = await migrate(database, (message) => log.info(message));
    // Runs before the first upload, because results that arrive before the partition of their month exists stay outside of it.
    if (isNew) await createPartitions(database, new Date());
    const secretKey = await loadSecretKey(database.pool, config);
    const cursorSecret = await selectCursorSecret(database.pool);
    for (const name of ["NO_PROXY", "no_proxy"]) delete process.env[name];
    const toPublicUrl = (url: string) => config.publicUrl ?? url;
    const server = await serve({
      ...{ config, log, database, secretKey, cursorSecret },
      announce: (url) => announce(config, database, log, toPublicUrl(url)),
    });
    const publicUrl = toPublicUrl(server.url);
    try {
      announceStore(config, log);
      log.info("Assay is ready", { url: publicUrl });
      await stopping;
      log.info("Stopping: waiting for running requests");
    } finally {
      await server.stop();
    }
  } finally {
    await database.close();
  }
  log.info("Stopped");
}

/** Prints, once, what the operator of an empty database needs. */
async function announce(
  { databaseUrl, dataDir }: Config,
  database: Database,
  log: Log,
  publicUrl: string,
): Promise<void> {
  const setupToken = await createSetupToken(database);
  const setup = setupToken === undefined ? undefined : setupUrl(publicUrl, setupToken);
  const first = databaseUrl === undefined ? await createFirstProject(database) : undefined;
  if (first) await printWelcome(welcome(publicUrl, first, setup), join(dataDir, FIRST_START_FILE), setup);
  else if (setup) log.info("There is no account yet: open this link to create the first one", { url: setup });
  if (databaseUrl !== undefined && !(await selectAnyTeam(database.pool))) {
    log.info(
      `The database is empty: ${OPERATOR_COMMAND} admin create-team --name NAME, then create-project --team ID --name NAME, then generate-key --project ID`,
    );
  }
}

/** Keys are printed to a terminal only: a log is kept, and read by others. */
async function printWelcome(text: string, path: string, setup: string | undefined): Promise<void> {
  if (process.stdout.isTTY) return void process.stdout.write(`${text}\n`);
  await writeFile(path, text, { mode: 0o600 });
  process.stdout.write(`${savedWelcome(path, setup)}\n`);
}

/** Servers of one database read each other's attachments only where they share the store. */
function announceStore({ attachments, databaseUrl }: Config, log: Log): void {
  if (databaseUrl === undefined || attachments.s3) return;
  log.info("Attachments are stored in a directory: several servers of one database need it shared, or ATTACHMENTS_S3", {
    directory: attachments.directory,
  });
}

/** Resolves at the first SIGTERM, SIGINT or SIGHUP; later ones change nothing, for the drain is on its way. */
function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(signal, () => resolve());
  });
}

try {
  await main();
  process.exit(0);
} catch (caught) {
  const error = toDatabaseError(toPlainError(caught));
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
}
