/** The runner of migrations, with folders that have more of them than `sql/`. */

import { afterAll, expect, test } from "bun:test";
import { copyFileSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { testCluster } from "../cluster.ts";
import { createBareDatabase, createDatabase } from "../harness.ts";
import { connect } from "../../src/database/connect.ts";
import { migrate, schemaVersion, selectAppliedCount } from "../../src/database/migrate.ts";
import { createPlace, removePlace } from "../places.ts";

const FOLDER = join(import.meta.dir, "../../sql");
const place = createPlace("migrations");
afterAll(() => removePlace(place));
const current = await schemaVersion();
const numberOf = (ahead: number): string => String(current + ahead).padStart(4, "0");

/** A folder with the migrations of `sql/` and one more for each text. */
async function createFolder(name: string, texts: readonly string[]): Promise<string> {
  const folder = join(place, name);
  mkdirSync(folder);
  for (const file of readdirSync(FOLDER)) copyFileSync(join(FOLDER, file), join(folder, file));
  for (const [index, text] of texts.entries()) await Bun.write(join(folder, `${numberOf(index + 1)}_later.sql`), text);
  return folder;
}

test("servers that start at once apply each migration once, to a new database and to an older one", async () => {
  const { database } = await createBareDatabase();
  const folder = await createFolder("at_once", [
    "create table counted (n int); insert into counted values (1)",
    "insert into counted values (2)",
  ]);
  const messages: string[] = [];
  // Where the machine is slow, one says that it waits for the other.
  const say = (message: string) => void (/ waits for /.test(message) || messages.push(message));
  const created = await Promise.all([migrate(database, say), migrate(database, say)]);
  expect(created.sort()).toEqual([false, true]);
  expect(messages.splice(0)).toEqual([`Created the database schema ${current}`]);
  await Promise.all([migrate(database, say, folder), migrate(database, say, folder)]);
  expect(messages.sort()).toEqual([1, 2].map((ahead) => `Migrated the database: ${numberOf(ahead)}_later.sql`));
  expect([...(await database.pool`select n from counted order by n`)]).toEqual([{ n: 1 }, { n: 2 }]);
  // A server of this version does not use the newer database.
  await expect(migrate(database)).rejects.toThrow(
    `The database has schema ${current + 2}, this version of Assay knows up to ${current}: start a newer version`,
  );
});

test("a migration that fails is named, and changes nothing", async () => {
  const { database } = await createDatabase();
  const folder = await createFolder("fails", ["create table later (n int); select missing_function()"]);
  await expect(migrate(database, undefined, folder)).rejects.toThrow(
    new RegExp(
      `^Cannot migrate the database from schema ${current} \\(${numberOf(1)}_later\\.sql\\): .*missing_function.*\\. ` +
        `The database remains at schema ${current}$`,
    ),
  );
  expect(await database.begin(selectAppliedCount)).toBe(current);
  expect([...(await database.pool`select to_regclass('later') as later`)]).toEqual([{ later: null }]);
});

test("a database with an unknown migration is refused by its name, and stays as it is", async () => {
  const { database } = await createDatabase();
  await database.pool`update migration set name = '0001_other.sql' where number = 1`;
  const folder = await createFolder("unknown", ["create table later (n int)"]);
  await expect(migrate(database, undefined, folder)).rejects.toThrow(
    "The database has the migration 0001_other.sql, which this version of Assay does not know",
  );
  expect(await database.begin(selectAppliedCount)).toBe(current);
});

test("a folder with a gap in its numbers is refused", async () => {
  const { database } = await createDatabase();
  const folder = await createFolder("gap", []);
  await Bun.write(join(folder, `${numberOf(2)}_later.sql`), "create table later (n int)");
  await expect(migrate(database, undefined, folder)).rejects.toThrow(
    `Cannot migrate: expected ${numberOf(1)}_….sql, found ${numberOf(2)}_later.sql`,
  );
});

test("a database with another encoding than UTF8 gets no tables", async () => {
  const cluster = await testCluster();
  const admin = connect({ ...cluster, database: "postgres" }, 1);
  const name = `test_${crypto.randomUUID().replaceAll("-", "")}`;
  await admin.pool.unsafe(`create database ${name} template template0 encoding 'SQL_ASCII' locale 'C'`);
  const other = connect({ ...cluster, database: name }, 1);
  await expect(migrate(other)).rejects.toThrow(
    "The database has the encoding SQL_ASCII: create it with the encoding UTF8",
  );
  expect(await other.pool`select from pg_tables where schemaname = 'public'`).toHaveLength(0);
  await other.close();
  await admin.pool.unsafe(`drop database ${name} with (force)`);
  await admin.close();
});
