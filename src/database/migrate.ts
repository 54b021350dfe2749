/** Brings the database to the schema in `sql/`: numbered files, in order, a transaction each. */

import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { embeddedFiles } from "../executable.ts";
import { type Database, isUnavailable, type Sql, type Tx } from "./connect.ts";
import { limitLockWait, withExclusiveLocks } from "./exclusive.ts";
import { MIGRATION_LOCK } from "./locks.ts";

const FOLDER = join(import.meta.dir, "../../sql");
const FILE = /^(\d{4})_[a-z0-9_]+\.sql$/;

type MigrationFile = { name: string; text: () => Promise<string> };

/** A single executable has the files of `sql/` embedded. */
async function readFolder(folder: string): Promise<MigrationFile[]> {
  if (Bun.isStandaloneExecutable)
    return embeddedFiles(".sql").map(({ name, blob }) => ({ name, text: () => blob.text() }));
  const names = (await readdir(folder)).filter((name) => name.endsWith(".sql"));
  return names.map((name) => ({ name, text: () => Bun.file(join(folder, name)).text() }));
}

async function migrationFiles(folder = FOLDER): Promise<MigrationFile[]> {
  const files = (await readFolder(folder)).sort((a, b) => (a.name < b.name ? -1 : 1));
  files.forEach(({ name }, index) => {
    if (Number(FILE.exec(name)?.[1]) !== index + 1)
      throw new Error(`Cannot migrate: expected ${String(index + 1).padStart(4, "0")}_….sql, found ${name}`);
  });
  return files;
}

/** Returns the number of migrations of this version; `/readyz` compares it with the database. */
export const schemaVersion = async (): Promise<number> => (await migrationFiles()).length;

/** Throws unless the database has exactly the schema of this version. Changes nothing. */
export async function requireCurrentSchema(sql: Sql): Promise<void> {
  const [applied, files] = [await requireAnySchema(sql), await migrationFiles()];
  await requireKnown(sql, applied, files);
  if (applied < files.length)
    throw new Error(
      `The database has schema ${applied}, and this version of Assay uses ${files.length}: use the version that the server runs, ` +
        `or start a server of this version, which upgrades the database`,
    );
}

/** Returns how many migrations the database has. Throws if it has none. Changes nothing. */
export async function requireAnySchema(sql: Sql): Promise<number> {
  const applied = await selectAppliedCount(sql);
  if (applied === 0) throw new Error("The database has no tables of Assay: start the server first, which creates them");
  return applied;
}

/**
 * Applies the migrations of `folder` that the database lacks. Returns whether the database was empty. Several servers may call this at
 * once. Throws if the database is newer than this server, or its PostgreSQL is older than 15.
 */
export async function migrate(
  database: Pick<Database, "pool" | "begin">,
  say: (message: string) => void = () => {},
  folder = FOLDER,
): Promise<boolean> {
  const files = await migrationFiles(folder);
  // Reads without a lock, so that a backup, which may take an hour, delays only migrations.
  if ((await database.begin(selectAppliedCount)) === files.length) return false;
  let isNew = false;
  while (
    await withExclusiveLocks(database, { what: "The migration", say }, async (sql) => {
      await lockMigrations(sql);
      await limitLockWait(sql);
      const done = await prepare(sql);
      await requireKnown(sql, done, files);
      if (done === files.length) return false;
      const { name } = await apply(sql, files, done);
      isNew ||= done === 0;
      if (!isNew) say(`Migrated the database: ${name}`);
      return true;
    })
  );
  if (isNew) say(`Created the database schema ${files.length}`);
  return isNew;
}

/** Prevents migrations by other servers until the end of the transaction. */
export async function lockMigrations(sql: Tx): Promise<void> {
  await sql`set local lock_timeout = 0`;
  await sql`set local statement_timeout = 0`;
  await sql`select pg_advisory_xact_lock(${MIGRATION_LOCK})`;
}

/** Migrates the database to schema `version`, at most the newest one, in a transaction that has locked migrations. */
export async function migrateTo(sql: Tx, version: number): Promise<void> {
  const files = await migrationFiles();
  for (let done = await prepare(sql); done < version; done++) await apply(sql, files, done);
}

async function apply(sql: Tx, files: readonly MigrationFile[], done: number): Promise<MigrationFile> {
  const file = files[done]!;
  const text = await file.text();
  try {
    await sql.unsafe(text).simple();
  } catch (error) {
    if (isUnavailable(error)) throw error;
    throw new Error(
      `Cannot migrate the database from schema ${done} (${file.name}): ${String((error as Error).message)}. ` +
        `The database remains at schema ${done}`,
      { cause: error },
    );
  }
  await sql`insert into migration (number, name) values (${done + 1}, ${file.name})`;
  return file;
}

async function requireKnown(sql: Sql, done: number, files: readonly MigrationFile[]): Promise<void> {
  if (done > files.length)
    throw new Error(
      `The database has schema ${done}, this version of Assay knows up to ${files.length}: start a newer version`,
    );
  const applied = await sql<{ name: string }[]>`select name from migration order by number`;
  const other = applied.find(({ name }, index) => name !== files[index]?.name);
  if (other) throw new Error(`The database has the migration ${other.name}, which this version of Assay does not know`);
}

/** The minimum `server_version_num`. */
export const MIN_POSTGRES_VERSION = 150_000;

/** Returns how many migrations the database has, 0 for an empty database. */
export async function selectAppliedCount(sql: Sql): Promise<number> {
  const [table] = await sql<{ there: boolean }[]>`select to_regclass('migration') is not null as there`;
  if (!table!.there) return 0;
  const [applied] = await sql<{ count: number }[]>`select coalesce(max(number), 0) as count from migration`;
  return applied!.count;
}

/** Makes the table of migrations; returns how many the database has. */
async function prepare(sql: Sql): Promise<number> {
  const [server] = await sql<{ version: number; encoding: string }[]>`
    select current_setting('server_version_num')::int as version, current_setting('server_encoding') as encoding`;
  if (server!.version < MIN_POSTGRES_VERSION)
    throw new Error(`PostgreSQL 15 or newer is required, this is ${Math.floor(server!.version / 10_000)}`);
  const done = await selectAppliedCount(sql);
  if (done === 0 && server!.encoding !== "UTF8")
    throw new Error(`The database has the encoding ${server!.encoding}: create it with the encoding UTF8`);
  await sql`
    create table if not exists migration (
      number int primary key, name text not null, applied_at timestamptz(3) not null default now())`;
  return done;
}
