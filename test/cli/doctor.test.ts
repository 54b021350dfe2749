/** `assay doctor`: a sound installation, and one fault after the other. */

import { expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };
import { checkClock, checkServer } from "../../src/doctor/check_database.ts";
import type { Finding } from "../../src/doctor/finding.ts";
import { createSeal } from "../../src/secrets/seal.ts";
import { claimSecretKeyDigest } from "../../src/store/instance.ts";
import { createFolder, run, type Variables } from "../commands.ts";
import { createBareDatabase, createHarness, SECRET_KEY, databaseVariables } from "../harness.ts";
import { startSharingPooler } from "../pgbouncer.ts";
import { BUCKET, createS3 } from "../s3.ts";

setDefaultTimeout(60_000);
const { database, connection, acme } = await createHarness({ ownDatabase: true });
const { pool } = database;
await claimSecretKeyDigest(pool, createSeal(SECRET_KEY).keyDigest, []);
const secretKey = Buffer.from(SECRET_KEY).toString("base64");
const dataDir = createFolder();
chmodSync(dataDir, 0o700);
const { endpoint, accessKeyId, secretAccessKey } = (await createS3()).settings;
const variables: Variables = {
  ...databaseVariables(connection),
  ...{ S3_ENDPOINT: endpoint!, S3_ACCESS_KEY_ID: accessKeyId!, S3_SECRET_ACCESS_KEY: secretAccessKey! },
  ...{ PUBLIC_URL: "https://localhost", TRUST_PROXY: "127.0.0.1" },
  ...{ DATA_DIR: dataDir, PORT: "0", SECRET_KEY: secretKey },
};

async function doctor(more: Variables = {}, args: string[] = []) {
  const { output, errors, ...ended } = await run(["doctor", ...args], { env: { ...variables, ...more } });
  expect(errors).toBe("");
  for (const secret of [secretKey, new URL(variables["DATABASE_URL"]!).password, "geheim"])
    expect(output).not.toContain(secret);
  return { ...ended, output };
}

const faultsOf = (findings: readonly Finding[]): string[] =>
  findings.filter(({ level }) => level !== "ok").map(({ level, area, message }) => `${level} ${area}: ${message}`);

/** The PostgreSQL of the tests has no role for Assay, and does not wait for the disk. */
const OF_TESTS = / is a superuser$|: (?:fsync|full_page_writes|synchronous_commit) is off, /;

async function findFaults(more: Variables = {}): Promise<string[]> {
  const { findings } = JSON.parse((await doctor(more, ["--json"])).output) as { findings: Finding[] };
  return faultsOf(findings).filter((fault) => !OF_TESTS.test(fault));
}

test("a sound installation has a line for each check, and the exit code says whether one has failed", async () => {
  const { code, output } = await doctor({ ATTACHMENTS_S3: `s3://${BUCKET}/doctor` });
  expect(code).toBe(1);
  expect(output).toContain("ok    configuration  The configuration is valid: DATABASE_URL, DATA_DIR");
  expect(output).toMatch(/^ok {4}disk {11}".+" has .+ of .+ free$/m);
  expect(output).toMatch(/^ok {4}database {7}PostgreSQL \d.*; the database takes \d/m);
  expect(output).toMatch(/^fail {2}database {7}fsync is off, so a power failure can .+\. Set fsync = on$/m);
  expect(output).toMatch(/^warn {2}database {7}The role "\w+" is a superuser\. Use a role/m);
  expect(output).toMatch(/^ok {4}clock {10}This machine and the database have the same time$/m);
  expect(output).toMatch(/^ok {4}database {7}The schema is \d+, that of this program$/m);
  expect(output).toMatch(/^ok {4}secret key {5}The secret key is the key of the database$/m);
  expect(output).toMatch(/^ok {4}server {9}Runners online: 0; deliveries that wait: 0$/m);
  expect(output).toContain(`ok    attachments    The bucket "${BUCKET}" can be written, read and cleared\n`);
  expect(output).toEndWith(" ok, 2 warnings, 2 failures\n");
});

