/** `assay restore`: restores a backup into an empty database. */

import { join } from "node:path";
import { openAttachments } from "../attachments/store.ts";
import { type Config, readConfig } from "../config.ts";
import { isUnavailable } from "../database/connect.ts";
import { openDatabase } from "../database/open.ts";
import { requireSessions } from "../database/session.ts";
import { checkBackup, type Restored, restoreBackup, type RestoreOptions } from "../operations/backup/restore_backup.ts";
import { readSecretKey } from "../secrets/secret_key.ts";
import { toDatabaseError } from "../database/database_failure.ts";
import { untilInterrupted } from "./interruption.ts";
import { counted } from "../wording/numbers.ts";
import { type Invocation, locate } from "./invocation.ts";
import { toJsonLine, toPlainLine } from "./output.ts";
import { parseFileOptions } from "./usage.ts";

export const RESTORE_HELP = `Usage: assay restore FILE [--as-of-backup] [--json]

Restores a file of assay backup into the empty database of DATA_DIR or DATABASE_URL, and the attachments into their store.
No server may run on it meanwhile. The secret key of the lost server is needed: as SECRET_KEY, or as "secret-key" in DATA_DIR.

The server starts quiet: nothing is sent, no schedule and no automation runs, no task is handed to runners, and nothing is
deleted for its age, until assay admin resume.

  --as-of-backup   make all keys, sessions, invitations and shared links valid again that were valid when the backup was taken;
                   by default all are revoked, because some may have been revoked since
  --json           print what was restored as one line of JSON`;

export async function restore(args: string[], invocation: Invocation): Promise<void> {
  const { environment, directory, stdout, say } = invocation;
  const { file, values, json } = parseFileOptions(args, ["as-of-backup"]);
  const config = readConfig(environment, directory);
  const keyFile = join(config.dataDir, "secret-key");
  const secretKey = config.secretKey ?? readSecretKey(keyFile);
  const keySource = config.secretKey === undefined ? `"${keyFile}"` : "SECRET_KEY";
  const keys = { secretKey, secretKeyOld: config.secretKeyOld, keySource };
  const path = locate(invocation, file);
  await checkBackup(path, keys);
  const asOfBackup = values["as-of-backup"] !== undefined;
  const restored = await untilInterrupted(invocation, (signal) => write(config, { path, asOfBackup, signal }, say));
  if (restored.unknownTables.length > 0)
    say(`Warning: these tables do not belong to Assay and were left out: ${restored.unknownTables.join(", ")}`);
  if (json) stdout.print(toJsonLine({ file, ...restored }));
  else for (const line of toLines(file, restored, config.secretKey !== undefined)) stdout.print(toPlainLine(line));
}

type Wanted = Pick<RestoreOptions, "path" | "asOfBackup"> & { signal: AbortSignal };

/** The built-in PostgreSQL is stopped at the end, also if it was interrupted while it started. */
async function write(config: Config, wanted: Wanted, say: (message: string) => void): Promise<Restored> {
  const database = await openDatabase({ ...config, databasePool: 2 }, say);
  try {
    wanted.signal.throwIfAborted();
    if (config.databaseUrl !== undefined) await requireSessions(database);
    const { store, directory } = openStore(config);
    return await restoreBackup(database, { ...wanted, store, spoolDirectory: join(directory, "incoming") });
  } catch (error) {
    const shown = toDatabaseError(error);
    if (!isUnavailable(error) || !(shown instanceof Error)) throw shown;
    throw new Error(`${shown.message}: nothing was kept. Restore again when the database is available`, {
      cause: error,
    });
  } finally {
    await database.close();
  }
}

const openStore = ({ attachments }: Config) => ({
  ...openAttachments(attachments, { onSpoolError: () => {}, counters: { stored: () => {}, failed: () => {} } }),
  directory: attachments.directory,
});

/** `isKeyGiven`: the secret key comes from a variable, which the server needs as well. */
function* toLines(file: string, restored: Restored, isKeyGiven: boolean): Generator<string> {
  const { takenAt, tables, rows, contents, attachments, revoked } = restored;
  yield `Restored "${file}" of ${takenAt}: ${tables} tables with ${rows} rows and ${counted(contents, "attachment")}`;
  if (attachments.content === "s3")
    yield `The attachments are not in the file: set ATTACHMENTS_S3=${attachments.location} to read them`;
  if (attachments.content === "omitted") yield "The attachments are not in the file";
  if (revoked) {
    const { keys, sessions, invitations, shares } = revoked;
    yield `Revoked keys: ${keys}, sessions: ${sessions}, invitations: ${invitations}, shared links: ${shares}`;
  } else yield "Keys, sessions, invitations and shared links are valid as they were at that time";
  if (isKeyGiven) yield "Start the server with the same SECRET_KEY or SECRET_KEY_FILE";
  yield 'The server will be quiet until "assay admin resume"';
}
