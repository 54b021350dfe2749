/** Migrations on databases that hold something. */

import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { createDatabase } from "../harness.ts";

const FOLDER = join(import.meta.dir, "../../sql");
const files = readdirSync(FOLDER).sort();
const { database } = await createDatabase();

test("0016 leaves the events that are there where they are, and numbers what comes", async () => {
  await database.begin(async (sql) => {
    await sql`create schema before_live`;
    await sql`set local search_path = before_live`;
    const migrate = async (from: number, to: number) => {
      for (const name of files.slice(from, to)) await sql.unsafe(await Bun.file(join(FOLDER, name)).text()).simple();
    };
    const node = async () =>
      (await sql<{ node: number }[]>`select pg_relation_filenode('event')::int as node`)[0]!.node;
    await migrate(0, 15);
    const id = Bun.randomUUIDv7();
    await sql`insert into team (id, name) values (${id}, 'team')`;
    const insert = () => sql`
      insert into event (team_id, id, type, data) values (${id}, ${Bun.randomUUIDv7()}, 'execution.completed', '{}')`;
    await insert();
    const before = await node();
    await migrate(15, 16);
    expect(await node()).toBe(before);
    await insert();
    const rows = await sql<{ isOld: boolean; isMine: boolean }[]>`
      select xact = '0' as "isOld", xact = pg_current_xact_id() as "isMine" from event order by id`;
    expect([...rows]).toEqual([
      { isOld: true, isMine: false },
      { isOld: false, isMine: true },
    ]);
  });
});

test("0009 finds the baselines of many executions in a moment", async () => {
  const project = Bun.randomUUIDv7();
  const baselines = await database.begin(async (sql) => {
    await sql`create schema early`;
    await sql`set local search_path = early`;
    const migrate = async (from: number, to: number) => {
      for (const name of files.slice(from, to)) await sql.unsafe(await Bun.file(join(FOLDER, name)).text()).simple();
    };
    await migrate(0, 8);
    await sql`insert into team (id, name) values (${project}, 'team')`;
    await sql`insert into project (team_id, id, name) values (${project}, ${project}, 'project')`;
    await sql`
      insert into execution (project_id, id, status, trigger, branch, timeout_minutes, created_at, completed_at)
      select ${project}, lpad(to_hex(n), 32, '0')::uuid, 'passed', 'upload', case when n % 2 = 0 then 'main' else 'x' end, 30,
        now() + n * interval '1 second', now() + (n + 2) * interval '1 second'
      from generate_series(1, 20000) n`;
    await migrate(8, 9);
    return await sql<{ id: string; baseline: string | null }[]>`
      select right(id::text, 4) as id, right(baseline_id::text, 4) as baseline from execution
      where id in (select lpad(to_hex(n), 32, '0')::uuid from unnest(array[3, 4, 5, 20000]) n) order by 1`;
  });
  // What ended after an execution had begun is not its baseline: 4 is over with the beginning of 6.
  expect([...baselines]).toEqual([
    { id: "0003", baseline: null },
    { id: "0004", baseline: "0002" },
    { id: "0005", baseline: "0002" },
    { id: "4e20", baseline: "4e1e" },
  ]);
});
