/** `assay backup` and `assay restore` as processes: killed halfway, cut off, and beside a server. */

import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { copyFileSync, existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { Database } from "../../../src/database/connect.ts";
import { selectRelationCount } from "../../../src/database/relations.ts";
import { createSeal } from "../../../src/secrets/seal.ts";
import { claimSecretKeyDigest } from "../../../src/store/instance.ts";
import { backUpHalfway } from "../../backups.ts";
import { run, startProgram, type Variables } from "../../commands.ts";
import { createEverything } from "../../everything.ts";
import { readFirstStart } from "../../first_start.ts";
import { createBareDatabase, createHarness, databaseVariables, junit, SECRET_KEY, until } from "../../harness.ts";
import { createPlace, followOutput, guardProcess, removePlace } from "../../places.ts";

setDefaultTimeout(60_000);
const ROOT = join(import.meta.dir, "../../..");
const place = createPlace("backup-program");
afterAll(() => removePlace(place));
const directory = join(place, "data/attachments");
const harness = await createHarness({ outboundAllow: ["127.0.0.0/8"], attachments: { directory } });
const { database, connection } = harness;
await createEverything(harness);
await claimSecretKeyDigest(database.pool, createSeal(SECRET_KEY).keyDigest, []);
const key = { SECRET_KEY: Buffer.from(SECRET_KEY).toString("base64") };
const here = { ...databaseVariables(connection), DATA_DIR: join(place, "data") };
const assay = (args: string[], env: Variables = here) => run(args, { env });

test("a backup that is killed halfway leaves no file of that name, and is not in the way of the next", async () => {
  const file = join(place, "killed.assay");
  const backup = await backUpHalfway(harness, file, () => startProgram(["backup", file], { env: here }));
  backup.signal("SIGKILL");
  await backup.ended;
  backup.release();
  expect(existsSync(file)).toBe(false);
  await backup.settled();
  expect((await assay(["backup", file])).code).toBe(0);
  expect(readdirSync(place).filter((name) => name.endsWith(".partial"))).toEqual([]);
});

test("a restore that was killed halfway leaves a database that the next one takes", async () => {
  await database.pool`
      insert into retry_backoff (loop, item, tries, stalls, due_at)
      select 'counting', g || repeat('x', 200), 0, 0, now() from generate_series(1, 60000) g`;
  const file = join(place, "large.assay");
  expect((await assay(["backup", file])).code).toBe(0);
  const bare = await createBareDatabase();
  const there = { ...databaseVariables(bare.connection), ...key, DATA_DIR: join(place, "killed") };
  const child = startProgram(["restore", file], { env: there });
  const copying = () => database.pool`
      select from pg_stat_progress_copy where datname = ${String(bare.connection["database"])} and bytes_processed > 100000`;
  await until(async () => (await copying()).length > 0, 30);
  child.signal("SIGKILL");
  await child.ended;
  await until(async () => (await copying()).length === 0, 30);
  expect(await selectRelationCount(bare.database.pool)).toBe(0);

  const cut = assay(["restore", file], there);
  await until(async () => (await copying()).length > 0, 30);
  await database.pool`
      select pg_terminate_backend(pid) from pg_stat_progress_copy where datname = ${String(bare.connection["database"])}`;
  expect(await cut).toEqual({
    ...{ code: 1, output: "" },
    errors: "The connection to the database was lost: nothing was kept. Restore again when the database is available\n",
  });
  expect(await selectRelationCount(bare.database.pool)).toBe(0);

  const restored = await assay(["restore", file, "--as-of-backup"], there);
  expect([restored.code, restored.errors]).toEqual([0, ""]);
  expect(restored.output).toContain("valid as they were at that time");
  const count = ({ pool }: Database) => pool`select count(*)::int as count from retry_backoff`;
  expect([...(await count(bare.database))]).toEqual([...(await count(database))]);
  await database.pool`delete from retry_backoff where loop = 'counting'`;
});

async function startServer(more: Variables) {
  const child = Bun.spawn([process.execPath, "src/main.ts"], {
    cwd: ROOT,
    env: { PATH: process.env["PATH"]!, PORT: "0", RATE_LIMIT_PER_MINUTE: "0", LOG_LEVEL: "info", ...more },
    ...{ stdin: "ignore", stdout: "pipe", stderr: "inherit" },
  });
  guardProcess(child);
  const { url, output } = followOutput(
    child,
    (text) => /"message":"Assay is ready","url":"([^"]+)"/.exec(text)?.[1] ?? undefined,
  );
  const stop = async () => {
    child.kill("SIGTERM");
    await child.exited;
  };
  return { url: await url, output, stop };
}

