/** The rows of deleted projects and teams are removed, whichever tables have them, and no others. */

import { describe, expect, test } from "bun:test";
import { createLog } from "../../src/log.ts";
import { COMMAND_LINE } from "../../src/schema/audit.ts";
import { connect } from "../../src/database/connect.ts";
import { deleteRetryBackoff, postponeRetry } from "../../src/database/retry_backoff.ts";
import { insertProject, insertTeam } from "../../src/store/projects.ts";
import { deleteProject, deleteTeam } from "../../src/operations/projects/deletion.ts";
import { always } from "../../src/work/loop.ts";
import { purgeDeleted } from "../../src/work/purge.ts";
import { createEverything } from "../everything.ts";
import { createHarness, junit } from "../harness.ts";
import { fillOtherTables } from "../other_tables.ts";

const harness = await createHarness({ ownDatabase: true, outboundAllow: ["127.0.0.0/8"] });
const { database, acme, rival, ask, connection } = harness;
const { pool, begin } = database;
await createEverything(harness);

const lines: string[] = [];
const log = createLog("info", (line) => void lines.push(line), false);

/** Tables with a column of this name; partitions count as their table. */
const tablesWith = async (column: string): Promise<string[]> =>
  (
    await pool<{ name: string }[]>`
      select c.relname as name from pg_class c join pg_attribute a on a.attrelid = c.oid and not a.attisdropped
      where c.relkind in ('r', 'p') and not c.relispartition and c.relnamespace = 'public'::regnamespace
        and a.attname = ${column} order by 1`
  ).map(({ name }) => name);

/** The rows of an owner in each table, as a number and a digest; tables without any are left out. */
async function rowsOf(column: "project_id" | "team_id", ownerId: string): Promise<Record<string, string>> {
  const held: Record<string, string> = {};
  for (const table of await tablesWith(column)) {
    const [row] = await pool.unsafe(
      `select count(*)::int as count, count(*) || ' ' || md5(string_agg(x::text, '|' order by x::text)) as held
       from ${table} x where ${column} = $1`,
      [ownerId],
    );
    if (row!["count"] > 0) held[table] = row!["held"];
  }
  return held;
}

const everythingElse = async () => ({
  rival: [await rowsOf("team_id", rival.team), await rowsOf("project_id", rival.project)],
  other: await rowsOf("project_id", other.project),
});

const other = await harness.addProject(acme);
for (const { project, key } of [rival, other])
  await ask(`POST /projects/${project}/test-runs?task_slug=unit`, { key, body: junit("ppf") });
const before = await everythingElse();

const deleteAcmeWeb = () =>
  begin(async (sql) => {
    const [{ name }] = await sql<[{ name: string }]>`select name from project where id = ${acme.project}`;
    return await deleteProject(sql, { id: acme.project, confirm: name }, COMMAND_LINE);
  });

describe("a deleted project", () => {
  test("loses its rows in every table, in batches, and nothing else does", async () => {
    await fillOtherTables(harness);
    // A table without a row here proves nothing: the fixture needs one of it.
    expect(Object.keys(await rowsOf("project_id", acme.project))).toEqual(await tablesWith("project_id"));
    expect(await pool`select from idempotency where scope_id = ${acme.project}`).not.toHaveLength(0);
    await deleteAcmeWeb();

    // A server that stops after some batches, and two that go on side by side.
    let rounds = 0;
    expect(await purgeDeleted(database, log, () => ++rounds < 20, 3)).toBe(0);
    expect(await pool`select from stored_project where id = ${acme.project}`).toHaveLength(1);
    expect(Object.keys(await rowsOf("project_id", acme.project))).not.toEqual([]);
    const second = connect(connection, 2);
    try {
      while ((await pool`select from stored_project where id = ${acme.project}`).length > 0)
        await Promise.all([purgeDeleted(database, log, always, 7), purgeDeleted(second, log, always, 7)]);
    } finally {
      await second.close();
    }

    expect(await rowsOf("project_id", acme.project)).toEqual({});
    expect(await pool`select from idempotency where scope_id = ${acme.project}`).toHaveLength(0);
    expect(await everythingElse()).toEqual(before);
    const removed = lines.map((line) => JSON.parse(line)).filter(({ message }) => message.includes("deleted project"));
    expect(removed).toEqual([expect.objectContaining({ id: acme.project, name: "shop", deletedBy: "command line" })]);
    expect(lines.filter((line) => !line.includes("Removed all rows"))).toEqual([]);
  });
});

