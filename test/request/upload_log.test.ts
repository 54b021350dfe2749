/** Notes of uploads where the database has no time for them, or is not there. */

import { describe, expect, test } from "bun:test";
import { createLog } from "../../src/log.ts";
import { type AnsweredUpload, createUploadLog, noFacts } from "../../src/request/upload_log.ts";
import { connect } from "../../src/database/connect.ts";
import { createHarness, createServer, holdTransaction } from "../harness.ts";

const { database, acme, addProject, regenerate } = await createHarness();
const { pool } = database;
const log = createLog("error", () => {}, false);

/** As the server would see it; the key is live. */
async function createAnswered() {
  const own = await addProject(acme);
  const [key] = await pool<{ id: string }[]>`select id from api_key where project_id = ${own.project}`;
  const upload = (status = 400): AnsweredUpload => ({
    caller: {
      ...{ id: key!.id, teamId: acme.team, projectId: own.project, kind: "project" },
      ...{ scope: null, name: null, leading: own.key.slice(0, 17) },
    },
    facts: noFacts(),
    request: new Request("http://h/"),
    search: "",
    requestId: "r",
    clientAddress: "127.0.0.1",
    status,
    message: "No",
  });
  const rows = () => pool<{ times: number }[]>`
    select times, status_code from upload_log where project_id = ${own.project} order by id`;
  return { ...own, upload, rows };
}

describe("where the database has no time", () => {
  test("uploads are answered all the same, few notes wait, and the rest is dropped and counted", async () => {
    const projects = await Promise.all(Array.from({ length: 10 }, createAnswered));
    let dropped = 0;
    const notes = createUploadLog({ pool, log, onDropped: (count) => void (dropped += count) });
    const { release } = await holdTransaction(database, (sql) => sql`lock table upload_log`);
    for (const { upload } of projects) for (let index = 0; index < 90; index++) notes.note(upload());
    // A request is answered while the table is locked.
    const server = await createServer(database);
    const own = projects[0]!;
    const { status } = await server.ask(`POST /projects/${own.project}/test-runs`, { key: own.key, body: "hello" });
    expect(status).toBe(400);
    await release();
    await Promise.all([notes.settled(), server.app.settled()]);
    const stored = (await Promise.all(projects.map(({ rows }) => rows()))).flat().length;
    expect(dropped).toBeGreaterThan(500);
    expect(stored + dropped).toBe(901);
  });

  test("a client that repeats its mistake without a pause writes a hundred notes a minute at most", async () => {
    const { upload, rows } = await createAnswered();
    let dropped = 0;
    const notes = createUploadLog({ pool, log, onDropped: (count) => void (dropped += count) });
    for (let index = 0; index < 150; index++) notes.note(upload());
    await notes.settled();
    expect([(await rows()).length, dropped]).toEqual([100, 50]);
    notes.sweep();
    notes.note(upload());
    await notes.settled();
    expect(await rows()).toHaveLength(101);
  });
});

test("where the database is not there notes are dropped, which is logged once, and it goes on afterwards", async () => {
  const { upload, rows } = await createAnswered();
  const lines: string[] = [];
  const away = connect({ host: "127.0.0.1", port: 1 }, 1);
  let dropped = 0;
  let current = away.pool;
  const notes = createUploadLog({
    pool: new Proxy(pool, { apply: (_, __, given) => Reflect.apply(current, undefined, given) }),
    log: createLog("warn", (line) => void lines.push(line), false),
    onDropped: (count) => void (dropped += count),
  });
  for (let round = 0; round < 2; round++) {
    for (let index = 0; index < 10; index++) notes.note(upload());
    await notes.settled();
  }
  expect([dropped, lines.length]).toEqual([20, 1]);
  current = pool;
  notes.note(upload());
  await notes.settled();
  expect(await rows()).toHaveLength(1);
  await away.close();
});

test("requests beyond the rate limit are one note while they come, written once a minute, and another one after a pause", async () => {
  const { upload, rows } = await createAnswered();
  let now = Date.now();
  const notes = createUploadLog({ pool, log, wall: () => now });
  const times = async () => {
    await notes.settled();
    return (await rows()).map(({ times }) => times);
  };
  for (let index = 0; index < 500; index++) notes.note(upload(429));
  expect(await times()).toEqual([1]);
  notes.sweep();
  expect(await times()).toEqual([500]);
  now += 50_000;
  notes.note(upload(429));
  notes.note(upload(400));
  now += 20_000;
  notes.sweep();
  expect(await times()).toEqual([501, 1]);
  now += 61_000;
  notes.note(upload(429));
  notes.note(upload(429));
  notes.sweep();
  expect(await times()).toEqual([501, 1, 2]);
});

test("an upload whose key is revoked before it is noted leaves nothing, and those beside it are noted", async () => {
  const [revoked, live] = [await createAnswered(), await createAnswered()];
  const notes = createUploadLog({ pool, log });
  await regenerate({ ...acme, ...revoked });
  for (const { upload } of [revoked, live]) notes.note(upload());
  await notes.settled();
  expect([(await revoked.rows()).length, (await live.rows()).length]).toEqual([0, 1]);
});
