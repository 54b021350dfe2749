/** The next release, as far as an upgrade is concerned: a copy of this checkout with one more migration. */

import { cpSync, mkdirSync, readdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { schemaVersion } from "../../../src/database/migrate.ts";

export const ROOT = join(import.meta.dir, "../../..");
const COPIED = ["src", "sql"];

const MIGRATION = `
alter table execution add column next_note text;
update execution set next_note = 'upgraded';
create table next_table (
  project_id uuid not null references stored_project (id) on delete cascade,
  id uuid not null,
  primary key (project_id, id)
);
insert into next_table select project_id, id from execution;
`;

export type NextRelease = { source: string; sql: string; schema: number; migration: string };

/** `source` is the copy, `sql` its folder of migrations, `migration` the name of the added one. */
export async function createNextRelease(place: string): Promise<NextRelease> {
  const source = join(place, "next");
  mkdirSync(source);
  for (const name of readdirSync(ROOT)) {
    if (COPIED.includes(name)) cpSync(join(ROOT, name), join(source, name), { recursive: true });
    else if (name !== ".git") symlinkSync(join(ROOT, name), join(source, name));
  }
  const schema = (await schemaVersion()) + 1;
  const migration = `${String(schema).padStart(4, "0")}_next.sql`;
  await Bun.write(join(source, "sql", migration), MIGRATION);
  return { source, sql: join(source, "sql"), schema, migration };
}
