/** Takes a backup of everything that a server stores, while servers run. */

import { type BackupAttachments, type BackupTotals } from "../../backup/format.ts";
import { type BackupWriter, writeBackup } from "../../backup/writer.ts";
import { type ContentKey, type ContentStore, StoreAwayError } from "../../attachments/content.ts";
import type { Database, Tx } from "../../database/connect.ts";
import { copyOut } from "../../database/copy.ts";
import { selectAppliedCount } from "../../database/migrate.ts";
import { selectPartitions, selectSequences, selectTables } from "../../database/relations.ts";
import { withSnapshot } from "../../database/snapshot.ts";
import {
  selectAttachedContents,
  selectBackupKeyDigest,
  selectBackupTime,
  updateBackedUp,
} from "../../store/restored.ts";

export type BackupOptions = {
  path: string;
  /** The version of Assay. */
  version: string;
  /** Where the content of attachments is stored. The store is read only if it is "included". */
  attachments: BackupAttachments;
  store: Pick<ContentStore, "read">;
  signal?: AbortSignal;
};

export type TakenBackup = BackupTotals & { bytes: number; takenAt: string; secretKeyDigest: string | null };

/** Throws an Error if the file exists, or while another backup is running. An incomplete file never bears the name `path`. */
export async function takeBackup(database: Pick<Database, "begin">, options: BackupOptions): Promise<TakenBackup> {
  // The file is opened under the lock: a second backup to the same file is refused before it touches the first one's.
  const { bytes, result } = await withSnapshot(database, (sql) =>
    writeBackup(options.path, (writer) => writeSnapshot(sql, writer, options), options.signal),
  );
  await database.begin((sql) => updateBackedUp(sql, result.takenAt));
  return { ...result, bytes };
}

async function writeSnapshot(sql: Tx, writer: BackupWriter, { version, attachments, store }: BackupOptions) {
  const { takenAt, postgres } = await selectBackupTime(sql);
  const schema = await selectAppliedCount(sql);
  if (schema === 0) throw new Error("The database is empty: there is nothing to back up");
  const tables = [...(await selectTables(sql))];
  const secretKeyDigest = await selectBackupKeyDigest(sql);
  await writer.header({
    ...{ assay: version, schema, postgres, takenAt, secretKeyDigest, attachments, tables },
    partitions: [...(await selectPartitions(sql))],
    sequences: await selectSequences(sql),
  });
  let rows = 0;
  for (const table of tables) rows += await writer.table(table.name, copyOut(sql, table));
  const files = attachments.content === "included" ? await writeContents(sql, writer, store) : { contents: 0, lost: 0 };
  const totals = { tables: tables.length, rows, ...files };
  await writer.end(totals);
  return { ...totals, takenAt, secretKeyDigest };
}

async function writeContents(sql: Tx, writer: BackupWriter, store: BackupOptions["store"]) {
  let [contents, lost] = [0, 0];
  for await (const key of selectAttachedContents(sql)) {
    const content = await store.read(key, undefined);
    if (content === undefined) {
      lost++;
      continue;
    }
    contents++;
    if (!(await writer.content(key, chunksOf(key, content)))) lost++;
  }
  // More probably this is the wrong directory than a loss.
  if (contents === 0 && lost > 0)
    throw new Error(
      "The content of all attachments is missing: set DATA_DIR to the value that the server uses, or leave the content out " +
        "(--without-attachments)",
    );
  return { contents, lost };
}

async function* chunksOf(
  { sha256 }: ContentKey,
  content: Blob | ReadableStream<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  try {
    yield* (content instanceof Blob ? content.stream() : content) as ReadableStream<Uint8Array>;
  } catch (error) {
    throw new StoreAwayError(`The attachment with SHA-256 ${sha256} cannot be read: ${String(error)}`, {
      cause: error,
    });
  }
}
