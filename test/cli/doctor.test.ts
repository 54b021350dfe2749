/** `assay doctor`: a sound installation, and one fault after the other. */

import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };
import { selectBloatedTables, selectLongTransactions } from "../../src/database/diagnosis.ts";
import { createPartitions } from "../../src/database/partitions.ts";
import { checkClock } from "../../src/doctor/check_database.ts";
import { createSeal } from "../../src/secrets/seal.ts";
import { claimSecretKeyDigest } from "../../src/store/instance.ts";
import { run as runCommand, type Variables } from "../commands.ts";
import { createBareDatabase, createHarness, SECRET_KEY, databaseVariables } from "../harness.ts";
import { startSharingPooler } from "../pgbouncer.ts";
import { createPlace, removePlace } from "../places.ts";
import { BUCKET, createS3 } from "../s3.ts";

setDefaultTimeout(60_000);
const place = createPlace("doctor");
afterAll(() => removePlace(place));
const dataDir = join(place, "data");
mkdirSync(dataDir, { mode: 0o700 });

const { database, connection, acme } = await createHarness({ ownDatabase: true });
const { pool } = database;
await createPartitions(pool, new Date());
await claimSecretKeyDigest(pool, createSeal(SECRET_KEY).keyDigest, []);
const secretKey = Buffer.from(SECRET_KEY).toString("base64");

const sound: Variables = {
  ...databaseVariables(connection),
  ...{ DATA_DIR: dataDir, PORT: "0", PUBLIC_URL: "http://localhost:8080", SECRET_KEY: secretKey },
};

async function run(env: Variables, args: string[] = []) {
  const { code, output, errors } = await runCommand(["doctor", ...args], { env });
  expect(errors).toBe("");
  return { code, output };
}

type Found = { level: string; area: string; message: string; remedy?: string };
/** The PostgreSQL of the tests is not that of a server: it has no other role, and it does not wait for the disk. */
const OF_TESTS = /is a superuser|^fsync or full_page_writes is off|^synchronous_commit is off/;

/** Returns what is not "ok", beside what the tests themselves bring about. */
async function findFaults(more: Variables): Promise<string[]> {
  const { output } = await run({ ...sound, ...more }, ["--json"]);
  const { findings } = JSON.parse(output) as { findings: Found[] };
  const faults = findings.filter(({ level, message }) => level !== "ok" && !OF_TESTS.test(message));
  for (const { remedy } of faults) expect(remedy).toBeTruthy();
  return faults.map(({ level, area, message }) => `${level} ${area}: ${message}`);
}

describe("a sound installation", () => {
  test("has a line for each check, and the exit code says whether one has failed", async () => {
    const { code, output } = await run(sound);
    expect(code).toBe(1);
    expect(output).toContain("ok    configuration  The configuration is valid: DATABASE_URL, DATA_DIR");
    expect(output).toMatch(/^ok {4}database {7}PostgreSQL \d/m);
    expect(output).toMatch(/^ok {4}database {7}The schema is \d+, that of this program$/m);
    expect(output).toMatch(/^ok {4}clock {10}This machine and the database have the same time$/m);
    expect(output).toMatch(/^ok {4}secret key {5}The secret key is the key of the database$/m);
    expect(output).toMatch(/^warn {2}permissions {4}The role "\w+" is a superuser\. Use a role/m);
    expect(output).toMatch(/^fail {2}database {7}fsync or full_page_writes is off/m);
    expect(output).toMatch(/^warn {2}database {7}synchronous_commit is off, so a crash can lose/m);
    expect(output).toEndWith(" ok, 2 warnings, 1 failure\n");
    expect(output).not.toContain(new URL(sound["DATABASE_URL"]!).password);
    expect(output).not.toContain(secretKey);
  });
});

