/** `assay backup` and `assay restore` as processes: beside a server, killed halfway, with a wrong key, and resumed. */

import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { copyFileSync, existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Database } from "../../src/database/connect.ts";
import { selectRelationCount } from "../../src/database/relations.ts";
import { createEverything } from "../everything.ts";
import { createBareDatabase, createHarness, junit, SECRET_KEY, until, databaseVariables } from "../harness.ts";
import { createPlace, followOutput, guardProcess, removePlace } from "../places.ts";
import { claimSecretKeyDigest } from "../../src/store/instance.ts";
import { createSeal } from "../../src/secrets/seal.ts";

setDefaultTimeout(60_000);
const ROOT = join(import.meta.dir, "../..");
const place = createPlace("backup-cli");
afterAll(() => removePlace(place));
const directory = join(place, "data/attachments");
const harness = await createHarness({ outboundAllow: ["127.0.0.0/8"], attachments: { directory } });
const { database, connection } = harness;
await createEverything(harness);
await claimSecretKeyDigest(database.pool, createSeal(SECRET_KEY).keyDigest, []);
const fingerprint = createSeal(SECRET_KEY).keyDigest.slice(0, 16);
const key = { SECRET_KEY: Buffer.from(SECRET_KEY).toString("base64") };

const here = { ...databaseVariables(connection), DATA_DIR: join(place, "data") };
const environment = (more: Record<string, string>) => ({ ...process.env, DATABASE_URL: "", PUBLIC_URL: "", ...more });

function spawn(args: string[], more: Record<string, string>) {
  const child = Bun.spawn([process.execPath, "src/cli/assay.ts", ...args], {
    ...{ cwd: ROOT, env: environment(more), stdout: "pipe", stderr: "pipe" },
  });
  guardProcess(child);
  return child;
}

async function assay(args: string[], more: Record<string, string> = here) {
  const child = spawn(args, more);
  const [output, errors] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  return { code: await child.exited, output, errors };
}

