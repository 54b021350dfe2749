/** A backup and a restore give back every table and every attachment, and the restored server stays quiet until it is resumed. */

import { afterAll, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { ContentStore } from "../../../src/attachments/content.ts";
import { createDiskStore } from "../../../src/attachments/disk_store.ts";
import { readBackup } from "../../../src/backup/reader.ts";
import { connect, type Database } from "../../../src/database/connect.ts";
import { migrate, schemaVersion } from "../../../src/database/migrate.ts";
import { startEmbedded } from "../../../src/database/postgres/embedded.ts";
import { postponeRetry } from "../../../src/database/retry_backoff.ts";
import { selectIsBackupRunning, withSnapshot } from "../../../src/database/snapshot.ts";
import { sweepContents } from "../../../src/operations/attachments/contents.ts";
import { checkBackup, restoreBackup } from "../../../src/operations/backup/restore_backup.ts";
import { resume } from "../../../src/operations/backup/quiet.ts";
import { takeBackup } from "../../../src/operations/backup/take_backup.ts";
import { claimSecretKeyDigest } from "../../../src/store/instance.ts";
import { createToken } from "../../../src/secrets/tokens.ts";
import { insertSession } from "../../../src/store/sessions.ts";
import { createSeal } from "../../../src/secrets/seal.ts";
import { createEverything } from "../../everything.ts";
import {
  createBareDatabase,
  createDatabase,
  createHarness,
  createServer,
  junit,
  SECRET_KEY,
  until,
} from "../../harness.ts";
import { fillOtherTables } from "../../other_tables.ts";
import { CLIENT } from "../../people.ts";
import { createPlace, removePlace } from "../../places.ts";

const place = createPlace("backup");
afterAll(() => removePlace(place));
const directory = join(place, "attachments");
const harness = await createHarness({ ownDatabase: true, outboundAllow: ["127.0.0.0/8"], attachments: { directory } });
const { database, acme, rival, ask } = harness;
const store = createDiskStore(directory);
await createEverything(harness);
await fillOtherTables(harness);
await postponeRetry(database.pool, "event", Bun.randomUUIDv7(), false);
await database.pool`insert into setup_token (digest) values ('\\x00')`;
await database.pool`insert into used_ci_token (digest, key_id, expires_at) values ('\\x5c0a09', ${Bun.randomUUIDv7()}, now())`;
await claimSecretKeyDigest(database.pool, createSeal(SECRET_KEY).keyDigest, []);

const take = (name: string, from: Pick<Database, "begin"> = database, content: Pick<ContentStore, "read"> = store) =>
  takeBackup(from, { path: join(place, name), version: "test", attachments: { content: "included" }, store: content });

const taken = await take("everything");

async function restore(name: string, asOfBackup = true) {
  const { database: restored, connection } = await createBareDatabase();
  const target = join(place, `restored-${crypto.randomUUID()}`);
  const result = await restoreBackup(restored, {
    ...{ path: join(place, name), asOfBackup, store: createDiskStore(target) },
    spoolDirectory: join(target, "incoming"),
  });
  return { restored, connection, target, result };
}

/** The number of rows and a digest of each table, with the columns that a restore changes left out. */
async function contentsOf({ pool }: Pick<Database, "pool">): Promise<Record<string, string>> {
  const tables = await pool<{ name: string }[]>`
    select c.relname as name from pg_class c
    where c.relkind in ('r', 'p') and not c.relispartition and c.relnamespace = 'public'::regnamespace order by 1`;
  const contents: Record<string, string> = {};
  for (const { name } of tables) {
    const [row] = await pool.unsafe(
      `select count(*) || ' ' || coalesce(md5(string_agg(r, '|' order by r collate "C")), '') as content
       from (select (to_jsonb(x) - 'quiet_since' - 'restored_to' - 'backed_up_at')::text as r from ${name} x
         where to_jsonb(x) ->> 'action' is distinct from 'team.restored') x`,
    );
    contents[name] = row!["content"];
  }
  return contents;
}

/** Indexes, constraints, triggers, views, partitions and columns. */
async function schemaOf({ pool }: Pick<Database, "pool">): Promise<string[]> {
  const rows = await pool<{ line: string }[]>`
    select 'constraint ' || conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid) || convalidated as line
      from pg_constraint where connamespace = 'public'::regnamespace
    union all select 'index ' || indexdef from pg_indexes where schemaname = 'public'
    union all select 'trigger ' || tgrelid::regclass || ' ' || tgname || ' ' || tgenabled::text from pg_trigger where not tgisinternal
    union all select 'column ' || table_name || ' ' || column_name || ' ' || data_type || coalesce(column_default, '')
      from information_schema.columns where table_schema = 'public'
    union all select 'partition ' || relname || ' ' || pg_get_expr(relpartbound, oid) from pg_class
      where relispartition and relkind = 'r'
    union all select 'view ' || viewname || ' ' || definition from pg_views where schemaname = 'public'
    order by 1`;
  return rows.map(({ line }) => line);
}

const filesIn = (folder: string) =>
  Object.fromEntries(
    (existsSync(folder) ? readdirSync(folder, { recursive: true, withFileTypes: true }) : [])
      .filter((entry) => entry.isFile())
      .map((entry) => [entry.name, join(entry.parentPath, entry.name).slice(folder.length)]),
  );

describe("a backup that is restored", () => {
  test("has every row of every table, every attachment, and the same schema", async () => {
    const before = await contentsOf(database);
    // A table without a row proves nothing: the fixture needs one of it.
    expect(Object.keys(before).filter((name) => before[name]!.startsWith("0 "))).toEqual([]);
    const { restored, target, result } = await restore("everything");
    expect(await contentsOf(restored)).toEqual(before);
    expect(await schemaOf(restored)).toEqual(await schemaOf(database));
    expect(filesIn(target)).toEqual(filesIn(directory));
    expect(result).toMatchObject({ tables: taken.tables, rows: taken.rows, contents: taken.contents, lost: 0 });
    expect(taken.contents).toBeGreaterThan(5);
    const next = (pool: Database["pool"]) => pool`select nextval('execution_number') as n`.then(([row]) => row!["n"]);
    expect(await next(restored.pool)).toBe(await next(database.pool));
    expect(
      await restored.pool`select action, subject from audit_entry where action = 'team.restored' order by 2`,
    ).toEqual([expect.objectContaining({ subject: "Acme" }), expect.objectContaining({ subject: "Rival" })] as never);
  });

  test("is refused by a database that holds something, and nothing is changed there", async () => {
    const { database: used } = await createDatabase();
    const before = await contentsOf(used);
    const target = join(place, "unused");
    const restoring = restoreBackup(used, {
      ...{ path: join(place, "everything"), asOfBackup: false, store: createDiskStore(target) },
      spoolDirectory: join(target, "incoming"),
    });
    await expect(restoring).rejects.toThrow(/^Cannot restore: the database is not empty, it has \d+ tables/);
    expect(await contentsOf(used)).toEqual(before);
    expect(existsSync(target)).toBe(false);
  });

  test("revokes every key, session and link unless it is restored as of the backup", async () => {
    const live = ({ pool }: Database) => pool`
      select (select count(*)::int from api_key where revoked_at is null) as keys, (select count(*)::int from session) as sessions,
        (select count(*)::int from invitation where used_at is null) as invitations, (select count(*)::int from share) as shares`;
    const [before] = await live(database);
    const { restored, result } = await restore("everything", false);
    expect([...(await live(restored))]).toEqual([{ keys: 0, sessions: 0, invitations: 0, shares: 0 }]);
    expect(result.revoked).toEqual({ ...before, keys: expect.any(Number) } as never);
    expect(result.revoked!.keys).toBeGreaterThan(3);
  });

  test("needs the key that it was made with", async () => {
    const check = (secretKey?: Uint8Array, secretKeyOld?: Uint8Array) =>
      checkBackup(join(place, "everything"), { secretKey, secretKeyOld, keySource: "SECRET_KEY" });
    const other = new Uint8Array(32).fill(9);
    const [needed, wrong] = [SECRET_KEY, other].map((key) => createSeal(key).keyDigest.slice(0, 16));
    await expect(check(other)).rejects.toThrow(
      `it needs the secret key with the fingerprint ${needed}, and SECRET_KEY has the fingerprint ${wrong}`,
    );
    await expect(check()).rejects.toThrow(`it needs the secret key with the fingerprint ${needed}: set SECRET_KEY`);
    expect((await check(SECRET_KEY)).assay).toBe("test");
    expect((await check(other, SECRET_KEY)).assay).toBe("test");
  });
});

/** Where Debian puts it. */
const OLDEST = "/usr/lib/postgresql/15/bin";

test.skipIf(!existsSync(OLDEST))(
  "a backup is restored by an older PostgreSQL, and its backup by a newer one",
  async () => {
    const embedded = await startEmbedded({ directory: join(place, "oldest/postgres"), binaries: OLDEST, fsync: false });
    const oldest = connect(embedded.connection, 2);
    try {
      const target = createDiskStore(join(place, "oldest/attachments"));
      const options = { asOfBackup: true, store: target, spoolDirectory: join(place, "oldest/incoming") };
      await restoreBackup(oldest, { path: join(place, "everything"), ...options });
      const before = await contentsOf(database);
      expect(await contentsOf(oldest)).toEqual(before);
      await take("of-oldest", oldest, target);
      expect((await readBackup(join(place, "of-oldest"))).header.postgres).toBe(15);
      const { restored } = await restore("of-oldest");
      expect(await contentsOf(restored)).toEqual(before);
    } finally {
      await oldest.close();
      await embedded.stop();
    }
  },
);

describe("a backup while the server works", () => {
  test("shows one moment: with each run its results and its attachments", async () => {
    let [uploads, isOver] = [0, false];
    const work = async (index: number) => {
      while (!isOver) {
        const form = new FormData();
        const name = `${index}-${uploads}.log`;
        form.append("attachment", new Blob([`log ${name} ${crypto.randomUUID()}\n`]), name);
        form.append("file", new Blob([junit("ppf")]), "report.xml");
        const { project, key } = index % 2 === 0 ? acme : rival;
        const { status } = await ask(`POST /projects/${project}/test-runs?task_slug=w${index}&execution_key=${name}`, {
          key,
          body: form,
        });
        if (status < 300) uploads++;
      }
    };
    const workers = [0, 1, 2, 3].map(work);
    await until(() => uploads >= workers.length);
    const before = uploads;
    for (const name of ["during-1", "during-2"]) await take(name);
    isOver = true;
    await Promise.all(workers);
    expect(uploads).toBeGreaterThan(before);
    const { restored, target, result } = await restore("during-2");
    // Each foreign key was checked by the restore; attachments refer to files.
    const rows = await restored.pool<{ sha256: string }[]>`
      select distinct encode(sha256, 'hex') as sha256 from attachment`;
    expect(Object.keys(filesIn(target)).sort()).toEqual(rows.map(({ sha256 }) => sha256).sort());
    expect(result.lost).toBe(0);
    const [counts] = await restored.pool`
      select count(*)::int as runs, count(*) filter (where not exists (
        select from attempt a where a.project_id = r.project_id and a.run_id = r.id))::int as torn
      from test_run r where task_slug like 'w%'`;
    expect(counts).toMatchObject({ torn: 0 });
  });
});

describe("a backup of another schema", () => {
  test("a newer one is refused", async () => {
    const { database: newer } = await createDatabase();
    const known = await schemaVersion();
    await newer.pool`insert into migration (number, name) values (${known + 1}, 'later')`;
    await take("newer", newer);
    await expect(
      checkBackup(join(place, "newer"), { secretKey: SECRET_KEY, secretKeyOld: undefined, keySource: "SECRET_KEY" }),
    ).rejects.toThrow(
      `it has schema ${known + 1} of Assay test, and this version knows up to ${known}: use a newer version`,
    );
  });
});

describe("attachments that the store has lost", () => {
  test("are counted, and the rest is restored", async () => {
    const [lost, changed] = Object.keys(filesIn(directory)).sort();
    const damagedStore: Pick<ContentStore, "read"> = {
      async read(key, range) {
        if (key.sha256 === lost) return undefined;
        return key.sha256 === changed ? new Blob(["changed"]) : await store.read(key, range);
      },
    };
    expect(await take("damaged", database, damagedStore)).toMatchObject({ lost: 2 });
    const { target, result } = await restore("damaged");
    expect(result.lost).toBe(2);
    const restoredFiles = filesIn(target);
    const expected = new Set(Object.keys(filesIn(directory)));
    expect(new Set(Object.keys(restoredFiles))).toEqual(expected.difference(new Set([lost!, changed!])));
    const [name] = Object.keys(restoredFiles);
    const content = await Bun.file(join(target, restoredFiles[name!]!)).bytes();
    expect(createHash("sha256").update(content).digest("hex")).toBe(name!);
  });
});

describe("a second backup", () => {
  test("of the same name is refused", async () => {
    await expect(take("everything")).rejects.toThrow(/the file exists already$/);
  });
});

describe("a quiet server", () => {
  test("hands out no task and says so on its pages until it is resumed", async () => {
    const { restored } = await restore("everything");
    const server = await createServer(restored);
    const lease = async () => {
      const body = { runner: "build-9/1", labels: ["linux"], free: 1 };
      return (await server.ask(`POST /projects/${acme.project}/leases`, { key: acme.key, body })).body.leases;
    };
    const page = async () => {
      const [{ account }] = await restored.pool<[{ account: string }]>`
        select account_id as account from membership where team_id = ${acme.team} limit 1`;
      const { token, digest } = createToken();
      await restored.begin((sql) => insertSession(sql, account, digest, CLIENT));
      const headers = { cookie: `assay_session=${token}` };
      return await (await fetch(`${server.url}/projects/${acme.project}`, { headers })).text();
    };
    expect(await lease()).toEqual([]);
    expect(await page()).toContain("This server was restored from a backup and is quiet");
    await restored.begin((sql) => resume(sql, { discards: false }));
    expect(await lease()).toEqual([expect.objectContaining({ taskSlug: expect.any(String) })]);
    const resumedPage = await page();
    expect(resumedPage).toContain("</main>");
    expect(resumedPage).not.toContain("restored from a backup");
  });
});

describe("while a backup runs", () => {
  test("no content of attachments is removed, and servers and commands start without waiting for it", async () => {
    const { database: other } = await createDatabase();
    const project = Bun.randomUUIDv7();
    const key = { projectId: project, sha256: "ab".repeat(32) };
    await other.pool`
      insert into attachment_content (owner_id, sha256, bytes, is_stored, claimed_at)
      values (${project}, decode(${key.sha256}, 'hex'), 1, true, now() - interval '1 day')`;
    await other.pool`
      insert into attachment_loose_content (owner_id, sha256, since)
      values (${project}, decode(${key.sha256}, 'hex'), now() - interval '1 day')`;
    const removed: string[] = [];
    const remove = async ({ sha256 }: { sha256: string }) => void removed.push(sha256);
    const sweep = () => sweepContents(other, { store: { ...store, remove } }, () => true);
    await withSnapshot(other, async () => {
      expect(await selectIsBackupRunning(other.pool)).toBe(true);
      expect(await sweep()).toBe(0);
      await migrate(other);
      await expect(withSnapshot(other, async () => {})).rejects.toThrow("Another backup of this database is running");
    });
    expect(removed).toEqual([]);
    expect(await selectIsBackupRunning(other.pool)).toBe(false);
    expect(await sweep()).toBe(1);
    expect(removed).toEqual([key.sha256]);
  });
});

describe("resume", () => {
  test("ends the quiet time once, and gives up what was pending if asked to", async () => {
    const { restored } = await restore("everything");
    await restored.pool`update event set due_at = now() where id in (select id from event limit 3)`;
    const resumed = await restored.begin((sql) => resume(sql, { discards: true }));
    expect(resumed).toEqual({
      resumed: true,
      discardedDeliveries: expect.any(Number),
      discardedEvents: expect.any(Number),
    });
    expect(resumed.discardedEvents).toBeGreaterThanOrEqual(3);
    expect([...(await restored.pool`select from delivery where status = 'pending'`)]).toEqual([]);
    expect(restored.begin((sql) => resume(sql, { discards: false }))).rejects.toThrow("the server is not quiet");
  });
});
