/** A deleted project leaves no file of its attachments behind, and those of other projects stay. */

import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { createDiskStore } from "../../src/attachments/disk_store.ts";
import { createSpool } from "../../src/attachments/spool.ts";
import { deleteProject } from "../../src/operations/projects/deletion.ts";
import { COMMAND_LINE } from "../../src/schema/audit.ts";
import { purgeDeleted } from "../../src/work/purge.ts";
import { sweepAttachments } from "../../src/work/sweep_attachments.ts";
import { createHarness } from "../harness.ts";
import { createPlace } from "../places.ts";

const directory = createPlace("attachments");
const { acme, ask, addProject, database } = await createHarness({ ownDatabase: true, attachments: { directory } });
const { pool, begin } = database;
const store = createDiskStore(directory);
const spool = createSpool(join(directory, "incoming"), (error) => {
  throw error;
});

const filesOf = (project: string): number =>
  readdirSync(directory, { recursive: true, withFileTypes: true }).filter(
    (entry) => entry.isFile() && entry.parentPath.includes(project),
  ).length;

const sweep = () => sweepAttachments(database, { store, spool }, new Date());

/** Uploads attachments in each of the three ways. One content comes twice. */
async function fill({ project, key }: { project: string; key: string }): Promise<void> {
  const cases = [{ name: "fails", status: "failed", attachments: [{ path: "a.log" }] }];
  const form = new FormData();
  form.append("file", new Blob([JSON.stringify({ passed: 0, failed: 1, skipped: 0, cases })]), "report.json");
  form.append("attachment", new Blob(["same"]), "a.log");
  const { body: run } = await ask(`POST /projects/${project}/test-runs?task_slug=e2e`, { key, body: form });
  const target = `/projects/${project}/executions/${run.executionId}/test-runs/e2e/attachments`;
  const several = new FormData();
  several.append("attachment", new Blob(["same"]), "b.log");
  several.append("attachment", new Blob(["other"]), "c.log");
  expect((await ask(`POST ${target}`, { key, body: several })).status).toBe(201);
  expect((await ask(`PUT ${target}?path=d.log`, { key, body: "third" })).status).toBe(201);
}

test("purge and sweep remove all files of a deleted project, and no others", async () => {
  const other = await addProject(acme);
  await fill(acme);
  await fill(other);
  expect([filesOf(acme.project), filesOf(other.project)]).toEqual([3, 3]);
  const [{ name }] = await pool<[{ name: string }]>`select name from project where id = ${acme.project}`;
  await begin((sql) => deleteProject(sql, { id: acme.project, confirm: name }, COMMAND_LINE));
  expect(await purgeDeleted(database)).toBe(1);
  // An upload may still rely on its content.
  await sweep();
  expect(filesOf(acme.project)).toBe(3);
  await pool`update attachment_content set claimed_at = claimed_at - interval '2 hours'`;
  await pool`update attachment_loose_content set since = since - interval '2 hours'`;
  await sweep();
  expect([filesOf(acme.project), filesOf(other.project)]).toEqual([0, 3]);
  expect(readdirSync(join(directory, "incoming"))).toEqual([]);
  // The rows of the queue go with the next sweep.
  await sweep();
  expect(await pool`select from attachment_content where owner_id = ${acme.project}`).toHaveLength(0);
  expect(await pool`select from attachment_loose_content where owner_id = ${acme.project}`).toHaveLength(0);
});