async function startServer(more: Record<string, string>) {
  const child = Bun.spawn([process.execPath, "src/main.ts"], {
    cwd: ROOT,
    env: environment({ PORT: "0", RATE_LIMIT_PER_MINUTE: "0", LOG_LEVEL: "info", ...more }),
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

/** The processes of the command wait for a lock, or copy rows. */
const isWaiting = async ({ pool }: Database, condition: string) =>
  (await pool.unsafe(`select from pg_stat_activity where datname = '${connection["database"]}' and ${condition}`))
    .length > 0;

describe("assay backup", () => {
  test("writes a file that can be verified without a database", async () => {
    const file = join(place, "one.assay");
    const written = await assay(["backup", file]);
    expect([written.code, written.errors]).toEqual([0, ""]);
    expect(written.output).toMatch(
      new RegExp(
        `^Backed up \\d+ tables with \\d+ rows and 8 attachments to ".*one.assay": ${statSync(file).size} bytes\n` +
          `To restore it, the secret key with the fingerprint ${fingerprint} is needed\n$`,
      ),
    );
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const verified = await assay(["backup", "--verify", file, "--json"], { DATA_DIR: join(place, "none") });
    expect(JSON.parse(verified.output)).toMatchObject({ contents: 8, lost: 0, secretKeyFingerprint: fingerprint });
    expect(existsSync(join(place, "none"))).toBe(false);
    expect((await Bun.file(file).bytes()).includes(0)).toBe(true);
  });

  test("fails where the content of all attachments is missing", async () => {
    const file = join(place, "elsewhere.assay");
    const elsewhere = await assay(["backup", file], { ...here, DATA_DIR: join(place, "elsewhere") });
    expect(elsewhere).toEqual({
      ...{ code: 1, output: "" },
      errors: expect.stringMatching(
        /^The content of all attachments is missing: set DATA_DIR to the value that the server uses/,
      ),
    });
    expect(existsSync(file)).toBe(false);
  });

  test("leaves attachments out on request", async () => {
    const file = join(place, "small.assay");
    const { output } = await assay(["backup", file, "--without-attachments", "--json"]);
    expect(JSON.parse(output)).toMatchObject({ contents: 0, attachments: { content: "omitted" } });
  });

  test.each<[args: string[], code: number, error: string]>([
    [["backup"], 2, "Expected one file, got 0"],
    [["backup", "a", "b"], 2, "Expected one file, got 2"],
    [["backup", "--verify", "--without-attachments", "a"], 2, "backup takes either --verify or --without-attachments"],
    [["backup", join(place, "missing/file")], 1, `missing/file": its directory does not exist`],
    [["backup", place], 1, `Cannot write "${place}": the file exists already`],
    [["backup", "--verify", join(ROOT, "package.json")], 1, "expected a backup of Assay"],
  ])("%p is refused", async (args, code, error) => {
    const { errors, ...answer } = await assay(args);
    expect(answer).toEqual({ code, output: "" });
    expect(errors).toContain(error);
  });

  test.each(["SIGKILL", "SIGTERM"] as const)(
    "that ends halfway with %s leaves no file of that name",
    async (signal) => {
      const file = join(place, `${signal}.assay`);
      const { promise: over, resolve: release } = Promise.withResolvers<void>();
      let ended: Promise<number> | undefined;
      await database.begin(async (sql) => {
        // The backup writes the tables before this one and waits here.
        await sql`lock table test_run in access exclusive mode`;
        const child = spawn(["backup", file], here);
        await until(() => isWaiting(database, "wait_event_type = 'Lock' and query like 'copy%'"), 30);
        expect(existsSync(`${file}.partial`)).toBe(true);
        const second = await assay(["backup", join(place, "second.assay")]);
        expect(second.errors).toBe("Another backup of this database is running: wait until it ends\n");
        child.kill(signal);
        ended = child.exited;
        if (signal === "SIGKILL") await ended;
        release();
        await over;
      });
      expect(await ended).not.toBe(0);
      expect(existsSync(file)).toBe(false);
      await until(async () => !(await isWaiting(database, "query like 'copy%' and state = 'active'")));
      // What a killed one has left is not in the way of the next.
      expect((await assay(["backup", file])).code).toBe(0);
      expect(readdirSync(place).filter((name) => name.endsWith(".partial"))).toEqual([]);
    },
  );
});

describe("assay admin quiet", () => {
  test("makes a server quiet that was restored otherwise, and revokes what it is asked to", async () => {
    const bare = await createBareDatabase();
    const there = { ...databaseVariables(bare.connection), ...key, DATA_DIR: join(place, "other-tool") };
    expect((await assay(["restore", join(place, "one.assay"), "--as-of-backup"], there)).code).toBe(0);
    const run = async (...args: string[]) => JSON.parse((await assay(["admin", ...args, "--json"], there)).output);
    const isQuiet = async () =>
      (await bare.database.pool<{ quiet: boolean }[]>`select quiet_since is not null as quiet from instance`)[0]!.quiet;
    expect(await run("resume", "--discard-pending")).toMatchObject({
      resumed: true,
      discardedEvents: expect.any(Number),
    });
    expect(await isQuiet()).toBe(false);
    expect(await run("quiet")).toEqual({ quiet: true });
    expect(await isQuiet()).toBe(true);
    expect(await run("quiet", "--revoke-all")).toMatchObject({ quiet: true, shares: 3, invitations: 1 });
    expect(await run("quiet", "--revoke-all")).toEqual({
      quiet: true,
      keys: 0,
      sessions: 0,
      shares: 0,
      invitations: 0,
    });
  });
});

describe("assay restore", () => {
  test("writes nothing without the key of the backup", async () => {
    const bare = await createBareDatabase();
    const dataDir = join(place, "without-key");
    const there = { ...databaseVariables(bare.connection), DATA_DIR: dataDir };
    const file = join(place, "one.assay");
    const wrong = Buffer.alloc(32, 9).toString("base64");
    const none = await assay(["restore", file], there);
    expect(none).toEqual({
      code: 1,
      output: "",
      errors: expect.stringContaining(`with the fingerprint ${fingerprint}: set`),
    });
    const other = await assay(["restore", file], { ...there, SECRET_KEY: wrong });
    expect(other).toEqual({
      ...{ code: 1, output: "" },
      errors: expect.stringContaining(`with the fingerprint ${fingerprint}, and SECRET_KEY has the fingerprint`),
    });
    expect(await selectRelationCount(bare.database.pool)).toBe(0);
    expect(existsSync(dataDir)).toBe(false);
  });

  test("that was killed halfway leaves a database that the next one takes", async () => {
    await database.pool`
      insert into retry_backoff (loop, item, tries, stalls, due_at)
      select 'counting', g || repeat('x', 200), 0, 0, now() from generate_series(1, 60000) g`;
    const file = join(place, "large.assay");
    expect((await assay(["backup", file])).code).toBe(0);
    const bare = await createBareDatabase();
    const there = { ...databaseVariables(bare.connection), ...key, DATA_DIR: join(place, "killed") };
    const child = spawn(["restore", file], there);
    const copying = () => database.pool`
      select from pg_stat_progress_copy where datname = ${String(bare.connection["database"])} and bytes_processed > 100000`;
    await until(async () => (await copying()).length > 0, 30);
    child.kill("SIGKILL");
    await child.exited;
    await until(async () => (await copying()).length === 0, 30);
    expect(await selectRelationCount(bare.database.pool)).toBe(0);

    const cut = assay(["restore", file], there);
    await until(async () => (await copying()).length > 0, 30);
    await database.pool`
      select pg_terminate_backend(pid) from pg_stat_progress_copy where datname = ${String(bare.connection["database"])}`;
    expect(await cut).toEqual({
      ...{ code: 1, output: "" },
      errors:
        "The connection to the database was lost: nothing was kept. Restore again when the database is available\n",
    });
    expect(await selectRelationCount(bare.database.pool)).toBe(0);

    const restored = await assay(["restore", file, "--as-of-backup"], there);
    expect([restored.code, restored.errors]).toEqual([0, ""]);
    expect(restored.output).toContain("valid as they were at that time");
    const count = ({ pool }: Database) => pool`select count(*)::int as count from retry_backoff`;
    expect([...(await count(bare.database))]).toEqual([...(await count(database))]);
    const again = await assay(["restore", file], there);
    expect(again).toEqual({ code: 1, output: "", errors: expect.stringContaining("the database is not empty") });
    await database.pool`delete from retry_backoff where loop = 'counting'`;
  });

  test("gives a server that is quiet until it is resumed", async () => {
    const bare = await createBareDatabase();
    const there = { ...databaseVariables(bare.connection), ...key, DATA_DIR: join(place, "quiet") };
    const restored = await assay(["restore", join(place, "one.assay")], there);
    expect(restored.output).toContain('The server will be quiet until "assay admin resume"\n');
    expect(restored.output).toMatch(/^Revoked keys: [1-9]\d*, sessions: [1-9]\d*, invitations: 1, shared links: 3$/m);
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
    expect(before).toMatchObject({ due: 5, ran: false });
    const server = await startServer(there);
    try {
      await until(async () => server.output().includes("Quiet after a restore"), 20);
      // Each is noted by a loop that goes on: meanwhile the others have had ten rounds.
      for (let last = before.served, notes = 0; notes < 2; notes++) {
        await until(async () => (await state()).served !== last, 20);
        last = (await state()).served;
      }
      expect(await state()).toMatchObject({ due: 5, ran: false });
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
});

test("the built-in PostgreSQL is backed up while its server runs, and restored into another directory", async () => {
  const [old, fresh] = [join(place, "old"), join(place, "fresh")];
  const file = join(place, "built-in.assay");
  const server = await startServer({ DATA_DIR: old });
  const line = server
    .output()
    .split("\n")
    .find((text) => text.startsWith("curl "))!;
  const [, project, token] = /projects\/([0-9a-f-]+)\/[\s\S]*?(svc_proj_\w+)/.exec(server.output()) ?? [];
  expect([line, project, token]).toEqual([expect.any(String), expect.any(String), expect.any(String)]);
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
