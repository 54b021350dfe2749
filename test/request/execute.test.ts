import { afterAll, describe, expect, test } from "bun:test";
import * as v from "valibot";
import { openAttachments } from "../../src/attachments/store.ts";
import { readConfig } from "../../src/config.ts";
import { createAddressList } from "../../src/http/address.ts";
import { createCursors } from "../../src/http/cursor.ts";
import { DeadlineError } from "../../src/http/deadline.ts";
import { createEventStreams } from "../../src/http/events.ts";
import { createOutbound } from "../../src/http/outbound.ts";
import { createLog } from "../../src/log.ts";
import { createLive } from "../../src/operations/live/live.ts";
import { createExecute, type Progress } from "../../src/request/execute.ts";
import { route } from "../../src/request/route.ts";
import { BEATS, createUploadThread, SlowReadingError } from "../../src/request/upload_thread.ts";
import { noFacts } from "../../src/request/upload_log.ts";
import { refuse, refuseAbsent } from "../../src/schema/refusal.ts";
import { createSeal } from "../../src/secrets/seal.ts";
import { connect, type Tx } from "../../src/database/connect.ts";
import { selectCursorSecret } from "../../src/store/instance.ts";
import { selectLiveKey } from "../../src/store/keys.ts";
import { keyDigest } from "../../src/secrets/keys.ts";
import { createHarness, createServer, junit, SECRET_KEY } from "../harness.ts";
import { createPlace } from "../places.ts";
import { UPLOAD_WORKER } from "../../src/server/composition.ts";

const { ask, acme, database, addProject } = await createHarness();
const cursorSecret = await selectCursorSecret(database.pool);
const nothing = createAddressList([]);
const attachmentSettings = readConfig({ DATA_DIR: createPlace("attachments") }).attachments;
const counters = { stored() {}, failed() {} };
const execute = createExecute(database, {
  cursors: createCursors(cursorSecret),
  log: createLog("error", () => {}, false),
  publicUrl: "http://localhost",
  maxInflatedBytes: 1_000,
  retentionDays: 90,
  attachments: openAttachments(attachmentSettings, { onSpoolError() {}, counters }),
  seal: createSeal(SECRET_KEY),
  outbound: createOutbound({ allow: nothing }),
  outboundAllow: nothing,
  signals: { watch: () => ({ next: async () => "closed", end() {} }), tell() {} },
  live: createLive(database, { onError() {} }),
  eventStreams: createEventStreams(),
});

/** Runs a made-up endpoint as Acme. */
async function run(work: (sql: Tx) => Promise<unknown>, progress: Progress, idempotencyKey: string | null = null) {
  const endpoint = route("POST /projects/:projectId/made-up", { summary: "", answer: v.any() }, ({ conclude }) =>
    conclude(work),
  );
  const caller = { ...(await selectLiveKey(database.pool, keyDigest(acme.key)))!, kind: "project" as const };
  const params = { projectId: acme.project };
  const asked = {
    caller,
    params,
    query: {},
    body: {},
    wantsText: false,
    budget: { limit: 60, remaining: 59 },
    idempotencyKey,
    digest: "00",
  };
  return await execute(endpoint, asked, progress);
}

const rename = (name: string) => async (sql: Tx) =>
  await sql`update project set name = ${name} where id = ${acme.project}`;
const name = async () => (await ask(`GET /projects/${acme.project}`, { key: acme.key })).body.name;

describe("a request whose time is over", () => {
  test.each([null, "late"])("takes no effect any more, with the Idempotency-Key %p", async (key) => {
    const before = await name();
    const progress: Progress = { provedLive: false, expired: false };
    const late = run(
      async (sql) => {
        await rename("too late")(sql);
        progress.expired = true;
        return {};
      },
      progress,
      key,
    );
    await expect(late).rejects.toThrow("The request timed out before it was finished");
    expect(await name()).toBe(before);
    expect(await database.pool`select from idempotency where key = 'late'`).toHaveLength(0);
  });
});

describe("what the product refuses", () => {
  test("is a mistake of the caller, or absent, and nothing of it stays", async () => {
    const before = await name();
    const attempt = (end: () => never) =>
      run(
        async (sql) => {
          await rename("refused")(sql);
          end();
        },
        { provedLive: false, expired: false },
      ).catch(({ code, message }) => [code, message]);
    expect(await attempt(() => refuse("Cannot do that"))).toEqual(["VALIDATION_ERROR", "Cannot do that"]);
    expect(await attempt(() => refuseAbsent())).toEqual(["NOT_FOUND", expect.any(String)]);
    expect(await name()).toBe(before);
  });
});