describe("a deleted team", () => {
  test("loses its rows in every table with all its projects; accounts and other teams stay", async () => {
    expect(await rowsOf("team_id", acme.team)).not.toEqual({});
    const accounts = await pool`select id from account order by id`;
    await begin((sql) => deleteTeam(sql, { id: acme.team, confirm: "Acme" }, COMMAND_LINE));
    expect(await purgeDeleted(database, log)).toBe(3);
    expect(await rowsOf("team_id", acme.team)).toEqual({});
    expect(await rowsOf("project_id", other.project)).toEqual({});
    expect(await pool`select from stored_team where id = ${acme.team}`).toHaveLength(0);
    expect(await pool`select id from account order by id`).toEqual(accounts);
    expect((await everythingElse()).rival).toEqual(before.rival);
    expect(await purgeDeleted(database, log)).toBe(0);
  });
});

test("what a transaction writes that was under way during the deletion goes as well", async () => {
  const { project } = await harness.addProject(rival);
  await begin((sql) => deleteProject(sql, { id: project, confirm: "other" }, COMMAND_LINE));
  const write = (key: string) => pool`
    insert into idempotency (team_id, scope_id, key, digest, status)
    select ${rival.team}, ${project}, ${key}, '\\x00', 201
    where exists (select from stored_project where id = ${project})`;
  let batches = 0;
  // After each batch, so also after that of its own table.
  const besides: typeof begin = async (work) => {
    const result = await begin(work);
    await write(`batch ${++batches}`);
    return result;
  };
  expect(await purgeDeleted({ pool, begin: besides }, log)).toBe(1);
  expect(await pool`select from idempotency where scope_id = ${project}`).toHaveLength(0);
});

test("a team stays until the last of its projects is gone, also one that was put off", async () => {
  const [team, project] = await begin(async (sql) => {
    const team = await insertTeam(sql, "Put off");
    const project = (await insertProject(sql, team, "web"))!;
    await deleteTeam(sql, { id: team, confirm: "Put off" }, COMMAND_LINE);
    return [team, project];
  });
  await postponeRetry(pool, "deletion", project, false);
  expect(await purgeDeleted(database, log)).toBe(0);
  expect(await pool`select from stored_team where id = ${team}`).toHaveLength(1);
  await deleteRetryBackoff(pool, "deletion", project);
  expect(await purgeDeleted(database, log)).toBe(2);
  expect(await pool`select from stored_team where id = ${team}`).toHaveLength(0);
});

test("the views of what is there show every column of their tables", async () => {
  for (const name of ["project", "team"]) {
    const columnsOf = async (relation: string) =>
      (
        await pool<{ name: string }[]>`
          select attname as name from pg_attribute
          where attrelid = ${relation}::regclass and attnum > 0 and not attisdropped order by 1`
      ).map(({ name }) => name);
    const hidden = ["deleted_at", "deleted_by"];
    const shown = (await columnsOf(name)).filter((column) => column !== "xmin");
    expect(shown).toEqual((await columnsOf(`stored_${name}`)).filter((column) => !hidden.includes(column)));
  }
});

test("an index leads to the rows of a project or a team in every table", async () => {
  const missing = await pool`
    select c.relname as table, a.attname as column from pg_class c
    join pg_attribute a on a.attrelid = c.oid and a.attname in ('project_id', 'team_id') and not a.attisdropped
    where c.relkind in ('r', 'p') and not c.relispartition and c.relnamespace = 'public'::regnamespace
      and not exists (select from pg_index i where i.indrelid = c.oid and i.indkey[0] = a.attnum
        and coalesce(pg_get_expr(i.indpred, i.indrelid), '(project_id IS NOT NULL)') = '(project_id IS NOT NULL)')`;
  expect([...missing]).toEqual([]);
});
