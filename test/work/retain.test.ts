/** Retention: what is deleted for its age, and that more than a day's worth waits until somebody could stop it. */

import { beforeEach, expect, test } from "bun:test";
import { createLog } from "../../src/log.ts";
import { createRetention, retain } from "../../src/work/retain.ts";
import { createAsking } from "../asking.ts";
import { run } from "../commands.ts";
import { createHarness, databaseVariables } from "../harness.ts";

const { ask, acme, addProject, database, connection } = await createHarness({ ownDatabase: true });
const { pool } = database;
const DAY = 86_400_000;
const inDays = (days: number) => new Date(Date.now() + days * DAY);

let own: ReturnType<typeof createAsking>;
let lines: { level: string; message: string; table?: string; rows?: number; before?: string }[];
const log = createLog("info", (line) => void lines.push(JSON.parse(line)), false);
beforeEach(async () => {
  await pool`delete from planned_deletion`;
  await pool`update project set retention_days = 0`;
  own = createAsking(ask, await addProject(acme));
  lines = [];
});

const settings = { results: 90, attachments: 30, executions: 0 };
const retainIn = (days: number, more: Partial<typeof settings> = {}) =>
  retain(database, { ...settings, ...more }, inDays(days), undefined, log);
const messages = (level: string) => lines.filter((line) => line.level === level).map(({ message }) => message);
const countResults = async () => (await pool`select from case_result where project_id = ${own.project}`).length;
const admin = async (...args: string[]) => {
  const env = databaseVariables(connection);
  const { output, errors, code } = await run(["admin", "planned-deletions", ...args], { env });
  expect([code, errors]).toEqual([0, ""]);
  return output;
};

test("what has just become old is deleted at once, and logged with table, number and bound", async () => {
  await own.upload("pf");
  const now = inDays(90.5);
  await retain(database, settings, now, undefined, log);
  expect(await countResults()).toBe(0);
  expect(messages("warn")).toEqual([]);
  const before = new Date(now.getTime() - 90 * DAY).toISOString();
  expect(lines).toContainEqual(expect.objectContaining({ message: "Deleted rows for their age", rows: 1, before }));
  expect(lines.map(({ table }) => table)).toContain("case_result");
});

test("one start with fewer days deletes nothing for a day, says how much it would, and nothing if it is corrected", async () => {
  await own.upload("pf");
  await retainIn(40, { results: 30 });
  expect(messages("warn")).toEqual([
    expect.stringMatching(
      /^Project ".+": the results of 1 test run, older than 30 days \(before .+ UTC\), will be deleted from .+ UTC on\. Correct RETENTION_DAYS/,
    ),
  ]);
  await retainIn(40.9, { results: 30 });
  expect([await countResults(), messages("warn").length, messages("info")]).toEqual([1, 1, []]);
  await retainIn(40.9);
  expect(await pool`select from planned_deletion`).toHaveLength(0);
  await retainIn(40, { results: 30 });
  // Fewer days than were announced are announced again.
  await retainIn(41.1, { results: 20 });
  expect([await countResults(), messages("warn").length]).toEqual([1, 3]);
  await retainIn(42.2, { results: 20 });
  expect(await countResults()).toBe(0);
  expect(await pool`select from planned_deletion`).toHaveLength(0);
});

test("an administrator confirms a deletion, or keeps the data forever", async () => {
  await own.upload("pf");
  await retainIn(40, { results: 30 });
  expect(await admin()).toContain(own.project);
  await admin("--keep", "--project", own.project);
  // The execution, which would take them along, is kept as well.
  for (const days of [400, 402]) await retainIn(days, { results: 30, executions: 100 });
  expect(await countResults()).toBe(1);
  expect(JSON.parse(await admin("--json")).data).toEqual([expect.objectContaining({ objects: 1, beginsAt: null })]);
  await admin("--confirm");
  await retainIn(400, { results: 30 });
  expect(await countResults()).toBe(0);
  expect(await admin()).toBe("None\n");
});

test("a month is kept as long as one project waits with its deletion", async () => {
  await own.upload("p");
  const other = createAsking(ask, await addProject(acme));
  await pool`update project set retention_days = null`;
  const partitions = async () => (await pool`select from pg_inherits where inhparent = 'case_result'::regclass`).length;
  await retainIn(200);
  const before = await partitions();
  await pool`update planned_deletion set begins_at = null`;
  await pool`delete from planned_deletion where project_id = ${other.project}`;
  await retainIn(202);
  expect([await partitions(), await countResults()]).toEqual([before, 1]);
});

test("executions go with their runs and uploads after their own days, but never before their results", async () => {
  const { executionId } = await own.upload("pf");
  const running = (await own.post("/executions", {})).id;
  const left = async () =>
    (await pool<{ id: string }[]>`select id from execution where project_id = ${own.project} order by id`).map(
      ({ id }) => id,
    );
  await own.patch("", { retentionDays: 0 });
  await retainIn(100.5, { executions: 100 });
  expect(await left()).toEqual([executionId, running]);
  await own.patch("", { retentionDays: 60 });
  await retainIn(55, { executions: 50 });
  await retainIn(60.5, { executions: 100 });
  expect([await countResults(), await left(), messages("warn")]).toEqual([0, [executionId, running], []]);
  await retainIn(100.5, { executions: 100 });
  expect(await left()).toEqual([running]);
  expect(
    await pool`select from attempt a join test_run r on r.id = a.run_id where r.execution_id = ${executionId}`,
  ).toHaveLength(0);
  expect(lines.map(({ table }) => table)).toContain("execution");
  expect((await ask(`GET /projects/${own.project}/executions`, { key: own.key })).status).toBe(200);
});

test("servers whose settings differ delete by the longest one, announce nothing that another one keeps, and say that they differ", async () => {
  await own.upload("pf");
  const start = (host: string, results: number) =>
    createRetention(database, { host, settings: { ...settings, results }, log, onDeleted: () => {} });
  const always = () => true;
  const [short, long] = [start("a", 30), start("b", 90)];
  await long.repeat(inDays(40), always);
  for (let round = 0; round < 3; round++) {
    await short.repeat(inDays(40), always);
    await long.repeat(inDays(40), always);
  }
  const difference = "The servers differ in RETENTION_DAYS (30 on a, 90 on b): 90 applies";
  // Each server says it once.
  expect(messages("warn")).toEqual([difference, difference]);
  expect(await pool`select from planned_deletion`).toHaveLength(0);
  expect((await run(["doctor"], { env: databaseVariables(connection) })).output).toContain(difference);
  await long.leave();
  await short.repeat(inDays(40), always);
  expect(messages("warn").slice(2)).toEqual([expect.stringMatching(/the results of 1 test run, older than 30 days/)]);
  // One that keeps data forever is back before the deletion begins, and one that was killed is forgotten.
  const forever = start("c", 0);
  await forever.repeat(inDays(42), always);
  await short.repeat(inDays(42), always);
  expect(await countResults()).toBe(1);
  await pool`update server_retention set seen_at = now() - interval '6 minutes' where host = 'c'`;
  await short.repeat(inDays(42), always);
  expect([await countResults(), await pool`select from server_retention`]).toMatchObject([0, { length: 1 }]);
});
