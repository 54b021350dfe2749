/** Restores a backup into an empty database: in one transaction, so that a restore that was killed has left nothing there. */

import { createSpool } from "../../attachments/spool.ts";
import type { ContentKey, ContentStore } from "../../attachments/content.ts";
import { BackupError, type BackupHeader, type BackupTotals } from "../../backup/format.ts";
import { readBackup, readBackupHeader, type SectionSink } from "../../backup/reader.ts";
import type { Database, Tx } from "../../database/connect.ts";
import { copyIn } from "../../database/copy.ts";
import { lockMigrations, migrateTo, schemaVersion } from "../../database/migrate.ts";
import {
  createPartition,
  loadTables,
  selectRelationCount,
  selectRowCount,
  selectTables,
  type Table,
  updateSequence,
} from "../../database/relations.ts";
import { liftTimeLimits } from "../../database/snapshot.ts";
import { createSeal } from "../../secrets/seal.ts";
import { type RevokedCredentials, selectIsAttached } from "../../store/restored.ts";
import { becomeQuiet } from "./quiet.ts";

type RestoreKeys = {
  secretKey: Uint8Array | undefined;
  secretKeyOld: Uint8Array | undefined;
  /** The source of the key, for messages: SECRET_KEY or a file. */
  keySource: string;
};

/** Throws an Error of one sentence if this version or this secret key cannot use the file. To be called before anything is written. */
export async function checkBackup(
  path: string,
  { secretKey, secretKeyOld, keySource }: RestoreKeys,
): Promise<BackupHeader> {
  const header = await readBackupHeader(path);
  const known = await schemaVersion();
  if (header.schema > known)
    throw new BackupError(
      `Cannot restore "${path}": it has schema ${header.schema} of Assay ${header.assay}, and this version knows up to ${known}: ` +
        "use a newer version",
    );
  const { secretKeyDigest: needed } = header;
  if (needed === null) return header;
  const wanted = `it needs the secret key with the fingerprint ${toFingerprint(needed)}`;
  if (secretKey === undefined)
    throw new BackupError(
      `Cannot restore "${path}": ${wanted}: set SECRET_KEY, or copy the file "secret-key" of the lost DATA_DIR into this one`,
    );
  const { keyDigest, keyDigests } = createSeal(secretKey, secretKeyOld);
  if (!keyDigests.includes(needed))
    throw new BackupError(
      `Cannot restore "${path}": ${wanted}, and ${keySource} has the fingerprint ${toFingerprint(keyDigest)}`,
    );
  return header;
}

/** The beginning of a digest, for people to compare. */
export const toFingerprint = (digest: string): string => digest.slice(0, 16);

export type RestoreOptions = {
  path: string;
  store: Pick<ContentStore, "put" | "has">;
  /** The directory for content on its way to the store. */
  spoolDirectory: string;
  /** Whether keys, sessions and links are valid again that were valid when the backup was taken. */
  asOfBackup: boolean;
  signal?: AbortSignal;
};

export type Restored = BackupTotals & {
  takenAt: string;
  attachments: BackupHeader["attachments"];
  /** Null: they are as they were. */
  revoked: RevokedCredentials | null;
  /** Tables of the file that Assay does not know: they were left out. */
  unknownTables: string[];
};

/** Throws an Error if the database is not empty. The server is quiet afterwards (store/restored.ts). */
export async function restoreBackup({ begin }: Pick<Database, "begin">, options: RestoreOptions): Promise<Restored> {
  let cause: { error: unknown } | undefined;
  try {
    return await begin(async (sql) => {
      try {
        return await restore(sql, options);
      } catch (error) {
        cause = { error };
        throw error;
      }
    });
  } catch (error) {
    // In the middle of a COPY the rollback fails as well, with a less useful error.
    throw cause ? cause.error : error;
  }
}

