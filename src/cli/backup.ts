/** `assay backup`: writes everything that a server stores into one file, while the server runs, or verifies such a file. */

import packageJson from "../../package.json" with { type: "json" };
import { openAttachments } from "../attachments/store.ts";
import type { BackupAttachments } from "../backup/format.ts";
import { readBackup } from "../backup/reader.ts";
import { type Config, readConfig } from "../config.ts";
import { openExistingDatabase } from "../database/open.ts";
import { type BackupOptions, takeBackup, type TakenBackup } from "../operations/backup/take_backup.ts";
import { toFingerprint } from "../operations/backup/restore_backup.ts";
import { toDatabaseError } from "../database/database_failure.ts";
import { untilInterrupted } from "./interruption.ts";
import { counted } from "../wording/numbers.ts";
import { type Invocation, locate } from "./invocation.ts";
import { toJsonLine, toPlainLine } from "./output.ts";
import { parseFileOptions, UsageError } from "./usage.ts";

export const BACKUP_HELP = `Usage: assay backup FILE [--without-attachments] [--json]
       assay backup --verify FILE [--json]

Writes everything that the server stores into one compressed file, as it is at one moment, while the server runs. The file
does not contain the secret key: keep a copy of SECRET_KEY, or of "secret-key" in DATA_DIR, elsewhere.

  --without-attachments   leave out the content of attachments that are stored in DATA_DIR; content in S3 is never in the file
  --verify                read a file to its end and compare its checksums and counts; needs no database
  --json                  print what was written or read as one line of JSON

Takes the same DATA_DIR or DATABASE_URL as the server. The file can be restored with assay restore.`;

export async function backup(args: string[], invocation: Invocation): Promise<void> {
  const { file, values, json } = parseFileOptions(args, ["without-attachments", "verify"]);
  if (values["verify"] === undefined)
    return await write({ file, json }, values["without-attachments"] !== undefined, invocation);
  if (values["without-attachments"] !== undefined)
    throw new UsageError("backup takes either --verify or --without-attachments");
  await verify({ file, json }, invocation);
}

type Given = { file: string; json: boolean };

async function write({ file, json }: Given, leavesOut: boolean, invocation: Invocation): Promise<void> {
  const { environment, directory, stdout, say } = invocation;
  const config = readConfig(environment, directory);
  const path = locate(invocation, file);
  const attachments = toAttachments(config, leavesOut);
  const taken = await untilInterrupted(invocation, (signal) => take(config, { path, attachments, signal }));
  const { secretKeyDigest, ...figures } = taken;
  const fingerprint = secretKeyDigest === null ? null : toFingerprint(secretKeyDigest);
  if (taken.lost > 0)
    say(
      `Warning: the content of ${counted(taken.lost, "attachment")} is missing or damaged in the store and is not in the file`,
    );
  if (json) return stdout.print(toJsonLine({ file, ...figures, secretKeyFingerprint: fingerprint, attachments }));
  stdout.print(toPlainLine(`Backed up ${describe(taken)} to "${file}": ${taken.bytes} bytes`));
  if (fingerprint !== null) stdout.print(`To restore it, the secret key with the fingerprint ${fingerprint} is needed`);
}

type Wanted = Pick<BackupOptions, "path" | "attachments"> & { signal: AbortSignal };

/** The built-in PostgreSQL is stopped at the end if no server uses it, also if it was interrupted while it started. */
async function take(config: Config, wanted: Wanted): Promise<TakenBackup> {
  // One connection for the lock, and one for the snapshot.
  const database = await openExistingDatabase({ ...config, databasePool: 2 });
  try {
    wanted.signal.throwIfAborted();
    const { store } = openStore(config);
    return await takeBackup(database, { ...wanted, version: packageJson.version, store });
  } catch (error) {
    throw toDatabaseError(error);
  } finally {
    await database.close();
  }
}

const openStore = ({ attachments }: Config) =>
  openAttachments(attachments, { onSpoolError: () => {}, counters: { stored: () => {}, failed: () => {} } });

function toAttachments({ attachments: { s3 } }: Config, leavesOut: boolean): BackupAttachments {
  if (s3) return { content: "s3", location: `s3://${s3.bucket}${s3.prefix === "" ? "" : `/${s3.prefix}`}` };
  return { content: leavesOut ? "omitted" : "included" };
}

const describe = ({ tables, rows, contents }: { tables: number; rows: number; contents: number }): string =>
  `${tables} tables with ${rows} rows and ${counted(contents, "attachment")}`;

async function verify({ file, json }: Given, invocation: Invocation): Promise<void> {
  const { stdout } = invocation;
  const path = locate(invocation, file);
  const { header, totals } = await untilInterrupted(invocation, (signal) => readBackup(path, undefined, signal));
  const { assay, schema, postgres, takenAt, secretKeyDigest, attachments } = header;
  const fingerprint = secretKeyDigest === null ? null : toFingerprint(secretKeyDigest);
  if (json)
    return stdout.print(
      toJsonLine({
        ...{ file, ...totals, takenAt, assay, schema, postgres, attachments },
        secretKeyFingerprint: fingerprint,
      }),
    );
  stdout.print(toPlainLine(`"${file}" is complete: ${describe(totals)}`));
  stdout.print(toPlainLine(`Taken at ${takenAt} by Assay ${assay} (schema ${schema}, PostgreSQL ${postgres})`));
  if (attachments.content === "s3")
    stdout.print(toPlainLine(`The attachments are in ${attachments.location}, not in it`));
  if (attachments.content === "omitted") stdout.print("The attachments are not in it");
  if (totals.lost > 0)
    stdout.print(`The content of ${counted(totals.lost, "attachment")} was missing or damaged, and is not in it`);
  if (fingerprint !== null) stdout.print(`To restore it, the secret key with the fingerprint ${fingerprint} is needed`);
}