test("a restore gives a server that is quiet until it is resumed", async () => {
  const bare = await createBareDatabase();
  const there = { ...databaseVariables(bare.connection), ...key, DATA_DIR: join(place, "quiet") };
  const file = join(place, "quiet.assay");
  expect((await assay(["backup", file])).code).toBe(0);
  expect((await assay(["restore", file], there)).code).toBe(0);
  const { pool } = bare.database;
  const schedule = "Every night on staging";
  await pool`update automation set next_run_at = now() where name = ${schedule}`;
  await pool`update event set due_at = now() where id in (select id from event order by id desc limit 5)`;
  const state = async () => {
    const [row] = await pool<{ served: string | null; due: number; ran: boolean }[]>`
        select (select serving_at from instance)::text as served, (select count(*)::int from event where due_at <= now()) as due,
          exists (select from automation_run r join automation a on a.id = r.automation_id
            where a.name = ${schedule} and r.cause = 'schedule') as ran`;
    return row!;
  };
  const before = await state();
  expect(before.ran).toBe(false);
  expect(before.due).toBeGreaterThanOrEqual(5);
  const server = await startServer(there);
  try {
    await until(async () => server.output().includes("Quiet after a restore"), 20);
    // Each is noted by a loop that goes on: meanwhile the others have had ten rounds.
    for (let last = before.served, notes = 0; notes < 2; notes++) {
      await until(async () => (await state()).served !== last, 20);
      last = (await state()).served;
    }
    // More of them may have become due meanwhile; none is processed.
    const quiet = await state();
    expect(quiet.ran).toBe(false);
    expect(quiet.due).toBeGreaterThanOrEqual(before.due);
    const resumed = await assay(["admin", "resume"], there);
    expect([resumed.code, resumed.output]).toEqual([0, "resumed\n"]);
    await until(async () => (await state()).ran && (await state()).due === 0, 20);
    await until(async () => server.output().includes("Resumed by assay admin resume"), 20);
    expect((await assay(["admin", "quiet"], there)).code).toBe(0);
    await until(async () => server.output().split("Quiet after a restore").length === 3, 20);
  } finally {
    await server.stop();
  }
});

test("the built-in PostgreSQL is backed up while its server runs, and restored into another directory", async () => {
  const [old, fresh] = [join(place, "old"), join(place, "fresh")];
  const file = join(place, "built-in.assay");
  const server = await startServer({ DATA_DIR: old });
  const [, project, token] = /Project\s+(\S+)\s+(svc_proj_\w+)/.exec(readFirstStart(old)) ?? [];
  expect([project, token]).toEqual([expect.any(String), expect.any(String)]);
  const upload = (url: string) =>
    fetch(`${url}/api/v1/projects/${project}/test-runs?task_slug=unit`, {
      ...{ method: "POST", headers: { authorization: `Bearer ${token}` }, body: junit("pp") },
    });
  expect((await upload(server.url)).status).toBe(201);
  const written = await assay(["backup", file], { DATA_DIR: old });
  expect([written.code, written.errors]).toEqual([0, ""]);
  expect((await upload(server.url)).status).toBe(201);
  await server.stop();

  await Bun.write(join(fresh, "secret-key"), "");
  copyFileSync(join(old, "secret-key"), join(fresh, "secret-key"));
  const restored = await assay(["restore", file, "--as-of-backup"], { DATA_DIR: fresh });
  expect(restored.code).toBe(0);
  const next = await startServer({ DATA_DIR: fresh });
  try {
    const runs = await fetch(`${next.url}/api/v1/projects/${project}/test-runs`, {
      headers: { authorization: `Bearer ${token}` },
    });
    expect(((await runs.json()) as { data: unknown[] }).data).toHaveLength(1);
    expect((await upload(next.url)).status).toBe(201);
  } finally {
    await next.stop();
  }
});