test("every variable that cannot be read", async () => {
  const more = { DATABASE_URL: "mysql://a:geheim@b", PORT: "x", OUTBOUND_PROXY: "ftp://a:geheim@b" };
  expect(await findFaults(more)).toEqual(
    Array(3).fill(expect.stringMatching(/^fail configuration: Cannot read [A-Z]/)),
  );
});

test("what others may read, and a proxy that is not trusted", async () => {
  chmodSync(dataDir, 0o755);
  const file = join(createFolder(), "key");
  writeFileSync(file, secretKey, { mode: 0o644 });
  const more = { SECRET_KEY: "", SECRET_KEY_FILE: file, HOST: "0.0.0.0", TRUST_PROXY: "" };
  expect(await findFaults(more)).toEqual([
    expect.stringContaining("warn configuration: METRICS_TOKEN is not set"),
    expect.stringContaining("warn configuration: TRUST_PROXY is not set"),
    expect.stringContaining(`warn secret key: "${file}" has mode 0644`),
    expect.stringContaining(`warn disk: DATA_DIR "${dataDir}" has mode 0755`),
  ]);
  chmodSync(dataDir, 0o711);
});

test("a key that is not that of the database, is missing, or cannot be read; a DATA_DIR may be missing", async () => {
  const none = join(dataDir, "none");
  expect(await findFaults({ DATA_DIR: none, SECRET_KEY: Buffer.alloc(32, 9).toString("base64") })).toEqual([
    "fail secret key: The secret key is not the key of the database, so a server with it does not start",
  ]);
  const missing = "fail secret key: The database is used with a secret key, and there is none here";
  expect(await findFaults({ DATA_DIR: none, SECRET_KEY: "" })).toEqual([missing]);
  const file = join(dataDir, "secret-key");
  writeFileSync(file, "half", { mode: 0o600 });
  const unreadable = `fail secret key: Cannot read "${file}": expected 32 bytes in base64`;
  expect(await findFaults({ SECRET_KEY: "" })).toEqual([unreadable, missing]);
});

test("a server of another version that is not ready; a database, a proxy and a provider that are down", async () => {
  const fetch = ({ url }: Request) =>
    Response.json({ status: "ok", version: "0.0.1" }, { status: url.endsWith("/readyz") ? 503 : 200 });
  using server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch });
  const more = {
    ...{ DATABASE_URL: "postgres://a:geheim@127.0.0.1:1/x", HOST: "127.0.0.1", PORT: String(server.port) },
    ...{ OUTBOUND_PROXY: "http://user:geheim@127.0.0.1:1", OIDC_ISSUER: "http://127.0.0.1:1" },
    ...{ OIDC_CLIENT_ID: "assay", OIDC_CLIENT_SECRET: "geheimer" },
  };
  const [url, refused] = [`http://127.0.0.1:${server.port}`, "127.0.0.1:1: the connection was refused"];
  expect(await findFaults(more)).toEqual([
    `warn server: The server at ${url} has version 0.0.1, and this program ${packageJson.version}`,
    `fail server: The server at ${url} is not ready`,
    `fail database: Cannot connect to the database of DATABASE_URL at ${refused}`,
    "fail outbound: OUTBOUND_PROXY at 127.0.0.1:1 cannot be reached: the connection was refused",
    expect.stringMatching(/^fail outbound: The sign-in provider http:\/\/127\.0\.0\.1:1 cannot be used: /),
  ]);
  server.reload({ fetch: () => Response.json({ status: "ok" }) });
  expect(await findFaults({ ...more, OUTBOUND_PROXY: "" })).toContain(`warn server: No server answers at ${url}`);
});

