/** The months of results, which a server creates while others store reports. */

import { expect, test } from "bun:test";
import { createPartitions } from "../../src/database/partitions.ts";
import { firstIdAt } from "../../src/database/time_bounds.ts";
import { createDatabase, until } from "../harness.ts";

test("a month whose first result arrives while it is created stays as it is, without an error", async () => {
  const { database } = await createDatabase();
  const { pool } = database;
  const day = new Date("2101-03-15T00:00:00Z");
  const arrived = Promise.withResolvers<void>();
  const committed = Promise.withResolvers<void>();
  const upload = database.begin(async (sql) => {
    // The row alone, without its run and project.
    await sql`set local session_replication_role = replica`;
    await sql`
      insert into case_result (project_id, run_id, block, test_cases, statuses, durations)
      values (gen_random_uuid(), ${firstIdAt(day.getTime())}, 0, '{1}', 'p', '{null}')`;
    arrived.resolve();
    await committed.promise;
  });
  await arrived.promise;
  const created = createPartitions(database, day);
  await until(async () => {
    const waiting = await pool`
      select from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock' and query like 'create table if not exists case_result_2101_03%'`;
    return waiting.length === 1;
  });
  committed.resolve();
  await Promise.all([upload, created]);
  const months = await pool<{ name: string }[]>`
    select inhrelid::regclass::text as name from pg_inherits
    where inhparent in ('case_result'::regclass, 'case_detail'::regclass) and inhrelid::regclass::text ~ '_2101_' order by name`;
  expect(months.map(({ name }) => name)).toEqual(["case_detail_2101_03", "case_detail_2101_04", "case_result_2101_04"]);
});