async function restore(sql: Tx, options: RestoreOptions): Promise<Restored> {
  await lockMigrations(sql);
  await liftTimeLimits(sql);
  const relations = await selectRelationCount(sql);
  if (relations > 0)
    throw new Error(
      `Cannot restore: the database is not empty, it has ${relations} tables, views and sequences: ` +
        "create an empty database, or set DATA_DIR to an empty directory",
    );
  const { path, asOfBackup, signal } = options;
  const { schema, partitions, tables } = await readBackupHeader(path);
  await migrateTo(sql, schema);
  for (const partition of partitions) await createPartition(sql, partition);
  const known = new Map((await selectTables(sql)).map((table) => [table.name, table]));
  requireAllTables(path, known, tables);

  const putContent = createContentSink(sql, options);
  const load = () =>
    readBackup(
      path,
      {
        header: () => {},
        table: async (name) => (known.has(name) ? await createTableSink(sql, path, { tables, name }) : IGNORED_TABLE),
        content: putContent,
      },
      signal,
    );
  let file: Awaited<ReturnType<typeof load>> | undefined;
  await loadTables(sql, [...known.keys()], async () => void (file = await load()));
  const { header, totals } = file!;
  for (const sequence of header.sequences) await updateSequence(sql, sequence);
  await migrateTo(sql, await schemaVersion());
  const revoked = await becomeQuiet(sql, { restoredTo: header.takenAt, revokes: !asOfBackup });
  const unknownTables = tables.map(({ name }) => name).filter((name) => !known.has(name));
  return { ...totals, takenAt: header.takenAt, attachments: header.attachments, revoked, unknownTables };
}

/** A table of the schema that the file lacks, or has with other columns, would be restored only in part. */
function requireAllTables(path: string, known: ReadonlyMap<string, Table>, tables: readonly Table[]): void {
  const inFile = new Map(tables.map((table) => [table.name, table]));
  const toText = (columns: readonly string[] = []) => [...columns].sort().join(", ");
  for (const { name, columns } of known.values())
    if (toText(inFile.get(name)?.columns) !== toText(columns))
      throw new BackupError(
        `Cannot restore "${path}": its table "${name}" has the columns "${toText(inFile.get(name)?.columns)}", ` +
          `expected "${toText(columns)}"`,
      );
}

const IGNORED_TABLE: SectionSink = { write: async () => {}, end: async () => {}, abort: () => {} };

type NamedTable = { tables: readonly Table[]; name: string };

/** The rows are counted, because a line that ends a COPY makes PostgreSQL ignore those behind it. */
async function createTableSink(sql: Tx, path: string, { tables, name }: NamedTable): Promise<SectionSink> {
  const copy = await copyIn(
    sql,
    tables.find((table) => table.name === name)!,
  );
  return {
    ...copy,
    async end({ rows }) {
      await copy.end();
      const restored = await selectRowCount(sql, name);
      if (restored !== rows)
        throw new BackupError(
          `Cannot restore "${path}": the table "${name}" has ${rows} rows in the file, and PostgreSQL accepted ${restored} of them`,
        );
    },
  };
}

/** Content that the store has already is not written again. */
function createContentSink(sql: Tx, { path, store, spoolDirectory }: RestoreOptions) {
  let failure: unknown;
  const spool = createSpool(spoolDirectory, (error) => (failure = error));
  return async (key: ContentKey): Promise<SectionSink> => {
    if (!(await selectIsAttached(sql, key)))
      throw new BackupError(
        `Cannot restore "${path}": it has content with SHA-256 ${key.sha256} that is no attachment of the project ${key.projectId}`,
      );
    const isThere = await store.has(key);
    const writer = spool.open(Infinity);
    return {
      write: async (chunk) => (isThere ? undefined : await writer.write(chunk)),
      async end({ isIntact }) {
        if (isThere || !isIntact) return await writer.discard();
        const { end, ...rest } = await writer.finish();
        if (end !== "spooled" || !("spooled" in rest))
          throw new Error(`Cannot write an attachment: ${String(failure)}`, { cause: failure });
        await store.put(key, rest.spooled.file);
      },
      abort: () => writer.discard(),
    };
  };
}