test("a server of another version is named, and one that is none is no server", async () => {
  const find = async (answer: object) => {
    using server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => Response.json(answer) });
    const env = { DATA_DIR: join(place, "none"), HOST: "127.0.0.1", PORT: String(server.port) };
    return (await run(env)).output.replaceAll(`:${server.port}`, ":PORT");
  };
  const other = await find({ status: "ok", version: "0.0.1" });
  expect(other).toContain(
    "warn  server         The server at http://127.0.0.1:PORT has version 0.0.1, and this program",
  );
  expect(other).not.toContain("server.log");
  expect(await find({ status: "ok" })).not.toContain("The server at http://127.0.0.1:PORT has");
});

describe("the configuration and the disk", () => {
  test("name every variable that cannot be read, and no secret", async () => {
    const { code, output } = await run({
      DATABASE_URL: "mysql://a:geheim@b",
      PORT: "x",
      OUTBOUND_PROXY: "ftp://a:geheim@b",
    });
    expect(code).toBe(1);
    expect(output.match(/^fail {2}configuration {2}Cannot read (\w+)/gm)).toHaveLength(3);
    expect(output).not.toContain("geheim");
  });

  test("warn about a proxy that is not trusted, and about keys that are sent unencrypted", async () => {
    const untrusted = "warn configuration: TRUST_PROXY is not set, although PUBLIC_URL is the address of a proxy";
    expect(await findFaults({ PUBLIC_URL: "https://localhost" })).toEqual([expect.stringContaining(untrusted)]);
    expect(await findFaults({ PUBLIC_URL: "https://localhost", TRUST_PROXY: "127.0.0.1" })).toEqual([]);
    expect(await findFaults({ PUBLIC_URL: "http://192.0.2.1" })).toEqual([
      "warn configuration: PUBLIC_URL is an http address, so keys and passwords are sent unencrypted",
    ]);
  });

  test("warn about what others may read", async () => {
    const open = join(place, "open");
    mkdirSync(open);
    chmodSync(open, 0o755);
    const file = join(place, "key");
    writeFileSync(file, secretKey, { mode: 0o644 });
    expect(await findFaults({ DATA_DIR: open, SECRET_KEY: "", SECRET_KEY_FILE: file, HOST: "0.0.0.0" })).toEqual([
      expect.stringContaining("warn configuration: METRICS_TOKEN is not set"),
      expect.stringContaining(`warn secret key: "${file}" has mode 0644`),
      expect.stringContaining(`warn disk: DATA_DIR "${open}" has mode 0755`),
    ]);
  });

  test("say nothing of a DATA_DIR that is not needed yet, and miss one that has attachments", async () => {
    const none = join(place, "none");
    expect((await run({ ...sound, DATA_DIR: none })).output).toContain(
      `ok    disk           DATA_DIR "${none}" does not exist yet`,
    );
    expect(await findFaults({ DATA_DIR: none })).toEqual([]);
    const content = pool`owner_id = ${acme.project} and sha256 = 'doctor'`;
    await pool`insert into attachment_content (owner_id, sha256, bytes, is_stored) values (${acme.project}, 'doctor', 1, true)`;
    expect(await findFaults({ DATA_DIR: none })).toEqual([
      `fail attachments: "${join(none, "attachments")}" does not exist, and the database lists stored attachments`,
    ]);
    await pool`delete from attachment_content where ${content}`;
  });

  test("fail for a key that is not that of the database, or is missing", async () => {
    const other = Buffer.alloc(32, 9).toString("base64");
    expect(await findFaults({ SECRET_KEY: other })).toEqual([
      "fail secret key: The secret key is not the key of the database, so a server with it does not start",
    ]);
    expect(await findFaults({ SECRET_KEY: "" })).toEqual([
      "fail secret key: The database is used with a secret key, and there is none here",
    ]);
    writeFileSync(join(dataDir, "secret-key"), "half", { mode: 0o600 });
    expect(await findFaults({ SECRET_KEY: "" })).toContain(
      `fail secret key: Cannot read "${join(dataDir, "secret-key")}": expected 32 bytes in base64`,
    );
  });
});

