/** Transactions that meet at several locks take them in one order, one that loses to another is repeated, and one that must wait waits. */

import { expect, test } from "bun:test";
import { createHarness, junit, SECRET_KEY, until } from "../harness.ts";
import { attachFiles } from "../../src/operations/attachments/attach.ts";
import { syncRunner } from "../../src/operations/executions/leases.ts";
import { createSeal } from "../../src/secrets/seal.ts";
import { findOrInsertExecution } from "../../src/operations/executions/found_execution.ts";
import { prepareReport } from "../../src/operations/ingest/prepare.ts";
import { resolveReport } from "../../src/operations/ingest/resolve.ts";
import { addSampleData, removeSampleData } from "../../src/operations/projects/onboarding.ts";
import { locksFor, takeReport } from "../../src/operations/ingest/ingest.ts";
import { readReport } from "../../src/reports/read.ts";
import type { UploadParameters } from "../../src/schema/test_runs.ts";
import { reclaimLeases } from "../../src/work/reclaim.ts";
import { connect, type Tx } from "../../src/database/connect.ts";
import { takeLock } from "../../src/database/locks.ts";

const { database, connection, ask, acme, addProject } = await createHarness({ ownDatabase: true });
const { pool, begin } = database;
const watcher = connect(connection, 1);

/** How many transactions of this database wait for a lock. */
const countWaiting = async () =>
  (
    await watcher.pool`
      select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
  ).length;
const untilWaiting = (count: number) => until(async () => (await countWaiting()) === count);

/** A transaction that has done `work` and stays open until it is told to commit. */
async function hold(work: (sql: Tx) => Promise<unknown>) {
  const [{ promise: done, resolve: onDone }, { promise: told, resolve: commit }] = [
    Promise.withResolvers<void>(),
    Promise.withResolvers<void>(),
  ];
  const ended = begin(async (sql) => {
    await work(sql);
    onDone();
    await told;
  });
  await done;
  return {
    commit: async () => {
      commit();
      await ended;
    },
  };
}

async function prepare(project: string, body: string, given: Partial<UploadParameters>) {
  const parameters = { allow_empty: false, complete: false, ...given };
  const options = { maxInflatedBytes: 1_000_000, mayBeEmpty: false };
  const report = readReport([{ name: "report.xml", bytes: new TextEncoder().encode(body) }], options);
  return { parameters, prepared: await prepareReport(project, report, parameters, Bun.SHA256.hash(body, "hex")) };
}

/** As an upload does it, without repeating it. */
async function upload(project: string, given: Partial<UploadParameters>) {
  const { parameters, prepared } = await prepare(project, junit("pp"), given);
  const numbers = await resolveReport(pool, begin, project, prepared, parameters);
  return await begin(async (sql) => {
    for (const lock of locksFor(project, parameters)) await takeLock(sql, lock);
    return await takeReport(sql, project, { prepared, parameters, numbers });
  });
}

test("a build that is begun and one that reports do not deadlock while a third one names the commit of their key", async () => {
  const { project } = await addProject(acme);
  // Names its cases, so that what follows waits for its execution alone.
  const { run } = await upload(project, { execution_key: "1", task_slug: "unit" });
  const third = await hold(
    (sql) => sql`update execution set commit = 'aaaaaaa' where project_id = ${project} and id = ${run.executionId}`,
  );
  const begun = begin((sql) =>
    findOrInsertExecution(sql, project, {
      ...{ key: "1", commit: "bbbbbbb", status: "queued", trigger: "api", timeoutMinutes: null, now: new Date() },
    }),
  );
  await untilWaiting(1);
  const reported = upload(project, { execution_key: "1", task_slug: "e2e" });
  await untilWaiting(2);
  await third.commit();
  const ends = await Promise.allSettled([begun, reported]);
  expect(ends.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled"]);
});

test("sample data that is removed and an upload that takes over its test cases do not deadlock", async () => {
  const { project } = await addProject(acme);
  await begin((sql) => addSampleData(sql, project));
  const cases = await pool<{ number: number; name: string }[]>`
    select number, name from test_case where project_id = ${project} and task_slug = 'sample: checkout' order by number`;
  const [first, middle, last] = [cases[0]!, cases[5]!, cases.at(-1)!];
  const holder = await hold(
    (sql) => sql`select from test_case where project_id = ${project} and number = ${middle.number} for update`,
  );
  const removed = begin((sql) => removeSampleData(sql, project));
  await untilWaiting(1);
  // In the other order than they are removed in.
  const body = `<testsuite name="Checkout">${[last, first]
    .map(({ name }) => `<testcase name="${name}" file="spec/checkout.test.ts"/>`)
    .join("")}</testsuite>`;
  const { parameters, prepared } = await prepare(project, body, { task_slug: "sample: checkout" });
  const named = resolveReport(pool, begin, project, prepared, parameters);
  await untilWaiting(2);
  await holder.commit();
  const ends = await Promise.allSettled([removed, named]);
  expect(ends.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled"]);
});

test("a request whose transaction is the victim of a deadlock is repeated, and nothing is there twice", async () => {
  const { project, key } = await addProject(acme);
  await pool.unsafe(`
    create sequence attempts;
    create function deadlock() returns trigger language plpgsql as $$ begin
      if nextval('attempts') <= 2 then raise exception 'deadlock detected' using errcode = '40P01'; end if;
      return new;
    end $$;
    create trigger deadlock before insert on attempt for each row execute function deadlock();
  `);
  try {
    for (const [body, slug] of [
      [junit("pf"), "judged"],
      [junit("pp"), "batched"],
    ] as const) {
      await pool`select setval('attempts', 1, false)`;
      const answer = await ask(`POST /projects/${project}/test-runs?task_slug=${slug}&shard=1/2`, { key, body });
      expect([slug, answer.status]).toEqual([slug, 201]);
    }
    const runs = await pool`select task_slug as slug, attempt from test_run where project_id = ${project} order by 1`;
    expect([...runs]).toEqual([
      { slug: "batched", attempt: 1 },
      { slug: "judged", attempt: 1 },
    ]);
  } finally {
    await pool.unsafe("drop trigger deadlock on attempt; drop function deadlock; drop sequence attempts");
  }
});

test("test cases that are named in a transaction that is undone and repeated are named once", async () => {
  const { project, key } = await addProject(acme);
  const cases = (file: string) =>
    `<testsuite name="s"><testcase name="old" file="${file}"/><testcase name="${file}" file="${file}"/></testsuite>`;
  const upload = (body: string) =>
    ask(`POST /projects/${project}/test-runs?task_slug=unit`, { key, body }).then(({ status }) => status);
  expect(await upload(cases("a.ts"))).toBe(201);
  await pool.unsafe(`
    create sequence attempts;
    create function deadlock() returns trigger language plpgsql as $$ begin
      if nextval('attempts') = 1 then raise exception 'deadlock detected' using errcode = '40P01'; end if;
      return new;
    end $$;
    create trigger deadlock before insert on test_case for each row execute function deadlock();
  `);
  try {
    // One case has moved and one is new: the new one fails after the other was moved.
    expect(await upload(cases("b.ts"))).toBe(201);
  } finally {
    await pool.unsafe("drop trigger deadlock on test_case; drop function deadlock; drop sequence attempts");
  }
  const names = await pool`select name, file from test_case where project_id = ${project} order by number`;
  expect([...names]).toEqual([
    { name: "old", file: "b.ts" },
    { name: "a.ts", file: "a.ts" },
    { name: "b.ts", file: "b.ts" },
  ]);
});

/** What `late` answers if it is begun while the transaction of `early` is open, which commits once `late` waits, or has not waited. */
async function besides<T>(early: (sql: Tx) => Promise<unknown>, late: () => Promise<T>): Promise<T> {
  const holder = await hold(early);
  let hasEnded = false;
  const running = late().finally(() => (hasEnded = true));
  await until(async () => hasEnded || (await countWaiting()) === 1);
  await holder.commit();
  return await running;
}

test("two runners that ask at once do not get two tasks of a concurrency group, though each can run another one", async () => {
  const { project, key } = await addProject(acme);
  const tasks = [
    { slug: "drivers", concurrencyGroup: "staging", labels: ["gpu"] },
    { slug: "pages", concurrencyGroup: "staging" },
  ];
  await ask(`POST /projects/${project}/executions`, { key, body: { mode: "run", tasks } });
  const seal = createSeal(SECRET_KEY);
  const what = { free: 1, held: [], returned: [], waitSeconds: 0 };
  const [gpu, plain] = [["gpu"], []].map((labels, index) => ({
    ...{ runner: `r${index}`, labels, taskSlugs: undefined, probeSlugs: [] },
  }));
  const { leases } = await besides(
    (sql) => syncRunner(sql, seal, project, gpu!, what),
    () => begin((sql) => syncRunner(sql, seal, project, plain!, what)),
  );
  expect(leases).toEqual([]);
  const taken = await pool`select task_slug as slug from lease where project_id = ${project} and status = 'offered'`;
  expect([...taken]).toEqual([{ slug: "drivers" }]);
});

test("a lease that is renewed while its end waits for the execution is not lost", async () => {
  const { project, key } = await addProject(acme);
  const { body } = await ask(`POST /projects/${project}/executions`, { key, body: { mode: "run", tasks: ["unit"] } });
  const sync = async (more: object) =>
    (await ask(`POST /projects/${project}/leases`, { key, body: { runner: "r1", ...more } })).body;
  const [{ id }] = (await sync({ free: 1 })).leases;
  const renew = async () => (await sync({ free: 0, held: [{ id }] })).held[0];
  await renew();
  await pool`update lease set expires_at = now() - interval '1 second' where id = ${id}`;
  const holder = await hold((sql) => sql`select from execution where id = ${body.id} for update`);
  const reclaimed = reclaimLeases(database);
  await untilWaiting(1);
  await renew();
  await holder.commit();
  await reclaimed;
  expect(await renew()).toMatchObject({ cancelled: false });
});

test("two uploads at once do not exceed the limits of attachments together", async () => {
  const { project, key } = await addProject(acme);
  const { body: run } = await ask(`POST /projects/${project}/test-runs?task_slug=unit`, { key, body: junit("f") });
  const path = `/projects/${project}/executions/${run.executionId}/test-runs/unit/attachments`;
  expect((await ask(`PUT ${path}?path=first.log`, { key, body: "text" })).status).toBe(201);
  const [stored] = await pool<{ runId: string; sha256: string }[]>`
    select run_id as "runId", encode(sha256, 'hex') as sha256 from attachment where project_id = ${project}`;
  const { runId, sha256 } = stored!;
  const limits = { maxBytes: 100, maxFiles: 2, maxExecutionBytes: 100, maxProjectBytes: 0 };
  const attach = (path: string) => (sql: Tx) =>
    attachFiles(
      sql,
      project,
      { id: runId, executionId: run.executionId },
      [{ path, name: path, sha256, bytes: 4, mediaType: "text/plain", preview: null } as never],
      { limits, upload: undefined, stored: [] },
    );
  const { added, warnings } = await besides(attach("second.log"), () => begin(attach("third.log")));
  expect([added, warnings.length]).toEqual([false, 1]);
  const names = (await ask(`GET ${path}`, { key })).body.data.map(({ name }: { name: string }) => name);
  expect(names.sort()).toEqual(["first.log", "second.log"]);
});
