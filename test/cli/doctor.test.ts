/** `assay doctor`: a sound installation, and one fault after the other. */

import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { checkClock, checkServer } from "../../src/doctor/check_database.ts";
import type { Finding } from "../../src/doctor/finding.ts";
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

/** Describes findings that are not "ok". */
const faultsOf = (findings: readonly Finding[]): string[] =>
  findings
    .filter(({ level }) => level !== "ok")
    .map(({ level, area, message, remedy }) => {
      expect(remedy).toBeTruthy();
      return `${level} ${area}: ${message}`;
    });

/** The PostgreSQL of the tests has no role for Assay, and does not wait for the disk. */
const OF_TESTS = / is a superuser$|: (?:fsync|full_page_writes|synchronous_commit) is off, /;

async function findFaults(more: Variables): Promise<string[]> {
  const { output } = await run({ ...sound, ...more }, ["--json"]);
  return faultsOf((JSON.parse(output) as { findings: Finding[] }).findings).filter((fault) => !OF_TESTS.test(fault));
}

test("a sound installation has a line for each check, and the exit code says whether one has failed", async () => {
  const { code, output } = await run(sound);
  expect(code).toBe(1);
  expect(output).toContain("ok    configuration  The configuration is valid: DATABASE_URL, DATA_DIR");
  expect(output).toMatch(/^ok {4}database {7}PostgreSQL \d.*; the database takes \d/m);
  expect(output).toMatch(/^ok {4}database {7}The schema is \d+, that of this program$/m);
  expect(output).toMatch(/^ok {4}disk {11}".+" has .+ of .+ free$/m);
  expect(output).toMatch(/^ok {4}clock {10}This machine and the database have the same time$/m);
  expect(output).toMatch(/^ok {4}secret key {5}The secret key is the key of the database$/m);
  expect(output).toMatch(/^ok {4}server {9}Runners online: 0; deliveries that wait: 0$/m);
  expect(output).toMatch(/^warn {2}database {7}The role "\w+" is a superuser\. Use a role/m);
  expect(output).toMatch(
    /^fail {2}database {7}fsync is off, so a power failure can destroy the database\. Set fsync = on$/m,
  );
  expect(output).toEndWith(" ok, 2 warnings, 2 failures\n");
  expect(output).not.toContain(new URL(sound["DATABASE_URL"]!).password);
  expect(output).not.toContain(secretKey);
});

test("a server of another version, or one that is not ready, is named, and what is no server is none", async () => {
  const find = async (answer: object) => {
    const fetch = ({ url }: Request) => Response.json(answer, { status: url.endsWith("/readyz") ? 503 : 200 });
    using server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch });
    const env = { DATA_DIR: join(place, "none"), HOST: "127.0.0.1", PORT: String(server.port) };
    return (await run(env)).output.replaceAll(`:${server.port}`, ":PORT");
  };
  const other = await find({ status: "ok", version: "0.0.1" });
  expect(other).toContain(
    "warn  server         The server at http://127.0.0.1:PORT has version 0.0.1, and this program",
  );
  expect(other).toContain("fail  server         The server at http://127.0.0.1:PORT is not ready. Look at its log\n");
  expect(await find({ status: "ok" })).toContain("warn  server         No server answers at http://127.0.0.1:PORT. ");
});

test("every variable that cannot be read is named, and no secret", async () => {
  const env = { DATABASE_URL: "mysql://a:geheim@b", PORT: "x", OUTBOUND_PROXY: "ftp://a:geheim@b" };
  const { code, output } = await run(env);
  expect(code).toBe(1);
  expect(output.match(/^fail {2}configuration {2}Cannot read (\w+)/gm)).toHaveLength(3);
  expect(output).not.toContain("geheim");
});

test("what others may read, a proxy that is not trusted, and keys that are sent unencrypted", async () => {
  const open = join(place, "open");
  mkdirSync(open);
  chmodSync(open, 0o755);
  const file = join(place, "key");
  writeFileSync(file, secretKey, { mode: 0o644 });
  const more = { DATA_DIR: open, SECRET_KEY: "", SECRET_KEY_FILE: file, HOST: "0.0.0.0" };
  expect(await findFaults({ ...more, PUBLIC_URL: "https://localhost" })).toEqual([
    expect.stringContaining("warn configuration: METRICS_TOKEN is not set"),
    expect.stringContaining("warn configuration: TRUST_PROXY is not set"),
    expect.stringContaining(`warn secret key: "${file}" has mode 0644`),
    expect.stringContaining(`warn disk: DATA_DIR "${open}" has mode 0755`),
  ]);
  chmodSync(open, 0o711);
  expect(await findFaults({ DATA_DIR: open, PUBLIC_URL: "http://192.0.2.1", TRUST_PROXY: "127.0.0.1" })).toEqual([
    "warn configuration: PUBLIC_URL is an http address, so keys and passwords are sent unencrypted",
  ]);
});

test("a key that is not that of the database, is missing, or cannot be read; a DATA_DIR that is missing", async () => {
  const directory = join(place, "none");
  expect(await findFaults({ DATA_DIR: directory, SECRET_KEY: Buffer.alloc(32, 9).toString("base64") })).toEqual([
    "fail secret key: The secret key is not the key of the database, so a server with it does not start",
  ]);
  mkdirSync(directory, { mode: 0o700 });
  const missing = "fail secret key: The database is used with a secret key, and there is none here";
  expect(await findFaults({ DATA_DIR: directory, SECRET_KEY: "" })).toEqual([missing]);
  const file = join(directory, "secret-key");
  writeFileSync(file, "half", { mode: 0o600 });
  expect(await findFaults({ DATA_DIR: directory, SECRET_KEY: "" })).toEqual([
    `fail secret key: Cannot read "${file}": expected 32 bytes in base64`,
    missing,
  ]);
});