describe("the database", () => {
  test("that is down is one failure, and the other checks go on", async () => {
    const { code, output } = await run({ ...sound, DATABASE_URL: "postgres://a:geheim@127.0.0.1:1/x" });
    expect(code).toBe(1);
    expect(output).toContain(
      "fail  database       Cannot connect to the database of DATABASE_URL at 127.0.0.1:1: the connection was refused.",
    );
    expect(output).toContain('ok    outbound       The name "localhost" of PUBLIC_URL can be resolved\n');
    expect(output).not.toContain("geheim");
  });

  test("has settings that close connections, and too few of them", async () => {
    const name = connection["database"];
    await pool.unsafe(`alter database ${name} set idle_session_timeout = '10min'`);
    expect(await findFaults({ DATABASE_POOL: "25" })).toEqual([
      "warn database: idle_session_timeout closes connections of the server",
      expect.stringMatching(/^fail database: PostgreSQL accepts \d+ connections, and this server may need 76$/),
    ]);
    await pool.unsafe(`alter database ${name} reset all`);
  });

  test("is newer than the program, older, or empty", async () => {
    const [{ count }] = await pool<[{ count: number }]>`select max(number) as count from migration`;
    await pool`insert into migration (number, name) values (${count + 1}, 'next')`;
    expect(await findFaults({})).toEqual([
      `fail database: The schema is ${count + 1}, and this program knows up to ${count}`,
    ]);
    await pool`delete from migration where number > ${count}`;
    const { connection: bare } = await createBareDatabase();
    expect(await findFaults(databaseVariables(bare))).toEqual(["warn database: The database is empty"]);
  });

  test("belongs to a role that may not create tables", async () => {
    const { connection: bare } = await createBareDatabase();
    const role = `guest_${crypto.randomUUID().replaceAll("-", "")}`;
    await pool.unsafe(`create role ${role} login password 'open sesame'`);
    try {
      expect(await findFaults(databaseVariables({ ...bare, username: role, password: "open sesame" }))).toEqual([
        "warn database: The database is empty",
        `fail permissions: The role "${role}" cannot create tables, so it can neither migrate nor add a month`,
      ]);
    } finally {
      await pool.unsafe(`drop role ${role}`);
    }
  });

  test("has an invalid index, outdated statistics, dead rows, and lacks a partition", async () => {
    // With rows of two kilobytes it is as large as the tables that matter.
    await pool`create table doctor_probe (a int, filling text default repeat('x', 2000)) with (autovacuum_enabled = false)`;
    await pool`insert into doctor_probe (a) select 1 from generate_series(1, 20000)`;
    await pool`create unique index concurrently doctor_index on doctor_probe (a)`.catch(() => {});
    await pool`update doctor_probe set a = 2`;
    const next = new Date(Date.UTC(new Date().getUTCFullYear(), new Date().getUTCMonth() + 1))
      .toISOString()
      .slice(0, 7);
    const partition = `case_detail_${next.replace("-", "_")}`;
    await pool.unsafe(`drop table ${partition}`);
    // The statistics of a session reach the others when it ends.
    await pool`select pg_stat_force_next_flush()`;
    expect((await selectBloatedTables(pool)).map(({ name, dead }) => [name, dead])).toEqual([["doctor_probe", 20_000]]);
    expect(await findFaults({})).toEqual([
      expect.stringContaining("warn tables: Statistics are missing or outdated: doctor_probe"),
      "warn tables: doctor_probe has 20000 dead rows beside 20000 live ones",
      "fail tables: Indexes are invalid: doctor_index",
      `warn tables: Partitions are missing: ${partition}`,
    ]);
    await pool`drop table doctor_probe`;
    await createPartitions(pool, new Date());
    expect(await findFaults({})).toEqual([]);
  });

  test("has a transaction that stays open", async () => {
    await database.begin(async (sql) => {
      const [{ pid }] = await sql<[{ pid: number }]>`select pg_backend_pid() as pid`;
      expect([...(await selectLongTransactions(pool, 0))]).toEqual([
        { pid, application: "assay", state: "idle in transaction", seconds: expect.any(Number) },
      ]);
      expect(await selectLongTransactions(pool)).toHaveLength(0);
    });
  });

  test("is behind a pooler that shares sessions", async () => {
    const url = await startSharingPooler(connection, { lock_timeout: "15s" });
    expect(await findFaults({ DATABASE_URL: url })).toContainEqual(
      expect.stringMatching(/^fail database: DATABASE_URL leads through a pooler that shares sessions/),
    );
  });

  test("has another time than this machine", async () => {
    const checkAhead = async (ms: number) => (await checkClock(pool, () => Date.now() - ms))[0]!;
    expect(await checkAhead(0)).toMatchObject({ level: "ok" });
    expect(await checkAhead(30_000)).toMatchObject({
      level: "warn",
      message: "The clock of the database is 30 seconds ahead of this machine",
    });
    expect(await checkAhead(-3 * 3_600_000)).toMatchObject({
      level: "fail",
      message: "The clock of the database is 3 hours behind this machine",
    });
  });
});

