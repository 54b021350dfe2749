/** Grouping the failures of a run reads their details once or twice, also if the planner knows nothing of them yet. */

import { expect, test } from "bun:test";
import { setKeepsPlans } from "../../src/database/connect.ts";
import { selectFamilies } from "../../src/store/incidents.ts";
import { createHarness } from "../harness.ts";

const { acme, ask, database } = await createHarness();

/** Each failure has a cause of its own, and twice as many cases pass. */
const toReport = (failures: number) =>
  `<testsuite name="unit">${Array.from({ length: failures * 3 }, (_, index) => {
    const failure = index < failures ? `<failure message="it failed">at x (a.ts:${index})</failure>` : "";
    return `<testcase classname="suite ${index % 100}" name="case ${index}">${failure}</testcase>`;
  }).join("")}</testsuite>`;

let commits = 1;
async function upload(executionKey: string, failures: number): Promise<string> {
  const path = `POST /projects/${acme.project}/test-runs?execution_key=${executionKey}&complete=true&branch=main&commit=${commits++}a1b2c3d`;
  const { status, body } = await ask(path, { key: acme.key, body: toReport(failures) });
  expect([executionKey, status]).toEqual([executionKey, 201]);
  return body.executionId;
}

test("the failures of a large run in a young database are grouped by reading each of their details once or twice", async () => {
  for (const name of ["first", "second"]) await upload(name, 3);
  await database.pool`analyze`;
  const executionId = await upload("large", 2_000);
  const [run] = await database.pool<{ id: string }[]>`
    select id from test_run where project_id = ${acme.project} and execution_id = ${executionId}`;
  const read = await database.begin(async (sql) => {
    await setKeepsPlans(sql, false);
    expect(await selectFamilies(sql, acme.project, run!.id, { cases: 1_000, files: 1 })).toEqual([]);
    const [row] = await sql<{ rows: number }[]>`
      select sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::int as rows
      from pg_stat_xact_user_tables where relname ~ '^case_detail'`;
    return row!.rows;
  });
  expect(read).toBeGreaterThan(1_900);
  expect(read).toBeLessThan(10_000);
});
