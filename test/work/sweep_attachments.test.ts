/** Attachments go after some time, their content when nobody refers to it, and never what an upload relies on. */

import { beforeEach, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createDiskStore } from "../../src/attachments/disk_store.ts";
import { createSpool } from "../../src/attachments/spool.ts";
import { storeContents } from "../../src/operations/attachments/contents.ts";
import { sweepAttachments } from "../../src/work/sweep_attachments.ts";
import { createHarness, junit, until } from "../harness.ts";
import { createPlace } from "../places.ts";
import { retainNow } from "../retaining.ts";

const directory = createPlace("attachments");
const { ask, acme, database } = await createHarness({ ownDatabase: true, attachments: { directory } });
const { key, project } = acme;
const { pool } = database;
const store = createDiskStore(directory);
const spool = createSpool(join(directory, "incoming"), (error) => {
  throw error;
});
const counters = { stored() {}, failed() {} };
const limits = { maxBytes: 100, maxFiles: 100, maxExecutionBytes: 100, maxProjectBytes: 0 };
const DAY = 86_400_000;

let executionId: string;
beforeEach(async () => {
  ({
    body: { executionId },
  } = await ask(`POST /projects/${project}/test-runs?task_slug=e2e`, { key, body: junit("f") }));
});

const put = (body: string) =>
  ask(`PUT /projects/${project}/executions/${executionId}/test-runs/e2e/attachments?path=${body}`, { key, body });
const pathOf = (content: string) => {
  const hash = Bun.SHA256.hash(content, "hex");
  return join(directory, project, hash.slice(0, 2), hash.slice(2, 4), hash);
};
/** As if what has been claimed so far had been claimed long ago. */
async function age(): Promise<void> {
  await pool`update attachment_content set claimed_at = claimed_at - interval '2 hours'`;
  await pool`update attachment_loose_content set since = since - interval '2 hours'`;
}
const sweep = () => sweepAttachments(database, { store, spool }, new Date());
const count = async () => (await pool<{ n: number }[]>`select count(*)::int as n from attachment`)[0]!.n;

async function spoolText(text: string) {
  const writer = spool.open(1_000);
  await writer.write(Buffer.from(text));
  const end = await writer.finish();
  if (end.end !== "spooled") throw new Error(end.end);
  return end.spooled;
}

test("attachments are deleted after their days, and content with the last of them", async () => {
  await put("old");
  await retainNow(database, { attachments: 30 }, new Date(Date.now() + 29 * DAY));
  expect(await count()).toBe(1);
  await retainNow(database, { attachments: 0 }, new Date(Date.now() + 1_000 * DAY));
  expect(await count()).toBe(1);
  await retainNow(database, { attachments: 30 }, new Date(Date.now() + 31 * DAY));
  expect(await count()).toBe(0);
  await sweep();
  // An upload may rely on it for an hour.
  expect(existsSync(pathOf("old"))).toBe(true);
  await age();
  await sweep();
  expect(existsSync(pathOf("old"))).toBe(false);
  expect(await pool`select from attachment_content`).toHaveLength(0);
  await sweep();
  expect(await pool`select from attachment_loose_content`).toHaveLength(0);
});

test("content that another execution refers to stays when one goes", async () => {
  await put("shared");
  const first = executionId;
  ({
    body: { executionId },
  } = await ask(`POST /projects/${project}/test-runs?task_slug=e2e`, { key, body: junit("ff") }));
  await put("shared");
  await ask(`DELETE /projects/${project}/executions/${first}`, { key });
  await age();
  await sweep();
  expect(existsSync(pathOf("shared"))).toBe(true);
  await ask(`DELETE /projects/${project}/executions/${executionId}`, { key });
  await age();
  await sweep();
  expect(existsSync(pathOf("shared"))).toBe(false);
});

test("an upload of content that is being removed waits, and stores it again", async () => {
  const text = "removed and stored";
  await storeContents(pool, { store, counters, limits }, project, [await spoolText(text)]);
  await age();
  const { promise: mayRemove, resolve: letRemove } = Promise.withResolvers<void>();
  const { promise: removing, resolve: setRemoving } = Promise.withResolvers<void>();
  const slow = {
    ...store,
    async remove(content: Parameters<typeof store.remove>[0]) {
      setRemoving();
      await mayRemove;
      await store.remove(content);
    },
  };
  const sweeping = sweepAttachments(database, { store: slow, spool }, new Date());
  await removing;
  const storing = storeContents(pool, { store, counters, limits }, project, [await spoolText(text)]);
  await until(async () => {
    const waiting = await pool`
      select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
    return waiting.length > 0;
  });
  letRemove();
  await sweeping;
  expect((await storing).failed.size).toBe(0);
  expect(existsSync(pathOf(text))).toBe(true);
});

test("content that an upload has claimed meanwhile is not removed", async () => {
  const text = "claimed in time";
  await storeContents(pool, { store, counters, limits }, project, [await spoolText(text)]);
  await age();
  await storeContents(pool, { store, counters, limits }, project, [await spoolText(text)]);
  await sweep();
  expect(existsSync(pathOf(text))).toBe(true);
});

test("content that the store has lost is stored again by the next upload of it", async () => {
  await put("lost");
  await store.remove({ projectId: project, sha256: Bun.SHA256.hash("lost", "hex") });
  await put("lost");
  expect(existsSync(pathOf("lost"))).toBe(true);
});

test("a store that is away keeps what is to be removed for the next sweep", async () => {
  await storeContents(pool, { store, counters, limits }, project, [await spoolText("kept")]);
  await age();
  const away = { ...store, remove: () => Promise.reject(new Error("away")) };
  await expect(sweepAttachments(database, { store: away, spool }, new Date())).rejects.toThrow("away");
  await sweep();
  expect(existsSync(pathOf("kept"))).toBe(false);
});

test("what a killed server has left half-written goes after some hours", async () => {
  const left = join(directory, "incoming", "left");
  await writeFile(left, "half");
  await sweep();
  expect(existsSync(left)).toBe(true);
  const before = new Date(Date.now() - DAY);
  await utimes(left, before, before);
  await sweep();
  expect(existsSync(left)).toBe(false);
});