describe("the service", () => {
  test("has runners of other versions, and integrations that fail", async () => {
    const { project, team } = acme;
    await pool`
      insert into runner (project_id, name, labels, free, held, seen_at, version) values
        (${project}, 'new', '{}', 1, 0, now(), ${packageJson.version}), (${project}, 'old', '{}', 1, 0, now(), '0.0.1'),
        (${project}, 'gone', '{}', 1, 0, now() - interval '1 hour', '0.0.1')`;
    const integration = crypto.randomUUID();
    await pool`
      insert into integration (team_id, id, kind, name, config, sealed, failing_since)
      values (${team}, ${integration}, 'webhook', 'CI', '{}', '', now() - interval '3 hours')`;
    await pool`
      insert into delivery (team_id, integration_id, id, action, options, event_type, notice, tries, attempts)
      values (${team}, ${integration}, ${crypto.randomUUID()}, 'send', '{}', 'test', '{}', 2, '[{"error":"The answer was 500"}]')`;
    expect(await findFaults({})).toEqual([
      'warn outbound: The integration "CI" (webhook) has been failing for 3 hours: The answer was 500',
      'warn runners: 1 of 2 online runners have version 0.0.1, such as "old"',
    ]);
    await pool`delete from integration where id = ${integration}`;
    await pool`delete from runner where project_id = ${project}`;
  });

  test("is quiet after a restore", async () => {
    await pool`update instance set quiet_since = now()`;
    expect(await findFaults({})).toEqual([
      "warn server: The server is quiet after a restore: it sends, schedules and deletes nothing",
    ]);
    await pool`update instance set quiet_since = null`;
  });
});

describe("the network", () => {
  test("has a proxy and a provider that do not answer, without their passwords", async () => {
    const more = {
      OUTBOUND_PROXY: "http://user:geheim@127.0.0.1:1",
      ...{ OIDC_ISSUER: "http://127.0.0.1:1", OIDC_CLIENT_ID: "assay", OIDC_CLIENT_SECRET: "geheimer" },
    };
    const { code, output } = await run({ ...sound, ...more });
    expect(code).toBe(1);
    expect(output).toContain(
      "fail  outbound       OUTBOUND_PROXY at 127.0.0.1:1 cannot be reached: the connection was refused.",
    );
    expect(output).toContain("fail  outbound       The sign-in provider http://127.0.0.1:1 cannot be used:");
    expect(output).not.toContain("geheim");
  });

  test("has a bucket that takes and returns attachments, or does not", async () => {
    const { settings } = await createS3();
    const variables = {
      S3_ENDPOINT: settings.endpoint!,
      ...{ S3_ACCESS_KEY_ID: settings.accessKeyId!, S3_SECRET_ACCESS_KEY: settings.secretAccessKey! },
    };
    const { output } = await run({ ...sound, ...variables, ATTACHMENTS_S3: `s3://${BUCKET}/doctor` });
    expect(output).toContain(`ok    attachments    The bucket "${BUCKET}" can be written, read and cleared\n`);
    expect(await findFaults({ ...variables, ATTACHMENTS_S3: "s3://no-such-bucket" })).toEqual([
      expect.stringContaining('fail attachments: The bucket "no-such-bucket" cannot be used'),
    ]);
  });
});