test("while the database is away a request is a 500 that says when to try again", async () => {
  const away = connect({ ...database.connection, host: "/nowhere" } as never, 1);
  afterAll(() => away.close());
  const { ask } = await createServer({ ...database, fast: away.fast });
  const answer = await ask(`GET /projects/${acme.project}/test-runs`, { key: acme.key });
  expect([answer.status, answer.headers.get("retry-after")]).toEqual([500, "2"]);
  expect(answer.body.error).toEqual({ code: "INTERNAL_ERROR", message: expect.stringContaining("not available") });
});

test("the thread for large uploads comes back after it has crashed, and who waits in line is served", async () => {
  const { project, key } = await addProject(acme);
  const settings = {
    // It ends the thread at its first breath.
    connection: null as never as typeof database.connection,
    cursorSecret,
    publicUrl: "http://localhost",
    maxInflatedBytes: 1_000_000,
    retentionDays: 90,
    attachments: attachmentSettings,
    secretKey: SECRET_KEY,
  };
  const thread = createUploadThread(UPLOAD_WORKER, settings, counters);
  afterAll(() => thread.close());
  const caller = { ...(await selectLiveKey(database.pool, keyDigest(key)))!, kind: "project" as const };
  const upload = () => {
    const sent = {
      url: "http://localhost/",
      search: "",
      query: { task_slug: "t", allow_empty: false },
      contentType: "",
      encoding: null,
      blocks: [new TextEncoder().encode(junit("pf")) as Uint8Array<ArrayBuffer>],
      facts: noFacts(),
      attachments: { files: [], warnings: [], hasFailed: false },
    };
    const asked = {
      caller,
      params: { projectId: project },
      wantsText: false,
      budget: { limit: 60, remaining: 59 },
      idempotencyKey: null,
      sent,
    };
    return thread.handle("POST /projects/:projectId/test-runs", asked, { provedLive: false, expired: false });
  };
  const [first, second] = [upload(), upload()];
  await expect(first).rejects.toThrow("The thread for large uploads failed");
  settings.connection = database.connection;
  expect((await second.catch(upload)).status).toBe(201);
});

test("the thread is ended when it still computes for a request that has expired, and not when it waits", async () => {
  const programs = {
    computing: "self.onmessage = ({ data }) => { for (; data.id === 1; ); postAnswer(data); };",
    waiting: `self.onmessage = ({ data }) => data.id && setInterval(() => Atomics.add(data.shared, ${BEATS}, 1), 20);`,
  };
  const answer = `function postAnswer({ id }) {
    if (id) postMessage({ id, provedLive: false, upload: {}, attachments: { storedBytes: 0, failures: 0 },
      outcome: { reply: { status: 201, body: "", type: "", headers: {} } } });
  }`;
  const send = (program: string, readingMs?: number) => {
    const entry = new URL(URL.createObjectURL(new Blob([program, answer], { type: "application/javascript" })));
    const thread = createUploadThread(entry, {} as never, counters, readingMs);
    afterAll(() => thread.close());
    const job = () => {
      const [progress, caller] = [{ provedLive: false, expired: false }, { id: "a" }];
      const reply = thread.handle("", { caller, sent: { blocks: [] } } as never, progress);
      return { progress, caller, reply };
    };
    return { thread, job };
  };

  const { thread, job } = send(programs.computing);
  const [stuck, next] = [job(), job()];
  expect(thread.expire(stuck.caller as never, stuck.progress)).toBe(false);
  expect(await thread.endStuck(next.progress)).toBe(false);
  const ended = stuck.reply.catch((error) => error);
  expect(await thread.endStuck(stuck.progress)).toBe(true);
  expect(await ended).toBeInstanceOf(DeadlineError);
  expect((await next.reply).status).toBe(201);

  // Whoever still waits for the answer is told that it is the report, and the next one gets a new thread.
  const slowly = send(programs.computing, 100);
  const [reading, after] = [slowly.job(), slowly.job()];
  await expect(reading.reply).rejects.toBeInstanceOf(SlowReadingError);
  expect((await after.reply).status).toBe(201);

  const waiting = send(programs.waiting, 100);
  const slow = waiting.job();
  waiting.thread.expire(slow.caller as never, slow.progress);
  expect(await waiting.thread.endStuck(slow.progress)).toBe(false);
  expect(await Promise.race([slow.reply.catch(() => "ended"), Bun.sleep(1_500).then(() => "waits")])).toBe("waits");
});
