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
import { createSay, toJsonLine, toPlainLine } from "./output.ts";
import { parseFileOptions, UsageError } from "./usage.ts";

export const BACKUP_USAGE = `  backup FILE [--without-attachments]
  backup --verify FILE
      back up everything that the server stores while it runs, or verify a backup`;

export const BACKUP_HELP = `Usage: assay backup FILE [--without-attachments] [--json]
       assay backup --verify FILE [--json]

Writes everything that the server stores into one compressed file, as it is at one moment, while the server runs. The file
does not contain the secret key: keep a copy of SECRET_KEY, or of "secret-key" in DATA_DIR, elsewhere.

  --without-attachments   leave out the content of attachments that are stored in DATA_DIR; content in S3 is never in the file
  --verify                read a file to its end and compare its checksums and counts; needs no database

Takes the same DATA_DIR or DATABASE_URL as the server. The file can be restored with assay restore.`;

export async function backup(args: string[]): Promise<void> {
  const { file, values, json } = parseFileOptions(args, ["without-attachments", "verify"]);
  if (values["verify"] === undefined) return await write(file, values["without-attachments"] !== undefined, json);
  if (values["without-attachments"] !== undefined)
    throw new UsageError("backup takes either --verify or --without-attachments");
  await verify(file, json);
}

async function write(path: string, leavesOut: boolean, json: boolean): Promise<void> {
  const config = readConfig(process.env);
  const say = createSay(process.env);
  const attachments = toAttachments(config, leavesOut);
  const taken = await untilInterrupted((signal) => take(config, { path, attachments, signal }));
  const { secretKeyDigest, ...figures } = taken;
  const fingerprint = secretKeyDigest === null ? null : toFingerprint(secretKeyDigest);
  if (taken.lost > 0)
    say(
      `Warning: the content of ${counted(taken.lost, "attachment")} is missing or damaged in the store and is not in the file`,
    );
  if (json) return console.log(toJsonLine({ file: path, ...figures, secretKeyFingerprint: fingerprint, attachments }));
  console.log(toPlainLine(`Backed up ${describe(taken)} to "${path}": ${taken.bytes} bytes`));
  if (fingerprint !== null) console.log(`To restore it, the secret key with the fingerprint ${fingerprint} is needed`);
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

async function verify(path: string, json: boolean): Promise<void> {
  const { header, totals } = await untilInterrupted((signal) => readBackup(path, undefined, signal));
  const { assay, schema, postgres, takenAt, secretKeyDigest, attachments } = header;
  const fingerprint = secretKeyDigest === null ? null : toFingerprint(secretKeyDigest);
  if (json)
    return console.log(
      toJsonLine({
        ...{ file: path, ...totals, takenAt, assay, schema, postgres, attachments },
        secretKeyFingerprint: fingerprint,
      }),
    );
  console.log(toPlainLine(`"${path}" is complete: ${describe(totals)}`));
  console.log(toPlainLine(`Taken at ${takenAt} by Assay ${assay} (schema ${schema}, PostgreSQL ${postgres})`));
  if (attachments.content === "s3")
    console.log(toPlainLine(`The attachments are in ${attachments.location}, not in it`));
  if (attachments.content === "omitted") console.log("The attachments are not in it");
  if (totals.lost > 0)
    console.log(`The content of ${counted(totals.lost, "attachment")} was missing or damaged, and is not in it`);
  if (fingerprint !== null) console.log(`To restore it, the secret key with the fingerprint ${fingerprint} is needed`);
}