test("old data that will be deleted, and a variable with a wrong name", async () => {
  await pool`insert into planned_deletion values (${acme.project}, 'executions', 400, 12, now(), now())`;
  expect(await findFaults({ RETENTION_DAY: "0" })).toEqual([
    "warn configuration: The variable RETENTION_DAY is not known; RETENTION_DAYS?",
    expect.stringMatching(/^warn retention: Project ".+": 12 executions with their test runs, older than 400 days/),
  ]);
  await pool`delete from planned_deletion`;
});

test("settings that lose data, close connections or make statements slow, and too few connections", async () => {
  const findings = await database.begin(async (sql) => {
    await sql`select set_config('idle_session_timeout', '10min', true)`;
    return await Array.fromAsync(checkServer(sql, { isBuiltIn: true, neededConnections: 100_000 }));
  });
  expect(faultsOf(findings)).toEqual([
    "fail database: fsync is off, so a power failure can destroy the database",
    "fail database: full_page_writes is off, so a power failure can destroy the database",
    "warn database: synchronous_commit is off, so a crash can lose the last acknowledged uploads",
    "warn database: idle_session_timeout is 10min, so PostgreSQL closes connections of the server",
    expect.stringMatching(/^fail database: PostgreSQL accepts \d+ connections, and this server may need 100000$/),
  ]);
});

test("a database that is newer than the program or empty, and a role that may not create tables", async () => {
  const [{ count }] = await pool<[{ count: number }]>`select max(number) as count from migration`;
  await pool`insert into migration (number, name) values (${count + 1}, 'next')`;
  const faults = await findFaults();
  await pool`delete from migration where number > ${count}`;
  expect(faults).toEqual([`fail database: The schema is ${count + 1}, and this program knows up to ${count}`]);
  const { connection: bare } = await createBareDatabase();
  const role = `guest_${crypto.randomUUID().replaceAll("-", "")}`;
  await pool.unsafe(`create role ${role} login password 'open sesame'`);
  const empty = await findFaults(databaseVariables({ ...bare, username: role, password: "open sesame" }));
  await pool.unsafe(`drop role ${role}`);
  expect(empty).toEqual([
    `fail database: The role "${role}" cannot create tables, so it can neither migrate nor add a month`,
    "warn database: The database is empty",
  ]);
});

test("a pooler that shares sessions, and a bucket that does not exist", async () => {
  const url = await startSharingPooler(connection, { lock_timeout: "15s" });
  expect(await findFaults({ DATABASE_URL: url, ATTACHMENTS_S3: "s3://no-such-bucket" })).toEqual([
    expect.stringMatching(/^fail database: DATABASE_URL leads through a pooler that shares sessions/),
    expect.stringContaining('fail attachments: The bucket "no-such-bucket" cannot be used'),
  ]);
});

test("a clock that differs from that of the database", async () => {
  const check = async (ms: number) => await Array.fromAsync(checkClock(pool, () => Date.now() - ms));
  expect(faultsOf(await check(0))).toEqual([]);
  expect(String(faultsOf(await check(30_000)))).toMatch(/^warn clock: .+ is \d+ s ahead of this machine$/);
  expect(String(faultsOf(await check(-90 * 60_000)))).toMatch(/^fail clock: .+ is 1:\d\d:\d\d behind this machine$/);
});

test("keys that are sent unencrypted, background work that is late, and a server that is quiet after a restore", async () => {
  const id = crypto.randomUUID();
  await pool`
    insert into event (team_id, id, type, data, occurred_at, due_at)
    values (${acme.team}, ${id}, 'test', '{}', now() - interval '3 hours', now())`;
  expect(await findFaults({ PUBLIC_URL: "http://192.0.2.1" })).toEqual([
    "warn configuration: PUBLIC_URL is an http address, so keys and passwords are sent unencrypted",
    expect.stringMatching(/^warn server: The oldest of the events that wait .+ is 3:00:\d\d old$/),
  ]);
  await pool`update instance set quiet_since = now()`;
  expect(await findFaults()).toEqual([expect.stringContaining("warn server: The server is quiet after a restore")]);
  await pool`update instance set quiet_since = null`;
  await pool`delete from event where id = ${id}`;
});
