/** Migrations on databases that hold something. */

import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { testCluster } from "../cluster.ts";
import { createBareDatabase, createDatabase, createOlderDatabase, until } from "../harness.ts";
import { connect } from "../../src/database/connect.ts";
import { lockMigrations, migrate, migrateTo, selectAppliedCount } from "../../src/database/migrate.ts";
import { type Line, resolveBranch } from "../../src/rules/branch.ts";

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

test("0052 makes stored builds of merge queues what an upload would make of them", async () => {
  const sha = "9f8e7d6c5b4a39281706f5e4d3c2b1a098765432";
  const branches = [
    "main",
    `gh-readonly-queue/main/pr-12-${sha}`,
    `gh-readonly-queue/release/2.x/pr-7-${sha}`,
    "gh-readonly-queue/odd",
    "refs/merge-requests/31/head",
    "refs/merge-requests/31/train",
  ];
  const stored = await database.begin(async (sql) => {
    await sql`create schema before_queues`;
    await sql`set local search_path = before_queues`;
    const at = files.findIndex((name) => name.startsWith("0052"));
    const migrate = async (from: number, to: number) => {
      for (const name of files.slice(from, to)) await sql.unsafe(await Bun.file(join(FOLDER, name)).text()).simple();
    };
    await migrate(0, at);
    const id = Bun.randomUUIDv7();
    await sql`insert into stored_team (id, name) values (${id}, 'team')`;
    await sql`insert into stored_project (team_id, id, name, default_branch) values (${id}, ${id}, 'project', 'trunk')`;
    for (const branch of branches) {
      await sql`
        insert into execution (project_id, id, status, trigger, branch, timeout_minutes, created_at)
        values (${id}, ${Bun.randomUUIDv7()}, 'passed', 'upload', ${branch}, 30, now())`;
      await sql`insert into red_task (project_id, branch, task_slug) values (${id}, ${branch}, 't')`;
    }
    await migrate(at, at + 1);
    const red = await sql<{ branch: string }[]>`select branch from red_task order by branch`;
    expect(red.map(({ branch }) => branch)).toEqual(["gh-readonly-queue/odd", "main", "refs/merge-requests/31/head"]);
    return await sql<Line[]>`
      select branch, pull_request as "pullRequest", base_branch as "baseBranch", queue_ref as "queueRef"
      from execution order by id`;
  });
  const expected = branches.map((branch): Line => {
    const line = resolveBranch({ branch, pullRequest: null });
    return line.queueRef === null ? line : { ...line, baseBranch: line.baseBranch ?? "trunk" };
  });
  expect([...stored]).toEqual(expected);
});

test("0061 keeps the probes that are there, and lets others share their executions", async () => {
  const [project, shared] = [Bun.randomUUIDv7(), Bun.randomUUIDv7()];
  const rows = await database.begin(async (sql) => {
    await sql`create schema before_sharing`;
    await sql`set local search_path = before_sharing`;
    const migrate = async (from: number, to: number) => {
      for (const name of files.slice(from, to)) await sql.unsafe(await Bun.file(join(FOLDER, name)).text()).simple();
    };
    await migrate(0, 60);
    await sql`insert into stored_team (id, name) values (${project}, 'team')`;
    await sql`insert into stored_project (team_id, id, name) values (${project}, ${project}, 'project')`;
    await sql`
      insert into execution (project_id, id, status, trigger, timeout_minutes, created_at, probe, untrusted)
      values (${project}, ${shared}, 'queued', 'probe', 30, now(), true, true)`;
    await sql`
      insert into probe (project_id, execution_id, test_case, task_slug, commit, created_at)
      values (${project}, ${shared}, 1, 'unit', 'abcdef1', now())`;
    await migrate(60, 61);
    await sql`
      insert into probe (project_id, execution_id, number, test_case, task_slug, commit, created_at)
      values (${project}, ${shared}, 2, 2, 'unit', 'abcdef1', now())`;
    return await sql`select number, test_case as "testCase" from probe order by number`;
  });
  expect([...rows]).toEqual([
    { number: 1, testCase: 1 },
    { number: 2, testCase: 2 },
  ]);
});

test("servers that start together migrate one after the other", async () => {
  const { database, connection } = await createBareDatabase();
  const second = connect(connection, 2);
  const [first, over] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const migrating = database.begin(async (sql) => {
    await lockMigrations(sql);
    await migrateTo(sql, 1);
    first.resolve();
    await over.promise;
    await migrateTo(sql, files.length);
  });
  await first.promise;
  let hasEnded = false;
  const other = migrate(second).finally(() => (hasEnded = true));
  try {
    await until(
      async () =>
        hasEnded ||
        (
          await database.pool`
            select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
        ).length === 1,
    );
    over.resolve();
    await migrating;
    // It finds everything done.
    expect(await other).toBe(false);
    expect(await second.begin(selectAppliedCount)).toBe(files.length);
  } finally {
    await second.close();
  }
});

test("a migration that fails is named, and the schema remains", async () => {
  const { database: broken } = await createDatabase();
  await broken.pool`delete from migration where number = 62`;
  await broken.pool`alter table delivery drop constraint delivery_status_check`;
  await expect(migrate(broken)).rejects.toThrow(
    /^Cannot migrate the database from schema 61 \(0062_inapplicable_deliveries\.sql\): .*delivery_status_check.*\. The database remains at schema 61$/,
  );
  const [row] = await broken.pool<{ number: number }[]>`select max(number) as number from migration`;
  expect(row).toEqual({ number: 61 });
});

test("a database with a migration of a version that was never released is refused by its name, and stays as it is", async () => {
  const { database: unreleased } = await createOlderDatabase(7);
  await unreleased.pool`update migration set name = '0007_idempotency.sql' where number = 7`;
  await expect(migrate(unreleased)).rejects.toThrow(
    "The database has the migration 0007_idempotency.sql, which this version of Assay does not know",
  );
  expect(await unreleased.begin(selectAppliedCount)).toBe(7);
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