test("a database that is down is one failure, and so are a proxy and a provider; no password is printed", async () => {
  const { code, output } = await run({
    ...{
      ...sound,
      DATABASE_URL: "postgres://a:geheim@127.0.0.1:1/x",
      OUTBOUND_PROXY: "http://user:geheim@127.0.0.1:1",
    },
    ...{ OIDC_ISSUER: "http://127.0.0.1:1", OIDC_CLIENT_ID: "assay", OIDC_CLIENT_SECRET: "geheimer" },
  });
  expect(code).toBe(1);
  const refused = "the connection was refused.";
  expect(output).toContain(
    `fail  database       Cannot connect to the database of DATABASE_URL at 127.0.0.1:1: ${refused} Start PostgreSQL`,
  );
  expect(output).toContain(`fail  outbound       OUTBOUND_PROXY at 127.0.0.1:1 cannot be reached: ${refused}`);
  expect(output).toContain('ok    outbound       The name "localhost" of PUBLIC_URL can be resolved\n');
  expect(output).toContain("fail  outbound       The sign-in provider http://127.0.0.1:1 cannot be used:");
  expect(output).toEndWith(" 0 warnings, 3 failures\n");
  expect(output).not.toContain("geheim");
});

test("settings that lose data, close connections or make statements slow, and too few connections", async () => {
  const findings = await database.begin(async (sql) => {
    await sql`select set_config('jit', 'on', true), set_config('idle_session_timeout', '10min', true)`;
    return await Array.fromAsync(checkServer(sql, { isBuiltIn: true, neededConnections: 100_000 }));
  });
  expect(faultsOf(findings)).toEqual([
    "fail database: fsync is off, so a power failure can destroy the database",
    "fail database: full_page_writes is off, so a power failure can destroy the database",
    "warn database: synchronous_commit is off, so a crash can lose the last acknowledged uploads",
    "warn database: idle_session_timeout is 10min, so PostgreSQL closes connections of the server",
    "warn database: jit is on, so PostgreSQL may compile a statement for longer than it takes to execute it",
    expect.stringMatching(/^fail database: PostgreSQL accepts \d+ connections, and this server may need 100000$/),
  ]);
});

test("a database that is newer than the program or empty, and a role that may not create tables", async () => {
  const [{ count }] = await pool<[{ count: number }]>`select max(number) as count from migration`;
  await pool`insert into migration (number, name) values (${count + 1}, 'next')`;
  const faults = await findFaults({});
  await pool`delete from migration where number > ${count}`;
  expect(faults).toEqual([`fail database: The schema is ${count + 1}, and this program knows up to ${count}`]);
  const { connection: bare } = await createBareDatabase();
  const role = `guest_${crypto.randomUUID().replaceAll("-", "")}`;
  await pool.unsafe(`create role ${role} login password 'open sesame'`);
  try {
    expect(await findFaults(databaseVariables({ ...bare, username: role, password: "open sesame" }))).toEqual([
      `fail database: The role "${role}" cannot create tables, so it can neither migrate nor add a month`,
      "warn database: The database is empty",
    ]);
  } finally {
    await pool.unsafe(`drop role ${role}`);
  }
});

test("a pooler that shares sessions", async () => {
  const url = await startSharingPooler(connection, { lock_timeout: "15s" });
  expect(await findFaults({ DATABASE_URL: url })).toEqual([
    expect.stringMatching(/^fail database: DATABASE_URL leads through a pooler that shares sessions/),
  ]);
});

test("a clock that differs from that of the database", async () => {
  const check = async (ms: number) => await Array.fromAsync(checkClock(pool, () => Date.now() - ms));
  expect(faultsOf(await check(0))).toEqual([]);
  expect(faultsOf(await check(30_000))).toEqual([
    expect.stringMatching(/^warn clock: The clock of the database is 30 s ahead of this machine$/),
  ]);
  expect(faultsOf(await check(-3 * 3_600_000))).toEqual([
    expect.stringMatching(/^fail clock: The clock of the database is (?:3:00:00|2:59:59) behind this machine$/),
  ]);
});

test("background work that is late, and a server that is quiet after a restore", async () => {
  const integration = crypto.randomUUID();
  await pool`
    insert into integration (team_id, id, kind, name, config, sealed)
    values (${acme.team}, ${integration}, 'webhook', 'CI', '{}', '')`;
  await pool`
    insert into delivery (team_id, integration_id, id, action, options, event_type, notice, due_at)
    values (${acme.team}, ${integration}, ${crypto.randomUUID()}, 'send', '{}', 'test', '{}', now() - interval '3 hours')`;
  expect(await findFaults({})).toEqual([
    expect.stringMatching(/^warn server: The oldest of the deliveries that wait for background work is 3:00:\d\d old$/),
  ]);
  await pool`update instance set quiet_since = now()`;
  expect(await findFaults({})).toEqual([
    "warn server: The server is quiet after a restore: it sends, schedules and deletes nothing",
  ]);
  await pool`update instance set quiet_since = null`;
  await pool`delete from integration where id = ${integration}`;
});

test("a bucket that takes and returns attachments, or does not", async () => {
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
